"""report.html: one file to publish, complete without style and script, every string of a backend inert."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ..conclude import Conclusion
from ..evidence import Evidence, row_record
from ..model import VERDICTS, Rule, Verdict
from ..plan import Plan, Row
from .facts import (
    BAD,
    MARKS,
    Facts,
    Share,
    Shown,
    answer_of,
    call_of,
    counts_of,
    cut,
    grouped,
    label_of,
    lines_of,
    sum_of,
    visible,
    wants,
    worst,
)
from .look import SCRIPT, STYLE

_SHORT = 160
"""Characters of an answer in the list of all cases; failures have the whole."""
_COLOUR: Mapping[str, str] = {
    "pass": "pass", "fail": "fail", "error": "error", "observed": "observed", "not claimed": "open", "not run": "warn",
    "waived": "warn", "conforms": "pass", "does not conform": "fail", "incomplete": "warn", "nothing shown": "warn",
}  # fmt: skip
_SECTIONS = (
    ("scope", "Scope"), ("rules", "Rules"), ("failures", "Failures"), ("matrix", "Matrix"), ("observed", "Left open"),
    ("unclaimed", "Not claimed, not run"), ("cases", "All cases"), ("environment", "Environment"), ("legend", "Legend"),
)  # fmt: skip
_LEGEND: Mapping[Verdict, str] = {
    "pass": "A legal call was answered with the right type, dims and bytes, or an illegal one was refused.",
    "fail": "The answer is wrong, a legal call was refused, an illegal one answered, or the call crashed or hung.",
    "observed": "The document leaves the call open; what was done is recorded and breaks nothing that the document settles.",
    "not claimed": "The call needs something that the backend says it leaves out, and it was not answered. It proves nothing.",
    "error": "The adapter went wrong, so nothing is known of the backend. Mend the adapter first.",
    "waived": "A failure that the run was told of beforehand, with reason and date. It is no pass.",
    "not run": "The call was not made. It is in the denominator, and nothing conforms while it is there.",
}


def html(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> str:
    """The whole page."""
    facts = Facts(plan, evidence, conclusion)
    style, script = (f"'sha256-{_digest(text)}'" for text in (STYLE, SCRIPT))
    policy = f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
        f"<title>{_text(facts.name)}: reshape conformance</title><style>{STYLE}</style></head><body>",
        *_head(facts),
        "<main id=main>",
        *_scope(facts),
        *_rules(facts),
        *_failures(facts),
        *_matrix(facts),
        *_observed(facts),
        *_unclaimed(facts),
        *_cases(facts),
        *_environment(facts),
        *_legend(),
        "</main>",
        f'<script type="application/json" id="evidence">{_embedded(evidence)}</script>',
        f"<script>{SCRIPT}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# ── parts of all ──────────────────────────────────────────────────────────────────────────────────


def _text(text: object) -> str:
    """Any text, inert."""
    return escape(visible(text))


def _quote(text: object) -> str:
    """A backend's words: inert, and unable to turn the order of what stands beside them."""
    return f"<bdi>{_text(text)}</bdi>"


def _code(text: object) -> str:
    return f"<code>{_text(text)}</code>"


def _mark(word: str, more: str = "") -> str:
    """A verdict by shape, word and colour."""
    return f'<span class="v {_COLOUR.get(word, "open")}">{MARKS[word]} {word}{more}</span>'


def _section(name: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{dict(_SECTIONS)[name]}</h2>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[str], name: str = "") -> Iterator[str]:
    """A table that scrolls by itself where it is too wide, by keyboard too."""
    heading = "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield f'<div class="wide {name}" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
    yield f"<caption>{escape(caption)}</caption><thead><tr>{heading}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table></div>"


def _rule(rule: str) -> str:
    return f'<a href="#rule-{_text(rule)}">{_text(rule)}</a>'


def _case(case: str) -> str:
    return f'<a href="#case-{_text(case)}">{_text(case)}</a>'


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ── the verdict ───────────────────────────────────────────────────────────────────────────────────


def _head(facts: Facts) -> Iterator[str]:
    documents = facts.plan.suite.spec.documents
    yield '<a class="skip" href="#main">Skip to the details</a><header>'
    yield f'<p class="soft">Reshape conformance, suite {_text(facts.evidence.header["suite"]["version"])}</p>'
    yield f"<h1>{_quote(facts.name)}</h1>"
    yield f"<p><strong>{_text(facts.conclusion.why[:1].upper() + facts.conclusion.why[1:])}.</strong> "
    yield f'<span class="soft">Exit code {facts.conclusion.exit_code}.</span></p>'
    yield '<ul class="docs" aria-label="Verdict for each document">'
    for document, (word, sentence) in facts.documents.items():
        source = documents[document]
        yield f'<li class="{_COLOUR.get(word, "open").replace("error", "fail")}">{_mark(word)}'
        yield f'<span>{_quote(sentence)}<br><span class="sub">{_text(source.operation)}, {source.year}</span></span></li>'
    yield "</ul>"
    if facts.failures:
        rows = sum(len(shown) for entries in facts.failures.values() for shown in entries.values())
        kinds = _number(len(facts.failures), "kind")
        yield f'<p>Start with the <a href="#failures">{_number(rows, "failing row")} of {kinds}</a>: each has its clause and '
        yield "the command that repeats it.</p>"
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in _SECTIONS)
    yield f'<nav aria-label="Parts of this report"><ul>{links}</ul></nav></header>'


# ── scope ─────────────────────────────────────────────────────────────────────────────────────────


def _scope(facts: Facts) -> Iterator[str]:
    yield _section("scope")
    total = counts_of(shown.worst for shown in facts.rows)
    yield f"<p>The suite has {_number(len(facts.cases), 'case')}, which make {_number(len(facts.rows), 'row')}: "
    yield f"a case for one operation, one element type and one way of giving shape. {len(facts.rows)} rows = {sum_of(total)}, "
    yield "each by its worst verdict in any document. A row is judged once for each document of its operation.</p>"
    rows = []
    for each in facts.conclusion.standings:
        against = ""
        if each.against_document or each.against_rulings:
            against = f"{each.against_document} against the document, {each.against_rulings} against our rulings"
        if each.unshown:
            unshown = ", ".join(map(_rule, each.unshown))
            against += f"{'; ' if against else ''}no pass for {unshown}"
        optional = f'<a href="#unclaimed">{sum_of(each.optional)}</a>' if each.optional else ""
        rows.append(
            f'<tr><th scope="row">{_text(each.document)} {_text(each.type)}</th><td>{_mark(each.word)}</td>'
            f"<td>{each.required} required = {sum_of(each.counts)}</td><td>{against}</td><td>{optional}</td></tr>"
        )
    if rows:
        caption = "What conformity depends on, for each document and element type"
        yield from _table(caption, ("Document and type", "Verdict", "Rows", "Failures", "In facets left out"), rows, "scope")
    else:
        yield "<p>Nothing was in the target of this run, so nothing is shown of any document.</p>"
    yield "</section>"


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


def _rules(facts: Facts) -> Iterator[str]:
    yield _section("rules")
    yield "<p>What the documents oblige to, in our words, and where they say so. The verdict is the worst of the rule’s rows in "
    yield "that document, with how many have it. Rows outside the target that were not run are counted after it.</p>"
    rules = facts.plan.suite.spec.rules
    rows = (_rule_row(facts, rules[rule], shown) for rule, shown in facts.rules.items())
    heads = ("Rule", "Documents", "Cases", "Worst verdict")
    yield from _table(f"{len(rules)} rules, each with the lines that state it", heads, rows, "rules")
    yield "</section>"


def _rule_row(facts: Facts, rule: Rule, shown: Sequence[Shown]) -> str:
    tried = grouped((document, each) for each in shown for document in each.verdicts)
    where = []
    for document in facts.plan.suite.spec.documents:
        stands = lines_of(rule, document)
        found = facts.share(tried.get(document, ()), [document])
        if stands == "not bound" and found.word not in BAD:
            continue
        told = f" {_mark(found.word)} {_share(found)}" if document in tried else ""
        where.append(f"<li>{_text(document)}: {stands}{told}</li>")
    cases = len({each.row.case.id for each in shown})
    link = f'<a href="#cases-of-{_text(rule.id)}">{_number(cases, "case")}</a>' if cases else _untried(rule)
    overall = _mark(facts.share(shown).word) if shown else '<span class="v open">○ no case</span>'
    return (
        f'<tr id="rule-{_text(rule.id)}"><th scope="row">{_text(rule.id)}<br><span class="sub">{_text(rule.level)}: '
        f'{_text(rule.sentence)}</span></th><td><ul class="where">{"".join(where)}</ul></td><td>{link}</td><td>{overall}</td></tr>'
    )


def _share(share: Share) -> str:
    """How many rows have the worst verdict, and how many more are not in the target and were not run."""
    aside = f", {share.aside} more not run" if share.aside else ""
    return f'<span class="sub">{share.number} of {share.total}{aside}</span>'


def _untried(rule: Rule) -> str:
    if rule.level == "may":
        return '<span class="sub">a freedom, which no case may test against</span>'
    return '<span class="sub">follows from other rules</span>' if rule.implied else '<span class="sub">no case</span>'


# ── failures ──────────────────────────────────────────────────────────────────────────────────────


def _failures(facts: Facts) -> Iterator[str]:
    yield _section("failures")
    if not facts.failures:
        yield "<p>Nothing that was run failed or erred.</p>"
    else:
        yield "<p>Grouped by what is wrong, the commonest first. T stands for the element type in the row’s name.</p>"
    for diagnosis, entries in facts.failures.items():
        rows = [shown for entry in entries.values() for shown in entry]
        word = "error" if all(shown.worst == "error" for shown in rows) else "fail"
        yield f"<div data-group><h3>{_mark(word)} {_quote(diagnosis)}: {_number(len(rows), 'row')} of "
        yield f"{_number(len(entries), 'case')}</h3>"
        for case, shown in entries.items():
            yield from _failure(facts, case, shown)
        yield "</div>"
    yield "</section>"


def _failure(facts: Facts, case: str, rows: Sequence[Shown]) -> Iterator[str]:
    rule = facts.plan.suite.spec.rules[rows[0].row.case.rule]
    failing = list(dict.fromkeys(document for shown in rows for document in shown.failing))
    clauses = "; ".join(f"{_text(document)} {lines_of(rule, document)}" for document in failing)
    representatives = list({shown.row.operation: shown.row for shown in rows}.values())
    yield f'<article class="entry" data-block data-r="{_text(rule.id)}"><h4>{_case(case)}</h4>'
    yield f"<dl><dt>rule</dt><dd>{_rule(rule.id)}: {_text(rule.sentence)} <span class=sub>({clauses})</span></dd>"
    yield f"<dt>call → want</dt><dd>{_steps(representatives, failing)}</dd></dl>"
    table = []
    lines = grouped(((s.row.operation, answer_of(s), s.detail or "", s.failing, s.worst), s) for s in rows)
    for (operation, answer, detail, documents, word), same in lines.items():
        links = ", ".join(f'<a href="#row-{_text(s.row.id)}">{_text(label_of(s.row))}</a>' for s in same)
        table.append(
            f"<tr{_data(same, documents)}><td><b>{_text(operation)}</b> {links}<td>{_quote(answer)}"
            f"<td>{_mark(word)} {', '.join(map(_text, documents))}<td>{_quote(detail)}"
        )
    yield from _table(f"What {case} got", ("Rows", "It answered", "Right?", "Detail"), table)
    commands = "\n".join(escape(visible(command)) for command in facts.commands(rows[0].row))
    yield f'<pre tabindex="0" aria-label="Commands that repeat the first row">{commands}</pre></article>'


def _data(rows: Sequence[Shown], documents: Iterable[str]) -> str:
    """What the filters look at: verdicts, operation, types, documents."""
    documents = list(documents)
    verdicts = "|".join(dict.fromkeys(shown.verdicts[document] for shown in rows for document in documents))
    types = "|".join(dict.fromkeys(_text(shown.row.type) for shown in rows))
    return (
        f' data-v="{verdicts}" data-o="{_text(rows[0].row.operation)}" data-t="{types}" data-d="{"|".join(map(_text, documents))}"'
    )


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
            _code(want) + (f' <span class="sub">{_text(", ".join(there))}</span>' if len(due) > 1 or documents else "")
            for want, there in due
        )
        items.append(f"<li>{_code(call_of(case, step))} → {told}</li>")
    return f'<ol class="steps{" one" if len(items) == 1 else ""}">{"".join(items)}</ol>'


# ── matrix ────────────────────────────────────────────────────────────────────────────────────────


def _matrix(facts: Facts) -> Iterator[str]:
    yield _section("matrix")
    yield "<p>The worst verdict of a rule’s cases, and how many of the rows have it. Where the documents of an operation part, "
    yield "the documents that have it are named.</p>"
    spec = facts.plan.suite.spec
    columns = []
    for operation in spec.operations.values():
        columns += [(operation.id, type_) for type_ in operation.types]
        if any(s.row.operation == operation.id and s.row.type not in operation.types for s in facts.rows):
            columns.append((operation.id, "unlisted"))
    spans = grouped(columns)
    first = '<th scope="col" rowspan="2">Rule</th>' + "".join(
        f'<th scope="colgroup" colspan="{len(types)}">{_text(operation)}</th>' for operation, types in spans.items()
    )
    second = "".join(f'<th scope="col">{_text(type_)}</th>' for _, type_ in columns)
    caption = "Operations and element types against rules"
    yield f'<div class="wide matrix" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>'
    yield f"<thead><tr>{first}</tr><tr>{second}</tr></thead><tbody>"
    for rule, shown in facts.rules.items():
        if shown:
            cells = grouped(((s.row.operation, _column(facts, s.row)), s) for s in shown)
            line = "".join(_cell(facts, cells.get(column, ())) for column in columns)
            yield f'<tr><th scope="row">{_rule(rule)}</th>{line}</tr>'
    yield "</tbody></table></div></section>"


def _column(facts: Facts, row: Row) -> str:
    return row.type if row.type in facts.plan.suite.spec.operations[row.operation].types else "unlisted"


def _cell(facts: Facts, rows: Sequence[Shown]) -> str:
    if not rows:
        return "<td></td>"
    share = facts.share(rows)
    having = dict.fromkeys(d for shown in rows for d, verdict in shown.verdicts.items() if verdict == share.word)
    only = f"<br>{', '.join(map(_text, having))}" if len(having) < len(rows[0].row.documents) else ""
    return f'<td>{_mark(share.word)} <span class="sub">{share.number}/{share.total}{only}</span></td>'


# ── what the documents leave open ─────────────────────────────────────────────────────────────────


def _observed(facts: Facts) -> Iterator[str]:
    yield _section("observed")
    entries: dict[tuple[tuple[str, ...], str], dict[str, list[tuple[Shown, tuple[str, ...]]]]] = {}
    for shown in facts.rows:
        open_in: dict[tuple[str, ...], list[str]] = {}
        for judged in shown.row.tasks[shown.step].meanings:
            there = [document for document in judged.documents if shown.verdicts[document] == "observed"]
            if there:
                open_in.setdefault(judged.meaning.rules, []).extend(there)
        for rules, documents in open_in.items():
            answers = entries.setdefault((rules, shown.row.case.id), {})
            answers.setdefault(answer_of(shown, generic=True), []).append((shown, tuple(documents)))
    if not entries:
        yield "<p>No call that a document leaves open was answered or refused in this run.</p></section>"
        return
    yield "<p>Calls for which a document settles no answer. Whatever was done here is no breach; it is recorded so that nobody "
    yield "relies on it unawares.</p>"
    rows = []
    order = list(facts.plan.suite.spec.rules)
    for (rules, case), answers in sorted(entries.items(), key=lambda entry: order.index(entry[0][0][0]) if entry[0][0] else -1):
        by = ", ".join(map(_rule, rules)) or "another step"
        for answer, found in answers.items():
            shown = found[0][0]
            documents = dict.fromkeys(document for _, there in found for document in there)
            rows.append(
                f'<tr><td>{by}</td><th scope="row">{_case(case)}</th><td>{_code(call_of(shown.row.case, shown.row.case.steps[shown.step]))}</td>'
                f'<td>{_quote(cut(answer, _SHORT))}</td><td>{_text(", ".join(documents))} <span class="sub">{_number(len(found), "row")}</span></td></tr>'
            )
    heads = ("Left open by", "Case", "Call", "It answered", "In")
    yield from _table("What was done where a document is silent", heads, rows)
    yield "</section>"


# ── what was not shown ────────────────────────────────────────────────────────────────────────────


def _unclaimed(facts: Facts) -> Iterator[str]:
    yield _section("unclaimed")
    claims = facts.claims
    missing = [name for name in facts.plan.suite.spec.operations if name not in claims.operations]
    if missing:
        yield f"<p>Operations that the backend does not claim: {', '.join(map(_text, missing))}.</p>"
    if claims.mapped:
        yield f"<p>Answered by the adapter and not by the backend: {_quote(', '.join(map(str, claims.mapped)))}.</p>"
    if claims.leaves_out:
        rows = [_facet(facts, str(facet)) for facet in claims.leaves_out]
        heads = ("Left out", "Rows that need it", "Not claimed", "Other verdicts")
        yield from _table("What the backend says it leaves out; it is called all the same", heads, rows)
    elif not missing:
        yield "<p>The backend claims everything: it leaves out no operation and no facet.</p>"
    not_run = grouped((facts.why_not_run(shown), shown) for shown in facts.rows if shown.worst == "not run" and not shown.failing)
    if not_run:
        rows = [
            f'<tr><th scope="row">{_text(why)}</th><td class="n">{len(shown)}</td><td>{_few(shown)}</td></tr>'
            for why, shown in not_run.items()
        ]
        yield from _table("Rows that were not run, and why", ("Why", "Rows", "Cases"), rows)
    else:
        yield "<p>Every row of the suite was run.</p>"
    if facts.foreign:
        yield f"<p>{_number(len(facts.foreign), 'row')} of the results are not in the suite and count for nothing, such as "
        yield f"{_quote(facts.foreign[0])}.</p>"
    yield "</section>"


def _facet(facts: Facts, facet: str) -> str:
    needing = [s for s in facts.rows if any(facet in (each, each.partition(":")[0]) for each in s.row.facets)]
    counts = counts_of(shown.worst for shown in needing)
    unclaimed = counts.pop("not claimed", 0)
    others = " ".join(_mark(verdict, f" {number}") for verdict, number in counts.items())
    return f'<tr><th scope="row">{_quote(facet)}</th><td class="n">{len(needing)}</td><td class="n">{unclaimed}</td><td>{others}</td></tr>'


def _few(rows: Sequence[Shown], most: int = 5) -> str:
    cases = list(dict.fromkeys(shown.row.case.id for shown in rows))
    more = f" and {len(cases) - most} more" if len(cases) > most else ""
    return ", ".join(map(_case, cases[:most])) + more


# ── every case ────────────────────────────────────────────────────────────────────────────────────


def _cases(facts: Facts) -> Iterator[str]:
    yield _section("cases")
    yield "<p>Every case of the suite under its rule, with what it answered and whether that was right. T stands for each element "
    yield "type in turn.</p>"
    yield from _filters(facts)
    by_rule = grouped((shown[0].row.case.rule, shown) for shown in facts.cases.values())
    for rule in facts.plan.suite.spec.rules:
        if rule in by_rule:
            yield f'<div data-group><h3 id="cases-of-{_text(rule)}">{_rule(rule)}</h3>'
            yield from (_one_case(shown) for shown in by_rule[rule])
            yield "</div>"
    yield "</section>"


def _filters(facts: Facts) -> Iterator[str]:
    spec = facts.plan.suite.spec
    fields = {
        "verdict": list(VERDICTS), "rule": [rule for rule, shown in facts.rules.items() if shown], "operation": list(spec.operations),
        "type": sorted({shown.row.type for shown in facts.rows}), "document": list(spec.documents),
    }  # fmt: skip
    yield '<form id="filters" class="filters" role="search" aria-label="Filter the cases and the failures" hidden>'
    for name, values in fields.items():
        options = "".join(f"<option>{_text(value)}</option>" for value in values)
        yield f'<label>{name}<select name="{name}"><option value="">any</option>{options}</select></label>'
    yield '<label>text<input name="text" type="search" autocomplete="off"></label>'
    yield '<button type="reset">Show all</button><output aria-live="polite"></output></form>'


def _one_case(rows: Sequence[Shown]) -> str:
    case = rows[0].row.case
    counts = counts_of(shown.worst for shown in rows)
    word = worst(shown.worst for shown in rows)
    representatives = list({shown.row.operation: shown.row for shown in rows}.values())
    lines = grouped(((s.row.operation, tuple(s.verdicts.items()), answer_of(s, generic=True)), s) for s in rows)
    name = _text(case.id)
    table = "".join(_case_line(answer, verdicts, same) for (_, verdicts, answer), same in lines.items())
    return (
        f'<details class=case id="case-{name}" data-block data-r="{_text(case.rule)}"><summary>{_mark(word)} {name} '
        f'<span class=sub>{_number(len(rows), "row")} = {sum_of(counts)}</span></summary>'
        f"<p class=sub>{_text(case.place)}</p>{_steps(representatives)}"
        f"<table><caption>Answers to {name}</caption><thead><tr><th scope=col>Rows<th scope=col>It answered<th scope=col>Right?"
        f"</thead><tbody>{table}</tbody></table></details>"
    )


def _case_line(answer: str, verdicts: Sequence[tuple[str, Verdict]], rows: Sequence[Shown]) -> str:
    ids = ", ".join(f'<span id="row-{_text(s.row.id)}">{_text(label_of(s.row))}</span>' for s in rows)
    by_verdict = grouped((verdict, document) for document, verdict in verdicts)
    if len(by_verdict) == 1:
        right = _mark(verdicts[0][1])
    else:
        right = " ".join(f"{_mark(verdict)} {_text(', '.join(documents))}" for verdict, documents in by_verdict.items())
    return (
        f"<tr{_data(rows, [document for document, _ in verdicts])}><td><b>{_text(rows[0].row.operation)}</b> {ids}"
        f"<td>{_quote(cut(answer, _SHORT))}<td>{right}"
    )


# ── environment and legend ────────────────────────────────────────────────────────────────────────


def _environment(facts: Facts) -> Iterator[str]:
    yield _section("environment")
    yield "<p>What pins this run. The evidence itself is in this file, as JSON in the element <code>evidence</code>.</p>"
    header, footer = facts.evidence.header, facts.evidence.footer
    rows = [
        f'<tr><th scope="row">{_text(name)}</th><td>{_quote(value)}</td></tr>'
        for part in (header, {"results": {key: value for key, value in footer.items() if key != "record"}})
        for name, value in _flat(part)
        if name not in ("record", "format")
    ]
    yield from _table("Versions, digests, claims and target", ("What", "Value"), rows)
    yield "</section>"


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, each in value.items():
        name = f"{prefix}{key}"
        if isinstance(each, Mapping):
            yield from _flat(each, f"{name} · ")
        elif isinstance(each, list | tuple):
            yield name, ", ".join(map(str, each)) or "none"
        else:
            yield name, {None: "none", True: "yes", False: "no"}.get(each, str(each)) if each is None or each in (True, False) else str(each)


def _legend() -> Iterator[str]:
    yield _section("legend")
    rows = [f'<tr><th scope="row">{_mark(verdict)}</th><td>{text}</td></tr>' for verdict, text in _LEGEND.items()]
    yield from _table("Verdicts", ("Verdict", "Meaning"), rows)
    yield "<p>A backend conforms to a document for an element type when every required row passes or is observed and each rule "
    yield "that binds there has a pass. “Our ruling” marks what no document states and the suite decides, with its reason; "
    yield "failures of such rules are counted apart.</p>"
    yield "</section>"


# ── the evidence ──────────────────────────────────────────────────────────────────────────────────


def _embedded(evidence: Evidence) -> str:
    """The evidence, whole: `rows` names each row and the entry of `findings` that has the rest of its record."""
    findings: dict[str, int] = {}
    rows = []
    for result in evidence.results:
        record = {key: value for key, value in row_record(result).items() if key not in ("record", "row")}
        rows.append((result.row, findings.setdefault(json.dumps(record, separators=(",", ":")), len(findings))))
    dumped = (json.dumps(part, separators=(",", ":")) for part in (evidence.header, rows, evidence.footer))
    header, listed, footer = dumped
    text = f'{{"header":{header},"findings":[{",".join(findings)}],"rows":{listed},"footer":{footer}}}'
    return text.replace("<", "\\u003c").replace(">", "\\u003e")
