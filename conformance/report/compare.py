"""Several runs of one suite on one page: backends beside one another, rule by rule and case by case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..model import Rule
from .facts import Facts, Shown, answer_of, call_of, counts_of, cut, worst
from .parts import code, mark, number_of, plain, quote, table_of
from .shell import shell
from .tables import observations

_SHORT = 100
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
        *_verdicts(runs, names),
        *_reports(names, pages),
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
    return len({tuple(tuple(shown.verdicts.values()) for shown in cell) for cell in cells}) > 1


def one_fails(cells: Sequence[Sequence[Shown]]) -> bool:
    return sum(any(shown.failing for shown in cell) for cell in cells) == 1


def _begin(name: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{dict(_SECTIONS)[name]}</h2>'


def _verdicts(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("verdicts")
    rows = []
    for document in runs[0].plan.suite.spec.documents:
        cells = "".join(f"<td>{mark(run.documents[document][0])}</td>" for run in runs)
        rows.append(f'<tr><th scope="row">{plain(document)}</th>{cells}</tr>')
    yield from table_of("What was shown of each document", ("Document", *map(quote, names)), rows)
    yield "<p>In the report of each backend is the whole sentence, with what was not tested.</p></section>"


def _reports(names: Sequence[str], pages: Sequence[str]) -> Iterator[str]:
    """A link to the report of each."""
    if pages:
        links = (f'<li><a href="{plain(page)}">{quote(name)}</a>' for name, page in zip(names, pages, strict=True))
        yield f"<p>The report of each:</p><ul>{''.join(links)}</ul>"


def _filters(rules: Iterable[str]) -> Iterator[str]:
    options = "".join(f"<option>{plain(rule)}</option>" for rule in rules)
    yield '<form id="filters" class="filters" role="search" aria-label="Filter rules, cases, what is left open" hidden>'
    yield '<label>show<select name="show"><option value="">everything</option>'
    yield '<option value="disagreements">only disagreements</option>'
    yield '<option value="one-fails">only one fails</option></select></label>'
    yield f'<label>rule<select name="rule"><option value="">any</option>{options}</select></label>'
    yield '<label>text<input name="text" type="search" autocomplete="off"></label>'
    yield '<button type="reset">Show all</button><output aria-live="polite"></output></form>'


def _row(cells: Sequence[Sequence[Shown]], rule: str, apart: bool | None = None) -> str:
    """The opening of a table row with what the filters look at."""
    kinds = [
        *(["disagreements"] if (differs(cells) if apart is None else apart) else ()),
        *(["one-fails"] if one_fails(cells) else ()),
    ]
    return f'<tr data-s="{" ".join(kinds)}" data-r="{plain(rule)}">'


def _rules(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("rules")
    yield "<p>The worst verdict of a rule’s rows, and how many of them have it.</p>"
    spec = runs[0].plan.suite.spec
    rows = [_rule(runs, spec.rules[rule]) for rule, shown in runs[0].rules.items() if shown]
    yield from table_of("Backends against rules", ("Rule", *map(quote, names)), rows, "matrix")
    yield "</section>"


def _rule(runs: Sequence[Facts], rule: Rule) -> str:
    cells = [run.rules[rule.id] for run in runs]
    shares = [run.share(cell) for run, cell in zip(runs, cells, strict=True)]
    told = "".join(f'<td>{mark(s.word)}<br><span class="sub">{s.number}/{s.total}</span></td>' for s in shares)
    name = plain(rule.id)
    head = f'<th scope="row" id="rule-{name}">{name}<br><span class="sub">{plain(rule.sentence)}</span></th>'
    return f"{_row(cells, rule.id)}{head}{told}</tr>"


def _cases(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("cases")
    yield "<p>What each backend answered, and whether that was right. T stands for each element type in turn.</p>"
    rows = []
    for case, shown in runs[0].cases.items():
        about = shown[0].row.case
        cells = [run.cases[case] for run in runs]
        told = "".join(f"<td>{_cell(cell)}</td>" for cell in cells)
        name, call = plain(case), plain(call_of(about, about.steps[0]))
        head = f'<th scope="row" id="case-{name}">{name}<br><span class="sub">{call}'
        rows.append(f"{_row(cells, about.rule)}{head}</span></th>{told}</tr>")
    yield from table_of("Backends against cases", ("Case and call", *map(quote, names)), rows, "compared")
    yield "</section>"


def _cell(rows: Sequence[Shown]) -> str:
    counts = counts_of(shown.worst for shown in rows)
    word = worst(shown.worst for shown in rows)
    share = f' <span class="sub">{counts[word]}/{len(rows)}</span>' if len(counts) > 1 else ""
    return f"{mark(word)}{share}<br>{_answers(answer_of(s, generic=True) for s in rows)}"


def _given(rows: Sequence[Shown]) -> list[str]:
    """What was answered; nothing where nothing was called."""
    return list(dict.fromkeys(answer_of(shown, generic=True) for shown in rows))


def _answers(found: Iterable[str], most: int = 2) -> str:
    answers = list(dict.fromkeys(found))
    more = f" <span class=sub>and {len(answers) - most} more</span>" if len(answers) > most else ""
    return ", ".join(quote(cut(answer, _SHORT)) for answer in answers[:most]) + more


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
    rows = []
    for rules, case in sorted(keys, key=lambda key: order[key[0][0]] if key[0] else -1):
        shown = runs[0].cases[case]
        about = shown[0].row.case
        cells = [run.cases[case] for run in runs]
        answers = [list(each.get((rules, case), {})) for each in found]
        told = "".join(
            f"<td>{_answers(each) if each else _cell(cell)}</td>" for each, cell in zip(answers, cells, strict=True)
        )
        left = ", ".join(map(plain, rules)) or "another step"
        head = f'<th scope="row">{plain(case)}<br><span class="sub">{code(call_of(about, about.steps[0]))}</span></th>'
        apart = len({tuple(sorted(each or _given(cell))) for each, cell in zip(answers, cells, strict=True)}) > 1
        rows.append(f"{_row(cells, rules[0] if rules else '', apart)}{head}<td>{left}</td>{told}</tr>")
    heads = ("Case and call", "Left open by", *map(quote, names))
    yield from table_of("What was done where a document is silent", heads, rows, "compared")
    yield "</section>"


def _environment(runs: Sequence[Facts], names: Sequence[str]) -> Iterator[str]:
    yield _begin("environment")
    rows = []
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
    for name, fact in facts.items():
        cells = "".join(f"<td>{quote(cut(str(fact(run)), 400))}</td>" for run in runs)
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    yield from table_of("What pins each run", ("What", *map(quote, names)), rows, "compared")
    digest = runs[0].evidence.header["suite"]["digest"]
    yield f"<p>All of them are of the suite with digest {code(digest)}. <code>conformance verify</code> derives the "
    yield "verdicts of each run again from its results.</p></section>"


SCRIPT = """
(function () {
  'use strict';
  var form = document.getElementById('filters'), output = form.querySelector('output'), timer = 0;
  var names = ['show', 'rule', 'text'];
  var rows = Array.prototype.slice.call(document.querySelectorAll('tr[data-s]')).map(function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      show: element.getAttribute('data-s').split(' ')};
  });
  function wanted() {
    var found = {};
    names.forEach(function (name) { if (form.elements[name].value) found[name] = form.elements[name].value; });
    return found;
  }
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
  function keep() {
    var want = wanted(), parts = Object.keys(want).map(function (name) {
      return name + '=' + encodeURIComponent(want[name]);
    });
    history.replaceState(null, '', parts.length ? '#filter:' + parts.join('&') : '#rules');
  }
  function decoded(text) { try { return decodeURIComponent(text); } catch (error) { return text; } }
  function read() {
    var hash = location.hash;
    if (hash.indexOf('#filter:') === 0) {
      form.reset();
      hash.slice(8).split('&').forEach(function (part) {
        var at = part.indexOf('='), name = part.slice(0, at);
        if (names.indexOf(name) >= 0) form.elements[name].value = decoded(part.slice(at + 1));
      });
      apply();
      form.scrollIntoView();
    }
  }
  function changed() { apply(); keep(); }
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  form.addEventListener('reset', function () { setTimeout(changed, 0); });
  form.addEventListener('change', changed);
  form.elements.text.addEventListener('input', function () { clearTimeout(timer); timer = setTimeout(changed, 60); });
  window.addEventListener('hashchange', read);
  form.hidden = false;
  apply();
  read();
})();
"""
