"""What changed between two runs, told as text, Markdown or a page: causes first, then what got worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import VERDICTS
from ..system.terminal import BAD, OK, lines
from ..system.terminal import plain as plain_text
from .diff import CAUSES, DIRECTIONS, Change, Difference, Direction
from .facts import MARKS, cut, grouped
from .markdown import code, inert
from .parts import mark, number_of, plain, quote, table_of
from .shell import shell

MOST = 400
"""Groups of changes told in one direction; of more the number is given."""
_SIGNS: Mapping[Direction, str] = {"worse": "✗", "better": "✓", "set aside": "◐", "other": "◆"}
_OWN: Mapping[Direction, str] = {"worse": BAD, "better": OK}
_COLOUR: Mapping[Direction, str] = {"worse": "fail", "better": "pass", "set aside": "warn", "other": "observed"}
_LONGEST = 300


class Group(NamedTuple):
    """Rows of a case that changed alike, and for the same reason."""

    rows: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.rows[0]

    @property
    def number(self) -> int:
        return len({change.row for change in self.rows})

    @property
    def documents(self) -> str:
        return ", ".join(dict.fromkeys(document for change in self.rows for document in change.documents))

    @property
    def verdicts(self) -> str:
        first = self.first
        return first.was if first.was == first.now else f"{first.was} → {first.now}"

    @property
    def answers(self) -> str:
        was, now = (
            "/".join(dict.fromkeys(each))
            for each in zip(*((c.was_answer, c.now_answer) for c in self.rows), strict=True)
        )
        return (
            cut(was, _LONGEST)
            if was == now
            else f"{cut(was, _LONGEST) or 'nothing'} → {cut(now, _LONGEST) or 'nothing'}"
        )


def groups(found: Difference, direction: Direction) -> list[Group]:
    """Changes in one direction, case by case."""
    some = (change for change in found.changes if change.direction == direction)
    by = grouped(((c.causes, c.case, c.was, c.now), c) for c in some)
    return [Group(rows) for rows in by.values()]


def verdict(found: Difference) -> str:
    """One sentence."""
    counts = found.counts
    rows = {direction: number for direction, number in counts.items() if number}
    if not rows and not found.standings:
        return f"nothing changed in {number_of(found.rows, 'row')}"
    told = ", ".join(f"{number:,} {direction}" for direction, number in rows.items()) or "no row changed"
    return f"{'something got worse' if found.worse else 'nothing got worse'}: {told}, of {number_of(found.rows, 'row')}"


def _why(change: Change) -> str:
    return " or ".join(change.causes)


# ── text ──────────────────────────────────────────────────────────────────────────────────────────


def text(found: Difference, most: int = 60) -> str:
    """A file of plain text, as safe as what `say` prints."""
    return f"{plain_text(told(found, most))}\n"


def told(found: Difference, most: int = 60) -> str:
    """All changes as text for a terminal, to be printed by `say`."""
    return lines(_text(found, most))


def _text(found: Difference, most: int) -> Iterator[str]:
    yield f"old: {found.old}"
    yield f"new: {found.new}"
    yield ""
    yield f"{verdict(found)}"
    yield ""
    yield "pinned by the headers, and not the same:" if found.pinned else "the headers pin the same of both runs"
    for each in found.pinned:
        yield f"  {each.cause}: {each.what}: {cut(each.was, 120)} → {cut(each.now, 120)}"
    if found.standings is None:
        yield "the runs are not both of this suite, so verdicts on documents are not compared"
    for standing in found.standings or ():
        yield f"  {BAD if standing.worse else OK} {standing.document} {standing.type}: {standing.was} → {standing.now}"
    for direction in DIRECTIONS:
        some = groups(found, direction)
        if some:
            yield ""
            sign = _OWN.get(direction, _SIGNS[direction])
            yield f"{sign} {direction}: {found.counts[direction]:,} rows; {DIRECTIONS[direction]}"
        for group in some[:most]:
            first = group.first
            rule = f" · {first.rule}" if first.rule else ""
            yield f"  {first.case}{rule} · {number_of(group.number, 'row')} · {group.documents}"
            yield f"      {group.verdicts} · {group.answers} · why: {_why(first)}"
        if len(some) > most:
            yield f"  and {len(some) - most} more; --out changes.html has them"


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────


def markdown(found: Difference) -> str:
    """For the summary of a CI job."""
    return "\n".join(_markdown(found)) + "\n"


def _markdown(found: Difference) -> Iterator[str]:
    yield f"# {'✗' if found.worse else '✓'} Reshape conformance: {inert(verdict(found))}"
    yield ""
    yield f"- old: {code(found.old)}"
    yield f"- new: {code(found.new)}"
    yield ""
    if found.pinned:
        yield "## Why: pinned by the headers, and not the same"
        yield ""
        yield from (
            f"- {each.cause}: {code(each.what)} {code(cut(each.was, _LONGEST))} → {code(cut(each.now, _LONGEST))}"
            for each in found.pinned
        )
    else:
        yield "The headers pin the same of both runs."
    for standing in found.standings or ():
        sign = "✗" if standing.worse else "✓"
        yield f"- {sign} {inert(f'{standing.document} {standing.type}')}: {standing.was} → {standing.now}"
    yield ""
    for direction in DIRECTIONS:
        some = groups(found, direction)
        if not some:
            continue
        yield f"## {_SIGNS[direction]} {direction}: {found.counts[direction]:,} rows"
        yield ""
        yield f"{DIRECTIONS[direction][0].upper()}{DIRECTIONS[direction][1:]}."
        yield ""
        for group in some[:MOST]:
            first = group.first
            yield f"- {code(first.case)}, {number_of(group.number, 'row')} ({group.documents}): {group.verdicts}"
            yield f"  - {code(group.answers)}, why: {_why(first)}"
        if len(some) > MOST:
            yield f"- and {len(some) - MOST} more"
        yield ""


# ── page ──────────────────────────────────────────────────────────────────────────────────────────


def html(found: Difference) -> str:
    """One page without a script."""
    return shell("Reshape conformance: what changed", "", _html(found))


def _html(found: Difference) -> Iterator[str]:
    word = "does not conform" if found.worse else "conforms"
    sign = f'<span class="v {"fail" if found.worse else "pass"}">{MARKS[word]}</span>'
    yield '<a class="skip" href="#main">Skip to the changes</a><header><p class="soft">Reshape conformance</p>'
    yield f"<h1>What changed</h1><p><strong>{sign} {plain(verdict(found).capitalize())}.</strong></p>"
    yield f"<dl><dt>old</dt><dd>{quote(found.old)}</dd><dt>new</dt><dd>{quote(found.new)}</dd></dl>"
    parts = {"why": "Why", "documents": "Documents"} | {
        _anchor(direction): f"{direction.capitalize()}: {number_of(rows, 'row')}"
        for direction, rows in found.counts.items()
        if rows
    }
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in parts.items())
    yield f'<nav aria-label="Parts of this page"><ul>{links}<li><a href="#legend">Causes</a></li></ul></nav></header>'
    yield '<main id="main"><section aria-labelledby="why"><h2 id="why">Why</h2>'
    if found.pinned:
        rows = [
            f'<tr><th scope="row">{each.cause}</th><td>{plain(each.what)}</td>'
            f"<td>{quote(each.was)}</td><td>{quote(each.now)}</td></tr>"
            for each in found.pinned
        ]
        yield from table_of(
            "Pinned by the headers, and not the same", ("Cause", "What", "Old", "New"), rows, "stack pinned"
        )
    else:
        yield "<p>The headers pin the same of both runs.</p>"
    yield "</section>"
    yield from _documents(found)
    for direction in DIRECTIONS:
        yield from _direction(found, direction, groups(found, direction))
    rows = [f'<tr><th scope="row">{cause}</th><td>{text}</td></tr>' for cause, text in CAUSES.items()]
    yield '<section aria-labelledby="legend"><h2 id="legend">Causes</h2>'
    yield from table_of("What the causes mean", ("Cause", "Meaning"), rows, "stack")
    yield "</section></main>"


def _documents(found: Difference) -> Iterator[str]:
    yield '<section aria-labelledby="documents"><h2 id="documents">Documents</h2>'
    if found.standings is None:
        yield "<p>The runs are not both of this suite, so verdicts on documents are not compared.</p>"
    elif not found.standings:
        yield "<p>Each document and type has the verdict that it had.</p>"
    else:
        rows = [
            f'<tr><th scope="row">{plain(each.document)} {plain(each.type)}</th>'
            f"<td>{mark(each.was)}</td><td>{mark(each.now)}</td></tr>"
            for each in found.standings
        ]
        yield from table_of("Documents and types whose verdict changed", ("Document and type", "Old", "New"), rows)
    yield "</section>"


def _anchor(direction: Direction) -> str:
    return direction.replace(" ", "-")


def _direction(found: Difference, direction: Direction, some: Sequence[Group]) -> Iterator[str]:
    if not some:
        return
    name = _anchor(direction)
    sign = f'<span class="v {_COLOUR[direction]}">{_SIGNS[direction]}</span>'
    yield f'<section aria-labelledby="{name}"><h2 id="{name}">{sign} {direction.capitalize()}: '
    yield f"{number_of(found.counts[direction], 'row')}</h2><p>{DIRECTIONS[direction].capitalize()}.</p>"
    heads = ("Case", "Rule", "Rows and documents", "Verdict", "It answered", "Why")
    yield from table_of(f"{direction.capitalize()}, case by case", heads, map(_row, some[:MOST]), "stack changed")
    if len(some) > MOST:
        yield f"<p>And {number_of(len(some) - MOST, 'more group')}; compare the results themselves.</p>"
    yield "</section>"


def _row(group: Group) -> str:
    first = group.first
    told = " → ".join(mark(word) if word in VERDICTS else plain(word) for word in dict.fromkeys((first.was, first.now)))
    return (
        f'<tr><th scope="row">{plain(first.case)}</th><td>{plain(first.rule)}</td>'
        f"<td>{number_of(group.number, 'row')}, "
        f"{plain(group.documents)}</td><td>{told}</td><td>{quote(group.answers)}</td><td>{_why(first)}</td></tr>"
    )
