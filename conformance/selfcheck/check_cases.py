"""Check the cases: they expect what the contracts give, and every rule has a witness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..load.folders import digest_of_folders, find_cases_folder, find_folders, find_spec_folder, layers
from ..load.locks import LOCK, SUITES_LOCK, find_earlier_suites, read_lock
from ..meaning.contract import Contract, contracts
from ..model import (
    INTEGERS,
    RIGHT,
    Adapter,
    Case,
    ExpectedResult,
    Meaning,
    Outcome,
    Place,
    Problem,
    Rule,
    Spec,
    Step,
    Suite,
)
from ..plan.lower import find_own_node, find_strides_of_dst
from ..plan.memory import volume_of
from ..plan.rows import Plan, Row, plan_of, rows_of
from ..plan.steps import RowStep
from ..run.row import Part, call_parts, judge_row
from ..system.files import leaves_its_folder, replace_text
from ..system.groups import group_pairs
from ..system.progress import track
from ..system.text import format_call, format_dims, quote

_RESPONSE = "reject-illegal-calls"
"""The rule about what follows an illegal call. It decides nothing about which calls are illegal."""
TO_LOCK = "add --lock to lock it"
"""How the problem of a new id or suite ends."""


def find_problems(suite: Suite, cases_path: Path, plan: Plan | None = None) -> Iterator[Problem]:
    """Find every problem with the cases of a suite; of one that only adds cases, with those."""
    plan = plan or plan_of(suite)
    own = choose_part_to_check(plan)
    yield from check_expectations(own)
    yield from _find_forbidding_nothing(own)
    yield from _find_problems_of_rows(plan)
    yield from _find_repeated_calls(plan)
    yield from find_mistakes(suite.cases.values())
    for case in suite.cases.values():
        mistakes = (what for step in case.steps for what in _find_mistakes_of_bits(step))
        yield from (Problem(case.place, f"{case.id}: {what}") for what in mistakes)
    if own is plan:
        gaps = [*_find_rules_without_witness(suite), *_find_problems_of_findings(suite)]
        own_spec = find_folders(suite.folder).spec
        extends_spec = layers(own_spec, find_spec_folder())[0] == find_spec_folder()
        if gaps and extends_spec and not suite.added and cases_path != find_cases_folder():
            what = f"these cases replace the bundled ones, and lack one for {len(gaps)} rules and findings"
            hint = "to add to the bundled, write `extends: bundled` in each file"
            gaps = [Problem(Place(cases_path.name), f"{what}; {hint}")]
        yield from gaps
    yield from lock_problems(suite, cases_path)


def choose_part_to_check(plan: Plan) -> Plan:
    """Return the rows of the added cases if all the rest is bundled, otherwise the whole plan.

    The bundled cases are checked before a release, and cases beside them change nothing in them.
    """
    suite = plan.suite
    if not suite.added or not suite.whole or suite.spec.digest != digest_of_folders([find_spec_folder()]):
        return plan
    return replace(plan, rows=tuple(row for row in plan.rows if row.case.id in suite.added))


# ── expectations ──────────────────────────────────────────────────────────────────────────────────


def check_expectations(plan: Plan) -> Iterator[Problem]:
    """Compare each expectation with each document; one problem for each case and document."""
    reported = set()
    for row in track("comparing what is expected", plan.rows, len(plan.rows)):
        rule = plan.suite.spec.rules[row.case.rule]
        for number, (step, row_step) in enumerate(zip(row.case.steps, row.steps, strict=True), 1):
            for judged in row_step.meanings:
                for document in judged.documents:
                    if document in plan.suite.spec.added and row.case.id not in plan.suite.added:
                        continue  # the author of the case did not know that document
                    expected = step.expect.get(document) or step.expect.get("*")
                    what = _find_disagreement(rule, document, expected, judged.meaning, step)
                    if what and (row.case.id, number, document) not in reported:
                        reported.add((row.case.id, number, document))
                        at = f"step {number}: " if len(row.steps) > 1 else ""
                        yield Problem(row.case.place, f"{row.case.id}: {at}{what}")


def _find_disagreement(
    rule: Rule, document: str, expected: ExpectedResult | None, meaning: Meaning, step: Step
) -> str | None:
    if expected is None:
        return f"nothing is expected in {document}; add it, or `*` for all others"
    if expected.kind == meaning.kind:
        if expected.kind == "legal" and expected.dims != meaning.dst:
            answer = f"in {document} the answer is {_write_dims(meaning.dst)}"
            return f"expects {_write_dims(expected.dims)}, but {answer}; correct the case, or the rule"
        cites_another = rule.has_contract and rule.id not in meaning.rules and len(step.shapes) == 1
        if document in rule.documents and expected.kind != "legal" and cites_another:
            return f"cites {rule.id}, but in {document} {describe_meaning(meaning)}; cite what the call is about"
        return None
    wanted = {"illegal": "reject", "unspecified": "unspecified"}.get(expected.kind) or _write_dims(expected.dims)
    return f"expects {wanted}, but in {document} {describe_meaning(meaning)}; correct the case, or the rule"


def _write_dims(dims: tuple[int | None, ...] | None) -> str:
    return "a dst not known" if dims is None else format_dims(dims)


def describe_meaning(meaning: Meaning) -> str:
    if meaning.kind == "legal":
        return f"the call is legal and the answer is {_write_dims(meaning.dst)}"
    if meaning.kind == "illegal":
        return f"the call is illegal by {', '.join(meaning.rules)}"
    return f"the call is unspecified ({', '.join(meaning.rules) or 'more than one dst would do'})"


# ── the second opinion ──


def check_reference(plan: Plan, reference: Adapter) -> Iterator[Problem]:
    """Find rows on which the reference differs from the contracts, or rejects a call for another reason.

    Documents that are added to the bundled ones change nothing there.
    """
    added = plan.suite.spec.added
    for row in track("calling the reference", plan.rows, len(plan.rows)):
        if "large" in row.facets or not reference.claims.has_operation(row.operation):
            continue  # the reference knows the bundled operations only
        if added and plan.suite.whole and row.case.id not in plan.suite.added:
            continue
        wrong_reasons: list[str] = []
        result = judge_row(row, reference, _note_wrong_reasons(row, reference, added, wrong_reasons), frozenset())
        verdicts = {verdict for name, verdict in result.verdicts.items() if name not in added}
        wrong = [f"{verdict} on the reference: {result.detail}" for verdict in sorted(verdicts - RIGHT)[:1]]
        for what in wrong + wrong_reasons:
            yield Problem(row.case.place, f"{row.id}: {what}; one of them is wrong")


def _note_wrong_reasons(
    row: Row, reference: Adapter, added: frozenset[str], wrong_reasons: list[str]
) -> Iterator[Part]:
    """Call a row, and note each rejection with a reason that the contracts do not give."""
    for first, outcomes in call_parts(row, reference):
        for step, outcome in zip(row.steps[first:], outcomes, strict=False):
            if not reason_holds(step, outcome, added):
                rules = ", ".join(sorted(reasons(step, added))) or "none"
                wrong_reasons.append(f"the reference rejects by {outcome.message}, the contracts by {rules}")
        yield first, outcomes


def reason_holds(step: RowStep, outcome: Outcome, unknown: frozenset[str] = frozenset()) -> bool:
    """Ask whether a rejection, if this is one, names a rule that speaks against the call."""
    return outcome.kind != "rejected" or outcome.message in reasons(step, unknown)


def reasons(step: RowStep, unknown: frozenset[str]) -> set[str]:
    """Return the rules that a call breaks, or else those that leave it unspecified, or else those of capacity.

    Unknown documents do not count.
    """
    by_kind: dict[str, set[str]] = {"illegal": set(), "unspecified": set(), "legal": set()}
    for judged in step.meanings:
        if unknown.issuperset(judged.documents):
            continue
        by_kind[judged.meaning.kind].update(judged.meaning.rules)
    return by_kind["illegal"] or by_kind["unspecified"] or by_kind["legal"]


# ── whole cases ───────────────────────────────────────────────────────────────────────────────────


def _find_problems_of_rows(plan: Plan) -> Iterator[Problem]:
    """Find cases that no operation can express, and cited rules that bind in no document of the case."""
    yield from find_cases_without_rows(plan, plan.suite.cases)
    rows = group_pairs((row.case.id, row) for row in plan.rows)
    for case in map(plan.suite.cases.__getitem__, rows):
        rule = plan.suite.spec.rules[case.rule]
        if rule.level == "may":
            yield Problem(case.place, f"{case.id}: cites {rule.id}, a freedom; no case may test against it")
        elif not any(rule.documents & set(row.documents) for row in rows[case.id]):
            yield Problem(case.place, f"{case.id}: cites {rule.id}, which binds in none of the documents it runs for")
    ids: dict[str, Row] = {}
    for row in plan.rows:
        if row.id in ids:
            yield Problem(row.case.place, f"{row.id}: two rows have this id")
        ids[row.id] = row


def find_cases_without_rows(plan: Plan, names: Iterable[str]) -> Iterator[Problem]:
    there = {row.case.id for row in plan.rows}
    for case in (plan.suite.cases[name] for name in names if name not in there):
        yield Problem(case.place, f"{case.id}: no operation can express the call; check types and form")


def _find_forbidding_nothing(plan: Plan) -> Iterator[Problem]:
    """Find cases that cite a rule which only forbids calls, and make none that a document forbids.

    A legal call may show how far a rule of an added document reaches.
    """
    rules, added = plan.suite.spec.rules, plan.suite.spec.added
    kinds: dict[str, set[str]] = {}
    for row in plan.rows:
        rule = rules[row.case.rule]
        if rule.requires and not rule.diagnoses and not rule.documents <= added:  # an answer shows nothing about it
            meanings = (judged for step in row.steps for judged in step.meanings)
            bound = {each.meaning.kind for each in meanings if rule.documents.intersection(each.documents)}
            kinds.setdefault(row.case.id, set()).update(bound)
    for name in (name for name, seen in kinds.items() if seen == {"legal"}):
        case = plan.suite.cases[name]
        what = f"cites {case.rule}, which only forbids, and the call is legal; cite the rule that gives the answer"
        yield Problem(case.place, f"{name}: {what}")


def _find_repeated_calls(plan: Plan) -> Iterator[Problem]:
    """Find cases that make a call of another case, once for each pair; only those of the part that is checked.

    A case of a rule that only added documents have may make the call of a bundled one, which cannot cite that rule.
    Two calls are equal only if their tensors have equal dims, so that most rows need not be lowered.
    """
    seen: dict[object, Case] = {}
    told: set[tuple[str, str]] = set()
    spec = plan.suite.spec
    dims = {_list_dims_of_sources(row) for row in choose_part_to_check(plan).rows}
    for row in plan.rows:
        if _list_dims_of_sources(row) not in dims:
            continue
        case = row.case
        way = case.times, case.concurrent, case.one_program, case.pause_ms
        key = (row.operation, row.shape_type, row.shape_passed_as, way, tuple(map(_call, row.steps)))
        first = seen.setdefault(key, case)
        if first is case or (case.id, first.id) in told:
            continue
        told.add((case.id, first.id))
        own = [each.id for each in (case, first) if each.id in plan.suite.added]
        if plan.suite.whole and spec.added and not own:
            continue  # bundled cases, which are the same call only for an added operation of other types
        if len(own) == 1 and spec.rules[plan.suite.cases[own[0]].rule].documents <= spec.added:
            continue
        drop = f"drop {own[0]}, which is yours" if len(own) == 1 else "keep one"
        yield Problem(case.place, f"{case.id}: the same call as {first.id} ({first.place}); {drop}")


def _list_dims_of_sources(row: Row) -> tuple[tuple[int, ...], ...]:
    return tuple([step.src for step in row.case.steps])


def _call(step: RowStep) -> object:
    return (
        step.graph, step.src_spec._replace(start=0), step.shapes, step.shape_step, step.shape_offset,
        step.one_shape_memory, step.may_overwrite, step.new_program,
    )  # fmt: skip


def find_mistakes(cases: Iterable[Case]) -> Iterator[Problem]:
    """Find cases with a key that does not get what it needs, so that their calls are not those that it speaks of."""
    for case in cases:
        yield from (Problem(case.place, f"{case.id}: {what}") for what in _find_mistakes(case))


def _find_mistakes(case: Case) -> Iterator[str]:
    """Say what a key of a case needs and does not get: lengths, steps, nodes, or another key."""
    if case.dst_strides is not None and find_strides_of_dst(case) is None:
        yield f"dst_strides {case.dst_strides!r} needs `declared` with as many lengths, and no null"
    if len(case.steps) < case.concurrent:
        yield f"`concurrent: {case.concurrent}` needs as many `steps`; there is {len(case.steps)}"
    if case.one_shape_memory and case.concurrent > 1:
        yield "`one_shape_memory: true` needs steps one after another; leave out `concurrent`"
    if case.one_program and case.concurrent == 1:
        yield "`one_program: true` needs `concurrent`"
    if case.in_node != "last" and len(case.steps[0].shapes) == 1:
        yield f"`in_node: {case.in_node}` needs a `chain`"
    if case.shape_column and case.shape_rank < 2:
        yield "`shape_column: true` needs `shape_rank: 2` or more"
    if case.shape_step == 0 and any(len({*shape}) > 1 for step in case.steps for shape in step.shapes):
        yield "`shape_step: 0` puts all entries of shape into one place; write equal entries"
    flag = case.attributes.get("special_zero")
    for step in case.steps:
        own = step.special_zero[find_own_node(case, step)]
        if flag and flag.type in ("bool", *INTEGERS) and flag.values and bool(flag.values[0]) != own:
            yield f"special_zero is {str(own).lower()}, and its attribute {flag.values[0]}; write the same value"
        yield from _find_mistakes_of_nodes(case, step)


def _find_mistakes_of_nodes(case: Case, step: Step) -> Iterator[str]:
    if (step.shared_src or step.shared_shape) and len(step.shapes) == 1:
        yield "one node shares nothing; write a `chain`"
    elif step.shares_nothing:
        yield "`shared_shape: true` needs equal shapes in two nodes that follow each other"
    keys = ["constant_nodes"] * (step.constant_nodes != "none") + ["mixed_shape_types"] * case.mixed_shape_types
    for key in keys:
        if step.shared_shape or len(step.shapes) == 1:
            yield f"`{key}` needs a `chain`, and another shape tensor in each node"
        if case.rows == "one-per-type":
            yield f"with `{key}` some types would have no row; leave out `rows: one-per-type`"
    if len(keys) == 2:
        yield "`constant_nodes` already gives shapes of two types; leave out `mixed_shape_types`"


def _find_mistakes_of_bits(step: Step) -> Iterator[str]:
    """Say if there are not as many bit patterns as elements. A drawn case may have fewer, which are then repeated."""
    if step.bits in (None, "edges"):
        return
    volume = volume_of(step.src)
    if step.bits == "all":
        if volume != 1 << 16:
            yield "`bits: all` wants 65536 elements of a 16-bit type"
    elif len(step.bits.split()) != volume:
        yield f"{len(step.bits.split())} bit patterns for {volume} elements"


# ── the suite ─────────────────────────────────────────────────────────────────────────────────────


def _find_rules_without_witness(suite: Suite) -> Iterator[Problem]:
    whole = contracts(suite.spec)
    for rule in suite.spec.rules.values():
        if rule.has_contract and not rule.implied and not any(witnesses(rule, suite, whole)):
            what = "has no witness: no case that cites it means something else without it; write one that does"
            yield Problem(rule.place, f"rule {rule.id!r} {what}")


def witnesses(rule: Rule, suite: Suite, whole: Mapping[str, Contract]) -> Iterator[Row]:
    """Yield the rows of cases that cite a rule, if a call of theirs means something else without it."""
    lacking = contracts(suite.spec, without=rule.id)
    citing = [case for case in suite.cases.values() if case.rule == rule.id]
    both = zip(rows_of(citing, suite.spec, whole), rows_of(citing, suite.spec, lacking), strict=True)
    return (row for row, without in both if _means_something_else(row, without, rule))


def _means_something_else(row: Row, without: Row, rule: Rule) -> bool:
    """Ask whether a call of a row means something else without a rule, in a document that the rule binds."""
    for step, other in zip(row.steps, without.steps, strict=True):
        before = {document: meaning for meaning, documents in step.meanings for document in documents}
        after = {document: meaning for meaning, documents in other.meanings for document in documents}
        for document in rule.documents & before.keys():
            if _demands_of(before[document]) != _demands_of(after[document]):
                return True
    return False


def _demands_of(meaning: Meaning) -> tuple[object, ...]:
    """Return what a backend has to do: the kind, the answer, and whether it may reject a legal call."""
    return meaning.kind, meaning.dst, meaning.kind == "legal" and bool(meaning.rules)


def _find_problems_of_findings(suite: Suite) -> Iterator[Problem]:
    calls = {
        (step.src, step.shapes[0], step.special_zero[0])
        for case in suite.cases.values()
        for step in case.steps
        if len(step.shapes) == 1
    }
    yield from _find_problems_of_readings(suite.spec)
    for finding in suite.spec.findings.values():
        if finding.example and finding.example not in calls:
            call = format_call(*finding.example)
            yield Problem(finding.place, f"finding {finding.id!r}: no case makes its call, {call}; add one")


def _find_problems_of_readings(spec: Spec) -> Iterator[Problem]:
    """Find findings that choose between readings without a rule, and readings that their finding does not name."""
    for finding in spec.findings.values():
        documents = {pointer.document for pointer in finding.at}
        rules = [spec.rules[name] for name in finding.rules if name != _RESPONSE or len(finding.rules) == 1]
        weak = any(rule.authority(document) != "stated" for rule in rules for document in documents & rule.documents)
        if finding.weight == "changes a verdict" and not weak:
            what = "changes a verdict, and all its rules are stated there; write `as_read` in one of them"
            yield Problem(finding.place, f"finding {finding.id!r}: {what}")
        ruling = finding.ruling or ""
        if finding.weight == "changes a verdict" and not ("because" in ruling or ruling.startswith("Unspecified")):
            what = "fails backends that follow another reading, and its ruling does not say why; add `because`"
            yield Problem(finding.place, f"finding {finding.id!r}: {what}")
    for rule in spec.rules.values():
        for document, name in rule.as_read.items():
            if rule.id not in spec.findings[name].rules:
                what = f"is read by {name!r} in {document}, and the finding does not name the rule; add it there"
                yield Problem(rule.place, f"rule {rule.id!r} {what}")


def lock_problems(suite: Suite, cases_path: Path) -> Iterator[Problem]:
    """Find locked ids that are gone, and new ids that are not locked."""
    name, known = f"{cases_path.name}/{LOCK}", read_lock(cases_path)
    if leaves_its_folder(cases_path / LOCK) and not set(known) <= (suite.added or suite.cases.keys()):
        what = "is a symbolic link to another folder, and not a list of cases that are there; its content is not shown"
        yield Problem(Place(name), what)
        return
    for line, case in enumerate(known, 1):
        if case not in (suite.added or suite.cases):
            what = f"the case {quote(case)} is gone; ids are never removed, renamed or used again"
            yield Problem(Place(name, line), what)
    for case in (suite.added or suite.cases.keys()) - set(known):
        yield Problem(suite.cases[case].place, f"{case}: the id is not in {name}; {TO_LOCK}")
    if suite.folder is None and suite.digest not in find_earlier_suites(cases_path, suite.digest):
        what = f"lacks this suite, {suite.digest[:12]}, so that evidence of earlier ones is not judged; {TO_LOCK}"
        yield Problem(Place(f"{cases_path.name}/{SUITES_LOCK}"), what)


def lock(suite: Suite, cases_path: Path) -> int:
    """Add the new ids to the lock file and return their number."""
    known = read_lock(cases_path)
    new = [case for case in suite.added or suite.cases if case not in known]
    replace_text(cases_path / LOCK, "".join(f"{case}\n" for case in (*known, *sorted(new))))
    return len(new)
