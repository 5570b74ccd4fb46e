"""Split the text of a case file into its cases, without reading it as YAML."""

from __future__ import annotations

import re
from typing import NamedTuple

_ID = "[a-z][a-z0-9-]*"
_BEGIN = re.compile(rf"^  - (?:id: ({_ID})\n(?:    title: .*\n)?    rule: ({_ID})\n)?", re.MULTILINE)
_KEY_OF_FILE = re.compile(r"^[^\s#]", re.MULTILINE)


class YamlEntry(NamedTuple):
    """The text of a case in its file."""

    id: str
    rule: str
    line: int
    text: str


def split_entries(text: str) -> list[YamlEntry]:
    """Return the cases of a file; none if one does not begin with its id and rule, or if another key follows them."""
    begins = list(_BEGIN.finditer(text))
    if begins and _KEY_OF_FILE.search(text, begins[0].start()):
        return []
    ends = [*(begin.start() for begin in begins[1:]), len(text)]
    entries, line, last = [], 1, 0
    for begin, end in zip(begins, ends, strict=False):
        if begin[1] is None:
            return []
        line += text.count("\n", last, begin.start())
        last = begin.start()
        entries.append(YamlEntry(begin[1], begin[2], line, text[last:end]))
    return entries
