"""The page’s failures by what is wrong: some told in full, the others in a line each, lest the page grow huge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from ..model import Meaning, Rule, Verdict
from .cases import data_of, due, named, steps, sub
from .facts import Facts, Shown, Wants, answer_of, clauses, cut, grouped, visible
from .parts import SHORT, case_link, mark, number_of, plain, quote, rule_link, section, table_of

IN_FULL = 60
"""Cases that are told in full, of all kinds together."""
_OF_A_KIND = 8
"""The same of one kind, where there are several."""
_LONGEST = 1200
"""Characters of a backend's words that are shown; the evidence has the rest."""
_LINES = 12
"""Lines of one case."""
_IN_SHORT = 800
"""Cases that are told in a line each, of all kinds together."""
Entries = Mapping[str, Sequence[Shown]]


class Told(NamedTuple):
    """What failing rows of a case have in common, told in one line of a table."""

    want: Wants
    got: str
    detail: str
    word: Verdict


def failures(facts: Facts) -> Iterator[str]:
    yield section("failures")
    if not facts.failures:
        yield "<p>Nothing that was run failed or erred.</p></section>"
        return
    full, left = _in_full(facts), _IN_SHORT
    yield "<p>Grouped by what is wrong, the commonest first. Begin with the first of each group; the command under it "
    yield "repeats the call. The picture shows what becomes of each entry of shape.</p>"
    kinds = [_kind(number, name, entries) for number, (name, entries) in enumerate(facts.failures.items(), 1)]
    heads = ("What is wrong", "Rows", "Cases", "Rules")
    yield from table_of("What is wrong, and how often", heads, kinds, "stack kinds-of")
    for number, (diagnosis, entries) in enumerate(facts.failures.items(), 1):
        yield f'<div data-group><h3 id="wrong-{number}">{mark(_word(entries))} {quote(diagnosis)}: '
        yield f"{number_of(sum(map(len, entries.values())), 'row')} of {number_of(len(entries), 'case')}</h3>"
        for place, case in enumerate(full[diagnosis]):
            yield from _failure(facts, diagnosis, case, entries[case], first=place == 0)
        others = {case: rows for case, rows in entries.items() if case not in full[diagnosis]}
        yield from _compact(diagnosis, facts, dict(list(others.items())[:left]))
        if len(others) > left:
            yield f"<p>And {number_of(len(others) - left, 'case')} of this kind, which stand under “All cases”.</p>"
        left = max(0, left - len(others))
        yield "</div>"
    yield "</section>"


def _in_full(facts: Facts) -> Mapping[str, Sequence[str]]:
    """Which cases of each kind are told in full: of as many rules as possible, and some of every kind."""
    kinds = facts.failures
    most = IN_FULL if len(kinds) == 1 else _OF_A_KIND
    chosen: dict[str, list[str]] = {name: [] for name in kinds}
    queues = {name: _by_turns(entries)[:most] for name, entries in kinds.items()}
    left = IN_FULL
    for place in range(most):
        for name, queue in queues.items():
            if place < len(queue) and (left > 0 or place == 0):
                chosen[name].append(queue[place])
                left -= 1
    return chosen


def _by_turns(entries: Entries) -> list[str]:
    """Cases in such an order that each rule has its first before any has its second."""
    by_rule = grouped((rows[0].row.case.rule, case) for case, rows in entries.items())
    turns = [(place, case) for cases in by_rule.values() for place, case in enumerate(cases)]
    return [case for _, case in sorted(turns, key=lambda turn: turn[0])]


def _word(entries: Entries) -> str:
    return "error" if all(shown.worst == "error" for entry in entries.values() for shown in entry) else "fail"


def _kind(number: int, diagnosis: str, entries: Entries) -> str:
    rules = dict.fromkeys(shown[0].row.case.rule for shown in entries.values())
    return (
        f'<tr><th scope="row">{mark(_word(entries))} <a href="#wrong-{number}">{quote(diagnosis)}</a></th>'
        f'<td class="n">{sum(map(len, entries.values())):,}</td><td class="n">{len(entries):,}</td>'
        f"<td>{', '.join(map(rule_link, rules))}</td></tr>"
    )


# ── in full ───────────────────────────────────────────────────────────────────────────────────────


def _failure(facts: Facts, diagnosis: str, case: str, rows: Sequence[Shown], first: bool) -> Iterator[str]:
    rule = facts.plan.suite.spec.rules[rows[0].row.case.rule]
    failing = _failing(rows)
    yield f'<details class="entry"{" open" if first else ""} data-block data-r="{plain(rule.id)}">'
    yield f"<summary>{plain(case)}"
    yield f' <span class="sub">{number_of(len(rows), "row")}: {", ".join(map(plain, failing))}</span></summary>'
    yield f"<dl><dt>case</dt><dd>{case_link(case)} <span class=sub>{plain(rows[0].row.case.place)}</span></dd>"
    yield f"<dt>rule</dt><dd>{_rule(rule, failing)}</dd><dt>call</dt><dd>{steps(rows, failing)}</dd></dl>"
    yield f"<figure>{_drawn(rows[0])}</figure>"
    lines: Mapping[Told, Sequence[Shown]] = grouped(
        (Told(_want(facts, s), answer_of(s, generic=True), _detail(s), s.worst), s) for s in rows
    )
    detailed = any(told.detail for told in lines)
    table = [_line(facts, line, same, detailed) for line, same in lines.items()]
    heads = ("Rows", "Want", "Got", "Right?", *(("Detail",) if detailed else ()))
    yield from table_of(f"{case}: {cut(visible(diagnosis), 80)}", heads, table[:_LINES], "stack")
    if len(table) > _LINES:
        yield f"<p>And {len(table) - _LINES} more answers; the evidence in this file has each.</p>"
    commands = "\n".join(escape(visible(command)) for command in facts.commands(rows[0].row))
    name = f"Commands that repeat {rows[0].row.id}"
    yield f'<pre tabindex="0" role="region" aria-label="{plain(name)}">{commands}</pre></details>'


def _failing(rows: Sequence[Shown]) -> list[str]:
    return list(dict.fromkeys(document for shown in rows for document in shown.failing))


def _rule(rule: Rule, failing: Sequence[str]) -> str:
    because = {each: rule.because for each in failing if rule.level == "decided"} | dict(rule.decided_for)
    reasons = dict.fromkeys(because[each] for each in failing if each in because)
    reason = "".join(f"<br><span class=sub>Why we ruled so: {plain(each)}</span>" for each in reasons)
    where = plain(clauses(rule, failing))
    return f"{rule_link(rule.id)}: {plain(rule.sentence)} <span class=sub>({where})</span>{reason}"


def _want(facts: Facts, shown: Shown) -> Wants:
    """What was due in the documents in which a row fails; these are named where they part."""
    found = (
        (want, tuple(d for d in documents if d in shown.failing))
        for want, documents in facts.want(shown.row, shown.step)
    )
    due = tuple((want, documents) for want, documents in found if documents)
    return due if len(due) > 1 else tuple((want, ()) for want, _ in due)


def _detail(shown: Shown) -> str:
    """What is known beyond the answer."""
    detail = shown.detail or ""
    return "" if detail in answer_of(shown) else detail


def _drawn(shown: Shown) -> str:
    from .picture import picture  # nothing to draw where all is well

    task = shown.row.steps[shown.step]
    meaning: Meaning = next(
        (judged.meaning for judged in task.meanings if set(judged.documents) & set(shown.failing)),
        task.meanings[0].meaning,
    )
    return picture(shown.row.case.steps[shown.step], meaning, shown.outcome, answer_of(shown))


def _line(facts: Facts, told: Told, rows: Sequence[Shown], detailed: bool) -> str:
    by_operation = grouped((shown.row.operation, shown) for shown in rows)
    where = "<br>".join(f"{named(same)} {sub(_failing(same))}" for same in by_operation.values())
    detail = f"<td>{quote(cut(told.detail, _LONGEST)) if told.detail else ''}" if detailed else ""
    return (
        f"<tr{data_of(facts, rows, _failing(rows))}><td>{where}<td>{due(told.want)}<td>{quote(cut(told.got, _LONGEST))}"
        f"<td>{mark(told.word)}{detail}"
    )


# ── in short ──────────────────────────────────────────────────────────────────────────────────────


def _compact(diagnosis: str, facts: Facts, entries: Entries) -> Iterator[str]:
    """The other cases of a kind, a line each; all that is known of them stands under `All cases`."""
    if not entries:
        return
    yield f"<details><summary>{number_of(len(entries), 'more case')} of this kind, in short</summary>"
    heads = "".join(f"<th scope=col>{head}" for head in ("Case", "Rule", "Rows", "In", "Want", "Got"))
    name = f"More cases: {cut(visible(diagnosis), 80)}"
    yield f'<div class="wide stack" tabindex="0" role="region" aria-label="{escape(name)}"><table>'
    yield f"<caption>{escape(name)}</caption><thead><tr>{heads}</thead>"
    for case, rows in entries.items():
        rule, failing = rows[0].row.case.rule, _failing(rows)
        answers = list(dict.fromkeys(answer_of(shown, generic=True) for shown in rows))
        more = f" and {len(answers) - 1} more" if len(answers) > 1 else ""
        yield (
            f'<tbody data-block data-r="{plain(rule)}"><tr{data_of(facts, rows, failing)}>'
            f"<th scope=row>{case_link(case)}<td>{rule_link(rule)}<td>{len(rows)}<td>{plain(', '.join(failing))}"
            f"<td>{due(_want(facts, rows[0]))}<td>{quote(cut(answers[0], SHORT))}{more}"
        )
    yield "</table></div></details>"
