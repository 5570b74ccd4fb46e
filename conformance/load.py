"""YAML → Spec and Suite; strict, and every error says path:line and what to do."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from .accepts import Accepts, accepts
from .files import leaves_its_folder, read_bytes
from .model import (
    Document,
    Expression,
    Finding,
    Malformed,
    Operation,
    Place,
    Pointer,
    Problem,
    Prose,
    Rule,
    Spec,
)
from .strict_yaml import MOST, Map, Seq, line_of, quote, read, require, shorten
from .types import WIDTH

SPEC_FILES = ("sources", "operations", "rules", "findings")
LEVELS = ("must", "may", "silent", "decided")
_EXTENDS = re.compile(rb"^extends:", re.MULTILINE)


def spec_folder() -> Path:
    """The bundled spec/."""
    return Path(import_module("conformance.spec").__path__[0])


def cases_folder() -> Path:
    """The bundled cases/."""
    return Path(import_module("conformance.cases").__path__[0])


def layers(folder: Path | None, bundled: Path) -> list[Path]:
    """The folders to read: the bundled one, another in its place, or both where the other says `extends: bundled`."""
    if folder is None:
        return [bundled]
    extends = any(_EXTENDS.search(content_of(path)) for path in folder.glob("*.yaml"))
    return [bundled, folder] if extends else [folder]


def content_of(path: Path) -> bytes:
    """The bytes of a file of a folder that somebody named; Malformed if it is a pipe, a device or far too large."""
    try:
        return read_bytes(path, MOST)
    except OSError as error:
        name = f"{path.parent.name}/{path.name}"
        raise Malformed((Problem(Place(name, 1), f"cannot be read: {error.strerror}; check the path"),)) from None


def digest_of(folders: Iterable[Path]) -> str:
    """One sha256 over the names and bytes of every YAML file of some folders."""
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            content = content_of(path)
            total.update(f"{path.name}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────


@cache
def schema_of(name: str) -> Mapping[str, Any]:
    """A JSON Schema, without references."""
    written = json.loads((spec_folder() / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    inlined: Mapping[str, Any] = _inlined(written, written.get("$defs", {}))
    return inlined


@cache
def _accepts(schema: str) -> Accepts:
    return accepts(schema_of(schema))


@cache
def _validator(schema: str) -> Any:
    import jsonschema  # slow to import, and only needed where something is wrong

    return jsonschema.Draft202012Validator(schema_of(schema))


_MOST_ERRORS = 1000
"""Errors of a schema that are explained of one file."""


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with each definition in its place; to follow references takes the validator half of its time."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        own = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined({**definitions[schema["$ref"].rpartition("/")[2]], **own}, definitions)
    inlined = {key: _inlined(value, definitions) for key, value in schema.items() if key != "$defs"}
    if isinstance(pattern := inlined.get("pattern"), str):  # to Python alone `$` is also before a last line feed
        inlined["pattern"] = pattern.replace("$", r"\Z")
    return inlined


def validated(path: Path, schema: str) -> tuple[Any, list[Problem]]:
    """A file's content, read strictly and checked against its JSON Schema, with every problem found."""
    name = f"{path.parent.name}/{path.name}"
    if not name.isprintable() or "::" in name:
        return None, [Problem(Place(name, 1), "the name of the file or folder could be taken for output; rename it")]
    content, problems = read(path, name)
    if content is None:
        problems = problems or [Problem(Place(name, 1), "the file says null; fill it or delete it")]
    elif not problems and not _accepts(schema)(content):  # the schema would only complain of the gaps problems leave
        for error in islice(_validator(schema).iter_errors(content), _MOST_ERRORS):
            problems += _explained(error, content, name)
        problems = sorted(dict.fromkeys(problems))[:_MOST_ERRORS]
    return content, without_secrets(problems, [path])


def without_secrets(problems: list[Problem], paths: Iterable[Path], called: str = "") -> list[Problem]:
    """The problems, but only one, which quotes nothing, for a file that is a symbolic link to another folder.

    Such a file may be no input of ours at all, but a secret that a stranger linked to in the hope that it is printed.
    `called`: what problems call the file, if not by its folder and name.
    """
    if not problems:
        return problems
    linked = {called or f"{path.parent.name}/{path.name}" for path in paths if leaves_its_folder(path)}
    what = "is a symbolic link to another folder and cannot be used as it is; its content is not shown"
    hidden = {name: Problem(Place(name, 1), what) for name in linked}
    return list(dict.fromkeys(hidden.get(problem.place.path, problem) for problem in problems))


def _explained(error: Any, content: Any, name: str) -> list[Problem]:
    """A schema error in words a person can act on."""
    path = tuple(error.absolute_path)
    named = "propertyNames" in error.absolute_schema_path  # then the instance is a key
    line = line_of(content, (*path, error.instance) if named else path)
    where = f"{shorten('.'.join(str(step) for step in path))}: " if path else ""
    match error.validator:
        case "additionalProperties" | "unevaluatedProperties":
            known = error.schema.get("properties", {})
            unknown = [key for key in error.instance if key not in known]
            places = {key: Place(name, line_of(content, (*path, key))) for key in unknown}
            return [Problem(places[key], _unknown("key", key, known)) for key in unknown]
        case "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            return [Problem(Place(name, line), f"missing key {quote(key)}; add it") for key in missing]
        case "anyOf" | "oneOf":
            telling = ("additionalProperties", "required", "enum", "pattern")
            deeper = [e for e in error.context or () if len(e.absolute_path) > len(path)]
            likely = [e for e in deeper if e.validator in telling]
            if likely:
                return _explained(likely[0], content, name)
            what = error.schema.get("description", "one of the forms that the schema lists")
            return [Problem(Place(name, line), f"{where}{_short(error.instance)} is not {what}")]
        case "enum":
            return [Problem(Place(name, line), f"{where}{_unknown('value', error.instance, error.validator_value)}")]
        case "pattern":
            what = error.schema.get("description", f"text of the form {error.validator_value}")
            return [Problem(Place(name, line), f"{where}{_short(error.instance)} is not {what}")]
        case "minItems" if not error.instance:
            return [Problem(Place(name, line), f"{where}an empty list, which should be non-empty; fill it")]
        case "type":
            kinds = error.validator_value
            wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
            write = _WRITE.get(wanted, "correct the value")
            return [Problem(Place(name, line), f"{where}{_short(error.instance)} is no {wanted}; {write}")]
        case "const":
            what = f"{_short(error.instance)} is not {_short(error.validator_value)}, which alone may stand there"
            return [Problem(Place(name, line), f"{where}{what}")]
    return [Problem(Place(name, line), f"{where}{shorten(error.message, 160)}")]


_WRITE: Mapping[str, str] = {
    "boolean": "write true or false",
    "array": "write a list, such as [2, 3]",
    "object": "write keys and values",
    "string": "put it in quotes",
}
"""What to write where a value is of another type."""


def _short(value: Any) -> str:
    return shorten(value if isinstance(value, str) and " " in value and value.isprintable() else repr(value))


def _unknown(what: str, value: Any, known: Iterable[Any]) -> str:
    import difflib  # only needed here

    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(names)} is meant"
    return f"unknown {what} {_short(value)}; {hint}"


# ── the specification ─────────────────────────────────────────────────────────────────────────────


def load_spec(folder: Path | None = None) -> Spec:
    """The specification in a folder; Malformed, with every problem, where anything is wrong with it."""
    folder = folder or spec_folder()
    if not folder.is_dir():
        raise Malformed((Problem(Place(str(folder), 1), "is not a folder; give the folder that holds rules.yaml"),))
    folder = Path(os.path.abspath(folder))  # `.` has no name, and messages need one
    folders = layers(folder, spec_folder())
    files = [path for each in folders for path in each.glob("*.yaml")]
    problems: list[Problem] = []
    reader = _SpecReader([_layer(each, number > 0, problems) for number, each in enumerate(folders)], problems)
    spec = Spec(
        documents=reader.documents(),
        operations=reader.operations(),
        rules=reader.rules(),
        findings=reader.findings(),
        digest=digest_of(folders),
        added=frozenset(name for layer in reader.layers if layer.extends for name in layer.documents),
    )
    require(without_secrets(reader.problems + list(_unused(spec)), files))
    return spec


class _Layer(NamedTuple):
    """The content of one folder; a second one extends the first."""

    folder: str
    extends: bool
    content: Mapping[str, Any]

    def entries(self, file: str) -> Iterable[Map]:
        return self.content[file][{"sources": "documents"}.get(file, file)] if file in self.content else ()

    @property
    def documents(self) -> list[str]:
        return [entry["id"] for entry in self.entries("sources")]


def _layer(folder: Path, extends: bool, problems: list[Problem]) -> _Layer:
    """The files of a folder, which are all there unless they extend the bundled ones."""
    content: dict[str, Any] = {}
    for file in SPEC_FILES:
        if not extends or (folder / f"{file}.yaml").is_file():
            content[file], found = validated(folder / f"{file}.yaml", file)
            problems += found or extending(content[file], extends, f"{folder.name}/{file}.yaml")
    for path in folder.glob("*.yaml") if extends else ():
        if path.stem not in SPEC_FILES:
            problems.append(Problem(Place(f"{folder.name}/{path.name}", 1), _unknown("file", path.stem, SPEC_FILES)))
    return _Layer(folder.name, extends, content)


def extending(content: Map, extends: bool, name: str) -> list[Problem]:
    """A problem where one file of a folder says `extends` and another does not."""
    if ("extends" in content) == extends:
        return []
    what = "says nothing of `extends`, and its neighbours do; write `extends: bundled` into each file or into none"
    return [Problem(Place(name, 1), what)]


class _SpecReader:
    """Turns validated content into values; collects what a schema cannot see."""

    def __init__(self, layers: list[_Layer], problems: list[Problem]) -> None:
        require(problems)
        self.layers = layers
        self.problems: list[Problem] = []
        self.lines = {entry["id"]: entry["lines"] for entry in self.every("sources")}
        self.known_rules = {entry["id"] for entry in self.every("rules")}
        self.known_operations = {entry["id"] for entry in self.every("operations")}
        self.models = {
            entry["id"]: (entry["like"], entry.get("without", ())) for entry in self.every("sources") if "like" in entry
        }

    def every(self, file: str) -> Iterable[Map]:
        return (entry for layer in self.layers for entry in layer.entries(file))

    def entries(self, file: str) -> Iterable[tuple[Map, Place, _Layer]]:
        """The entries of a file, each once."""
        seen: dict[str, tuple[Place, _Layer]] = {}
        for layer in self.layers:
            for entry in layer.entries(file):
                place = Place(f"{layer.folder}/{file}.yaml", entry.line)
                if entry["id"] in seen:
                    first, whose = seen[entry["id"]]
                    where = f"line {first.line}" if whose is layer else f"the bundled {first}"
                    self.wrong(place, f"the id {quote(entry['id'])} is taken by {where}; choose another")
                    continue
                seen[entry["id"]] = place, layer
                yield entry, place, layer

    def wrong(self, place: Place, what: str) -> None:
        self.problems.append(Problem(place, what))

    def known(self, what: str, name: str, names: Iterable[str], place: Place) -> bool:
        if name in names:
            return True
        self.wrong(place, _unknown(what, name, names))
        return False

    def pointers(self, value: Mapping[str, Any] | None, place: Place) -> tuple[Pointer, ...]:
        """`{document: [line, words] or a list of those}`, checked against the documents' lengths."""
        result = []
        for document, at in (value or {}).items():
            here = Place(place.path, value.lines[document]) if isinstance(value, Map) else place
            if not self.known("document", document, self.lines, here):
                continue
            for line, words in [at] if isinstance(at[0], int) else at:
                if not 1 <= line <= self.lines[document]:
                    self.wrong(here, f"line {line} of {document}, which has {self.lines[document]}; correct the number")
                result.append(Pointer(document, line, words))
        return tuple(result)

    def documents(self) -> dict[str, Document]:
        result = {}
        for entry, place, layer in self.entries("sources"):
            self.check_model(entry, place, layer)
            self.known("operation", entry["operation"], self.known_operations, _at(place, entry, "operation"))
            prose = []
            for item in entry["prose"]:
                here = Place(place.path, item.line)
                (pointer,) = self.pointers({entry["id"]: item["at"]}, here)
                prose.append(Prose(pointer, item["reason"], here))
            result[entry["id"]] = Document(
                entry["id"], entry["operation"], entry["title"], entry["year"], entry["licence"], entry["file"],
                entry["sha256"], entry["lines"], entry["statements"], tuple(prose), place,
            )  # fmt: skip
        return result

    def check_model(self, entry: Map, place: Place, layer: _Layer) -> None:
        """`like` and `without`: the document that an added one follows, and the rules in which it does not."""
        if "like" in entry and not layer.extends:
            self.wrong(
                _at(place, entry, "like"), "`like` is for documents that extend the bundled ones; state the rules"
            )
        elif "like" in entry:
            self.known("document", entry["like"], self.layers[0].documents, _at(place, entry, "like"))
        for number, rule in enumerate(entry.get("without", ())):
            self.known("rule", rule, self.known_rules, _at(place, entry, "without", number))

    def operations(self) -> dict[str, Operation]:
        result = {}
        for entry, place, layer in self.entries("operations"):
            others = (each for other in self.layers if other is not layer for each in other.entries("sources"))
            added = [each["id"] for each in others if each["operation"] == entry["id"]]
            for number, document in enumerate(entry["documents"]):
                self.known("document", document, self.lines, _at(place, entry, "documents", number))
            for key in ("types", "shape_types"):
                for number, type_ in enumerate(entry[key]):
                    self.known("type", type_, WIDTH, _at(place, entry, key, number))
            for key in ("names", "written"):
                for document in entry.get(key, {}):
                    self.known("document", document, entry["documents"], _at(place, entry, key, document))
            result[entry["id"]] = Operation(
                entry["id"], (*entry["documents"], *added), tuple(entry["given"]), tuple(entry["types"]),
                tuple(entry["shape_types"]), entry, place,
            )  # fmt: skip
        return result

    def rules(self) -> dict[str, Rule]:
        return {entry["id"]: self.rule(entry, place, layer) for entry, place, layer in self.entries("rules")}

    def rule(self, entry: Map, place: Place, layer: _Layer) -> Rule:
        levels = [level for level in LEVELS if level in entry]
        if len(levels) != 1:
            here = _at(place, entry, levels[-1]) if levels else place
            self.wrong(
                here, f"rule {quote(entry['id'])} has the levels {levels}; write exactly one of {', '.join(LEVELS)}"
            )
        level = levels[0] if levels else "may"
        stated = self.pointers(entry.get("stated"), place)
        decided_for = dict(entry.get("decided_for", {}))
        documents = entry.get("documents", layer.documents)
        for document in decided_for:
            self.known("document", document, self.lines, _at(place, entry, "decided_for", document))
        for number, document in enumerate(documents):
            self.known("document", document, self.lines, _at(place, entry, "documents", number))
        self.check_level(entry, level, stated, place)
        if level == "must":
            binding = {pointer.document for pointer in stated} | set(decided_for)
        else:
            binding = set(documents) if level != "may" else set()
        for document in sorted(binding - set(layer.documents)) if layer.extends else ():
            what = f"rule {quote(entry['id'])} would change what {document!r} means; bind it in documents added here"
            self.wrong(place, what)
        for document, (model, without) in self.models.items():
            if model in binding and entry["id"] not in without:
                binding.add(document)
                if level == "must":
                    decided_for[document] = f"It is like {model}."
        forms = {
            key: Expression(entry[key], Place(place.path, entry.lines[key]))
            for key in ("requires", "where", "gives", "ensures", "when")
            if key in entry
        }
        self.check_forms(entry["id"], level, set(forms), place)
        return Rule(
            id=entry["id"], level=level,  # type: ignore[arg-type]
            sentence=entry.get(level, ""), stated=stated, decided_for=decided_for,
            documents=frozenset(binding), because=entry.get("because"), requires=forms.get("requires"),
            where=forms.get("where"), gives=forms.get("gives"), ensures=forms.get("ensures"), when=forms.get("when"),
            implied=entry.get("implied", False), place=place,
        )  # fmt: skip

    def check_level(self, entry: Map, level: str, stated: tuple[Pointer, ...], place: Place) -> None:
        if level == "must" and not stated:
            what = "is a must that no document states; point at a line or make it decided"
            self.wrong(place, f"rule {quote(entry['id'])} {what}")
        if level == "decided" and "because" not in entry:
            self.wrong(place, f"rule {quote(entry['id'])} is our ruling without a reason; add `because`")
        if level not in ("must", "may") and "decided_for" in entry:
            self.wrong(
                place, f"rule {quote(entry['id'])}: `decided_for` goes with must and may; write `documents` instead"
            )
        if level in ("must", "may") and "documents" in entry:
            self.wrong(
                place, f"rule {quote(entry['id'])}: `documents` goes with silent and decided; `stated` says it here"
            )
        for document in set(entry.get("decided_for", {})) & {pointer.document for pointer in stated}:
            self.wrong(place, f"rule {quote(entry['id'])} is both stated in {document} and decided for it; keep one")

    def check_forms(self, rule: str, level: str, forms: set[str], place: Place) -> None:
        allowed: list[set[str]] = [set()]
        if level == "silent":
            allowed += [{"when"}]
        elif level != "may":
            allowed += [{"requires"}, {"where", "gives"}, {"ensures"}]
        if forms not in allowed:
            written = " or ".join("+".join(sorted(form, reverse=True)) for form in allowed if form) or "no expression"
            self.wrong(place, f"rule {quote(rule)} has {sorted(forms)}; a {level} rule takes {written}")

    def findings(self) -> dict[str, Finding]:
        result = {}
        for entry, place, _ in self.entries("findings"):
            for number, rule in enumerate(entry["rules"]):
                self.known("rule", rule, self.known_rules, _at(place, entry, "rules", number))
            call = entry.get("example")
            example = (tuple(call["src"]), tuple(call["shape"]), call["special_zero"]) if call else None
            result[entry["id"]] = Finding(
                entry["id"], entry["kind"], entry["about"], self.pointers(entry["at"], place), tuple(entry["readings"]),
                entry["follows"], entry.get("ruling"), tuple(entry["rules"]), example, place,
            )  # fmt: skip
        return result


def _at(place: Place, entry: Map, *path: str | int) -> Place:
    """The place of something inside of an entry."""
    return Place(place.path, line_of(entry, path))


def _unused(spec: Spec) -> Iterable[Problem]:
    """Rules that bind nowhere, and operations and documents that do not know each other."""
    for rule in spec.rules.values():
        if rule.level != "may" and not rule.documents:
            yield Problem(rule.place, f"rule {rule.id!r} binds in no document; state it, decide it or delete it")
    for document in spec.documents.values():
        operation = spec.operations.get(document.operation)
        if operation and document.id not in operation.documents:
            what = f"{document.id!r} defines {operation.id}, whose entry does not list it; add it there"
            yield Problem(document.place, what)
    for operation in spec.operations.values():
        for name in operation.documents:
            if name in spec.documents and spec.documents[name].operation != operation.id:
                yield Problem(operation.place, f"{name!r} defines {spec.documents[name].operation}, not {operation.id}")


_TENSOR = re.compile(r"([A-Za-z][A-Za-z0-9]*)\[([0-9, ]*)\]")


def tensor(text: str) -> tuple[str, tuple[int, ...]] | None:
    """`T[2, 3]` as a type and dims, or None where it is not written so."""
    match = _TENSOR.fullmatch(text)
    if not match:
        return None
    entries = match[2].split(",") if match[2].strip() else []
    if not all(entry.strip().isdigit() and len(entry.strip()) < 40 for entry in entries):
        return None
    return match[1], tuple(int(entry) for entry in entries)


__all__ = [
    "Seq",
    "cases_folder",
    "content_of",
    "digest_of",
    "extending",
    "layers",
    "load_spec",
    "spec_folder",
    "tensor",
    "validated",
    "without_secrets",
]
