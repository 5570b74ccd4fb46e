"""Values of a case as literals of Python: every writer puts what a case says into a script through these.

A literal is plain ASCII, so that no character can act on a terminal or on the order of reading.
"""

from __future__ import annotations

from math import isfinite

from conformance.model import Unsupported

VALUES = "form:attribute-values"
"""The facet of a value that a script cannot say."""


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
