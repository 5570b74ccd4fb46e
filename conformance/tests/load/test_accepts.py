"""The plain function that accepts files says of every value what jsonschema says."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.load.accepts import accepts
from conformance.load.folders import cases_folder, spec_folder
from conformance.load.schema import schema_of
from conformance.load.spec import SPEC_FILES
from conformance.load.strict_yaml import read

SCHEMAS = sorted(path.stem for path in (spec_folder() / "schema").glob("*.json"))
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    10**30,
    "",
    " ",
    "a b",
    "bundled",
    [],
    ["a", "a"],
    [1, True],
    {},
)
WRITTEN: dict[str, Any] = {
    "claims": {"operations": ["StaticReshape"], "leaves_out": ["rank"], "mapped": ["special_zero"]},
    "waivers": {
        "waivers": [
            {"case": "a", "rule": "b", "row": "c", "backend": "d", "versions": ">1", "reason": "e"}
            | {"link": "https://example.org", "owner": "f", "expires": "2027-06-30"}
        ]
    },
}


def bundled(schema: str) -> list[Any]:
    """The files that come along and are of a schema, plain."""
    if schema in WRITTEN:
        return [WRITTEN[schema]]
    one = spec_folder() / f"{schema}.yaml"
    paths = [one] if schema in SPEC_FILES else sorted(cases_folder().glob("*.yaml"))
    return [json.loads(json.dumps(read(path, path.name)[0])) for path in paths]


def specimens(schema: str) -> Iterator[Any]:
    """Files with one entry each: one of every set of keys that the bundled files have."""
    seen = set()
    for content in bundled(schema):
        for name, entries in content.items():
            for entry in entries if isinstance(entries, list) and isinstance(entries[0], dict) else ():
                keys = tuple(sorted(entry))
                if (name, keys) not in seen:
                    seen.add((name, keys))
                    yield {**content, name: [entry]}
        if not seen:
            yield content


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside of another."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (*path, key)
        yield from places(each, (*path, key))


def bent(content: Any) -> Iterator[Any]:
    """The same content with one thing changed: each value left out, doubled or replaced, each name misspelt."""
    for *way, last in places(content):
        changes: list[Any] = ["leave out", "double", "misspell", *[("replace", other) for other in OTHERS]]
        for change in changes:
            whole = copy.deepcopy(content)
            holder = whole
            for step in way:
                holder = holder[step]
            if change == "leave out":
                del holder[last]
            elif change == "double" and isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            elif change == "misspell" and isinstance(holder, dict):
                holder[f"{last} x"] = holder.pop(last)
            elif isinstance(change, tuple):
                holder[last] = change[1]
            yield whole


@pytest.mark.parametrize("schema", SCHEMAS)
def test_it_agrees_with_jsonschema_on_all_that_is_nearly_right(schema: str) -> None:
    ours, theirs = accepts(schema_of(schema)), jsonschema.Draft202012Validator(schema_of(schema))
    verdicts = []
    for content in [each for specimen in specimens(schema) for each in (specimen, *bent(specimen))]:
        verdicts.append(ours(content))
        assert verdicts[-1] == theirs.is_valid(content), content
    assert any(verdicts)
    assert not all(verdicts)


ALONE: tuple[Any, ...] = (
    True,
    False,
    {"type": "integer"},
    {"type": ["integer", "boolean"]},
    {"const": 1},
    {"enum": [True, "a b"]},
    {"properties": {"a": False}},
    {"additionalProperties": {"type": "string"}},
    {"properties": {"a": True}, "additionalProperties": False},
    {"required": ["a"]},
    {"dependentRequired": {"a": ["b"]}},
    {"propertyNames": {"maxLength": 1}},
    {"items": {"type": "string"}},
    {"prefixItems": [{"type": "string"}]},
    {"prefixItems": [True], "items": False},
    {"uniqueItems": True},
    {"uniqueItems": False},
    {"anyOf": [{"type": "null"}, {"type": "array"}]},
    {"if": {"type": "array"}, "then": {"minItems": 1}},
    {"if": {"type": "array"}, "else": {"type": "object"}},
    {"pattern": "b$"},
    {"minimum": 0},
    {"maximum": 0},
    {"minProperties": 1},
    {"minItems": 1},
    {"maxItems": 1},
    {"minLength": 1},
    {"maxLength": 1},
)
KINDS = (
    *OTHERS,
    {"a": 1},
    {"a": "b"},
    {"a": 1, "b": 2},
    {"bb": None},
    ["a"],
    ["a", 1],
    [1, "a"],
    [[1], [True]],
    [[1], [1]],
)


@pytest.mark.parametrize("schema", ALONE, ids=str)
def test_a_keyword_by_itself_asks_nothing_of_other_kinds(schema: Any) -> None:
    ours, theirs = accepts(schema), jsonschema.Draft202012Validator(schema)
    assert [ours(value) for value in KINDS] == [theirs.is_valid(value) for value in KINDS]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_it_accepts_what_comes_along(schema: str) -> None:
    assert all(map(accepts(schema_of(schema)), bundled(schema)))


def test_a_keyword_that_it_does_not_have_is_an_error_and_never_passed_over() -> None:
    with pytest.raises(KeyError, match="multipleOf"):
        accepts({"type": "object", "properties": {"a": {"multipleOf": 2}}})


def test_a_run_of_what_is_right_need_not_wait_for_jsonschema(tmp_path: Path) -> None:
    code = (
        "import sys; from conformance.cli.main import main; "
        f"main(['run', 'numpy', '-k', 'there-and-back', '--out', {str(tmp_path)!r}]); "
        "assert not {'jsonschema', 'multiprocessing', 'ssl'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
