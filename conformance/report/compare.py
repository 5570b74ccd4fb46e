"""Several runs of one suite on one page: backends side by side, rule by rule, and who did the same with a case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import Case, Rule, Verdict
from ..run.judge import WORST
from .facts import Facts, Shown, answer_of, call_of, cut, grouped, worst
from .look import script
from .parts import code, mark, number_of, plain, quote, table_of
from .shell import shell
from .tables import observations

_ABREAST = 10
"""Backends in one table, as many as a page of paper holds."""
_SHORT = 100
_MOST = 3
"""Answers of one group that are told."""
_MUTE = frozenset(("not run", "not claimed"))
"""Verdicts that say nothing of a backend."""
_NAMED = 3
"""Backends that are named even where they are most."""
_SECTIONS = (
    ("verdicts", "Verdicts"),
    ("rules", "Rules"),
    ("cases", "Cases"),
    ("observed", "Left open"),
    ("environment", "What was compared"),
)


def html(runs: Sequence[Facts], pages: Sequence[str] = ()) -> str:
    """The whole page; the runs are of one suite. `pages`: where the report of each lies, as a link."""
    names = names_of(runs)
    plan = runs[0].plan
    nav = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in _SECTIONS)
    body = [
        '<a class="skip" href="#main">Skip to the tables</a><header>',
        f'<p class="soft">Reshape conformance, suite {plain(runs[0].evidence.header["suite"]["version"])}</p>',
        f"<h1>{number_of(len(runs), 'backend')} side by side</h1>",
        f"<p>{_in_short(runs)}</p>",
        f'<nav aria-label="Parts of this page"><ul>{nav}</ul></nav></header><main id="main">',
        *_verdicts(runs, names, pages),
        *_filters(list(plan.suite.spec.rules)),
        *_rules(runs, names),
        *_cases(runs, names),
        *_observed(runs, names),
        *_environment(runs, names),
        "</main>",
    ]
    return shell("Reshape conformance: backends side by side", SCRIPT, body)


def names_of(runs: Sequence[Facts]) -> list[str]:
    """A name for each run: the backend and its version, numbered where two are alike."""
    plain_names = [run.name for run in runs]
    return [
        name if plain_names.count(name) == 1 else f"{name} ({plain_names[: k + 1].count(name)})"
        for k, name in enumerate(plain_names)
    ]


def _in_short(runs: Sequence[Facts]) -> str:
    cases = list(runs[0].cases)
    apart = [case for case in cases if differs([run.cases[case] for run in runs])]
    lonely = [case for case in cases if one_fails([run.cases[case] for run in runs])]
    return (
        f"Of {number_of(len(cases), 'case')}, {len(apart):,} have verdicts that differ between backends, and "
        f"{len(lonely):,} fail in one backend only: that is where a defect is likeliest."
    )


def differs(cells: Sequence[Sequence[Shown]]) -> bool:
    """Whether verdicts of a row part among the backends that it says something of."""
    return any(_parts(column) for column in zip(*cells, strict=True))


def _parts(column: Sequence[Shown]) -> bool:
    found = {tuple(shown.verdicts.values()) for shown in column}
    return len(found) > 1 and any(len(set(each) - _MUTE) > 1 for each in zip(*found, strict=True))


def one_fails(cells: Sequence[Sequence[Shown]]) -> bool:
    return sum(any(shown.failing for shown in cell) for cell in cells) == 1


def _begin(name: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<section{named} aria-labelledby="{name}"><h2 id="{name}">{dict(_SECTIONS)[name]}</h2>'


def _verdicts(runs: Sequence[Facts], names: Sequence[str], pages: Sequence[str]) -> Iterator[str]:
    yield _begin("verdicts")
    yield "<p>The report of each backend has the whole sentence, with what was not tested.</p>"
    documents = runs[0].plan.suite.spec.documents
    links = [f'<a href="{plain(page)}">{quote(name)}</a>' for name, page in zip(names, pages, strict=False)]
    rows = []
    for run, head in zip(runs, links or map(quote, names), strict=True):
        cells = "".join(f"<td>{mark(run.documents[document][0])}</td>" for document in documents)
        rows.append(f'<tr><th scope="row">{head}</th>{cells}</tr>')
    yield from table_of("What was shown of each document", ("Backend", *map(plain, documents)), rows, "matrix")
    yield "</section>"


def _filters(rules: Iterable[str]) -> Iterator[str]:
    options = "".join(f"<option>{plain(rule)}</option>" for rule in rules)
    yield '<form id="filters" class="filters" role="search" aria-label="Filter rules, cases, what is left open" hidden>'
    yield '<label>show<select name="show"><option value="">everything</option>'
    yield '<option value="disagreements">only disagreements</option>'
    yield '<option value="one-fails">only one fails</option></select></label>'
    yield f'<label>rule<select name="rule"><option value="">any</option>{options}</select></label>'
    yield '<label>text<input name="text" type="search" autocomplete="off"></label>'
    yield '<button type="reset">Show all</button><output aria-live="polite"></output></form>'


def _kinds(cells: Sequence[Sequence[Shown]], rule: str, apart: bool | None = None) -> str:
    """What the filters look at, of a line about some rows."""
    kinds = [
        *(["disagreements"] if (differs(cells) if apart is None else apart) else ()),
        *(["one-fails"] if one_fails(cells) else ()),
    ]
    return f'data-s="{" ".join(kinds)}" data-r="{plain(rule)}"'


# ── rules: a column for each backend ──────────────────────────────────────────────────────────────


def _rules(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("rules", "across")
    yield "<p>The worst verdict of a rule’s rows, and how many of them have it.</p>"
    rules = runs[0].plan.suite.spec.rules
    shown = [rules[rule] for rule, rows in runs[0].rules.items() if rows]
    kinds = [(_kinds([run.rules[rule.id] for run in runs], rule.id), rule) for rule in shown]
    tables = -(-len(runs) // _ABREAST)
    size = -(-len(runs) // tables)
    for number in range(tables):
        some = slice(number * size, (number + 1) * size)
        rows = [f"<tr {kind}>{_rule(runs[some], rule, number == 0)}</tr>" for kind, rule in kinds]
        caption = f"Backends against rules{f', {number + 1} of {tables}' if tables > 1 else ''}"
        yield from table_of(caption, ("Rule", *map(quote, names[some])), rows, "matrix abreast")
    yield "</section>"


def _rule(runs: Sequence[Facts], rule: Rule, first: bool) -> str:
    shares = [run.share(run.rules[rule.id]) for run in runs]
    told = "".join(f'<td>{mark(s.word)}<br><span class="sub">{s.number}/{s.total}</span></td>' for s in shares)
    name = plain(rule.id)
    anchor = f' id="rule-{name}"' if first else ""
    return f'<th scope="row"{anchor}>{name}<br><span class="sub">{plain(rule.sentence)}</span></th>{told}'


# ── cases and what is left open: who did the same ─────────────────────────────────────────────────


class Done(NamedTuple):
    """What a backend did with a case: the worst verdict of the rows that say something of it, and its answers there."""

    word: Verdict
    answers: tuple[str, ...]


def _cases(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("cases")
    yield "<p>What was answered, whether that was right, and by whom; the messages of refusals are in the report of "
    yield "each. T stands for each element type in turn. Rows that were not run or are not claimed say nothing: 3/9 "
    yield "means that of nine rows of a backend three have that verdict.</p>"
    yield "<dl class=pairs>"
    for case, shown in runs[0].cases.items():
        about = shown[0].row.case
        cells = [run.cases[case] for run in runs]
        yield f"<div {_kinds(cells, about.rule)}>{_called(about, anchor=True)}<dd>{_groups(names, cells)}</div>"
    yield "</dl></section>"


def _called(case: Case, anchor: bool = False) -> str:
    name = plain(case.id)
    at = f' id="case-{name}"' if anchor else ""
    return f"<dt{at}>{name}<br><span class=sub>{plain(call_of(case, case.steps[0]))}</span>"


def _groups(names: Sequence[str], cells: Sequence[Sequence[Shown]]) -> str:
    """What was done with a case, the worst first, what most did last; each with its backends."""
    groups = grouped((done_of(rows), (name, rows)) for name, rows in zip(names, cells, strict=True))
    most = max(groups, key=lambda done: len(groups[done]))
    order = sorted(groups, key=lambda done: (done is most, WORST.index(done.word)))
    told = (f"<li>{_told(done)}: {_who(done, groups[done], len(names), done is most)}" for done in order)
    return f"<ul class=where>{''.join(told)}</ul>"


def done_of(rows: Sequence[Shown]) -> Done:
    word = worst([shown.worst for shown in rows if shown.worst not in _MUTE] or [shown.worst for shown in rows])
    return Done(word, tuple(sorted({_answer(shown) for shown in rows if shown.worst == word})))


def _answer(shown: Shown) -> str:
    """What was done, without the words that went with it, which are every backend’s own."""
    if shown.worst == "pass" and shown.outcome["kind"] == "rejected":
        return "refused"  # as was due; where is a matter of how a backend is built
    return answer_of(shown._replace(outcome={**shown.outcome, "message": None}), generic=True)


def _told(done: Done) -> str:
    answers = () if done.word in _MUTE else done.answers
    more = f" and {len(answers) - _MOST} more" if len(answers) > _MOST else ""
    given = ", ".join(code(cut(answer, _SHORT)) for answer in answers[:_MOST])
    return f"{mark(done.word)} {given}{more}".rstrip()


def _who(done: Done, members: Sequence[tuple[str, Sequence[Shown]]], total: int, most: bool) -> str:
    """The backends of a group by name; what most did, and more than a few, by number."""
    parts = [(name, sum(shown.worst == done.word for shown in rows), len(rows)) for name, rows in members]
    if most and len(parts) > _NAMED:
        some = sum(number < rows for _, number, rows in parts)
        told = f"{'all' if len(parts) == total else 'the other'} {len(parts)}"
        told += f", {some} of them not in every row" if some else ""
    else:
        told = ", ".join(f"{quote(name)}{f' {number}/{rows}' if number < rows else ''}" for name, number, rows in parts)
    return f"<span class=sub>{told}</span>"


def _observed(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("observed")
    found = [observations(run) for run in runs]
    keys = dict.fromkeys(key for each in found for key in each)
    if not keys:
        yield "<p>No call that a document leaves open was answered or refused.</p></section>"
        return
    yield "<p>Calls for which a document settles no answer. Backends may differ here without a breach; whoever moves a "
    yield "model from one to the other should know.</p>"
    order = {rule: number for number, rule in enumerate(runs[0].plan.suite.spec.rules)}
    yield "<dl class=pairs>"
    for rules, case in sorted(keys, key=lambda key: order[key[0][0]] if key[0] else -1):
        cells = [
            [shown for same in open_[rules, case].values() for shown, _ in same]
            if (rules, case) in open_
            else run.cases[case]
            for run, open_ in zip(runs, found, strict=True)
        ]
        apart = len({done_of(cell).answers for cell in cells}) > 1
        kinds = _kinds([run.cases[case] for run in runs], rules[0] if rules else "", apart)
        left = ", ".join(map(plain, rules)) or "another step"
        called = _called(runs[0].cases[case][0].row.case)
        yield f"<div {kinds}>{called}<br><span class=sub>left open by {left}</span><dd>{_groups(names, cells)}</div>"
    yield "</dl></section>"


# ── what was compared ─────────────────────────────────────────────────────────────────────────────


def _environment(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("environment")
    facts: Mapping[str, Callable[[Facts], object]] = {
        "Started with": lambda run: run.backend,
        "Detail": lambda run: (
            "; ".join(f"{k}: {v}" for k, v in run.evidence.header["backend"]["detail"].items()) or "none"
        ),
        "Leaves out": lambda run: ", ".join(run.claims.leaves_out) or "nothing",
        "Answered by the adapter": lambda run: ", ".join(run.claims.mapped) or "nothing",
        "Exit code": lambda run: f"{run.conclusion.exit_code}: {run.conclusion.why}",
        "Verdicts": lambda run: ", ".join(f"{n:,} {v}" for v, n in run.conclusion.counts.items()),
        "Environment": lambda run: ", ".join(f"{k} {v}" for k, v in run.evidence.header["environment"].items()),
        "Started at": lambda run: run.evidence.header["started"],
        "Digest of the results": lambda run: run.evidence.footer["digest"],
    }
    rows = []
    for run, name in zip(runs, names, strict=True):
        pins = "".join(f"<dt>{what}</dt><dd>{quote(cut(str(fact(run)), 800))}</dd>" for what, fact in facts.items())
        rows.append(f'<tr><th scope="row">{quote(name)}</th><td><dl>{pins}</dl></td></tr>')
    yield from table_of("What pins each run", ("Backend", "What pins its run"), rows, "stack")
    digest = runs[0].evidence.header["suite"]["digest"]
    yield f"<p>All of them are of the suite with digest {code(digest)}. <code>conformance verify</code> derives the "
    yield "verdicts of each run again from its results.</p></section>"


SCRIPT = script(
    ("show", "rule", "text"),
    "rules",
    """
  var rows = Array.prototype.slice.call(document.querySelectorAll('[data-s]')).map(function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      show: element.getAttribute('data-s').split(' ')};
  });
  function apply() {
    var want = wanted(), text = (want.text || '').toLowerCase(), count = 0;
    rows.forEach(function (row) {
      if (text && row.text === null) row.text = row.element.textContent.toLowerCase();
      var shown = (!want.show || row.show.indexOf(want.show) >= 0) && (!want.rule || row.rule === want.rule) &&
        (!text || row.text.indexOf(text) >= 0);
      if (row.element.hidden === shown) row.element.hidden = !shown;
      if (shown) count += 1;
    });
    output.textContent = count + ' of ' + rows.length + ' lines shown';
  }
""",
)
