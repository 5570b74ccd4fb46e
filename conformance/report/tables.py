"""The page’s tables: scope, rules, matrix, what is left open, what was not shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model import Rule
from ..plan.rows import Row
from .facts import BAD, Facts, Kind, Share, Shown, answer_of, call_of, counts_of, cut, grouped, lines_of, sum_of
from .parts import SHORT, case_link, code, mark, number_of, plain, quote, rule_link, section, table_of

# ── scope ─────────────────────────────────────────────────────────────────────────────────────────


def scope(facts: Facts) -> Iterator[str]:
    yield section("scope")
    total = counts_of(shown.worst for shown in facts.rows)
    yield f"<p>The suite has {number_of(len(facts.cases), 'case')}, which make {number_of(len(facts.rows), 'row')}: "
    yield "a case for one operation, one element type and one way of giving shape. "
    yield f"{number_of(len(facts.rows), 'row')} = {sum_of(total)}, each by its worst verdict in any document. "
    yield "A row is judged once for each document of its operation.</p>"
    rows = []
    for each in facts.standings:
        against = ""
        if each.against_document or each.against_rulings:
            against = f"{each.against_document} against the document, {each.against_rulings} against our rulings"
        if each.unshown:
            unshown = ", ".join(map(rule_link, each.unshown))
            against += f"{'; ' if against else ''}no pass for {unshown}"
        optional = f'<a href="#unclaimed">{sum_of(each.optional)}</a>' if each.optional else ""
        rows.append(
            f'<tr><th scope="row">{plain(each.document)} {plain(each.type)}</th><td>{mark(each.word)}</td>'
            f"<td>{each.required:,} required = {sum_of(each.counts)}</td><td>{against}</td><td>{optional}</td></tr>"
        )
    if rows:
        caption = "What conformity depends on, for each document and element type"
        yield from table_of(
            caption, ("Document and type", "Verdict", "Rows", "Failures", "In facets left out"), rows, "scope"
        )
    else:
        yield "<p>Nothing was in the target of this run, so nothing is shown of any document.</p>"
    yield "</section>"


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


def rules(facts: Facts) -> Iterator[str]:
    yield section("rules")
    yield "<p>What the documents oblige to, in our words, and where they say so. The verdict is the worst "
    yield "of the rule’s rows in that document, with how many have it. Rows outside the target that were not run are "
    yield "counted after it.</p>"
    rules = facts.plan.suite.spec.rules
    rows = (_rule_row(facts, rules[rule], kinds) for rule, kinds in facts.kinds.items())
    heads = ("Rule", "Documents", "Cases", "Worst verdict")
    yield from table_of(f"{len(rules)} rules, each with the lines that state it", heads, rows, "rules stack")
    yield "</section>"


def _rule_row(facts: Facts, rule: Rule, kinds: Sequence[Kind]) -> str:
    tried = grouped((document, kind) for kind in kinds for document in kind.shown.verdicts)
    where = []
    for document in facts.plan.suite.spec.documents:
        stands = lines_of(rule, document)
        found = facts.share_of(tried.get(document, ()), [document])
        if stands == "not bound" and found.word not in BAD:
            continue
        told = f" {mark(found.word)} {_share(found)}" if document in tried else ""
        where.append(f"<li>{plain(document)}: {stands}{told}</li>")
    cases = len({shown.row.case.id for shown in facts.rules[rule.id]})
    link = f'<a href="#cases-of-{plain(rule.id)}">{number_of(cases, "case")}</a>' if cases else _untried(rule)
    overall = mark(facts.share_of(kinds).word) if kinds else '<span class="v open">○ no case</span>'
    return (
        f'<tr id="rule-{plain(rule.id)}"><th scope="row">{plain(rule.id)}<br><span class="sub">{plain(rule.level)}: '
        f"{plain(rule.sentence)}{_reason(rule)}</span></th>"
        f'<td><ul class="where">{"".join(where)}</ul></td><td>{link}</td><td>{overall}</td></tr>'
    )


def _reason(rule: Rule) -> str:
    """Why the suite says so, where the documents alone do not."""
    return f"<br>Why: {plain(rule.because)}" if rule.because else ""


def _share(share: Share) -> str:
    """How many rows have the worst verdict, and how many more are not in the target and were not run."""
    aside = f", {share.aside} more not run" if share.aside else ""
    return f'<span class="sub">{share.number} of {share.total}{aside}</span>'


def _untried(rule: Rule) -> str:
    if rule.level == "may":
        return '<span class="sub">a freedom, which no case may test against</span>'
    return '<span class="sub">follows from other rules</span>' if rule.implied else '<span class="sub">no case</span>'


# ── matrix ────────────────────────────────────────────────────────────────────────────────────────


def matrix(facts: Facts) -> Iterator[str]:
    yield section("matrix", "across")
    yield "<p>The worst verdict of a rule’s cases, and how many of the rows have it. Where the documents of an "
    yield "operation part, the documents that have it are named.</p>"
    spec = facts.plan.suite.spec
    columns = []
    for operation in spec.operations.values():
        columns += [(operation.id, type_) for type_ in operation.types]
        if any(s.row.operation == operation.id and s.row.type not in operation.types for s in facts.rows):
            columns.append((operation.id, "unlisted"))
    spans = grouped(columns)
    first = '<th scope="col" rowspan="2">Rule</th>' + "".join(
        f'<th scope="colgroup" colspan="{len(types)}">{plain(operation)}</th>' for operation, types in spans.items()
    )
    second = "".join(f'<th scope="col">{plain(type_)}</th>' for _, type_ in columns)
    caption = "Operations and element types against rules"
    yield f'<div class="wide matrix" tabindex="0" role="region" aria-label="{caption}"><table>'
    yield f"<caption>{caption}</caption>"
    yield f"<thead><tr>{first}</tr><tr>{second}</tr></thead><tbody>"
    for rule, kinds in facts.kinds.items():
        if kinds:
            cells = grouped(((kind.shown.row.operation, _column(facts, kind.shown.row)), kind) for kind in kinds)
            line = "".join(_cell(facts, cells.get(column, ())) for column in columns)
            yield f'<tr><th scope="row">{rule_link(rule)}</th>{line}</tr>'
    yield "</tbody></table></div></section>"


def _column(facts: Facts, row: Row) -> str:
    return row.type if row.type in facts.plan.suite.spec.operations[row.operation].types else "unlisted"


def _cell(facts: Facts, kinds: Sequence[Kind]) -> str:
    if not kinds:
        return "<td></td>"
    share = facts.share_of(kinds)
    having = dict.fromkeys(d for shown, _ in kinds for d, verdict in shown.verdicts.items() if verdict == share.word)
    only = f"<br>{', '.join(map(plain, having))}" if len(having) < len(kinds[0].shown.row.documents) else ""
    return f'<td>{mark(share.word)}<br><span class="sub">{share.number}/{share.total}{only}</span></td>'


# ── what the documents leave open ─────────────────────────────────────────────────────────────────


Observations = dict[tuple[tuple[str, ...], str], dict[str, list[tuple[Shown, tuple[str, ...]]]]]
"""The silent rules and the case → each answer → the rows that have it, with the documents that leave it open."""


def observations(facts: Facts) -> Observations:
    """What was done where a document settles nothing."""
    entries: Observations = {}
    for shown in facts.rows:
        if "observed" not in shown.verdicts.values():
            continue
        open_in: dict[tuple[str, ...], list[str]] = {}
        for judged in shown.row.steps[shown.step].meanings:
            there = [document for document in judged.documents if shown.verdicts[document] == "observed"]
            if there:
                open_in.setdefault(judged.meaning.rules, []).extend(there)
        for rules, documents in open_in.items():
            answers = entries.setdefault((rules, shown.row.case.id), {})
            answers.setdefault(answer_of(shown, generic=True), []).append((shown, tuple(documents)))
    return entries


def observed(facts: Facts) -> Iterator[str]:
    yield section("observed")
    entries = observations(facts)
    if not entries:
        yield "<p>No call that a document leaves open was answered or refused in this run.</p></section>"
        return
    yield "<p>Calls for which a document settles no answer. Whatever was done here is no breach; it is recorded so "
    yield "that nobody relies on it unawares.</p>"
    order = list(facts.plan.suite.spec.rules)
    by_rule = sorted(entries.items(), key=lambda entry: order.index(entry[0][0][0]) if entry[0][0] else -1)
    every = len(facts.plan.suite.spec.documents)
    rows = []
    for (silent, _), answers in by_rule:
        rows += [_observed_row(silent, answer, found, every) for answer, found in answers.items()]
    heads = ("Left open by", "Case", "Call", "It answered", "In")
    yield from table_of("What was done where a document is silent", heads, rows, "stack open")
    yield "</section>"


def _observed_row(rules: Sequence[str], answer: str, found: Sequence[tuple[Shown, tuple[str, ...]]], every: int) -> str:
    shown = found[0][0]
    case = shown.row.case
    documents = list(dict.fromkeys(document for _, there in found for document in there))
    where = f"all {every} documents" if len(documents) == every > 1 else ", ".join(documents)
    return (
        f'<tr><td>{", ".join(map(rule_link, rules)) or "another step"}</td><th scope="row">{case_link(case.id)}</th>'
        f"<td>{code(call_of(case, case.steps[shown.step]))}</td><td>{quote(cut(answer, SHORT))}</td>"
        f'<td>{plain(where)} <span class="sub">{number_of(len(found), "row")}</span></td></tr>'
    )


# ── what was not shown ────────────────────────────────────────────────────────────────────────────


def unclaimed(facts: Facts) -> Iterator[str]:
    yield section("unclaimed")
    claims = facts.claims
    missing = [name for name in facts.plan.suite.spec.operations if name not in claims.operations]
    if missing:
        yield f"<p>Operations that the backend does not claim: {', '.join(map(plain, missing))}.</p>"
    if claims.mapped:
        yield f"<p>Answered by the adapter and not by the backend: {quote(', '.join(map(str, claims.mapped)))}.</p>"
    if claims.leaves_out:
        rows = [_facet(facts, str(facet)) for facet in claims.leaves_out]
        heads = ("Left out", "Rows that need it", "Not claimed", "Other verdicts")
        yield from table_of("What the backend says it leaves out; it is called all the same", heads, rows)
    elif not missing:
        yield "<p>The backend claims everything: it leaves out no operation and no facet.</p>"
    if facts.waivers:
        rows = [_waiver(waiver, shown) for waiver, shown in facts.waivers]
        heads = ("Waiver", "Rows", "Cases", "Why, who answers for it, until when")
        yield from table_of("Failures that were waived beforehand", heads, rows)
    if facts.not_run:
        rows = [
            f'<tr><th scope="row">{plain(why)}</th><td class="n">{len(shown)}</td><td>{_few(shown)}</td></tr>'
            for why, shown in facts.not_run.items()
        ]
        yield from table_of("Rows that were not run, and why", ("Why", "Rows", "Cases"), rows)
    else:
        yield "<p>Every row of the suite was run.</p>"
    if facts.foreign:
        yield f"<p>{number_of(len(facts.foreign), 'row')} of the results are not in the suite and count for nothing, "
        yield f"such as {quote(facts.foreign[0])}.</p>"
    yield "</section>"


def _facet(facts: Facts, facet: str) -> str:
    needing = [s for s in facts.rows if any(facet in (each, each.partition(":")[0]) for each in s.row.facets)]
    counts = counts_of(shown.worst for shown in needing)
    unclaimed = counts.pop("not claimed", 0)
    others = " ".join(mark(verdict, f" {number}") for verdict, number in counts.items())
    numbers = f'<td class="n">{len(needing)}</td><td class="n">{unclaimed}</td>'
    return f'<tr><th scope="row">{quote(facet)}</th>{numbers}<td>{others}</td></tr>'


def _waiver(waiver: Mapping[str, Any], rows: Sequence[Shown]) -> str:
    said = [f"{key}: {value}" for key, value in waiver.items() if key not in ("number", "place")]
    return (
        f'<tr><th scope="row">{quote(waiver["place"])}</th><td class="n">{len(rows)}</td><td>{_few(rows)}</td>'
        f"<td>{'<br>'.join(map(quote, said))}</td></tr>"
    )


def _few(rows: Sequence[Shown], most: int = 5) -> str:
    cases = list(dict.fromkeys(shown.row.case.id for shown in rows))
    more = f" and {len(cases) - most} more" if len(cases) > most else ""
    return ", ".join(map(case_link, cases[:most])) + more
