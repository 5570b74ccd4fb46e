"""A JSON Schema as a plain function that says yes or no: most files are right, and jsonschema is slow.

It has the keywords that our schemas use. Of what it does not accept jsonschema says what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Accepts = Callable[[Any], bool]
Schema = Mapping[str, Any]
_KINDS: Mapping[str, type] = {
    "object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None),
}  # fmt: skip
_as_json = partial(json.dumps, sort_keys=True)
"""Values that are equal to JSON, where true is not 1, are written alike."""
_SILENT = ("$schema", "$id", "$defs", "title", "description", "examples")
_AS: Mapping[str, str] = {"additionalProperties": "properties", "then": "if", "else": "if"}
"""A keyword that is read together with another."""


def accepts(schema: Schema | bool) -> Accepts:
    """Whether a schema without references accepts a value; KeyError where it has a keyword that is not known here."""
    if isinstance(schema, bool):
        return lambda value: schema
    keywords = dict.fromkeys(_AS.get(keyword, keyword) for keyword in schema)
    tests = [_TESTS[keyword](schema) for keyword in keywords if keyword not in _SILENT]
    if len(tests) == 1:
        return tests[0]

    def test(value: Any) -> bool:
        for each in tests:  # noqa: SIM110 - `all` of a generator takes twice as long
            if not each(value):
                return False
        return True

    return test


def _of(kind: type, test: Accepts) -> Accepts:
    """A test that values of other kinds pass."""
    return lambda value: not isinstance(value, kind) or test(value)


# ── what each keyword asks ────────────────────────────────────────────────────────────────────────


def _type(schema: Schema) -> Accepts:
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    kinds = tuple(_KINDS[name] for name in names)
    if "integer" in names and "boolean" not in names:
        return lambda value: isinstance(value, kinds) and not isinstance(value, bool)
    return lambda value: isinstance(value, kinds)


def _one_of(values: list[Any]) -> Accepts:
    known = set(map(_as_json, values))
    return lambda value: _as_json(value) in known


def _properties(schema: Schema) -> Accepts:
    own = {name: accepts(each) for name, each in schema.get("properties", {}).items()}
    other = accepts(schema.get("additionalProperties", True))

    def test(value: Any) -> bool:
        if isinstance(value, dict):
            for name, each in value.items():
                if not own.get(name, other)(each):
                    return False
        return True

    return test


def _required(schema: Schema) -> Accepts:
    names = frozenset(schema["required"])
    return _of(dict, lambda value: names <= value.keys())


def _dependent(schema: Schema) -> Accepts:
    needs = [(name, frozenset(others)) for name, others in schema["dependentRequired"].items()]
    return _of(dict, lambda value: all(name not in value or others <= value.keys() for name, others in needs))


def _names(schema: Schema) -> Accepts:
    test = accepts(schema["propertyNames"])
    return _of(dict, lambda value: all(map(test, value)))


def _items(schema: Schema) -> Accepts:
    test, first = accepts(schema["items"]), len(schema.get("prefixItems", ()))
    return _of(list, lambda value: all(map(test, value[first:])))


def _prefix(schema: Schema) -> Accepts:
    tests = [accepts(each) for each in schema["prefixItems"]]
    return _of(list, lambda value: all(test(each) for test, each in zip(tests, value, strict=False)))


def _unique(schema: Schema) -> Accepts:
    return _of(list, lambda value: not schema["uniqueItems"] or len(set(map(_as_json, value))) == len(value))


def _any_of(schema: Schema) -> Accepts:
    tests = [accepts(each) for each in schema["anyOf"]]
    return lambda value: any(test(value) for test in tests)


def _if(schema: Schema) -> Accepts:
    test, then, otherwise = (accepts(schema.get(keyword, {})) for keyword in ("if", "then", "else"))
    return lambda value: then(value) if test(value) else otherwise(value)


def _pattern(schema: Schema) -> Accepts:
    found = re.compile(schema["pattern"]).search
    return _of(str, lambda value: found(value) is not None)


def _length(keyword: str, kind: type, least: bool) -> Callable[[Schema], Accepts]:
    def made(schema: Schema) -> Accepts:
        bound = schema[keyword]
        return _of(kind, (lambda value: len(value) >= bound) if least else (lambda value: len(value) <= bound))

    return made


def _minimum(schema: Schema) -> Accepts:
    least = schema["minimum"]
    return lambda value: type(value) is not int or value >= least


def _maximum(schema: Schema) -> Accepts:
    most = schema["maximum"]
    return lambda value: type(value) is not int or value <= most


_TESTS: Mapping[str, Callable[[Schema], Accepts]] = {
    "type": _type,
    "const": lambda schema: _one_of([schema["const"]]),
    "enum": lambda schema: _one_of(schema["enum"]),
    "properties": _properties,
    "required": _required,
    "dependentRequired": _dependent,
    "propertyNames": _names,
    "items": _items,
    "prefixItems": _prefix,
    "uniqueItems": _unique,
    "anyOf": _any_of,
    "if": _if,
    "pattern": _pattern,
    "minimum": _minimum,
    "maximum": _maximum,
    "minProperties": _length("minProperties", dict, least=True),
    "minItems": _length("minItems", list, least=True),
    "maxItems": _length("maxItems", list, least=False),
    "minLength": _length("minLength", str, least=True),
    "maxLength": _length("maxLength", str, least=False),
}
