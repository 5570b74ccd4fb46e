"""Values of a case as literals of Python and of C: every writer puts what a case says into a script through these.

A literal is plain ASCII, so that no character can act on a terminal, on a compiler or on the order of reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from conformance.model import Unsupported

VALUES = "form:attribute-values"
"""The facet of a value that a script cannot say."""
_LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")
_PLAIN = frozenset(range(ord(" "), ord("~") + 1)) - frozenset(b'"\\?')
"""Bytes that stand for themselves in a C string; a question mark may begin a trigraph."""


def python(value: object) -> str:
    """A Python literal of this value: a number, text, bytes, None, or a list, tuple or mapping of those."""
    if value is None or isinstance(value, bool | bytes):
        return repr(value)
    if isinstance(value, str):
        return ascii(value)
    if isinstance(value, int):
        return f"{value:d}" if value.bit_length() < 1 << 12 else f"{value:#x}"  # of long decimals Python reads none
    if isinstance(value, float) and isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{python(key)}: {python(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(python, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(python, value))}{',' if len(value) == 1 else ''})"
    raise Unsupported(VALUES)


def c_string(text: bytes) -> str:
    """A C string literal of these bytes; all but plain characters are octal escapes of three digits."""
    return '"' + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text) + '"'


def c_integer(value: int, bits: int = 64) -> str:
    """A C constant of a signed integer of so many bits, or of an unsigned one of 8."""
    low, high = (0, 256) if bits == 8 else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise Unsupported(f"integers past {bits} bits")
    if value == -(1 << 63):
        return "INT64_MIN"
    return f"{int(value)}" if abs(value) < 1 << 31 else f"INT64_C({int(value)})"


def c_float(value: float) -> str:
    """A C constant of a float."""
    if not abs(value) <= _LARGEST_FLOAT:  # so that what is not a number does not pass either
        raise Unsupported("floats past 32 bits")
    return repr(float(value))


def c_list(values: Iterable[str]) -> str:
    """The inside of a C initializer, which is never empty."""
    return ", ".join(values) or "0"
