"""The changes between two runs as text, Markdown or a page: causes first, then what got worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import BAD, NOT_CLAIMED, VERDICTS
from ..model.verdicts import SEVERITIES
from ..system.groups import group_pairs
from ..system.terminal import BAD_SIGN, OK_SIGN, count_noun, lines, plain
from ..system.text import shorten
from .diff import CAUSES, DIRECTIONS, Change, Difference, Direction, WhatFailed
from .markdown import block, inert
from .render import format_foot, menu_of, render_page
from .wording import format_time

MAX_GROUPS, _MAX_GROUPS_IN_TEXT = 300, 60
"""Groups of changes to list in one direction, on a page and as text."""
_MAX_CHARACTERS = 120
"""Characters to show of what a header says."""
_SIGNS: Mapping[Direction, str] = {"worse": "✗", "better": "✓", "set aside": "◐", "other": "◆"}
_TERMINAL_SIGNS: Mapping[Direction, str] = {**_SIGNS, "worse": BAD_SIGN, "better": OK_SIGN}
_COLOURS: Mapping[Direction, str] = {"worse": "fail", "better": "pass", "set aside": "warn", "other": "observed"}
_MAX_TEXT = 300
"""Characters to show of an answer."""


class ChangeGroup(NamedTuple):
    """Rows of a case with the same change and the same causes, or of all cases if no case explains the change."""

    rows: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.rows[0]

    @property
    def case(self) -> str:
        """The case, or the number of cases."""
        cases = {change.case for change in self.rows}
        return self.first.case if len(cases) == 1 else count_noun(len(cases), "case")

    @property
    def rule(self) -> str:
        return self.first.rule if len({change.rule for change in self.rows}) == 1 else ""

    @property
    def tests(self) -> int:
        return sum(len(change.documents) for change in self.rows)

    @property
    def documents(self) -> Sequence[str]:
        return list(dict.fromkeys(document for change in self.rows for document in change.documents))

    @property
    def causes(self) -> str:
        return " or ".join(self.first.causes)

    @property
    def verdicts(self) -> str:
        first = self.first
        return first.was if first.was == first.now else f"{first.was} → {first.now}"

    @property
    def answers(self) -> str:
        """The answers; empty if only the claims changed."""
        if is_changed_by_claims(self.first):
            return ""
        was = "/".join(dict.fromkeys(change.was_answer for change in self.rows))
        now = "/".join(dict.fromkeys(change.now_answer for change in self.rows))
        if was == now:
            return shorten(was, _MAX_TEXT)
        return f"{shorten(was, _MAX_TEXT) or 'nothing'} → {shorten(now, _MAX_TEXT) or 'nothing'}"


def is_changed_by_claims(change: Change) -> bool:
    """Ask whether only the claims changed: a row that fails in neither run, and is not answered if not claimed."""
    unclaimed = change.was_answer if change.was == NOT_CLAIMED else change.now_answer
    return change.causes == ("claims",) and unclaimed == "unsupported" and not {change.was, change.now} & BAD


def _explain(change: Change) -> str:
    """Return the case of a change; if only the claims changed, nothing; of a call still rejected, its two stages."""
    answers = change.was_answer, change.now_answer
    if change.was == change.now and change.was not in BAD and all(each.startswith("rejected at ") for each in answers):
        return " → ".join(answers)
    return "" if is_changed_by_claims(change) else change.case


def group_changes(difference: Difference, direction: Direction) -> list[ChangeGroup]:
    """Group changes in one direction by case; those that no case explains are together."""
    some = (change for change in difference.changes if change.direction == direction)
    by = group_pairs(((c.causes, _explain(c), c.was, c.now), c) for c in some)
    order = [*count_failures(difference, direction), None]
    return sorted(
        map(ChangeGroup, by.values()), key=lambda group: order.index(difference.find_what_failed(group.first))
    )


def count_failures(difference: Difference, direction: Direction) -> dict[WhatFailed, int]:
    """Count the changed tests in one direction by what failed in them: the worst severity first."""
    counts: Counter[WhatFailed] = Counter()
    for change in difference.changes:
        if change.direction == direction and (failed := difference.find_what_failed(change)):
            counts[failed] += len(change.documents)
    return dict(sorted(counts.items(), key=lambda each: (SEVERITIES.index(each[0].severity), -each[1])))


def format_verdict(difference: Difference) -> str:
    counts = difference.counts
    changed = {direction: number for direction, number in counts.items() if number}
    if not changed and not difference.standings:
        return f"nothing changed in {count_noun(difference.tests, 'test')}"
    numbers = ", ".join(f"{number:,} {direction}" for direction, number in changed.items()) or "no test changed"
    summary = "something got worse" if difference.worse else "nothing got worse"
    return f"{summary}: {numbers}; {count_noun(difference.tests, 'test')} compared"


def note_not_compared(difference: Difference) -> str:
    """Say how many tests and drawn rows are not compared, and why; empty if all are."""
    notes = []
    if difference.asked_once:
        notes.append(f"{count_noun(difference.asked_once, 'test')} that only one run was asked for")
    if difference.not_compared:
        rows = count_noun(difference.not_compared, "drawn row")
        notes.append(f"{rows} that failed in one run; the other did not call them, or does not hold the result")
    return f"not compared: {', and '.join(notes)}" if notes else ""


def render_markdown(difference: Difference) -> str:
    """Render the summary of a CI job."""
    sign = _SIGNS["worse" if difference.worse else "better"]
    title = f"# {sign} Reshape conformance: {inert(format_verdict(difference))}"
    return f"{title}\n\n{block(plain(lines(_list_lines(difference))))}\n"


def format_changes(difference: Difference) -> str:
    """Render all changes as text for `say`."""
    sign = _TERMINAL_SIGNS["worse" if difference.worse else "better"]
    return lines([f"{sign} Reshape conformance: {format_verdict(difference)}", "", *_list_lines(difference)])


def _list_documents(difference: Difference) -> Iterator[str]:
    if difference.standings is None:
        yield "  the runs are not both of this suite, so verdicts on documents are not compared"
    for standing in difference.standings or ():
        sign = _TERMINAL_SIGNS["worse" if standing.worse else "better"]
        yield f"  {sign} {standing.document} {standing.type}: {standing.was} → {standing.now}"
    for blames in difference.blames:
        yield f"  {blames.document}: {blames.was} → {blames.now}"
    if note := note_not_compared(difference):
        yield f"  {note}"


def _list_lines(difference: Difference) -> Iterator[str]:
    yield f"  old: {difference.old}"
    yield f"  new: {difference.new}"
    yield ""
    if difference.header_changes:
        yield "What the evidence says of each run, where it differs"
    else:
        yield "Both runs name the same backend and version, claims, suite, waivers, environment and target."
    for change in difference.header_changes:
        was, now = (shorten(each, _MAX_CHARACTERS) for each in (change.was, change.now))
        yield f"  {change.cause}: {change.what}: {was} → {now}"
    if documents := list(_list_documents(difference)):
        yield from ("", "Documents", *documents)
    for direction, means in DIRECTIONS.items():
        some = group_changes(difference, direction)
        if some:
            yield ""
            number = count_noun(difference.counts[direction], "test")
            yield f"{_TERMINAL_SIGNS[direction]} {direction}: {number}; {means}"
        for failed, tests in count_failures(difference, direction).items():
            yield f"  {failed.severity}: {failed.title}: {count_noun(tests, 'test')}"
        for group in some[:_MAX_GROUPS_IN_TEXT]:
            parts = (group.case, group.rule, count_noun(group.tests, "test"), ", ".join(group.documents))
            yield f"  {' · '.join(filter(None, parts))}"
            yield f"      {' · '.join(filter(None, (group.verdicts, group.answers)))} · why: {group.causes}"
        if len(some) > _MAX_GROUPS_IN_TEXT:
            yield f"  and {len(some) - _MAX_GROUPS_IN_TEXT} more; --out changes.html has more"


def render_html(
    difference: Difference, old_page: str | None = None, new_page: str | None = None, *, in_site: bool = False
) -> str:
    """Render a page without a script. `old_page`, `new_page`: links to the reports of the two runs."""
    sections = [(direction, group_changes(difference, direction)) for direction in DIRECTIONS]
    suite = difference.new.suite
    return render_page(
        "diff.html",
        format_foot(suite["digest"], f"run on {format_time(difference.new.started)}", version=suite["version"]),
        menu=menu_of("../") if in_site else None,
        here="Results",
        difference=difference,
        documents=[was.document.id for was, _ in difference.documents],
        old_page=old_page,
        new_page=new_page,
        verdict=format_verdict(difference),
        not_compared=note_not_compared(difference),
        directions=DIRECTIONS,
        failures={direction: count_failures(difference, direction) for direction in DIRECTIONS},
        signs=_SIGNS,
        direction_colours=_COLOURS,
        causes=CAUSES,
        verdicts=VERDICTS,
        bad=BAD,
        sections=[(direction, groups) for direction, groups in sections if groups],
        most=MAX_GROUPS,
    )
