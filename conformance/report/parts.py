"""What all parts of the page are made of: inert text, verdicts, links and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from .facts import MARKS, visible

SHORT = 160
"""Characters of an answer in the list of all cases; failures have the whole."""
COLOUR: Mapping[str, str] = {
    "pass": "pass", "fail": "fail", "error": "error", "observed": "observed", "not claimed": "open", "not run": "warn",
    "waived": "warn", "conforms": "pass", "does not conform": "fail", "incomplete": "warn", "nothing shown": "warn",
}  # fmt: skip
SECTIONS = (
    ("scope", "Scope"),
    ("rules", "Rules"),
    ("failures", "Failures"),
    ("matrix", "Matrix"),
    ("observed", "Left open"),
    ("unclaimed", "Not claimed, waived, not run"),
    ("cases", "All cases"),
    ("environment", "Environment"),
    ("legend", "Legend"),
)


def plain(text: object) -> str:
    """Any text, inert."""
    return escape(visible(text))


def quote(text: object) -> str:
    """A backend's words: inert, and unable to turn the order of what stands beside them."""
    return f"<bdi>{plain(text)}</bdi>"


def code(text: object) -> str:
    return f"<code>{plain(text)}</code>"


def mark(word: str, more: str = "") -> str:
    """A verdict by shape, word and colour."""
    return f'<span class="v {COLOUR.get(word, "open")}">{MARKS[word]} {word}{more}</span>'


def section(name: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<section{named} aria-labelledby="{name}"><h2 id="{name}">{dict(SECTIONS)[name]}</h2>'


def table_of(caption: str, heads: Sequence[str], rows: Iterable[str], name: str = "") -> Iterator[str]:
    """A table that scrolls by itself where it is too wide, by keyboard too."""
    heading = "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield f'<div class="wide {name}" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
    yield f"<caption>{escape(caption)}</caption><thead><tr>{heading}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table></div>"


def rule_link(rule: str) -> str:
    return f'<a href="#rule-{plain(rule)}">{plain(rule)}</a>'


def case_link(case: str) -> str:
    return f'<a href="#case-{plain(case)}">{plain(case)}</a>'


def number_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
