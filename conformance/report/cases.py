"""Every case on the page, with its calls, what was due, what it answered and whether that was right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import VERDICTS, Verdict
from ..plan.rows import Row
from .facts import (
    BAD,
    Facts,
    Shown,
    Wants,
    answer_of,
    call_of,
    counts_of,
    cut,
    grouped,
    labels,
    sum_of,
    visible,
    wants,
    worst,
)
from .parts import SHORT, code, mark, number_of, plain, quote, rule_link, section

MOST_LINES = 6
"""Lines of one case; where more would be needed, the last tells of all the others."""


class Line(NamedTuple):
    """What rows of a case have in common, told in one line of a table."""

    want: Wants
    got: str
    verdicts: tuple[tuple[Verdict, tuple[str, ...]], ...]
    """Each with its documents; these are left out where the verdict is the same in all."""
    diagnosis: str | None


def cases(facts: Facts, brief: bool = False) -> Iterator[str]:
    """Every case; `brief`: those of which nothing is to be told by name only, and of the others what failed."""
    yield section("cases")
    yield "<p>Every case of the suite under its rule: the call, what was due, what it answered, and whether that was "
    yield "right. T stands for each element type in turn; <b>a, b · c, d</b> stands for every combination.</p>"
    yield from _filters(facts)
    left = {shown.row.id for rows in facts.left.values() for shown in rows}
    by_rule = grouped((shown[0].row.case.rule, shown) for shown in facts.cases.values())
    for rule in facts.plan.suite.spec.rules:
        if rule not in by_rule:
            continue
        ran = [shown for shown in by_rule[rule] if any(each.row.id not in left for each in shown)]
        idle = [shown for shown in by_rule[rule] if all(each.row.id in left for each in shown)]
        yield f'<div data-group><h3 id="cases-of-{plain(rule)}">{rule_link(rule)}</h3>'
        parted = [(shown, _told(shown) if brief else shown) for shown in ran]
        yield from (_one_case(facts, shown, told) for shown, told in parted if told)
        yield from _quiet([shown for shown, told in parted if not told])
        yield from _idle(idle)
        yield "</div>"
    yield "</section>"


def _filters(facts: Facts) -> Iterator[str]:
    spec = facts.plan.suite.spec
    fields: Mapping[str, Iterable[str]] = {
        "verdict": VERDICTS,
        "diagnosis": facts.failures,
        "rule": [rule for rule, shown in facts.rules.items() if shown],
        "operation": spec.operations,
        "type": sorted({shown.row.type for shown in facts.rows}),
        "document": spec.documents,
    }
    yield '<form id="filters" class="filters" role="search" aria-label="Filter the cases and the failures" hidden>'
    for name, values in fields.items():
        options = "".join(f"<option>{plain(value)}</option>" for value in values)
        yield f'<label>{name}<select name="{name}"><option value="">any</option>{options}</select></label>'
    yield '<label>text<input name="text" type="search" autocomplete="off"></label>'
    yield '<button type="reset">Show all</button><output aria-live="polite"></output></form>'


TOLD: tuple[Verdict, ...] = ("fail", "error", "waived")
"""Verdicts for which a case is told even in a page that is brief."""


def _told(found: Sequence[Shown]) -> list[Shown]:
    """The rows of a case that a brief page tells of; the others are counted."""
    return [shown for shown in found if shown.worst in TOLD]


def _quiet(found: Sequence[Sequence[Shown]]) -> Iterator[str]:
    """Cases that are right, left open or not claimed: their names, for links, and what their rows came to."""
    if not found:
        return
    counts = counts_of(shown.worst for rows in found for shown in rows)
    yield f"<details class=case><summary>{mark(worst(shown.worst for rows in found for shown in rows))} "
    yield f"{number_of(len(found), 'case')} <span class=sub>{sum_of(counts)}</span></summary><ul class=names>"
    yield "".join(f'<li id="case-{plain(each[0].row.case.id)}">{plain(each[0].row.case.id)}' for each in found)
    yield "</ul></details>"


def _idle(found: Sequence[Sequence[Shown]]) -> Iterator[str]:
    """Cases that the run was not to make: their names, for links, and how many rows they have."""
    if not found:
        return
    rows = sum(map(len, found))
    yield f"<details class=case data-idle><summary>{mark('not run')} {number_of(len(found), 'case')} "
    yield f"<span class=sub>{number_of(rows, 'row')}, which this run was not to make</span></summary><ul class=names>"
    yield "".join(f'<li id="case-{plain(each[0].row.case.id)}">{plain(each[0].row.case.id)}' for each in found)
    yield "</ul></details>"


def _one_case(facts: Facts, rows: Sequence[Shown], told: Sequence[Shown]) -> str:
    case = rows[0].row.case
    counts = counts_of(shown.worst for shown in rows)
    word = worst(shown.worst for shown in rows)
    name = plain(case.id)
    table = "".join(_case_line(facts, line, same) for line, same in lines_of_case(facts, told).items())
    return (
        f'<details class=case id="case-{name}" data-block data-r="{plain(case.rule)}"><summary>{mark(word)} {name} '
        f"<span class=sub>{number_of(len(rows), 'row')} = {sum_of(counts)}</span></summary>"
        f"<p class=sub>{plain(case.place)}</p>{steps(rows)}"
        f"<div class=stack><table><caption>Answers to {name}</caption><thead><tr><th scope=col>Rows<th scope=col>Want"
        f"<th scope=col>Got<th scope=col>Right?</thead><tbody>{table}</tbody></table></div></details>"
    )


def lines_of_case(facts: Facts, rows: Iterable[Shown]) -> Mapping[Line, Sequence[Shown]]:
    """The rows of a case by what they have in common."""
    found = grouped(
        (
            Line(
                _apart(facts.want(shown.row, shown.step)), answer_of(shown, generic=True), _alike(shown),
                shown.diagnosis if shown.failing or shown.worst == "waived" else None,
            ),
            shown,
        )
        for shown in rows
    )  # fmt: skip
    if len(found) <= MOST_LINES:
        return found
    kept = dict(list(found.items())[: MOST_LINES - 1])
    others = [shown for same in list(found.values())[MOST_LINES - 1 :] for shown in same]
    said = f"{len(found) - len(kept)} other answers; the evidence in this file has each"
    return {**kept, Line((), said, ((worst(shown.worst for shown in others), ()),), None): others}


def _apart(found: Wants) -> Wants:
    """What was due; the documents that say so where they part."""
    return found if len(found) > 1 else ((found[0][0], ()),)


def _alike(shown: Shown) -> tuple[tuple[Verdict, tuple[str, ...]], ...]:
    found = grouped((verdict, document) for document, verdict in shown.verdicts.items())
    return tuple(found.items()) if len(found) > 1 else ((shown.worst, ()),)


def _case_line(facts: Facts, line: Line, rows: Sequence[Shown]) -> str:
    right = "<br>".join(f"{mark(verdict)} {sub(documents)}".rstrip() for verdict, documents in line.verdicts)
    if line.diagnosis:
        right += f"<br><span class=sub>{quote(line.diagnosis)}</span>"
    documents = dict.fromkeys(document for shown in rows for document in shown.verdicts)
    told = f"<td>{named(rows)}<td>{due(line.want)}<td>{quote(cut(line.got, SHORT))}<td>{right}"
    return f"<tr{data_of(facts, rows, documents)}>{told}"


# ── what failures have too ────────────────────────────────────────────────────────────────────────


def named(rows: Sequence[Shown]) -> str:
    """The rows by operation."""
    by_operation = grouped((shown.row.operation, shown.row) for shown in rows)
    return "<br>".join(f"<b>{plain(operation)}</b> {plain(labels(same))}" for operation, same in by_operation.items())


def due(found: Wants) -> str:
    """What was due, with the documents that say so where they part."""
    return "<br>".join(f"{code(want)} {sub(documents) if len(found) > 1 else ''}".rstrip() for want, documents in found)


def sub(names: Iterable[str]) -> str:
    text = ", ".join(names)
    return f"<span class=sub>{plain(text)}</span>" if text else ""


def data_of(facts: Facts, rows: Sequence[Shown], documents: Iterable[str]) -> str:
    """What the filters look at: verdicts, operations, types, documents, diagnosis; its number in `facts.facets`."""
    among = set(documents)
    told = (
        (verdict for shown in rows for document, verdict in shown.verdicts.items() if document in among),
        (shown.row.operation for shown in rows),
        (shown.row.type for shown in rows),
        (document for shown in rows for document in shown.verdicts if document in among),
        (visible(shown.diagnosis) for shown in rows if shown.worst in BAD and shown.diagnosis),
    )
    key = tuple(tuple(dict.fromkeys(values)) for values in told)
    return f" data-f={facts.facets.setdefault(key, len(facts.facets))}"


FACETS = ("verdict", "operation", "type", "document", "diagnosis")
"""What each part of an entry of `facts.facets` is."""


def steps(rows: Sequence[Shown], documents: Sequence[str] = ()) -> str:
    """The calls of a case and what is due for each; only for some documents where they are named."""
    representatives: list[Row] = list({shown.row.operation: shown.row for shown in rows}.values())
    case = representatives[0].case
    items = []
    for k, step in enumerate(case.steps):
        if len(case.steps) == 1:
            items.append(f"<li>{code(call_of(case, step))}</li>")
            continue
        found = []
        for want, binding in wants(representatives, k).items():
            there = [document for document in binding if not documents or document in documents]
            if there:
                found.append((want, tuple(there)))
        items.append(f"<li>{code(call_of(case, step))} → {due(tuple(found)).replace('<br>', ' · ')}</li>")
    return f'<ol class="steps{" one" if len(items) == 1 else ""}">{"".join(items)}</ol>'
