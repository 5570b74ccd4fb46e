"""Read lists of lengths, booleans and types in the ways that people type them."""

from __future__ import annotations

import re

from ..model.types import WIDTH
from .arguments import Stop, pick

MAX_NUMBER = 2**63 - 1
MAX_ENTRIES = 1000
_QUOTES = "'\"`"
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_TYPED = re.compile(r"([A-Za-z][A-Za-z0-9]*)\s*(?=[\[({<])")
_SEPARATOR = re.compile(r"\s*[,;xX*]\s*|\s+")
_COMMA = re.compile(r"\s*[,;]\s*|\s+")
_NAME = re.compile(r"(?!(?:None|True|False)$)[^\W\d]\w*")
_ENTRY = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def _write_plainly(text: str) -> str:
    return text.strip().strip(_QUOTES).strip()


def read_typed_lengths(option: str, text: str) -> tuple[str | None, tuple[int | str, ...]]:
    """Read `f32[batch, 4]` as a type and lengths; the type is None if none is written, or `T`."""
    plain = _write_plainly(text)
    match = _TYPED.match(plain)
    if match is None:
        return None, read_src_lengths(option, text)
    return None if match[1] == "T" else match[1], read_src_lengths(option, plain[match.end() :])


def read_named_lengths(option: str, text: str) -> tuple[int | str, ...]:
    """Read `3,4,5`, `3x4x5`, `[3, 4, 5]`, `3 4 5`, also with names such as `batch,3`; nothing or `()` for rank 0."""
    entries = _split_entries(option, text)
    return tuple(each if _NAME.fullmatch(each) else _number(option, each, text) for each in entries)


def read_src_lengths(option: str, text: str) -> tuple[int | str, ...]:
    """Read the same, without a length below 0."""
    lengths = read_named_lengths(option, text)
    if negative := next((d for d in lengths if isinstance(d, int) and d < 0), None):
        shape = option.replace("src", "shape")
        raise Stop(f"{option} holds {negative}, and no tensor has a length below 0; only {shape} takes -1")
    return lengths


def read_entries(option: str, text: str) -> tuple[int, ...]:
    """Read the same without names."""
    return tuple(_number(option, entry, text) for entry in _split_entries(option, text))


def read_partial_lengths(option: str, text: str) -> tuple[int | None, ...]:
    """Read lengths in the same forms, and `?` for a length that is not known."""
    return tuple(None if entry == "?" else _number(option, entry, text) for entry in _split_entries(option, text))


def _split_entries(option: str, text: str) -> list[str]:
    body = _write_plainly(text)
    if body[:1] in _PAIRS:
        if body[-1:] != _PAIRS[body[0]]:
            raise _refuse(option, text, f"{body[0]!r} is not closed")
        body = body[1:-1].strip()
    if body[-1:] in (",", ";"):  # a tuple of one, as Python writes it
        body = body[:-1].rstrip()
        if not body:
            raise _refuse(option, text, "there is a comma without a number")
    if not body:
        return []
    if _NAME.fullmatch(body):  # an x may be a name, or a part of one
        return [body]
    separator = _COMMA if "," in body or re.search(r"[^\W\d_xX]", body) else _SEPARATOR
    entries = separator.split(body)
    if len(entries) > MAX_ENTRIES:
        raise Stop(f"{option} has {len(entries)} entries; at most {MAX_ENTRIES} are read")
    return entries


def _number(option: str, entry: str, text: str) -> int:
    if not entry:
        raise _refuse(option, text, "an entry is empty")
    if not _ENTRY.fullmatch(entry):
        raise _refuse(option, text, f"{entry[:40]!r} is not a whole number")
    digits = entry.lstrip("+-").replace("_", "").lstrip("0")
    if len(digits) > 19 or int(digits or "0") > MAX_NUMBER + (entry[0] == "-"):
        raise Stop(f"{option}: {entry[:40]!r} does not fit 64 bits; write at most {MAX_NUMBER}")
    return int(entry)


def _refuse(option: str, text: str, why: str) -> Stop:
    quoted = text if len(text) <= 60 else f"{text[:57]}..."
    example = "3,4,5" if option.startswith("-") else "(3, 4, 5)"  # else it is an argument in Python
    return Stop(f"{option} {quoted!r}: {why}; write for example {option}={example}, or {option}=() for rank 0")


def read_boolean(option: str, text: str) -> bool:
    """Read true or false, also as yes and no, on and off, 1 and 0."""
    plain = _write_plainly(text).lower()
    if plain in _TRUE | _FALSE:
        return plain in _TRUE
    raise Stop(f"{option} {text[:60]!r} is neither true nor false; write {option} true")


def read_type(option: str, text: str) -> str:
    return pick(f"type for {option}:", _write_plainly(text), (*WIDTH, "string"))


def read_names(text: str) -> tuple[str, ...]:
    """Read a list of names with commas or blanks between them."""
    return tuple(filter(None, re.split(r"[,;\s]+", _write_plainly(text).strip("()[]{}"))))
