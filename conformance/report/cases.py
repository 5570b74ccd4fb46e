"""The page’s failures and cases, each with its call, what was due, what came and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from ..model import VERDICTS, Verdict
from ..plan import Row
from .facts import (
    Facts,
    Shown,
    answer_of,
    call_of,
    clauses,
    counts_of,
    cut,
    grouped,
    label_of,
    sum_of,
    visible,
    wants,
    worst,
)
from .parts import SHORT, case_link, code, mark, number_of, plain, quote, rule_link, section, table_of

# ── failures ──────────────────────────────────────────────────────────────────────────────────────


def failures(facts: Facts) -> Iterator[str]:
    yield section("failures")
    if not facts.failures:
        yield "<p>Nothing that was run failed or erred.</p></section>"
        return
    yield "<p>Grouped by what is wrong, the commonest first. T stands for the element type in a row’s name.</p>"
    kinds = [_kind(number, name, entries) for number, (name, entries) in enumerate(facts.failures.items(), 1)]
    heads = ("What is wrong", "Rows", "Cases", "Rules")
    yield from table_of("What is wrong, and how often", heads, kinds)
    for number, (diagnosis, entries) in enumerate(facts.failures.items(), 1):
        yield f'<div data-group><h3 id="wrong-{number}">{mark(_word(entries))} {quote(diagnosis)}: '
        yield f"{number_of(sum(map(len, entries.values())), 'row')} of {number_of(len(entries), 'case')}</h3>"
        for place, (case, shown) in enumerate(entries.items()):
            yield from _failure(facts, case, shown, first=place == 0)
        yield "</div>"
    yield "</section>"


def _word(entries: Mapping[str, Sequence[Shown]]) -> str:
    return "error" if all(shown.worst == "error" for entry in entries.values() for shown in entry) else "fail"


def _kind(number: int, diagnosis: str, entries: Mapping[str, Sequence[Shown]]) -> str:
    rules = dict.fromkeys(shown[0].row.case.rule for shown in entries.values())
    return (
        f'<tr><th scope="row">{mark(_word(entries))} <a href="#wrong-{number}">{quote(diagnosis)}</a></th>'
        f'<td class="n">{sum(map(len, entries.values())):,}</td><td class="n">{len(entries):,}</td>'
        f"<td>{', '.join(map(rule_link, rules))}</td></tr>"
    )


def _failure(facts: Facts, case: str, rows: Sequence[Shown], first: bool) -> Iterator[str]:
    rule = facts.plan.suite.spec.rules[rows[0].row.case.rule]
    failing = list(dict.fromkeys(document for shown in rows for document in shown.failing))
    representatives = list({shown.row.operation: shown.row for shown in rows}.values())
    yield f'<details class="entry"{" open" if first else ""} data-block data-r="{plain(rule.id)}">'
    yield f"<summary>{plain(case)}"
    yield f'<span class="sub">{number_of(len(rows), "row")}: {", ".join(map(plain, failing))}</span></summary>'
    yield f"<dl><dt>case</dt><dd>{case_link(case)} <span class=sub>{plain(rows[0].row.case.place)}</span></dd>"
    stated = f"<span class=sub>({plain(clauses(rule, failing))})</span>"
    yield f"<dt>rule</dt><dd>{rule_link(rule.id)}: {plain(rule.sentence)} {stated}</dd>"
    yield f"<dt>call → want</dt><dd>{_steps(representatives, failing)}</dd></dl>"
    lines = grouped(((answer_of(shown), shown.detail or "", shown.worst), shown) for shown in rows)
    table = (_failing_line(answer, detail, word, same) for (answer, detail, word), same in lines.items())
    yield from table_of(f"What {case} got", ("Rows and documents", "It answered", "Right?", "Detail"), table, "stack")
    commands = "\n".join(escape(visible(command)) for command in facts.commands(rows[0].row))
    yield f'<pre tabindex="0" aria-label="Commands that repeat the first row">{commands}</pre></details>'


def _failing_line(answer: str, detail: str, word: str, rows: Sequence[Shown]) -> str:
    items = []
    for (operation, documents), same in grouped(((s.row.operation, s.failing), s) for s in rows).items():
        links = ", ".join(f'<a href="#row-{plain(s.row.id)}">{plain(label_of(s.row))}</a>' for s in same)
        where = f' <span class="sub">{", ".join(map(plain, documents))}</span>'
        items.append(f"<li><b>{plain(operation)}</b> {links}{where}")
    failing = dict.fromkeys(document for shown in rows for document in shown.failing)
    return (
        f'<tr{_data(rows, failing)}><td><ul class="where">{"".join(items)}</ul><td>{quote(answer)}<td>{mark(word)}'
        f"<td>{quote(detail)}"
    )


def _data(rows: Sequence[Shown], documents: Iterable[str]) -> str:
    """What the filters look at: verdicts, operations, types, documents."""
    among = set(documents)
    facts = {
        "v": (verdict for shown in rows for document, verdict in shown.verdicts.items() if document in among),
        "o": (shown.row.operation for shown in rows),
        "t": (shown.row.type for shown in rows),
        "d": (document for shown in rows for document in shown.verdicts if document in among),
    }
    return "".join(f' data-{key}="{plain("|".join(dict.fromkeys(values)))}"' for key, values in facts.items())


def _steps(rows: Sequence[Row], documents: Sequence[str] = ()) -> str:
    """The calls of a case and what is due for each; only for some documents where they are named."""
    case = rows[0].case
    items = []
    for k, step in enumerate(case.steps):
        due = []
        for want, binding in wants(rows, k).items():
            there = [document for document in binding if not documents or document in documents]
            if there:
                due.append((want, there))
        told = " · ".join(
            code(want) + (f' <span class="sub">{plain(", ".join(there))}</span>' if len(due) > 1 else "")
            for want, there in due
        )
        items.append(f"<li>{code(call_of(case, step))} → {told}</li>")
    return f'<ol class="steps{" one" if len(items) == 1 else ""}">{"".join(items)}</ol>'


# ── every case ────────────────────────────────────────────────────────────────────────────────────


def cases(facts: Facts) -> Iterator[str]:
    yield section("cases")
    yield "<p>Every case of the suite under its rule, with what it answered and whether that was right. T stands for "
    yield "each element type in turn.</p>"
    yield from _filters(facts)
    by_rule = grouped((shown[0].row.case.rule, shown) for shown in facts.cases.values())
    for rule in facts.plan.suite.spec.rules:
        if rule in by_rule:
            yield f'<div data-group><h3 id="cases-of-{plain(rule)}">{rule_link(rule)}</h3>'
            yield from (_one_case(shown) for shown in by_rule[rule])
            yield "</div>"
    yield "</section>"


def _filters(facts: Facts) -> Iterator[str]:
    spec = facts.plan.suite.spec
    fields: Mapping[str, Iterable[str]] = {
        "verdict": VERDICTS,
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


def _one_case(rows: Sequence[Shown]) -> str:
    case = rows[0].row.case
    counts = counts_of(shown.worst for shown in rows)
    word = worst(shown.worst for shown in rows)
    representatives = list({shown.row.operation: shown.row for shown in rows}.values())
    lines = grouped(((answer_of(shown, generic=True), _alike(shown)), shown) for shown in rows)
    name = plain(case.id)
    table = "".join(_case_line(answer, verdicts, same) for (answer, verdicts), same in lines.items())
    return (
        f'<details class=case id="case-{name}" data-block data-r="{plain(case.rule)}"><summary>{mark(word)} {name} '
        f"<span class=sub>{number_of(len(rows), 'row')} = {sum_of(counts)}</span></summary>"
        f"<p class=sub>{plain(case.place)}</p>{_steps(representatives)}"
        f"<div class=stack><table><caption>Answers to {name}</caption><thead><tr><th scope=col>Rows"
        f"<th scope=col>It answered<th scope=col>Right?"
        f"</thead><tbody>{table}</tbody></table></div></details>"
    )


def _alike(shown: Shown) -> tuple[tuple[Verdict, tuple[str, ...]], ...]:
    """The verdicts of a row, each with its documents; these are left out where the verdict is the same in all."""
    found = grouped((verdict, document) for document, verdict in shown.verdicts.items())
    return tuple(found.items()) if len(found) > 1 else ((shown.worst, ()),)


def _case_line(answer: str, verdicts: Iterable[tuple[Verdict, Sequence[str]]], rows: Sequence[Shown]) -> str:
    by_operation = grouped((shown.row.operation, shown.row) for shown in rows)
    named = "<br>".join(
        f"<b>{plain(operation)}</b> "
        + ", ".join(f'<span id="row-{plain(row.id)}">{plain(label_of(row))}</span>' for row in same)
        for operation, same in by_operation.items()
    )
    right = " ".join(f"{mark(verdict)} {plain(', '.join(documents))}".rstrip() for verdict, documents in verdicts)
    documents = dict.fromkeys(document for shown in rows for document in shown.verdicts)
    return f"<tr{_data(rows, documents)}><td>{named}<td>{quote(cut(answer, SHORT))}<td>{right}"
