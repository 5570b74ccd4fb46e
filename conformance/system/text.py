"""Texts of messages: long ones cut, values quoted, names suggested, and dims and calls as every report writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

MAX_TEXT_CHARACTERS = 2000
_REST = re.compile(r"… \([0-9]+ characters\)")
_ERRORS = re.compile(
    r"^.*(?:Error|Exception|error|what\(\)|[Cc]heck failed): .*|^.*Assertion .* failed.*|^.*panicked at .*\n.*",
    re.MULTILINE,
)
"""Lines with the message of an error, as Python, C++ and Rust print it."""


def shorten(text: str, most: int = 80) -> str:
    """Return the beginning of a text, and how long it is if that is not all; a text so shortened stays as it is."""
    if len(text) <= most or _REST.fullmatch(text, most):
        return text
    return f"{text[:most]}… ({len(text)} characters)"


def pick_error_line(text: str) -> str:
    """Return the first line of a text, and the last line that names an error if it is another one."""
    first, errors = text.partition("\n")[0], _ERRORS.findall(text)
    if "\n" not in text or not errors:
        return text
    error: str = errors[-1]
    if error.startswith(first):  # a panic of Rust, which has two lines
        return error
    return first if error in first else f"{first} … {error}"


def as_text(value: object, how: Callable[[object], str] = str) -> str:
    """Return a backend's value as text, or say that it cannot be written."""
    try:
        return how(value)
    except BaseException as error:
        return f"({type(value).__name__}, which cannot be written: {type(error).__name__})"


def quote(value: object) -> str:
    """Return a value on one line, in the form of Python."""
    return shorten(repr(value), 100)


def quote_json(value: object) -> str:
    try:
        return shorten(json.dumps(value), 100)
    except RecursionError:  # it is nested as deep as what was just decoded
        return "nested too deeply"


def join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def join_neighbours(names: Iterable[str]) -> list[str]:
    """Name the first and the last of three or more with successive numbers: `rank:3 to rank:65`."""
    runs: list[list[str]] = []
    for name in names:
        number = re.fullmatch("(.*:)([0-9]{1,9})", name)
        if number and runs and runs[-1][-1] == f"{number[1]}{int(number[2]) - 1}":
            runs[-1].append(name)
        else:
            runs.append([name])
    return [name for run in runs for name in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]


def name_first(names: Sequence[str], most: int) -> str:
    """Name the first `most`, and say how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def find_near(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.55) -> list[str]:
    """Return the names that are closest to one that is misspelt, apart from capitals, or the one that is longer."""
    import difflib  # slow to import, and only for what is misspelt

    known = {each.lower(): each for each in names}
    longer = [each for each in known if name and each.startswith(name.lower())]
    if len(longer) == 1:
        return [known[longer[0]]]
    # difflib takes long for long names
    return [known[each] for each in difflib.get_close_matches(name[:200].lower(), known, most, cutoff)]


def suggest(near: Sequence[str], otherwise: str) -> str:
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def describe_unknown(what: str, name: object, names: Iterable[str], see: str = "") -> str:
    """Write `unknown rule 'one-infre'; did you mean 'one-infer'?`, or where the names are listed."""
    known = list(names)
    otherwise = f"see `{see}`" if see else f"write one of {', '.join(known)}"
    return f"unknown {what} {quote(name)}; {suggest(find_near(str(name), known), otherwise)}"


def format_dims(dims: Iterable[object]) -> str:
    """Write `[2, ?, 3]`, with a question mark for what is not known."""
    return f"[{', '.join('?' if each is None else str(each) for each in dims)}]"


def format_call(src: Iterable[object], shape: Iterable[object], special_zero: bool, type_: str = "") -> str:
    """Write `src f32[2, 3], shape [6], special_zero false`."""
    return f"src {type_}{format_dims(src)}, {format_shape(shape, special_zero)}"


def format_shape(shape: Iterable[object], special_zero: bool) -> str:
    return f"shape {format_dims(shape)}, special_zero {str(special_zero).lower()}"
