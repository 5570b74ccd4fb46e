"""Read a YAML file strictly and check it against its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from ..model import Malformed, Place, Problem
from ..system.files import find_adapters_folder, leaves_its_folder
from ..system.text import describe_unknown, quote, quote_json, shorten
from .folders import find_cases_folder, find_spec_folder
from .strict_yaml import line_of, raise_problems, read


@cache
def schema_of(name: str) -> Mapping[str, Any]:
    """Return a JSON Schema without references; a name with a folder is one outside of spec/schema/."""
    schema = json.loads((find_spec_folder() / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    inlined: Mapping[str, Any] = _inline(schema, schema.get("$defs", {}))
    return inlined


@cache
def _compile(schema: str) -> Any:
    import jsonschema  # slow to import, and only needed for files that are not bundled

    return jsonschema.Draft202012Validator(schema_of(schema))


_MAX_ERRORS = 1000
"""Schema errors that are explained for one file."""


def _inline(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Replace references by their definitions: a validator spends half of its time on following them."""
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        own = {key: value for key, value in schema.items() if key != "$ref"}
        return _inline({**own, **definitions[schema["$ref"].rpartition("/")[2]]}, definitions)
    inlined = {key: _inline(value, definitions) for key, value in schema.items() if key != "$defs"}
    if isinstance(pattern := inlined.get("pattern"), str):  # in Python `$` also matches before a last line feed
        inlined["pattern"] = pattern.replace("$", r"\Z")
    return inlined


def is_printable(name: str) -> bool:
    """Ask whether a message may begin with a name: terminals and CI services read some texts as commands."""
    return name.isprintable() and "::" not in name


def read_file(path: Path, schema: str) -> tuple[Any, list[Problem]]:
    """Return a file's content, read strictly, and every problem found. A user's file is checked against its schema.

    `conformance check` checks the bundled files: that takes longer than a run of one case.
    """
    return _read(path) if _find_bundled_files().get(path) == schema else check_file(path, schema)


def check_file(path: Path, schema: str) -> tuple[Any, list[Problem]]:
    """Return a file's content, read strictly and checked against its JSON Schema, and every problem found."""
    content, problems = _read(path)
    if not problems:  # else the schema would only complain of what could not be read
        name, errors = (f"{path.parent.name}/{path.name}", islice(_compile(schema).iter_errors(content), _MAX_ERRORS))
        explained = dict.fromkeys(problem for error in errors for problem in _explain(error, content, name))
        problems = without_secrets(sorted(explained)[:_MAX_ERRORS], [path])
    return content, problems


def _read(path: Path) -> tuple[Any, list[Problem]]:
    name = f"{path.parent.name}/{path.name}"
    if not is_printable(name):
        return None, [Problem(Place(name), "the name of the file or folder could be taken for output; rename it")]
    content, problems = read(path, name)
    if content is None:
        problems = problems or [Problem(Place(name, 1), "the file says null; fill it or delete it")]
    return content, without_secrets(problems, [path])


def check_bundled_files() -> list[Problem]:
    """Check the bundled files against their schemas and return every problem found."""
    return [problem for path, schema in _find_bundled_files().items() for problem in check_file(path, schema)[1]]


def _find_bundled_files() -> dict[Path, str]:
    spec = {path: path.stem for path in sorted(find_spec_folder().glob("*.yaml"))}
    cases = dict.fromkeys(sorted(find_cases_folder().glob("*.yaml")), "cases")
    return {**spec, **cases, find_adapters_folder() / "faults.yaml": "faults"}


@contextmanager
def explained_by_schema() -> Iterator[None]:
    """Raise Malformed if a bundled file cannot be used because it does not pass its schema."""
    try:
        yield
    except Malformed:
        raise
    except Exception:
        raise_problems(check_bundled_files())
        raise


def without_secrets(problems: list[Problem], paths: Iterable[Path], called: str = "") -> list[Problem]:
    """Return the problems, with a single one that quotes nothing for a symbolic link to another folder.

    A stranger may have linked to a secret so that an error message prints it.
    `called`: the name of the file in `problems`, if not its folder and name.
    """
    if not problems:
        return problems
    linked = {called or f"{path.parent.name}/{path.name}" for path in paths if leaves_its_folder(path)}
    what = "is a symbolic link to another folder and cannot be used as it is; its content is not shown"
    hidden = {name: Problem(Place(name), what) for name in linked}
    return list(dict.fromkeys(hidden.get(problem.place.path, problem) for problem in problems))


def _explain(error: Any, content: Any, name: str) -> list[Problem]:
    """Turn a schema error into problems that a person can act on."""
    path = tuple(error.absolute_path)
    named = "propertyNames" in error.absolute_schema_path  # then the instance is a key
    line = line_of(content, (*path, error.instance) if named else path)
    where = f"{shorten('.'.join(str(step) for step in path))}: " if path else ""
    match error.validator:
        case "additionalProperties" | "unevaluatedProperties":
            known = error.schema.get("properties", {})
            keys = (key for key in error.instance if key not in known)
            places = ((key, Place(name, line_of(content, (*path, key)))) for key in keys)
            return [Problem(place, describe_unknown("key", key, known)) for key, place in places]
        case "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            return [Problem(Place(name, line), f"missing key {quote(key)}; add it") for key in missing]
        case "anyOf" | "oneOf":
            telling = ("additionalProperties", "required", "enum", "pattern", "maxItems")
            deeper = [e for e in error.context or () if len(e.absolute_path) > len(path) or e.validator == "maxItems"]
            if likely := [e for e in deeper if e.validator in telling]:
                return _explain(likely[0], content, name)
            due = error.schema.get("description", "one of the forms that the schema lists")
            what = f"{_write(error.instance)} is not {due}"
        case "enum":
            what = describe_unknown("value", error.instance, map(str, error.validator_value))
        case "pattern":
            due = error.schema.get("description", f"text of the form {error.validator_value}")
            what = f"{_write(error.instance)} is not {due}"
        case "maxItems":
            due = error.schema["description"] if "prefixItems" in error.schema else None  # each entry has a meaning
            most = f"{len(error.instance):,} entries; at most {error.validator_value:,} are tried"
            what = f"{_write(error.instance)} is not {due}" if due else most
        case "maximum":
            what = f"{error.instance:,} are too many; at most {error.validator_value:,} are tried"
        case "minItems" if not error.instance:
            what = "an empty list, which should be non-empty; fill it"
        case "type":
            kinds = error.validator_value
            wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
            due = error.schema.get("description") if "pattern" in error.schema else None
            advice = f"write {due}" if due else _WRITE.get(wanted, "correct the value")
            what = f"{_write(error.instance)} is no {wanted}; {advice}"
        case "const":
            what = f"{_write(error.instance)} is not {_write(error.validator_value)}, the only value allowed here"
        case _:
            what = shorten(error.message.replace("is a dependency of", "is needed beside"), 160)
    return [Problem(Place(name, line), f"{where}{what}")]


def _write(value: object) -> str:
    """Write a value as YAML has it, where Python has another word."""
    return quote_json(value) if value is None or isinstance(value, bool) else quote(value)


_WRITE: Mapping[str, str] = {
    "boolean": "write true or false",
    "array": "write a list, such as [2, 3]",
    "object": "write keys and values",
    "string": "write one text, and put a number, true, false or null in quotes",
}
"""Advice for a value that has the wrong type, by the type that is due."""
