"""Put texts and names into messages: cut if they are long, quoted, and with the name that may be meant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

LONGEST_TEXT = 2000


def shorten(text: str, most: int = 80) -> str:
    """Return the beginning of a text, and how long it is if that is not all."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def quote(value: object) -> str:
    """Return a value on one line, in the form of Python."""
    return shorten(repr(value), 100)


def quote_json(value: object) -> str:
    return shorten(json.dumps(value), 100)


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
