"""The pages on which backends are side by side: libraries, by rule, by case, and by unspecified call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..model import BAD, FAIL, NOT_CLAIMED, NOT_RUN, PASS, Case, Rule, Verdict, worst
from ..model.verdicts import LABELS, SEVERITIES, WORST, Severity
from ..report.judged_run import JudgedRun
from ..report.render import Site, render_page
from ..report.row_results import RowResult
from ..report.table_sections import RuleRow, collect_rules, group_observations
from ..report.wording import format_answer, format_step
from ..system.groups import group_pairs
from ..system.terminal import count_noun
from ..verdict.blame import Blamed, find_worst
from .landing import NEEDS, answer_question, collect_libraries, collect_numbers

_MUTE = frozenset((NOT_RUN, NOT_CLAIMED))
"""Verdicts that say nothing of a backend."""
_SEEN_IN_ANSWER = (None, "answered an illegal call", "wrong dims", "wrong volume", "wrong type")
"""Diagnoses of an answer that its type and dims show."""
_MAX_NAMED = 3
"""Backends that are named even in the largest group."""
RowsOfEach = Sequence[Sequence[RowResult]]
"""The rows of a case or a rule, for each backend."""
MAX_CHOSEN = 5
"""Backends that can be compared side by side."""


Cells = tuple[str, str]
"""The group of each backend, as the script of the page reads it; many cases have the same.

The number of each group, and how many of the backend's rows it is if not all: `0;0 3/9;1`. Then for each backend the
index of its group there: `0,0,2,1`.
"""


class CaseOutcome(NamedTuple):
    """The worst verdict of a case's rows that say something of a backend, and the backend's answers there, if any."""

    word: Verdict
    severity: Severity | None
    """The worst of the rows; None if none of them fails."""
    answers: tuple[str, ...]


class AlikeBackends(NamedTuple):
    """Backends that did the same with a case, or in the tests of a rule."""

    done: CaseOutcome
    backends: list[tuple[str, str]]
    """The name of each, and how many of its rows have that verdict if not all; for a rule, the tests that break it."""
    everyone: bool
    named: bool

    @property
    def failing(self) -> bool:
        return self.done.word in BAD

    @property
    def partly(self) -> int:
        """The number of backends with the verdict in some of them only."""
        return sum(bool(number) for _, number in self.backends)


class RuleLine(NamedTuple):
    """A rule with the backends by the worst that breaks it."""

    kinds: str
    """What the filter of kinds looks at, such as `disagreements one-fails`."""
    rule: Rule
    groups: list[AlikeBackends]
    cells: Cells


class CaseLine(NamedTuple):
    """A case with the backends by what they did; `silent`: the rules that leave its call unspecified."""

    kinds: str
    about: str
    """The rule that the filter of rules looks at."""
    case: Case
    call: str
    silent: tuple[str, ...]
    groups: list[AlikeBackends]
    cells: Cells


class ComparedPage(NamedTuple):
    heading: str
    """The text of the links to it, too."""
    section: str
    filtered: str
    """What its filters choose from; empty if it has none."""


HOME, RULES, COMPARED = "index.html", "rules.html", "compare.html"
PARTS: Mapping[str, ComparedPage] = {
    HOME: ComparedPage("Which libraries reshape as oneDNN Graph says?", "verdicts", ""),
    RULES: ComparedPage("Rules, backend by backend", "rules", "rules"),
    COMPARED: ComparedPage("Cases, backend by backend", "cases", "cases"),
    "unspecified.html": ComparedPage("Unspecified behaviour, backend by backend", "observed", "unspecified behaviour"),
}
"""The pages of the published results, by the names of their files."""


def render_pages(
    runs: Sequence[JudgedRun], reports: Sequence[str], changes: Mapping[str, str], not_shown: Mapping[str, str]
) -> dict[str, str]:
    """Render each page, by the name of its file; the runs are of one suite. `reports`: links to the report of each.

    `changes`: links to what changed since the version before, by the link to the report. `not_shown`: other
    folders with results, and a link to the report of each if its name can be in one.
    """
    values = _collect(runs, reports, changes, not_shown)
    site = Site(values["suite"], values["numbers"].last)
    return {file: _render(file, page, site, values) for file, page in PARTS.items()}


def _render(file: str, page: ComparedPage, site: Site, values: Mapping[str, Any]) -> str:
    scripts = ["compare.css"]
    scripts += ["filters.js", "chosen.js", "compare.js"] if page.filtered else ["landing.js"]
    lines = values[page.section] if page.section in ("rules", "cases") else ()
    cells = {cells: number for number, cells in enumerate(dict.fromkeys(line.cells for line in lines))}
    return render_page(
        "compare.html", files=scripts, **site.frame("", "Results" if file == HOME else "Compare"), **values,
        page=page, index={**values["found"], "pages": {"rule": RULES, "case": COMPARED}},
        beside={other.heading: name for name, other in PARTS.items() if name not in (HOME, file)},
        home="" if file == HOME else HOME, cells=cells,
    )  # fmt: skip


def _collect(
    runs: Sequence[JudgedRun], reports: Sequence[str], changes: Mapping[str, str], not_shown: Mapping[str, str]
) -> dict[str, Any]:
    named = dict(zip(names := name_runs(runs), runs, strict=True))
    cases = sorted(_collect_cases(named), key=_order_line)
    rules, spec = list(_collect_rules(named)), runs[0].plan.suite.spec
    libraries = collect_libraries(runs, names, reports, changes)
    return {
        "suite": runs[0].plan.suite.digest,
        "names": names,
        "not_shown": not_shown,
        "spec": spec,
        "tests": _describe_tests([run.conclusion.tests for run in runs]),
        "libraries": libraries,
        "numbers": collect_numbers(runs, libraries),
        "answer": answer_question(libraries),
        "needs": NEEDS,
        "severities": SEVERITIES,
        "found": {
            "rule": [line.rule.id for line in rules],
            "case": [line.case.id for line in cases],
            "labels": [*LABELS],
        },
        "page_of": dict(zip(names, reports, strict=True)),
        "most_chosen": min(MAX_CHOSEN, len(runs)),
        "filters": {"rule": list(spec.rules)},
        "rules": rules,
        "cases": cases,
        "untested": spec.rules.keys() - {line.rule.id for line in rules},
        "unexecuted": _count_unexecuted(runs),
        "observed": list(_collect_observed_calls(named)),
    }


def _describe_tests(numbers: Sequence[int]) -> str:
    """Say how many tests the backends have: each claims other calls."""
    fewest, most = min(numbers), max(numbers)
    return f"{fewest:,} to {most:,} tests each" if fewest < most else f"{count_noun(most, 'test')} each"


def _count_unexecuted(runs: Sequence[JudgedRun]) -> Counter[str]:
    seen = {result.row for run in runs for result in run.evidence.results if result.outcome.reached_library}
    return Counter(row.case.id for row in runs[0].plan.rows if row.id not in seen)


def name_runs(runs: Sequence[JudgedRun]) -> list[str]:
    """Return a name for each run: the backend and its version, numbered if two are the same."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: k + 1].count(name)})" for k, name in enumerate(names)
    ]


def differs(cells: RowsOfEach) -> bool:
    """Ask whether a row has different verdicts, apart from those that say nothing of a backend."""
    rows = ({tuple(result.verdicts.values()) for result in row} for row in zip(*cells, strict=True))
    return any(len(set(each) - _MUTE) > 1 for verdicts in rows for each in zip(*verdicts, strict=True))


def does_one_fail(cells: RowsOfEach) -> bool:
    return sum(any(result.failing for result in cell) for cell in cells) == 1


def _list_kinds(apart: bool, is_alone: bool) -> str:
    kinds = {"disagreements": apart, "one-fails": is_alone}
    return " ".join(kind for kind, holds in kinds.items() if holds)


def _find_worst_severity(blamed: Iterable[Blamed]) -> Severity | None:
    found = find_worst(blamed)
    return found.severity if found else None


def _collect_rules(runs: Mapping[str, JudgedRun]) -> Iterator[RuleLine]:
    tables = {name: {each.rule.id: each for each in collect_rules(run.with_drawn)} for name, run in runs.items()}
    for rule in next(iter(runs.values())).plan.suite.spec.rules.values():
        entries = {name: table[rule.id] for name, table in tables.items()}
        if any(entry.broken or entry.counts for entry in entries.values()):
            groups = _group_rule(entries)
            apart = len({group.done.word for group in groups} - _MUTE) > 1
            failing = sum(len(group.backends) for group in groups if group.failing)
            yield RuleLine(_list_kinds(apart, failing == 1), rule, groups, _number_groups(runs, groups))


def _group_rule(entries: Mapping[str, RuleRow]) -> list[AlikeBackends]:
    """Group backends by the worst that breaks a rule; those with the most tests that do so first."""
    groups = group_pairs((_summarize_rule(entry), (name, len(entry.broken))) for name, entry in entries.items())
    return [
        AlikeBackends(
            done,
            [(name, f"{number:,}" if number else "") for name, number in sorted(some, key=lambda each: -each[1])],
            len(some) == len(entries),
            done.word in BAD,
        )
        for done, some in sorted(groups.items(), key=lambda group: _rank(group[0]))
    ]


def _summarize_rule(entry: RuleRow) -> CaseOutcome:
    """Say what the tests of a rule show: a test that breaks another rule shows nothing of this one."""
    if entry.broken:
        return CaseOutcome(FAIL, _find_worst_severity(entry.broken), ())
    others = [verdict for verdict in entry.counts if verdict != FAIL]
    nothing = FAIL if entry.counts else NOT_CLAIMED if entry.cases else NOT_RUN
    return CaseOutcome(worst(others or [nothing]), None, ())


def _rank(done: CaseOutcome) -> tuple[int, int]:
    return WORST.index(done.word), SEVERITIES.index(done.severity) if done.severity else len(SEVERITIES)


def _order_line(line: CaseLine) -> tuple[Any, ...]:
    """Order cases: where backends differ, single calls, the worst that one does, and the most that fail come first."""
    step, failing = line.case.steps[0], [group for group in line.groups if group.failing]
    several = len(step.shapes) > 1, len(line.case.steps) > 1
    worst_first = min((_rank(group.done) for group in failing), default=(len(WORST), 0))
    return "disagreements" not in line.kinds, several, worst_first, -sum(len(group.backends) for group in failing)


def _collect_cases(runs: Mapping[str, JudgedRun]) -> Iterator[CaseLine]:
    for case_id, rows in next(iter(runs.values())).rows_by_case.items():
        case, cells = rows[0].row.case, [run.rows_by_case[case_id] for run in runs.values()]
        yield _make_line(case, _list_kinds(differs(cells), does_one_fail(cells)), case.rule, (), runs, cells)


def _collect_observed_calls(runs: Mapping[str, JudgedRun]) -> Iterator[CaseLine]:
    first, observations = next(iter(runs.values())), [group_observations(run) for run in runs.values()]
    order = {rule: number for number, rule in enumerate(first.plan.suite.spec.rules)}
    keys = dict.fromkeys(key for each in observations for key in each)
    for rules, case_id in sorted(keys, key=lambda key: order[key[0][0]] if key[0] else -1):
        cells = [
            [result for result, _ in each[rules, case_id]] if (rules, case_id) in each else run.rows_by_case[case_id]
            for run, each in zip(runs.values(), observations, strict=True)
        ]
        apart = len({_summarize_case(run, cell).answers for run, cell in zip(runs.values(), cells, strict=True)}) > 1
        kinds = _list_kinds(apart, does_one_fail([run.rows_by_case[case_id] for run in runs.values()]))
        case = first.rows_by_case[case_id][0].row.case
        yield _make_line(case, kinds, rules[0] if rules else "", rules, runs, cells)


def _make_line(
    case: Case, kinds: str, about: str, silent: tuple[str, ...], runs: Mapping[str, JudgedRun], cells: RowsOfEach
) -> CaseLine:
    groups = _group_backends(runs, cells)
    call = format_step(case, case.steps[0])
    return CaseLine(kinds, about, case, call, silent, groups, _number_groups(runs, groups))


def _group_backends(runs: Mapping[str, JudgedRun], cells: RowsOfEach) -> list[AlikeBackends]:
    """Group backends by what they did with a case: the worst first, the largest group last."""
    groups = group_pairs(
        (_summarize_case(run, rows), (name, rows)) for (name, run), rows in zip(runs.items(), cells, strict=True)
    )
    largest = max(groups, key=lambda done: len(groups[done]))
    return [
        AlikeBackends(
            done,
            [(name, _count_part(rows, done.word)) for name, rows in groups[done]],
            len(groups[done]) == len(runs),
            done.word not in _MUTE and (done is not largest or len(groups[done]) <= _MAX_NAMED),
        )
        for done in sorted(groups, key=lambda done: (done is largest, _rank(done)))
    ]


def _count_part(rows: Sequence[RowResult], word: Verdict) -> str:
    """Say how many rows have a verdict, of how many; empty if all have it."""
    number = sum(result.worst == word for result in rows)
    return f"{number}/{len(rows)}" if number < len(rows) else ""


def _number_groups(names: Iterable[str], groups: Sequence[AlikeBackends]) -> Cells:
    kinds = {
        name: f"{place} {number}".rstrip() for place, group in enumerate(groups) for name, number in group.backends
    }
    distinct = list(dict.fromkeys(kinds.values()))
    return ";".join(distinct), ",".join(str(distinct.index(kinds[name])) for name in names)


def _summarize_case(run: JudgedRun, rows: Sequence[RowResult]) -> CaseOutcome:
    word = worst([result.worst for result in rows if result.worst not in _MUTE] or [result.worst for result in rows])
    if word in _MUTE:
        return CaseOutcome(word, None, ())
    deciding = [result for result in rows if result.worst == word]
    blamed = [each for result in deciding for each in run.conclusion.blames.get(result.row.id, {}).values()]
    answers = sorted({_format_without_message(result) for result in deciding})
    return CaseOutcome(word, _find_worst_severity(blamed), tuple(answers))


def _format_without_message(result: RowResult) -> str:
    """Write an answer without its message, which is every backend's own."""
    if result.worst == PASS and result.outcome.kind == "rejected":
        return "rejected"  # as was due; the stage is a matter of how a backend is built
    answer = format_answer(result, generic=True, with_message=False)
    is_wrong = result.worst == FAIL and result.outcome.kind == "tensor" and result.diagnosis not in _SEEN_IN_ANSWER
    return f"{answer}, {result.diagnosis}" if is_wrong else answer
