"""`conformance meaning`: say what one reshape call means in each document, and why."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..meaning.contract import contracts
from ..model import INTEGERS, Call, CallForm, Operation
from ..system.terminal import paint, say
from ..system.text import format_call, format_dims
from .arguments import Stop, emit, load_spec_of, pick
from .facts import choose_holding_type, describe_call_meaning, of_call
from .parser import Parser
from .printing import print_meanings
from .typed_values import (
    read_boolean,
    read_named_lengths,
    read_names,
    read_partial_lengths,
    read_type,
    read_typed_lengths,
)

_EXAMPLE = "for example: conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true"
_PARTS = ("shape", "special_zero", "src", "dst")
_TYPE_KEYS = ("src_type", "dst_type", "shape_type", "special_zero_type")
_KEYS = (*_TYPE_KEYS, "shape_rank", "declared", "missing", "extra_attributes", "extra_operands")

EXAMPLES = """\
  conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true
  conformance meaning --src batch,3 --shape 2,-1 --special-zero true     for which batch is it legal?
  conformance meaning --src f32[0,3] --shape 0,-1 --special-zero false --form declared=0,?
keys of --form, as cases/form.yaml has them: src_type, dst_type, shape_type, special_zero_type, shape_rank,
declared (dims of dst, such as 3,?), missing (shape, special_zero, src, dst), extra_attributes, extra_operands"""


def add_options(parser: Parser) -> None:
    parser.usage = (
        "conformance meaning --src DIMS --shape DIMS --special-zero BOOL [--form KEY=VALUE ...] [--suite DIR] [--json]"
    )
    parser.once("--src", "DIMS", "dims of the input: 3,4,5 or 3x4x5 or 'f32[n, 4, 5]'; () for rank 0")
    parser.once("--shape", "DIMS", "the entries of shape, such as 0,-1 or n,-1")
    parser.once("--special-zero", "BOOL", "true or false", nargs="?", const="true")
    parser.many("--form", "KEY=VALUE", "how the node differs from a well-formed one, such as shape_type=s32")


def run(args: argparse.Namespace) -> int:
    for option, text in (("--src", args.src), ("--shape", args.shape), ("--special-zero", args.special_zero)):
        if text is None:
            raise Stop(f"{option} is missing; {_EXAMPLE}")
    written, src = read_typed_lengths("--src", args.src)
    lengths: tuple[Any, Any] = src, read_named_lengths("--shape", args.shape)  # or names of lengths
    plain = Call(*lengths, read_boolean("--special-zero", args.special_zero))
    form = _read_form(_read_pairs(args.form or ()), written)
    spec = load_spec_of(args.suite)
    compiled = contracts(spec)
    meanings = {}
    for name, document in spec.documents.items():
        call = _with_form(plain, form, spec.operations[document.operation])
        meanings[name] = describe_call_meaning(spec, name, call, compiled[name]) | {"call": of_call(call)}
    if args.json:
        emit({"call": of_call(plain), "meanings": meanings})
    else:
        say(paint("bold", _describe(plain, form)))
        say()
        print_meanings(spec, meanings)
    return 0


def _read_form(given: Mapping[str, str], written: str | None) -> dict[str, Any]:
    """Read the values of --form, by the names of `CallForm`. `written`: the type that --src has."""
    form: dict[str, Any] = {}
    for key, text in given.items():
        option = f"--form {key}"
        if key in _TYPE_KEYS:
            form[key] = read_type(option, text)
        elif key == "shape_rank":
            if not re.fullmatch(r"[0-9]|[1-5][0-9]|6[0-4]", text.strip()):
                what = f"{text[:40]!r} is not a number from 0 to 64"
                raise Stop(f"{option} {what}; a well-formed shape has rank 1")
            form[key] = int(text)
        elif key == "declared":
            form[key] = read_partial_lengths(option, text)
            if any(d is not None and d < 0 for d in form[key]):
                raise Stop(f"{option} {text!r}: a length is not below 0; write ? where it is not known")
        elif key == "missing":
            form[key] = [pick(f"name for {option}:", name, _PARTS) for name in read_names(text)]
        else:
            form[key] = read_names(text)
    if written is not None:
        read = read_type("--src", written)
        if form.setdefault("src_type", read) != read:
            raise Stop(f"--src says {read} and --form src_type {form['src_type']}; say it once")
    return form


def _with_form(plain: Call, form: Mapping[str, Any], operation: Operation) -> Call:
    """Return the call for an operation; shape is an attribute of some operations and an operand of others."""
    if not form:
        return plain
    given = dict(form)
    missing = given.pop("missing", [])
    attributes = ["special_zero", *(["shape"] if "attribute" in operation.shape_passed_as else [])]
    src_type = given.pop("src_type", operation.types[0])
    return plain._replace(
        form=CallForm(
            src_type,
            given.pop("dst_type", src_type),
            given.pop("shape_type", None) or choose_holding_type(operation, plain.shape),
            special_zero_is_exact=given.get("special_zero_type", "bool") in ("bool", *INTEGERS),
            missing_attributes=tuple(name for name in missing if name in attributes),
            missing_operands=tuple(name for name in missing if name not in attributes),
            **given,
        )
    )


def _describe(plain: Call, form: Mapping[str, Any]) -> str:
    """Describe the call, so that a person sees how it was read."""
    parts = [format_call(plain.src, plain.shape, plain.special_zero)]
    lengths: tuple[object, ...] = (*plain.src, *plain.shape)
    names = dict.fromkeys(length for length in lengths if isinstance(length, str))
    parts += [f"{' and '.join(names)} at least 1"] * bool(names)
    for name, value in form.items():
        if name == "declared":
            text = format_dims(value)
        else:
            text = str(value) if isinstance(value, str | int) else " and ".join(value) or "none"
        parts.append(f"{name.replace('_', ' ')} {text}")
    return ", ".join(parts)


def _read_pairs(words: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        key = pick("key for --form:", name, _KEYS)
        if not equals:
            raise Stop(f"--form {word}: the value is missing; write --form {key}=VALUE")
        if key in values:
            raise Stop(f"--form {key} is given twice; give it once")
        values[key] = value
    return values
