"""Read cases/*.yaml into Cases, and with a Spec into the Suite."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..model import (
    INTEGERS,
    Case,
    Cases,
    ExpectedResult,
    Malformed,
    Operand,
    Place,
    Problem,
    Spec,
    Step,
    Suite,
    UnreadCase,
)
from ..model.cases import CASE_KEYS, STEP_KEYS
from ..model.types import WIDTH, range_of
from ..system.text import describe_unknown, quote, quote_json
from .each import UnusableSteps, find_first_name, format_values, write_out
from .folders import digest_of_folders, find_cases_folder, find_folders, find_spec_folder, layers
from .locks import LOCK, find_earlier_suites, read_lock
from .schema import explained_by_schema, is_printable, read_file, without_secrets
from .spec import check_extends, load_spec, parse_tensor
from .strict_yaml import YamlMap, parse, raise_problems, read_text


def load_suite(folder: Path | None = None) -> Suite:
    """Load a suite from a folder with spec/, cases/ or both in it; the bundled suite if none is given."""
    return with_cases(load_spec(find_folders(folder).spec), folder)


def with_cases(spec: Spec, folder: Path | None) -> Suite:
    """Load the cases of the folder of a suite, with a spec that is already loaded."""
    found = find_folders(folder)
    folders = layers(found.cases, find_cases_folder())
    digest = digest_of_folders([*layers(found.spec, find_spec_folder()), *folders])
    cases, own = _load(folders, spec)
    bundled = [find_spec_folder(), find_cases_folder()]
    whole = [layers(found.spec, bundled[0])[0], folders[0]] == bundled or digest == digest_of_folders(bundled)
    lost = tuple(name for name in read_lock(find_cases_folder()) or [LOCK] if name not in cases) if whole else ()
    return Suite(
        spec, cases, digest, own if len(folders) > 1 else frozenset(), whole, lost, folder,
        find_earlier_suites(find_cases_folder(), digest),
    )  # fmt: skip


_FILE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""The names that a case file may have; its name is part of the names of its rows."""
_MAX_ELEMENTS = 1 << 28
"""Elements that src may have in a case without `large`: 1 GiB of f32."""
_MAX_DIMS = 1000
"""Dims of src."""
_Tensor = tuple[str, tuple[int, ...]]
"""Type and dims."""
_DRAWN_ID = re.compile("drawn-[0-9]+-[0-9]+|fresh-[0-9a-f]{8}-[0-9]+")
"""The ids of cases that a run draws; evidence counts rows of such a case as drawn ones."""
_ID = "[a-z][a-z0-9-]*"
_BEGIN = re.compile(rf"^  - (?:id: ({_ID})\n(?:    title: .*\n)?    rule: ({_ID})\n)?", re.MULTILINE)
_KEY_OF_FILE = re.compile(r"^[^\s#]", re.MULTILINE)


def load_cases(folder: Path, spec: Spec) -> Cases:
    """Load every case of a folder by id, in file order; Malformed, with every problem, if anything is wrong."""
    return _load(layers(folder, find_cases_folder()), spec)[0]


@explained_by_schema()
def _load(folders: Sequence[Path], spec: Spec) -> tuple[Cases, frozenset[str]]:
    """Load the cases of some folders, each adding to the one before; also return the ids that the last one adds."""
    problems: list[Problem] = []
    cases: dict[str, Case | UnreadCase] = {}
    before: set[str] = set()
    is_bundled = folders[0] == find_cases_folder() and spec.digest == digest_of_folders([find_spec_folder()])
    for number, folder in enumerate(folders):
        paths = sorted(folder.glob("*.yaml"))
        others = (path for pattern in ("*.yml", "*/*.yaml") for path in folder.glob(pattern))
        if unread_files := sorted(str(path.relative_to(folder)) for path in others):
            what = f"the file {unread_files[0]!r} is not read, as only *.yaml files right here are; rename or move it"
            raise Malformed((Problem(Place(str(folder)), what),))
        if not paths:
            what = "holds no *.yaml; write cases there, or delete the folder so that the bundled ones are read"
            raise Malformed((Problem(Place(str(folder)), what),))
        before = set(cases)
        for path in paths:
            if not _FILE_NAME.fullmatch(path.name):
                what = f"the file name {path.name!r} has more than letters, digits, _, . and -; rename the file"
                raise Malformed((Problem(Place(str(folder)), what),))
            unread = _find_unread(path, spec) if is_bundled and number == 0 else {}
            if unread and not unread.keys() & cases.keys():
                cases |= unread
            else:
                problems += _load_file(path, number > 0, spec, cases)
    raise_problems(problems)
    return Cases(cases), frozenset(cases.keys() - before)


class YamlEntry(NamedTuple):
    """The text of a case in its file."""

    id: str
    rule: str
    line: int
    text: str


def _find_unread(path: Path, spec: Spec) -> dict[str, UnreadCase]:
    """Find the cases of a bundled file without reading them, so that a run of one case does not wait for the others.

    Empty if the file must be read whole.
    """
    name, unread = f"{path.parent.name}/{path.name}", {}
    text = read_text(path, name)[0] or ""
    entries = split_entries(text) if is_printable(name) else []
    for entry in entries:
        unread[entry.id] = UnreadCase(entry.rule, "\n    each:" in entry.text, partial(_read_entry, entry, name, spec))
    return unread if len(unread) == len(entries) else {}


def split_entries(text: str) -> list[YamlEntry]:
    """Split the text of a file into its cases, without reading it as YAML.

    None at all if one does not begin with its id and rule, or if another key follows them.
    """
    begins = list(_BEGIN.finditer(text))
    if begins and _KEY_OF_FILE.search(text, begins[0].start()):
        return []
    ends = [*(begin.start() for begin in begins[1:]), len(text)]
    entries, line, last = [], 1, 0
    for begin, end in zip(begins, ends, strict=False):
        if begin[1] is None:
            return []
        line += text.count("\n", last, begin.start())
        last = begin.start()
        entries.append(YamlEntry(begin[1], begin[2], line, text[last:end]))
    return entries


def _read_entry(entry: YamlEntry, path: str, spec: Spec) -> Case:
    content, problems = parse(entry.text, path, entry.line)
    raise_problems(problems)
    reader = _CaseReader(content[0], path, spec)
    with explained_by_schema():
        case = reader.case()
    raise_problems(reader.problems)
    return case


def _load_file(path: Path, extends: bool, spec: Spec, cases: dict[str, Case | UnreadCase]) -> list[Problem]:
    """Add the cases of a file to `cases`; return the problems found."""
    content, problems = read_file(path, "cases")
    name = f"{path.parent.name}/{path.name}"
    if content is None or problems or (problems := check_extends(content, extends, name)):
        return problems
    for entry in content["cases"]:
        reader = _CaseReader(entry, name, spec)
        case = reader.case()
        if case.id in cases:
            reader.wrong("id", f"the id {quote(case.id)} is taken by {Cases(cases)[case.id].place}; choose another")
        problems += without_secrets(reader.problems, [path])
        cases.setdefault(case.id, case)
    return list(dict.fromkeys(problems))


class _CaseReader:
    def __init__(self, entry: YamlMap, path: str, spec: Spec) -> None:
        self.entry, self.path, self.spec = entry, path, spec
        self.problems: list[Problem] = []

    def wrong(self, key: str, what: str, entry: YamlMap | None = None) -> None:
        entry = self.entry if entry is None else entry
        self.problems.append(Problem(Place(self.path, entry.lines.get(key, entry.line)), what))

    def case(self) -> Case:
        entry = self.entry
        if _DRAWN_ID.fullmatch(entry["id"]):
            self.wrong("id", f"the id {quote(entry['id'])} is one of those that drawn cases have; choose another")
        if entry["rule"] not in self.spec.rules:
            self.wrong("rule", describe_unknown("rule", entry["rule"], self.spec.rules, "conformance list rules"))
        for key in ("shape_type", "dst_type"):
            if entry.get(key, "f32") not in WIDTH:
                self.wrong(key, describe_unknown("type", entry[key], WIDTH))
        if "steps" in entry and "expect" in entry:
            self.wrong("expect", "a case with steps expects something at each step, not as a whole; move it there")
        steps = self.steps()
        if len({len(step.shapes) for step in steps}) > 1:
            self.wrong("steps", "the steps have chains of several lengths, but share a graph; write them as cases")
        declared = entry.get("declared")
        return Case(
            id=entry["id"],
            file=self.path,
            rule=entry["rule"],
            steps=steps,
            place=Place(self.path, entry.line),
            declared=tuple(declared) if isinstance(declared, list) else declared,
            attributes={name: self.operand(name, value) for name, value in entry.get("attributes", {}).items()},
            inputs=_read_counts(entry.get("inputs", {})),
            outputs=_read_counts(entry.get("outputs", {})),
            links=tuple(entry.get("links", ())),
            **{key.name: entry[key.name] for key in CASE_KEYS if key.name in entry},
            generated="each" in entry,
        )

    def steps(self) -> tuple[Step, ...]:
        """Read the steps of the entry, or write them out if it has `each`."""
        entry = self.entry
        if "each" not in entry:
            calls, before = [entry, *entry.get("steps", ())], len(self.problems)
            for part in (*calls, *(link for call in calls for link in call.get("chain", ()))):
                for key in ("src", "shape", "expect"):
                    if name := find_first_name(part.get(key)):
                        what = f"{key} has the name {quote(name)}, which is in no `each`; write a length"
                        self.wrong(key, what, part)
            if len(self.problems) > before:
                return ()
            return tuple(self.step(step) for step in entry.get("steps", [entry]))
        if "steps" in entry:
            self.wrong("each", "a case has either `each` or `steps`; write it as two cases")
            return ()
        try:
            written = write_out(entry)
        except UnusableSteps as why:
            self.wrong("each", str(why))
            return ()
        steps = []
        for keys, values in written:
            before = len(self.problems)
            steps.append(self.step(entry, keys))
            if len(self.problems) > before:
                where = f" (with {format_values(values)})"
                self.problems[before:] = [p._replace(what=p.what + where) for p in self.problems[before:]]
                break
        return tuple(steps)

    def operand(self, name: str, value: Any) -> Operand | None:
        if value == "missing":
            return None
        content = value["values"]
        values = tuple(content) if isinstance(content, list) else (content,)
        dims = (len(values),) if value["type"].endswith("[]") else ()
        type_ = value["type"].removesuffix("[]")
        if type_ not in (*WIDTH, "string"):
            self.wrong("attributes", f"{name}: {describe_unknown('type', type_, (*WIDTH, 'string'))}")
            return None
        if not dims and len(values) != 1:
            self.wrong("attributes", f"{name}: {len(values)} values of one {type_}; write one, or type: {type_}[]")
        for element in values:
            if not _is_of_type(element, type_):
                self.wrong("attributes", f"{name}: {quote_json(element)} is no {type_}; correct the value or the type")
        return Operand(type_, dims, values)

    def step(self, entry: YamlMap, written_out: Mapping[str, Any] | None = None) -> Step:
        whole = {**self.entry, **entry, **(written_out or {})} if entry is not self.entry or written_out else entry
        for key in ("src", "shape", "special_zero", "expect"):
            if key not in whole:
                self.wrong(key, f"missing key {key!r}; add it to the case or to the step", entry)
        src_type, src = self.read_src(whole, entry)
        chain = whole.get("chain", [])
        shapes = [whole.get("shape", []), *(link["shape"] for link in chain)]
        zeros = [whole.get("special_zero", False), *(link["special_zero"] for link in chain)]
        return Step(
            src_type=src_type,
            src=src,
            shapes=tuple(tuple(shape) for shape in shapes),
            special_zero=tuple(zeros),
            expect=self.read_expectations(whole.get("expect", "unspecified"), entry, src_type),
            **{key.name: whole[key.name] for key in STEP_KEYS if key.name in whole},
        )

    def read_src(self, whole: Mapping[str, Any], entry: YamlMap) -> _Tensor:
        text = whole.get("src", "T[]")
        tensor = _as_tensor(text)
        if tensor is None or (tensor[0] != "T" and tensor[0] not in WIDTH):
            what = f"{quote(_write_text(text))} is no tensor; write a type and lengths, such as T[2, 3] or f32[0]"
            self.wrong("src", what, entry)
            return "T", ()
        place = entry if "src" in entry else self.entry
        if len(tensor[1]) > _MAX_DIMS:
            self.wrong("src", f"src has {len(tensor[1]):,} dims; at most {_MAX_DIMS:,} are tried", place)
            return "T", ()
        if (volume := math.prod(tensor[1])) > _MAX_ELEMENTS and not self.entry.get("large", False):
            what = f"{volume:,}" if volume < 1 << 64 else "more than 2^64"
            self.wrong("src", f"src has {what} elements; write `large: true`, or fewer", place)
        if mistake := _find_mistake_of_bits(whole.get("bits", "edges"), tensor[0]):
            self.wrong("bits", mistake, entry)
        return tensor

    def read_expectations(self, value: Any, entry: YamlMap, src_type: str) -> dict[str, ExpectedResult]:
        by_document = value if isinstance(value, YamlMap) else {"*": value}
        result = {}
        for document, text in by_document.items():
            if document != "*" and document not in self.spec.documents:
                self.wrong("expect", describe_unknown("document", document, self.spec.documents), entry)
            result[document] = self.read_expectation(text, entry, src_type)
        return result

    def read_expectation(self, text: str | _Tensor, entry: YamlMap, src_type: str) -> ExpectedResult:
        if text == "reject":
            return ExpectedResult("illegal")
        if text == "unspecified":
            return ExpectedResult("unspecified")
        tensor = _as_tensor(text)
        if tensor is None or tensor[0] != src_type:
            what = f"{quote(_write_text(text))} is neither {src_type}[…], reject nor unspecified; write one of them"
            self.wrong("expect", what, entry)
            return ExpectedResult("unspecified")
        return ExpectedResult("legal", *tensor)


def _find_mistake_of_bits(bits: str, src_type: str) -> str | None:
    if bits == "edges":
        return None
    if src_type == "T":
        return "bits go with one element type, not with T; write it in src"
    digits = 2 * WIDTH[src_type]
    if bits == "all":
        return None if digits == 4 else "`bits: all` wants 65536 elements of a 16-bit type"
    wrong = next((word for word in bits.split() if len(word) != digits), None)
    return wrong and f"a pattern of {src_type} has {digits} digits, and {quote(wrong)} has {len(wrong)}"


def _is_of_type(value: Any, type_: str) -> bool:
    if type_ in ("string", "bool"):
        return isinstance(value, str if type_ == "string" else bool)
    return type(value) is int and (type_ not in INTEGERS or value in range_of(type_))


def _read_counts(given: Mapping[str, Any]) -> dict[str, int]:
    return {name: 0 if value == "missing" else value for name, value in given.items()}


def _as_tensor(given: str | _Tensor) -> _Tensor | None:
    """Parse the text of a tensor; `each` gives type and dims already."""
    return parse_tensor(given) if isinstance(given, str) else given


def _write_text(given: str | _Tensor) -> str:
    return given if isinstance(given, str) else f"{given[0]}[{', '.join(map(str, given[1]))}]"
