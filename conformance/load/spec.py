"""Load spec/: documents, operations, rules and findings."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..model import (
    INTEGERS,
    LEVELS,
    Document,
    DocumentCommit,
    DocumentOrigin,
    Expression,
    Finding,
    Malformed,
    NewerPage,
    Operation,
    Place,
    Pointer,
    Problem,
    Prose,
    Rule,
    Spec,
)
from ..model.types import WIDTH
from ..system.text import describe_unknown, quote
from .folders import content_of, digest_of_folders, find_spec_folder, layers
from .schema import explained_by_schema, read_file, without_secrets
from .strict_yaml import YamlMap, line_of, raise_problems

SPEC_FILES = ("sources", "operations", "rules", "findings")


# ── the specification ─────────────────────────────────────────────────────────────────────────────


@explained_by_schema()
def load_spec(folder: Path | None = None) -> Spec:
    """Load the specification in a folder; Malformed, with every problem, if anything is wrong with it."""
    folder = folder or find_spec_folder()
    if not folder.is_dir():
        raise Malformed((Problem(Place(str(folder)), "is not a folder; give the folder that holds rules.yaml"),))
    folder = Path(os.path.abspath(folder))  # `.` has no name, and messages need one
    folders = layers(folder, find_spec_folder())
    files = [path for layer in folders for path in layer.glob("*.yaml")]
    problems: list[Problem] = []
    reader = _SpecReader([_read_layer(layer, number > 0, problems) for number, layer in enumerate(folders)], problems)
    for file in SPEC_FILES:
        list(reader.entries(file))
    raise_problems(without_secrets(reader.problems, files))  # a taken id would make other entries look wrong
    spec = Spec(
        documents=reader.documents(),
        operations=reader.operations(),
        rules=reader.rules(),
        findings=reader.findings(),
        digest=digest_of_folders(folders),
        added=frozenset(name for layer in reader.layers if layer.extends for name in layer.documents),
    )
    problems = reader.problems or [*_find_loose_ends(spec)]  # a wrong name makes loose ends
    raise_problems(without_secrets(problems, files))
    return spec


class _Layer(NamedTuple):
    """The content of one folder; a second one extends the first."""

    folder: str
    extends: bool
    content: Mapping[str, Any]

    def entries(self, file: str) -> Iterable[YamlMap]:
        return self.content[file][{"sources": "documents"}.get(file, file)] if file in self.content else ()

    @property
    def documents(self) -> list[str]:
        return [entry["id"] for entry in self.entries("sources")]


def _read_layer(folder: Path, extends: bool, problems: list[Problem]) -> _Layer:
    """Read the files of a folder; only a folder that extends the bundled one may lack some."""
    content: dict[str, Any] = {}
    missing = [file for file in SPEC_FILES if not (folder / f"{file}.yaml").is_file()]
    if missing and not extends and len(missing) < len(SPEC_FILES):
        what = "cannot be read: No such file, and this folder replaces the bundled one"
        hint = "to add to that, write `extends: bundled` in each file"
        problems.append(Problem(Place(f"{folder.name}/{missing[0]}.yaml"), f"{what}; {hint}"))
        return _Layer(folder.name, extends, content)
    for file in SPEC_FILES:
        if not extends or (folder / f"{file}.yaml").is_file():
            content[file], wrong = read_file(folder / f"{file}.yaml", file)
            problems += wrong or check_extends(content[file], extends, f"{folder.name}/{file}.yaml")
    names = [f"{file}.yaml" for file in (SPEC_FILES if extends else (*SPEC_FILES, "factors"))]
    for path in sorted((*folder.glob("*.y*ml"), *folder.glob("*/*.y*ml"))):
        name = path.relative_to(folder).as_posix()
        if name not in names:
            problems.append(Problem(Place(f"{folder.name}/{name}"), describe_unknown("file", name, names)))
    factors = folder / "factors.yaml"
    if not extends and factors.is_file() and content_of(factors) != content_of(find_spec_folder() / factors.name):
        what = "is not read, as only the bundled factors are; delete it, or copy the bundled file again"
        problems.append(Problem(Place(f"{folder.name}/{factors.name}"), what))
    return _Layer(folder.name, extends, content)


def check_extends(content: YamlMap, extends: bool, name: str) -> list[Problem]:
    """Return a problem if a file says `extends` and its folder does not, or the other way round."""
    if ("extends" in content) == extends:
        return []
    what = "says nothing of `extends`, and its neighbours do; write `extends: bundled` into each file or into none"
    if not extends:
        what = "says `extends` where it is not looked for; write `extends: bundled` alone on a line, not indented"
    return [Problem(Place(name, 1), what)]


class _SpecReader:
    """Turns the content of files into values, and collects the problems that a schema cannot see."""

    def __init__(self, layers: list[_Layer], problems: list[Problem]) -> None:
        raise_problems(problems)
        self.layers = layers
        self.problems: list[Problem] = []
        self.lines = {entry["id"]: entry["lines"] for entry in self.all_entries("sources")}
        self.ids = {file: {entry["id"] for entry in self.all_entries(file)} for file in SPEC_FILES}
        self.models = {
            entry["id"]: (entry["like"], entry.get("without", ()))
            for entry in self.all_entries("sources")
            if "like" in entry
        }

    def all_entries(self, file: str) -> Iterable[YamlMap]:
        return (entry for layer in self.layers for entry in layer.entries(file))

    def entries(self, file: str) -> Iterable[tuple[YamlMap, Place, _Layer]]:
        """Yield the entries of a file, each once."""
        first_places: dict[str, tuple[Place, _Layer]] = {}
        for layer in self.layers:
            for entry in layer.entries(file):
                place = Place(f"{layer.folder}/{file}.yaml", entry.line)
                if entry["id"] in first_places:
                    first, owner = first_places[entry["id"]]
                    where = f"line {first.line}" if owner is layer else f"the bundled {first}"
                    self.wrong(place, f"the id {quote(entry['id'])} is taken by {where}; choose another")
                    continue
                first_places[entry["id"]] = place, layer
                yield entry, place, layer

    def wrong(self, place: Place, what: str) -> None:
        self.problems.append(Problem(place, what))

    def is_known(self, what: str, name: str, names: Iterable[str], place: Place) -> bool:
        if name in names:
            return True
        self.wrong(place, describe_unknown(what, name, names))
        return False

    def check_names(self, what: str, names: Collection[str], place: Place, entry: YamlMap, *keys: str) -> None:
        """Check the names that an entry lists under some keys, or has as keys there."""
        for key in keys:
            given = entry.get(key, ())
            for at, name in enumerate(given) if isinstance(given, list) else zip(given, given, strict=True):
                self.is_known(what, name, names, _locate(place, entry, key, at))

    def pointers(self, value: Mapping[str, Any] | None, place: Place) -> tuple[Pointer, ...]:
        """Read `{document: [line, words] or a list of those}`, and check it against the documents' lengths."""
        result = []
        for document, at in (value or {}).items():
            here = Place(place.path, value.lines[document]) if isinstance(value, YamlMap) else place
            if not self.is_known("document", document, self.lines, here):
                continue
            for line, words in [at] if isinstance(at[0], int) else at:
                if not 1 <= line <= self.lines[document]:
                    what = f"line {line} of {document}, which by `lines` has {self.lines[document]}; correct one"
                    self.wrong(here, what)
                result.append(Pointer(document, line, words))
        return tuple(result)

    def documents(self) -> dict[str, Document]:
        result = {}
        for entry, place, layer in self.entries("sources"):
            self.check_model(entry, place, layer)
            self.is_known("operation", entry["operation"], self.ids["operations"], _locate(place, entry, "operation"))
            prose = []
            for item in entry["prose"]:
                here = Place(place.path, item.line)
                (pointer,) = self.pointers({entry["id"]: item["at"]}, here)
                prose.append(Prose(pointer, item["reason"], here))
            result[entry["id"]] = Document(
                entry["id"], entry["operation"], entry["title"], entry["edition"], entry["licence"], entry["file"],
                entry["sha256"], entry["lines"], entry["statements"], tuple(prose), place,
                _read_origin(entry["origin"]) if "origin" in entry else None,
                tuple(NewerPage(page["page"], page["changed"]) for page in entry.get("newer", ())),
                entry.get("lacks"),
            )  # fmt: skip
        return result

    def check_model(self, entry: YamlMap, place: Place, layer: _Layer) -> None:
        """Check `like` and `without`: the document that an added one follows, and the rules that it leaves out."""
        if "like" in entry and not layer.extends:
            self.wrong(
                _locate(place, entry, "like"), "`like` is for documents that extend the bundled ones; state the rules"
            )
        elif "like" in entry:
            self.is_known("document", entry["like"], self.layers[0].documents, _locate(place, entry, "like"))
        self.check_names("rule", self.ids["rules"], place, entry, "without")

    def operations(self) -> dict[str, Operation]:
        result = {}
        for entry, place, layer in self.entries("operations"):
            others = (source for other in self.layers if other is not layer for source in other.entries("sources"))
            added = [source["id"] for source in others if source["operation"] == entry["id"]]
            self.check_names("document", self.lines, place, entry, "documents")
            self.check_names("type", WIDTH, place, entry, "types", "shape_types")
            self.check_signature(entry, place)
            self.check_names("document", entry["documents"], place, entry, "names", "written")
            result[entry["id"]] = Operation(
                entry["id"], (*entry["documents"], *added), tuple(entry["shape_passed_as"]), tuple(entry["types"]),
                tuple(entry["shape_types"]), entry, place,
            )  # fmt: skip
        return result

    def check_signature(self, entry: YamlMap, place: Place) -> None:
        """Check that shape has integer types, and that an operation wants what a call has, and nothing else."""
        for at, type_ in enumerate(entry["shape_types"]):
            if type_ in WIDTH and type_ not in INTEGERS:
                what = f"the entries of shape are integers, and {type_} is no integer type; write for example s64"
                self.wrong(_locate(place, entry, "shape_types", at), what)
        ways = set(entry["shape_passed_as"])
        due = {
            "attributes": ["special_zero", *(["shape"] if "attribute" in ways else [])],
            "inputs": ["src", *(["shape"] if ways - {"attribute"} else [])],
            "outputs": ["dst"],
        }
        for part, names in due.items():
            for name in names:
                if name not in entry[part] and name != "special_zero":
                    hint = "add it, or correct `shape_passed_as`" if name == "shape" else "add it"
                    self.wrong(_locate(place, entry, part), f"{entry['id']} has no {name!r} among its {part}; {hint}")
            for name, each in entry[part].items():
                here = _locate(place, entry, part, name)
                if name not in names and each["required"]:
                    what = "a call has src, shape (see `shape_passed_as`) and special_zero"
                    self.wrong(here, f"{name!r} among the required {part} is not supported; {what}: leave it out")
                elif name in names and each.get("index", names.index(name)) != names.index(name):
                    what = f"{name!r} has the index {each['index']}, and in every call it has {names.index(name)}"
                    self.wrong(here, f"{what}; correct the index")

    def rules(self) -> dict[str, Rule]:
        return {entry["id"]: self.rule(entry, place, layer) for entry, place, layer in self.entries("rules")}

    def rule(self, entry: YamlMap, place: Place, layer: _Layer) -> Rule:
        levels = [level for level in LEVELS if level in entry]
        if len(levels) != 1:
            what = f"rule {quote(entry['id'])} has the levels {levels}; write exactly one of {', '.join(LEVELS)}"
            self.wrong(_locate(place, entry, levels[-1]) if levels else place, what)
        level = levels[0] if levels else "may"
        stated = self.pointers(entry.get("stated"), place)
        decided_for = dict(entry.get("decided_for", {}))
        documents = entry.get("documents", layer.documents)
        self.check_names("document", self.lines, place, entry, "decided_for", "documents")
        self.check_level(entry, level, stated, place)
        stated_or_decided = {pointer.document for pointer in stated} | set(decided_for)
        binding = stated_or_decided if level in ("must", "may") else set(documents)
        for document in sorted(binding - set(layer.documents)) if layer.extends else ():
            what = f"rule {quote(entry['id'])} would change what {document!r} means; bind it in documents added here"
            self.wrong(place, what)
        like = {}
        for document, (model, without) in self.models.items():
            if model in binding and entry["id"] not in without:
                binding.add(document)
                like[document] = model
                if level == "must":
                    decided_for[document] = f"It is like {model}."
        as_read = dict(entry.get("as_read", {}))
        for document, finding in as_read.items():
            self.check_reading(entry, document, finding, stated, _locate(place, entry, "as_read", document))
        forms = {
            key: Expression(entry[key], Place(place.path, entry.lines[key]))
            for key in ("requires", "where", "gives", "ensures", "when")
            if key in entry
        }
        self.check_forms(entry["id"], level, set(forms), place)
        offers = entry.get("offers", {})
        calls = Expression(offers["calls"], _locate(place, entry, "offers", "calls")) if "calls" in offers else None
        return Rule(
            id=entry["id"], level=level,
            sentence=entry.get(level, ""), stated=stated, decided_for=decided_for,
            documents=frozenset(binding), because=entry.get("because"), requires=forms.get("requires"),
            where=forms.get("where"), gives=forms.get("gives"), ensures=forms.get("ensures"), when=forms.get("when"),
            implied=entry.get("implied", False), place=place, like=like, as_read=as_read,
            diagnoses=tuple(entry.get("diagnoses", ())), offered_facets=tuple(offers.get("facets", ())),
            offered_calls=calls,
        )  # fmt: skip

    def check_level(self, entry: YamlMap, level: str, stated: tuple[Pointer, ...], place: Place) -> None:
        rule = f"rule {quote(entry['id'])}"
        if level == "must" and not entry.get("stated"):
            self.wrong(place, f"{rule} is a must that no document states; point at a line or make it decided")
        if level == "decided" and "because" not in entry:
            self.wrong(place, f"{rule} is our ruling without a reason; add `because`")
        if level not in ("must", "may") and "decided_for" in entry:
            self.wrong(place, f"{rule}: `decided_for` goes with must and may; write `documents` instead")
        if level in ("must", "may") and "documents" in entry:
            self.wrong(place, f"{rule}: `documents` goes with silent and decided; `stated` says it here")
        for document in set(entry.get("decided_for", {})) & {pointer.document for pointer in stated}:
            self.wrong(place, f"{rule} is both stated in {document} and decided for it; keep one")

    def check_reading(
        self, entry: YamlMap, document: str, finding: str, stated: tuple[Pointer, ...], place: Place
    ) -> None:
        """Check an entry of `as_read`: the document states the rule, and the finding is one."""
        self.is_known("finding", finding, self.ids["findings"], place)
        if self.is_known("document", document, self.lines, place) and document not in {at.document for at in stated}:
            self.wrong(place, f"rule {quote(entry['id'])} is not stated in {document}; `as_read` is for words that are")

    def check_forms(self, rule: str, level: str, forms: set[str], place: Place) -> None:
        allowed: list[set[str]] = [set()]
        if level in ("silent", "capacity"):
            allowed += [{"when"}]
        elif level != "may":
            allowed += [{"requires"}, {"where", "gives"}, {"ensures"}]
        if forms not in allowed:
            right = " or ".join("+".join(sorted(form, reverse=True)) for form in allowed if form) or "no expression"
            self.wrong(place, f"rule {quote(rule)} has {sorted(forms)}; a {level} rule takes {right}")

    def findings(self) -> dict[str, Finding]:
        result = {}
        for entry, place, _ in self.entries("findings"):
            self.check_names("rule", self.ids["rules"], place, entry, "rules")
            call = entry.get("example")
            example = (tuple(call["src"]), tuple(call["shape"]), call["special_zero"]) if call else None
            result[entry["id"]] = Finding(
                entry["id"], entry["kind"], entry["about"], self.pointers(entry["at"], place), tuple(entry["readings"]),
                entry["follows"], entry.get("ruling"), tuple(entry["rules"]), example, place,
                entry.get("weight", "misleads"),
            )  # fmt: skip
        return result


def _read_origin(entry: YamlMap) -> DocumentOrigin:
    force = entry.get("in_force")
    return DocumentOrigin(
        entry["repository"], entry["path"], tuple(entry["releases"]), entry["added"], entry["last_changed"],
        DocumentCommit(force["commit"], force["date"]) if force else None,
    )  # fmt: skip


def _locate(place: Place, entry: YamlMap, *path: str | int) -> Place:
    return Place(place.path, line_of(entry, path))


def _find_loose_ends(spec: Spec) -> Iterable[Problem]:
    """Report rules that bind nowhere, operations and documents that do not list each other, and rivals in force."""
    for rule in spec.rules.values():
        if rule.level != "may" and not rule.documents:
            yield Problem(rule.place, f"rule {rule.id!r} binds in no document; state it, decide it or delete it")
    for document in spec.documents.values():
        operation = spec.operations.get(document.operation)
        if operation and document.id not in operation.documents:
            what = f"{document.id!r} defines {operation.id}, and the entry of that does not list it; add it there"
            yield Problem(document.place, what)
    for operation in spec.operations.values():
        in_force = [each for each in spec.documents.values() if each.in_force and each.operation == operation.id]
        for rival in in_force[1:]:
            what = f"{rival.id!r} is in force for {operation.id}, and so is {in_force[0].id!r}; keep one `in_force`"
            yield Problem(rival.place, what)
        for name in operation.documents:
            if name in spec.documents and spec.documents[name].operation != operation.id:
                yield Problem(operation.place, f"{name!r} defines {spec.documents[name].operation}, not {operation.id}")


_TENSOR = re.compile(r"([A-Za-z][A-Za-z0-9]*)\[([0-9, ]*)\]")


def parse_tensor(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the type and dims of text such as `T[2, 3]`, or None if it has another form."""
    match = _TENSOR.fullmatch(text)
    if not match:
        return None
    entries = match[2].split(",") if match[2].strip() else []
    if not all(entry.strip().isdigit() and len(entry.strip()) < 40 for entry in entries):
        return None
    return match[1], tuple(int(entry) for entry in entries)
