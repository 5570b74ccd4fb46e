"""Failures by diagnosis: some cases in full, the others in a line each, so that the page does not grow huge."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..evidence.command import make_script_parts
from ..model import ERROR, FAIL, Case, Document, Rule, Spec, Verdict
from ..plan.rows import Row, parse_drawn_id
from ..plan.steps import StepMeaning
from ..system.groups import group_pairs
from ..system.text import shorten
from ..verdict.blame import Blamed, find_worst
from ..verdict.failure_kinds import FailureKind, list_shown_lines
from .answer_lines import AnswerLine, CaseAnswer, Filters, StepCall, describe_steps, make_line, number_filter
from .judged_run import FailureCounts, JudgedRun, Wants
from .picture import Picture, draw_call
from .row_results import RowResult, describe_cases, list_failing_documents
from .values import ShownElements, show_elements
from .wording import format_answer, format_blames, format_clauses, format_lines, format_step, visible


class InFull(NamedTuple):
    most: int
    of_a_diagnosis: int
    """The most for one diagnosis, if there are several."""


IN_FULL, IN_FULL_BRIEF = InFull(60, 8), InFull(12, 1)
MAX_SHORT = 1200
"""Cases in a line each, for all diagnoses together."""
MAX_LINES = 12
"""Lines of one case."""
MAX_IN_SCRIPT, MAX_STEPS_IN_SCRIPT = 8, 12
"""Groups that the script of a page repeats, each by its first row, and steps of such a row: a page must stay small."""
Cases = Mapping[str, Sequence[RowResult]]


class ClauseWords(NamedTuple):
    """A few words of each line of a document that states a rule."""

    document: Document
    lines: str
    words: tuple[str, ...]

    @property
    def page(self) -> str | None:
        """A public page about the operation, newer than the document; None if none is known."""
        return self.document.newer[0].page if self.document.newer else None


class BrokenRule(NamedTuple):
    """The rule that a failure breaks in some documents, with its clauses there; none if no document states it."""

    rule: Rule
    clauses: tuple[ClauseWords, ...]


class FailingCase(NamedTuple):
    anchor: str
    title: str
    case: Case
    rule: Rule
    number: int
    documents: tuple[str, ...]
    clauses: str
    decisive: list[BrokenRule]
    """What forbids the call, if it is illegal, and what the answer breaks, in the words of the documents."""
    blames: str
    """Severity and blame in each document, with the rule if it is not the last of `decisive`."""
    reasons: list[str]
    """Why we ruled so, for each document in which the rule is our ruling."""
    steps: list[StepCall]
    picture: Picture
    values: ShownElements | None
    lines: list[AnswerLine]
    more_lines: int
    commands: dict[str, str]
    """What each is for, and the command."""
    row: Row
    in_script: bool
    """Whether the script of the page repeats the row."""
    text: str
    """What went right alone, if anything did, and the smallest case of a drawn row as YAML."""

    @property
    def is_drawn(self) -> bool:
        return parse_drawn_id(self.row.id) is not None

    @property
    def is_first(self) -> bool:
        return self.anchor == f"failure-{self.case.id}"


class ShortCase(NamedTuple):
    filter_number: int
    case: Case
    call: str
    number: int
    documents: tuple[str, ...]
    wants: Wants
    answers: list[str]
    is_first: bool
    """No line and no entry about this case comes before."""


class FailureGroup(NamedTuple):
    """The failures by one cause, or of one severity and diagnosis with the same blame."""

    kind: FailureKind
    word: Verdict
    failures: FailureCounts
    cases: str
    """The number of cases, and of drawn rows."""
    full: list[FailingCase]
    short: list[ShortCase]
    more: int
    """Cases that are only in the list of all cases."""


Groups = Mapping[FailureKind, Cases]


def collect_failures(run: JudgedRun, filters: Filters, in_full: InFull) -> Iterator[FailureGroup]:
    """Collect failures: the worst first, then those that break the text; each with single and small calls first."""
    groups = run.failures
    chosen, left = _choose_in_full(groups, in_full), MAX_SHORT
    anchors: Counter[str] = Counter()
    shown = {case for cases in chosen.values() for case in cases}
    for number, (kind, cases) in enumerate(groups.items()):
        full: list[FailingCase] = []
        for case in chosen[kind]:
            anchors[case] += 1
            anchor = f"failure-{case}" + (f"-{anchors[case]}" if anchors[case] > 1 else "")
            full.append(_make_full(run, filters, cases[case], anchor, to_script=not full and number < MAX_IN_SCRIPT))
        others = {case: rows for case, rows in cases.items() if case not in chosen[kind]}
        kept = dict(list(others.items())[:left])
        short = [_make_short(run, filters, rows, case not in shown) for case, rows in kept.items()]
        shown.update(kept)
        every = [result for rows in cases.values() for result in rows]
        word: Verdict = ERROR if all(result.worst == ERROR for result in every) else FAIL
        yield FailureGroup(
            kind, word, run.count_failures(every), describe_cases(every), full, short, len(others) - len(short)
        )
        left = max(0, left - len(others))


def list_shown(failures: Sequence[FailureGroup]) -> set[str]:
    """Return the cases that failures show, in full or in a line."""
    full = {entry.case.id for failure in failures for entry in failure.full}
    return full | {entry.case.id for failure in failures for entry in failure.short}


def _choose_in_full(groups: Groups, in_full: InFull) -> Mapping[FailureKind, Sequence[str]]:
    """Choose cases of as many rules as possible, and some of every group; they keep the order of their group."""
    most = in_full.most if len(groups) == 1 else in_full.of_a_diagnosis
    queues = {kind: _alternate_rules(cases)[:most] for kind, cases in groups.items()}
    chosen: dict[FailureKind, set[str]] = {kind: set() for kind in groups}
    left = in_full.most
    for place in range(most):
        for kind, queue in queues.items():
            if place < len(queue) and (left > 0 or place == 0):
                chosen[kind].add(queue[place])
                left -= 1
    return {kind: [case for case in groups[kind] if case in names] for kind, names in chosen.items()}


def _alternate_rules(cases: Cases) -> list[str]:
    """Order cases so that each rule has its first before any has its second."""
    by_rule = group_pairs((rows[0].row.case.rule, case) for case, rows in cases.items())
    turns = [(place, case) for same in by_rule.values() for place, case in enumerate(same)]
    return [case for _, case in sorted(turns, key=lambda turn: turn[0])]


def _make_full(
    run: JudgedRun, filters: Filters, rows: Sequence[RowResult], anchor: str, to_script: bool
) -> FailingCase:
    first, documents, spec = rows[0], list_failing_documents(rows), run.plan.suite.spec
    case, rule = first.row.case, spec.rules[first.row.case.rule]
    because = {each: rule.because for each in documents if rule.level == "decided"} | dict(rule.decided_for)
    answers: Mapping[tuple[Wants, str], Sequence[RowResult]] = group_pairs(
        ((_want(run, result), format_answer(result, generic=True, with_message=False)), result) for result in rows
    )
    lines = [
        make_line(filters, CaseAnswer(wants, got, ((same[0].worst, ()),), _note(same[0])), same, failing=True)
        for (wants, got), same in list(answers.items())[:MAX_LINES]
    ]
    blames, meaning = run.blames_of(rows), _find_meaning(first).meaning
    decisive = [_find_broken(spec, rule, blames, documents)]
    if meaning.kind == "illegal" and meaning.rules[0] != decisive[0].rule.id:
        decisive.insert(0, _find_broken(spec, spec.rules[meaning.rules[0]], {}, documents))
    said, after_others = format_blames(blames), first.result.needs_calls_before
    commands = {f"in the suite{', with the calls before it' if after_others else ''}": run.commands(first)[0]}
    script = None if after_others else make_script_parts(first.row, run.backend)
    in_script = to_script and script is not None and len(script.steps) <= MAX_STEPS_IN_SCRIPT
    if script:
        explain = f"{shlex.join(['conformance', 'explain', first.row.id, '--backend', run.backend])} > repeat.py"
        commands["without the suite"] = f"python3 repeat.py {anchor}" if in_script else explain
    return FailingCase(
        anchor, _write_title(first), case, rule, _count(rows), documents, format_clauses(rule, documents),
        decisive, said.removeprefix(f"{', '.join(documents)}: ").replace(f" ({decisive[-1].rule.id})", ""),
        list(dict.fromkeys(reason for each in documents if (reason := because.get(each)))),
        describe_steps(rows, documents), _draw_failure(run, first), show_elements(first), lines,
        len(answers) - len(lines), commands, first.row, in_script,
        "\n".join(list_shown_lines(first.row, first.result, False)),
    )  # fmt: skip


def _count(rows: Sequence[RowResult]) -> int:
    return sum(len(result.failing) for result in rows)


def _write_title(result: RowResult) -> str:
    """Write the diagnosis and the case in words: `Subnormals flushed: subnormals of bf16`."""
    diagnosis = shorten(visible(result.diagnosis or "no diagnosis"), 80)
    drawn = parse_drawn_id(result.row.id)
    case = f"drawn row {drawn[1]}" if drawn else result.row.case.heading
    return f"{diagnosis[:1].upper()}{diagnosis[1:]}: {case}"


def _want(run: JudgedRun, result: RowResult) -> Wants:
    """Return the wants of the documents in which a row fails; these are named if they disagree."""
    wants = run.want(result.row, result.step)
    due = [(want, tuple(each for each in documents if each in result.failing)) for want, documents in wants]
    due = [(want, documents) for want, documents in due if documents]
    return tuple(due) if len(due) > 1 else tuple((want, ()) for want, _ in due)


def _note(result: RowResult) -> str:
    """Return the message of the backend or the detail of the failure, unless the line says it already.

    What an illegal call breaks is among the wants, by document; the detail has the rules of one.
    """
    note = result.outcome.message or result.detail or ""
    is_said = result.diagnosis == "answered an illegal call" or note in format_answer(result, with_message=False)
    return "" if is_said else note


def _find_meaning(result: RowResult) -> StepMeaning:
    """Return how the first document in which a row fails reads the step that decides."""
    meanings = result.row.meanings(result.step)
    return next((each for each in meanings if set(each.documents) & set(result.failing)), meanings[0])


def _draw_failure(run: JudgedRun, result: RowResult) -> Picture:
    judged = _find_meaning(result)
    document = next((each for each in judged.documents if each in result.failing), judged.documents[0])
    return draw_call(result.row.case.steps[result.step], run.contracts[document], judged.meaning, result.outcome)


def _make_short(run: JudgedRun, filters: Filters, rows: Sequence[RowResult], is_first: bool) -> ShortCase:
    documents, case = list_failing_documents(rows), rows[0].row.case
    call = format_step(case, case.steps[rows[0].step])
    answers = list(dict.fromkeys(format_answer(result, generic=True, with_message=False) for result in rows))
    filter_number = number_filter(filters, rows, documents)
    return ShortCase(filter_number, case, call, _count(rows), documents, _want(run, rows[0]), answers, is_first)


def _find_broken(spec: Spec, rule: Rule, blames: dict[str, Blamed], documents: Container[str]) -> BrokenRule:
    """Find the rule that the worst test breaks, or `rule` if nothing is blamed, and the words that state it."""
    if worst := find_worst(blames.values()):
        rule = spec.rules.get(worst.premise.rule, rule)
        like_it = (worst.blame, worst.premise.rule)
        documents = [name for name, each in blames.items() if (each.blame, each.premise.rule) == like_it]
    return BrokenRule(rule, tuple(_list_clauses(spec, rule, documents)))


def _list_clauses(spec: Spec, rule: Rule, documents: Container[str]) -> Iterator[ClauseWords]:
    """Yield the clauses of each document that states a rule; a document like another one has its words."""
    stating = [name for name in spec.documents if name in documents and rule.authority(name) != "our ruling"]
    for name in dict.fromkeys(map(rule.source_of, stating)):
        if words := tuple(pointer.words for pointer in rule.pointers_in(name)):
            yield ClauseWords(spec.documents[name], format_lines(rule, name), words)
