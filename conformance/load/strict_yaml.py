"""Read YAML strictly: every value knows its line, and no value has a type that its author did not mean.

Problems, because PyYAML or another reader would guess: duplicate keys, anchors, aliases, merges, tags, `yes`/`on`,
`010`/`1:30`/`1e3`, dates and other plain text that some reader takes for a boolean or a number. A byte order mark at
the beginning is allowed, as in YAML itself. The reader works on events: deep nesting cannot overflow a stack.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import yaml

from ..model import Malformed, Place, Problem
from ..system.files import read_bytes
from ..system.text import quote, shorten

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_FILE_BYTES = 16 << 20
_MAX_PROBLEMS = 1000
_MAX_DEPTH = 40
_MAX_DIGITS = 40
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_ACCIDENT = re.compile(
    r"y|n|yes|no|on|off|true|false|null|~|=|<<|"
    r"[-+]?[.]?[0-9][0-9_.,:]*(e[-+]?[0-9]+)?|[-+]?0[xob][0-9a-f_]+|[-+]?[.](inf|nan)|"
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t \t].*)?",
    re.IGNORECASE,
)
_INDENT = re.compile(r"^[ \t]*", re.MULTILINE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Control characters, and line breaks that editors and YAML count differently.
_NOT_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]|\r(?!\n)")
_BRACKETS = re.compile(r"[\[\]{}\n]")
_VALUES: dict[str, Any] = {"true": True, "false": False, "null": None}


class YamlMap(dict[str, Any]):
    """A YAML mapping that knows the lines of its keys."""

    __slots__ = ("line", "lines")
    line: int
    lines: dict[str, int]


class Seq(list[Any]):
    """A YAML sequence that knows the lines of its items."""

    __slots__ = ("line", "lines")
    line: int
    lines: list[int]


def read(path: Path, name: str) -> tuple[Any, list[Problem]]:
    """Return the content of a file and every problem with its YAML; messages call the file `name`."""
    text, problems = read_text(path, name)
    return (None, problems) if text is None else parse(text, name)


def read_text(path: Path, name: str) -> tuple[str | None, list[Problem]]:
    try:
        content = read_bytes(path, MAX_FILE_BYTES)
        return content.decode("utf-8-sig"), []
    except IsADirectoryError:
        return None, [Problem(Place(name), "is a folder; name a file")]
    except OSError as error:
        return None, [Problem(Place(name), f"cannot be read: {error.strerror}; check the path")]
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return None, [Problem(Place(name, line), f"byte {error.start} is not UTF-8; save the file as UTF-8")]


def parse(text: str, name: str, first_line: int = 1) -> tuple[Any, list[Problem]]:
    """Return the content of YAML text and every problem with it; messages call the file `name`.

    `first_line`: the line of the file on which the text begins, if it is a part of the file without problems.
    """
    if bad := _NOT_TEXT.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        return None, [Problem(Place(name, line), f"not YAML: character {bad[0]!r} is not allowed; remove it")]
    if line := _find_too_deep(text):
        return None, [Problem(Place(name, line), _TOO_DEEP)]
    collecting = gc.isenabled()
    gc.disable()  # most of the parser's time would be the garbage collector's
    try:
        reader = _Reader(iter(_LOADER(text).get_event, None), name, first_line)
        return reader.file(), reader.problems
    except Malformed as malformed:
        return None, [*malformed.problems]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(name, mark.line + 1 if mark else 1)
        what = " ".join(filter(None, (error.context, error.problem)))
        if mark and error.context_mark and error.context_mark.line != mark.line:
            what += f" (begun on line {error.context_mark.line + 1})"
        if "\t" in "".join(_INDENT.findall(text)[place.line - 1 : place.line]):
            what = "a tab where only blanks are allowed; indent with blanks"
            return None, [*reader.problems, Problem(place, f"not YAML: {what}")]
        return None, [*reader.problems, Problem(place, f"not YAML: {what}; correct it, or quote text with :*&[]{{}}")]
    finally:
        if collecting:
            gc.enable()


_TOO_DEEP = f"nested more than {_MAX_DEPTH} levels deep; nothing here needs that"


def _find_too_deep(text: str) -> int:
    """Return the line on which brackets nest far too deep, or 0; libyaml takes quadratic time for such text."""
    depth, line = 0, 1
    for bracket in _BRACKETS.findall(text):
        if bracket == "\n":
            line += 1
        else:
            depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
            if depth > 10 * _MAX_DEPTH:  # generous, for brackets in text count too
                return line
    return 0


class _Reader:
    """Walks the parser's events and collects every problem; Malformed, with all of them, ends the reading."""

    def __init__(self, events: Iterator[Any], name: str, first_line: int) -> None:
        self.events, self.name, self.first_line = events, name, first_line
        self.problems: list[Problem] = []

    def wrong(self, event: Any, what: str) -> None:
        if len(self.problems) >= _MAX_PROBLEMS:
            self.give_up(event, f"more than {_MAX_PROBLEMS:,} problems; correct those above first")
        self.problems.append(Problem(Place(self.name, event.start_mark.line + self.first_line), what))

    def give_up(self, event: Any, what: str) -> NoReturn:
        place = Place(self.name, event.start_mark.line + self.first_line)
        raise Malformed((*self.problems, Problem(place, what)))

    def file(self) -> Any:
        """Return the content of a file, which holds one YAML document."""
        next(self.events)
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise Malformed((Problem(Place(self.name, 1), "the file is empty; fill it or delete it"),))
        content = self.value(next(self.events), 0)
        next(self.events)
        if not isinstance(start := next(self.events), yaml.StreamEndEvent):
            self.give_up(start, "a second document begins here; keep one a file")
        return content

    def value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            self.wrong(event, f"the alias *{shorten(str(event.anchor))}; write the value out, so that each reads alone")
            return None
        if event.anchor is not None:
            what = f"the anchor &{shorten(str(event.anchor))}; remove it and write values out, so that each reads alone"
            self.wrong(event, what)
        if event.tag is not None:
            self.wrong(event, f"the tag {quote(event.tag)}; remove it and put text in quotes")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if depth >= _MAX_DEPTH:
            self.give_up(event, _TOO_DEEP)
        return self.mapping(event, depth) if isinstance(event, yaml.MappingStartEvent) else self.sequence(event, depth)

    def scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.style:  # quoted or block; the parser says "" for plain
            return text
        value, problem = _read_plain(text)
        if problem:
            self.wrong(event, problem)
        return value

    def mapping(self, start: Any, depth: int) -> YamlMap:
        result = YamlMap()
        result.line, result.lines = start.start_mark.line + self.first_line, {}
        while not isinstance(key_event := next(self.events), yaml.MappingEndEvent):
            problems = len(self.problems)
            key = self.value(key_event, depth + 1)
            value = self.value(next(self.events), depth + 1)
            if not isinstance(key, str):
                if len(self.problems) == problems:
                    is_scalar = isinstance(key_event, yaml.ScalarEvent)
                    name = quote(key_event.value) if is_scalar else "before this colon"
                    self.wrong(key_event, f"the key {name} is not text; put it in quotes")
            elif key in result:
                what = f"the key {quote(key)} occurs twice, first on line {result.lines[key]}; remove one"
                self.wrong(key_event, what)
            else:
                result[key] = value
                result.lines[key] = key_event.start_mark.line + self.first_line
        return result

    def sequence(self, start: Any, depth: int) -> Seq:
        result = Seq()
        result.line, result.lines = start.start_mark.line + self.first_line, []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            result.append(self.value(event, depth + 1))
            result.lines.append(event.start_mark.line + self.first_line)
        return result


@lru_cache(1 << 12)  # keys and small numbers repeat
def _read_plain(text: str) -> tuple[Any, str]:
    """Return the value of plain text, and the problem with it."""
    if text in _VALUES:
        return _VALUES[text], ""
    if _INTEGER.fullmatch(text):
        if len(text) <= _MAX_DIGITS:
            return int(text), ""
        return None, f"a number of {len(text)} characters, at most {_MAX_DIGITS} are read; shorten it"
    if not text:
        return None, "the value is left empty; write it, or null"
    if _DATE.fullmatch(text):
        return None, f"{quote(text)} is a date to some YAML readers; put it in quotes"
    if _ACCIDENT.fullmatch(text):
        what = f"{quote(text)} is a boolean, a number, a date or nothing to some YAML readers"
        return None, f"{what}; write true, false, null or a whole number such as -1, or put it in quotes"
    return text, ""


def line_of(root: Any, path: tuple[str | int, ...]) -> int:
    """Return the line of the value at a path of keys and indices."""
    line = getattr(root, "line", 1)
    for step in path:
        in_map = isinstance(root, YamlMap) and step in root.lines
        in_seq = isinstance(root, Seq) and isinstance(step, int) and step < len(root)
        if not in_map and not in_seq:
            break
        line, root = root.lines[step], root[step]
    return line


def raise_problems(problems: list[Problem]) -> None:
    """Raise Malformed if there is any problem."""
    if problems:
        raise Malformed(tuple(problems))
