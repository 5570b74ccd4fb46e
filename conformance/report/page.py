"""report.html: one file to publish, complete without style and script, every string of a backend inert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..certify.conclude import Conclusion
from ..certify.evidence import Evidence
from ..model import Verdict
from ..plan.rows import Plan
from . import embedded
from .cases import cases
from .facts import Facts
from .failures import failures
from .look import SCRIPT
from .parts import COLOUR, SECTIONS, mark, number_of, plain, quote, rule_link, section, table_of
from .shell import shell
from .tables import matrix, observed, rules, scope, unclaimed

_WORDS = {"None": "none", "True": "yes", "False": "no"}
_ALL = ("target · operations", "target · documents", "target · types")
_KINDS = 6
_LEGEND: Mapping[Verdict, str] = {
    "pass": "A legal call was answered with the right type, dims and bytes, or an illegal one was refused.",
    "fail": "The answer is wrong, a legal call was refused, an illegal one answered, or the call crashed or hung.",
    "observed": "The document leaves the call open; what was done is recorded and breaks nothing that is settled.",
    "not claimed": "The call needs what the backend says it leaves out, and got no answer. It proves nothing.",
    "error": "The adapter went wrong, so nothing is known of the backend. Mend the adapter first.",
    "waived": "A failure that the run was told of beforehand, with reason and date. It is no pass.",
    "not run": "The call was not made. In the target it is in the denominator, and nothing conforms while it is there.",
}


def html(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> str:
    """The whole page."""
    return of(Facts(plan, evidence, conclusion))


def published(facts: Facts) -> str:
    """The page for results that lie beside it: without them, and with what nobody needs to look at in a line."""
    return of(facts, brief=True)


def of(facts: Facts, brief: bool = False) -> str:
    """The same of a run whose facts have been gathered."""
    facts.facets.clear()  # they are numbered as they are written, and a page may be written twice
    parts = [
        *_head(facts),
        "<main id=main>",
        *scope(facts),
        *rules(facts),
        *failures(facts),
        *matrix(facts),
        *observed(facts),
        *unclaimed(facts),
        *cases(facts, brief),
        *_environment(facts),
        *_legend(),
        "</main>",
        "" if brief else embedded.element(facts.evidence),
        f'<script type="application/json" id="facets">{embedded.inert(list(facts.facets))}</script>',
    ]
    return shell(f"{facts.name}: reshape conformance{facts.reach}", SCRIPT, parts)


# ── the verdict ───────────────────────────────────────────────────────────────────────────────────


def _head(facts: Facts) -> Iterator[str]:
    documents = facts.plan.suite.spec.documents
    yield '<a class="skip" href="#main">Skip to the details</a><header>'
    suite = plain(facts.evidence.header["suite"]["version"])
    yield f'<p class="soft">Reshape conformance{plain(facts.reach)}, suite {suite}</p>'
    yield f"<h1>{quote(facts.name)}</h1>"
    yield f"<p><strong>{plain(facts.conclusion.why[:1].upper() + facts.conclusion.why[1:])}.</strong> "
    yield f'<span class="soft">Exit code {facts.conclusion.exit_code}.</span></p>'
    yield '<ul class="docs" aria-label="Verdict for each document">'
    for document, (word, sentence) in facts.documents.items():
        source = documents[document]
        yield f'<li class="{COLOUR.get(word, "open").replace("error", "fail")}">{mark(word)}'
        about = f'<span class="sub">{plain(source.operation)}, {source.year}</span>'
        yield f"<span>{quote(sentence)}<br>{about}</span></li>"
    yield "</ul>"
    if facts.failures:
        rows = sum(len(shown) for entries in facts.failures.values() for shown in entries.values())
        kinds = number_of(len(facts.failures), "kind")
        yield f'<p>Start with the <a href="#failures">{number_of(rows, "failing row")} of {kinds}</a>: each has its '
        yield "clause and the command that repeats it.</p>"
        yield from _kinds(facts)
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in SECTIONS)
    yield f'<nav aria-label="Parts of this report"><ul>{links}</ul></nav></header>'


def _kinds(facts: Facts) -> Iterator[str]:
    """The commonest kinds of failure, for those who read one page."""
    yield "<ul class=kinds>"
    for number, (diagnosis, entries) in enumerate(facts.failures.items(), 1):
        if number > _KINDS:
            yield f"<li>and {number_of(len(facts.failures) - _KINDS, 'more kind')}</li>"
            break
        rows = number_of(sum(map(len, entries.values())), "row")
        rules = list(dict.fromkeys(shown[0].row.case.rule for shown in entries.values()))
        of = f"{', '.join(map(rule_link, rules[:3]))}{f' and {len(rules) - 3} more' if len(rules) > 3 else ''}"
        yield f'<li><a href="#wrong-{number}">{quote(diagnosis)}</a>: {rows}, of {of}</li>'
    yield "</ul>"


# ── environment and legend ────────────────────────────────────────────────────────────────────────


def _environment(facts: Facts) -> Iterator[str]:
    yield section("environment")
    yield "<p>What pins this run. The evidence itself is in this file, as JSON: the element <code>evidence</code>.</p>"
    header, footer = facts.evidence.header, facts.evidence.footer
    rows = [
        f'<tr><th scope="row">{plain(name)}</th><td>{quote(value)}</td></tr>'
        for part in (header, {"results": {key: value for key, value in footer.items() if key != "record"}})
        for name, value in _flat(part)
        if name not in ("record", "format", "waivers")
    ]
    yield from table_of("Versions, digests, claims and target", ("What", "Value"), rows, "stack")
    yield "</section>"


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, however deep."""
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield from _flat(each, f"{prefix}{key} · ")
        elif isinstance(each, list | tuple):
            none = "all that is claimed" if f"{prefix}{key}" in _ALL else "none"
            yield f"{prefix}{key}", ", ".join(map(str, each)) or none
        else:
            yield f"{prefix}{key}", _WORDS.get(str(each), str(each))


def _legend() -> Iterator[str]:
    yield section("legend")
    rows = [f'<tr><th scope="row">{mark(verdict)}</th><td>{text}</td></tr>' for verdict, text in _LEGEND.items()]
    yield from table_of("Verdicts", ("Verdict", "Meaning"), rows, "stack")
    yield "<p>A backend conforms to a document for an element type when every required row passes or is observed and "
    yield "each rule that binds there has a pass. “Our ruling” marks what no document states and the suite decides, "
    yield "with its reason; failures of such rules are counted apart.</p>"
    yield "</section>"
