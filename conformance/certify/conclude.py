"""From rows to a sentence: who conforms to which document for which type, within which limits, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ..adapter import FAMILIES, is_own
from ..load.folders import cases_folder, digest_of, spec_folder
from ..model import Claims, Result, Rule, Suite, Verdict
from ..plan.rows import Plan, Row
from ..plan.select import nearest
from . import planted, waive
from .evidence import Evidence, Target

Word = Literal["conforms", "does not conform", "incomplete", "nothing shown", "not claimed"]


@dataclass(frozen=True)
class Standing:
    """What was shown for one document and one element type."""

    document: str
    operation: str
    type: str
    word: Word
    counts: Mapping[Verdict, int]
    """Verdicts of the required rows; all of them are in the denominator."""
    optional: Mapping[Verdict, int]
    """Verdicts of rows in facets that are left out."""
    against_document: int
    """Failures of rules that the document states."""
    against_rulings: int
    """Failures of rules that are our rulings there."""
    unshown: tuple[str, ...]
    """Rules that bind and have required rows, and no pass."""
    not_claimed: tuple[str, ...]
    """Facets left out, of those that the suite tries here."""

    @property
    def required(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class Conclusion:
    """What a whole run says."""

    standings: tuple[Standing, ...]
    sentences: tuple[str, ...]
    exit_code: int
    why: str
    """What decided the exit code."""
    counts: Mapping[Verdict, int] = field(default_factory=dict)
    """All rows × documents."""
    notes: tuple[str, ...] = ()
    """What else a reader should know, such as what is left out and works all the same."""


class Alike(NamedTuple):
    """Rows that differ in nothing that a conclusion looks at: they are of one rule, and came to the same."""

    rows: list[Row]
    verdicts: Mapping[str, Verdict]
    """In each of their documents; `not run` where nothing was told."""


def alike(rows: Iterable[Row], results: Mapping[str, Result]) -> list[Alike]:
    """Rows with their results, in the order of the first of each kind."""
    found: dict[tuple[object, ...], Alike] = {}
    for row in rows:
        result = results.get(row.id)
        told = result.verdicts if result else {}
        key = (row.operation, row.type, row.documents, row.facets, row.case.rule, *told.items())
        if key not in found:
            found[key] = Alike([], {document: told.get(document, "not run") for document in row.documents})
        found[key].rows.append(row)
    return list(found.values())


def in_target(row: Row, document: str, target: Target, claims: Claims) -> bool:
    """Whether a run that was asked for `target` has to show a row in a document."""
    return (
        row.operation in (target.operations or claims.operations)
        and document in (target.documents or (document,))
        and row.type in (target.types or (row.type,))
        and (target.large or "large" not in row.facets)
    )


def required(row: Row, claims: Claims) -> bool:
    """Whether conformity depends on a row: it is core, or all its facets are claimed."""
    return not any(claims.leaves(facet) for facet in row.facets)


def concluded(plan: Plan, evidence: Evidence) -> Conclusion:
    """What a whole results file says."""
    header, results = evidence.header, {result.row: result for result in evidence.results}
    claims = Claims.of(header["claims"])
    target = Target.of(header["target"])
    partial = bool(target.select or target.shard or target.operations or target.documents or target.types)
    overdue = waive.overdue(header, results, plan.rows, whole=not partial)
    conclusion = conclude(
        plan, results, claims, target,
        escaped=planted.escaped(evidence.footer["canaries"], header.get("isolation", "none")),
        overdue=() if partial else overdue, in_process=in_process_of_others(header),
    )  # fmt: skip
    notes = [*conclusion.notes]
    if conclusion.exit_code != 6:  # else they are the reason that is given
        notes += overdue
    if in_process_of_others(header):
        notes.append("the backend ran in the suite's own process and could write its verdict; it proves nothing")
    if resumed := sum(result.resumed for result in evidence.results):
        notes.append(f"{resumed:,} of {len(evidence.results):,} rows are from an earlier run that was interrupted")
    conclusion = replace(conclusion, notes=tuple(notes))
    if header["suite"]["digest"] == digest_of([spec_folder(), cases_folder()]):
        return conclusion
    return replace(conclusion, notes=(*conclusion.notes, _other_suite(plan.suite)))


def _other_suite(suite: Suite) -> str:
    if not suite.added and not suite.spec.added:
        return "the specification or the cases are not those that come along"
    cases = f"{len(suite.added)} cases" if len(suite.added) != 1 else "one case"
    added = [*sorted(suite.spec.added), *([cases] if suite.added else [])]
    return f"added to what comes along: {', '.join(added)}"


def conclude(
    plan: Plan, results: Mapping[str, Result], claims: Claims, target: Target,
    escaped: tuple[str, ...] = (), overdue: tuple[str, ...] = (), in_process: bool = False,
) -> Conclusion:  # fmt: skip
    """Rows come from the plan, never from the results: a row that is not there is not run.

    `escaped`: planted bad backends that were not caught. `overdue`: waivers that expired or are stale. `in_process`:
    the backend is not our own and ran in our process.
    """
    everything: Counter[Verdict] = Counter()
    groups: dict[tuple[str, str], list[Alike]] = {}
    found = alike(plan.rows, results)
    for each in found:
        row = each.rows[0]
        for document, verdict in each.verdicts.items():
            everything[verdict] += len(each.rows)
            if in_target(row, document, target, claims):
                groups.setdefault((document, row.type), []).append(each)
    listed = {d.id: plan.suite.spec.operations[d.operation].types for d in plan.suite.spec.documents.values()}
    standings = tuple(
        _standing(plan, document, type_, group, claims)
        for (document, type_), group in sorted(groups.items(), key=lambda entry: _order(plan, *entry[0]))
        if type_ in listed[document] or any(each.verdicts[document] in ("fail", "error") for each in group)
    )
    if escaped:
        who = ", ".join(escaped)
        code, why = 5, f"the harness caught itself lying: {who}, planted and bad, was not caught; no verdict holds"
        standings = tuple(replace(standing, word="nothing shown") for standing in standings)
    else:
        code, why = _exit_code(standings, groups, claims, target, overdue)
        code, why = _within_suite(plan.suite, code, why)
    within = reach(plan.suite) + (" as run in the suite's own process" if in_process else "")
    sentences = tuple(_sentences(standings, claims, target, within))
    return Conclusion(standings, sentences, code, why, everything, tuple(_works(found, claims)))


def in_process_of_others(header: Mapping[str, Any]) -> bool:
    """True if a backend that is not the suite's own ran in the suite's process, where it could change the verdict."""
    return header.get("isolation", "none") == "none" and not is_own(header["backend"]["adapter"])


def reach(suite: Suite) -> str:
    """How far a verdict goes that is not shown by the whole of the bundled suite; nothing where it is."""
    if suite.lost:
        return f" as far as {len(suite.cases)} cases go, of a suite that lacks {len(suite.lost)} of its own"
    if suite.whole:
        return ""
    cases = (
        f"{len(suite.cases)} cases of another suite go" if len(suite.cases) != 1 else "one case of another suite goes"
    )
    return f" as far as {cases}"


def lost(suite: Suite) -> str:
    """Which cases of the bundled suite are not there, and what to do."""
    number = f"{len(suite.lost)} cases are" if len(suite.lost) > 1 else "one case is"
    return f"{number} missing from the bundled suite, first {suite.lost[0]}; install the suite anew"


def _within_suite(suite: Suite, code: int, why: str) -> tuple[int, str]:
    """An exit code and its reason, which are no better than the suite that they come from."""
    if suite.lost and code in (0, 4):
        return 4, f"incomplete: {lost(suite)}"
    return code, f"{why},{reach(suite)}" if code == 0 and not suite.whole else why


def _order(plan: Plan, document: str, type_: str) -> tuple[int, str]:
    return list(plan.suite.spec.documents).index(document), type_


def _standing(plan: Plan, document: str, type_: str, group: list[Alike], claims: Claims) -> Standing:
    rules = plan.suite.spec.rules
    counts: Counter[Verdict] = Counter()
    optional: Counter[Verdict] = Counter()
    against: Counter[bool] = Counter()
    shown: dict[str, bool] = {}
    left: dict[str, None] = {}
    for each in group:
        row, verdict, number = each.rows[0], each.verdicts[document], len(each.rows)
        rule = rules[row.case.rule]
        if verdict in ("fail", "error"):
            against.update(_states(document, _blamed(failing, document, rules)) for failing in each.rows)
        if required(row, claims):
            counts[verdict] += number
            if document in rule.documents and rule.level != "silent":
                shown[rule.id] = shown.get(rule.id, False) or verdict == "pass"
        else:
            optional[verdict] += number
            left.update(dict.fromkeys(sorted(facet for facet in row.facets if claims.leaves(facet))))
    unshown = tuple(rule for rule, passed in shown.items() if not passed)
    return Standing(
        document, plan.suite.spec.documents[document].operation, type_, _word(counts, optional, unshown), dict(counts),
        dict(optional), against[True], against[False], unshown, tuple(left),
    )  # fmt: skip


def _states(document: str, blamed: Iterable[Rule]) -> bool:
    """Whether a document itself says one of some rules."""
    return any(rule.level == "must" and any(p.document == document for p in rule.stated) for rule in blamed)


def _blamed(row: Row, document: str, rules: Mapping[str, Rule]) -> list[Rule]:
    """The rules that a failing row is about in a document: the one it cites; where that binds not, those it breaks."""
    cited = rules[row.case.rule]
    if document in cited.documents:
        return [cited]
    meanings = [judged.meaning for task in row.steps for judged in task.meanings if document in judged.documents]
    return [rules[name] for meaning in meanings if meaning.kind == "illegal" for name in meaning.rules] or [cited]


def _word(counts: Mapping[Verdict, int], optional: Mapping[Verdict, int], unshown: tuple[str, ...]) -> Word:
    bad = sum(c.get(v, 0) for c in (counts, optional) for v in ("fail", "error"))
    if bad:
        return "does not conform"
    if not counts:
        return "not claimed"
    if counts.get("not run"):
        return "incomplete"
    if not counts.get("pass"):
        return "nothing shown"
    return "incomplete" if unshown or counts.get("not claimed") else "conforms"


# ── exit code ─────────────────────────────────────────────────────────────────────────────────────


def _exit_code(
    standings: tuple[Standing, ...], groups: Mapping[tuple[str, str], list[Alike]],
    claims: Claims, target: Target, overdue: tuple[str, ...],
) -> tuple[int, str]:  # fmt: skip
    verdicts: Counter[Verdict] = Counter()
    for (document, _), group in groups.items():
        for each in group:
            verdicts[each.verdicts[document]] += len(each.rows)
    if failed := verdicts["fail"] + verdicts["error"]:
        return 1, f"{failed:,} verdict{'s' if failed > 1 else ''} in the target failed or erred"
    if overdue:
        return 6, "; ".join(overdue)
    if target.shard:
        return 4, f"incomplete: shard {target.shard} of the rows; `conformance merge` puts the shards together"
    if target.select and set(verdicts) <= {"not run"}:
        near = nearest(target.select, (row for group in groups.values() for each in group for row in each.rows))
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see `conformance list cases`"
        return 4, f"incomplete: nothing ran; -k {target.select!r} is in no row of the target; {hint}"
    if target.select:
        return 4, f"incomplete: -k {target.select!r} chose some cases, and only the whole suite shows conformity"
    if unmet := list(_unmet(standings, claims, target)):
        return 4, f"incomplete: required and not shown: {', '.join(unmet)}"
    open_ = [s for s in standings if s.word not in ("conforms", "not claimed")]
    if open_:
        return 4, f"incomplete: {open_[0].document} for {open_[0].type}: {_reason(open_[0])}"
    if not any(standing.word == "conforms" for standing in standings):
        return 4, "incomplete: nothing was shown for any document and type"
    waived = verdicts["waived"]
    return 0, "the whole target conforms" + (f", with {waived:,} verdicts waived" if waived else "")


def _unmet(standings: Iterable[Standing], claims: Claims, target: Target) -> Iterable[str]:
    """What was demanded, by --require or by naming a target, and is not claimed or not shown."""
    standings = list(standings)
    for operation in target.operations:
        if operation not in claims.operations:
            yield operation
    for document in target.documents:
        if not any(s.document == document and s.word == "conforms" for s in standings):
            yield document
    for type_ in target.types:
        if not any(s.type == type_ and s.word == "conforms" for s in standings):
            yield type_
    for demand in target.require:
        about = [s for s in standings if demand in (s.document, s.type, s.operation)]
        if _is_facet(demand):
            if any(_same_facet(demand, left) for left in claims.leaves_out):
                yield demand
        elif not about or any(standing.word != "conforms" for standing in about):
            yield demand


def _is_facet(demand: str) -> bool:
    return demand.partition(":")[0] in FAMILIES


def _same_facet(demand: str, left: str) -> bool:
    """Whether leaving out the one leaves out some of the other."""
    return demand == left or left == demand.partition(":")[0] or demand == left.partition(":")[0]


def _reason(standing: Standing) -> str:
    if not_run := standing.counts.get("not run"):
        return f"{not_run} rows not run"
    if standing.word == "nothing shown":
        return "nothing passed"
    if standing.unshown:
        return f"no pass for the rule{'s' if len(standing.unshown) > 1 else ''} {', '.join(standing.unshown)}"
    return standing.word


# ── sentences ─────────────────────────────────────────────────────────────────────────────────────


def _sentences(standings: tuple[Standing, ...], claims: Claims, target: Target, within: str) -> Iterable[str]:
    """One a document: the verdict and its limits."""
    documents: dict[str, list[Standing]] = {}
    for standing in standings:
        documents.setdefault(standing.document, []).append(standing)
    for document, group in documents.items():
        yield f"{_verdict_of(document, group, target)}{within}{_limits(group, claims, target)}"


_SAID: tuple[Word, ...] = ("does not conform", "incomplete", "nothing shown", "conforms")


def _verdict_of(document: str, group: list[Standing], target: Target) -> str:
    by_word: dict[Word, list[Standing]] = {}
    for standing in group:
        by_word.setdefault(standing.word, []).append(standing)
    parts = []
    for word in _SAID:
        types = [standing.type for standing in by_word.get(word, [])]
        if not types:
            continue
        whole = word == "conforms" and len(types) == len(group) and not target.types
        about = "" if whole else f" for {_list(types)}"
        detail = ""
        if word == "does not conform":
            fails = sum(s.against_document for s in group)
            rulings = sum(s.against_rulings for s in group)
            detail = f" ({fails} against the document, {rulings} against our rulings)"
        elif word == "incomplete":
            detail = f" ({_reason(by_word[word][0])})"
        if waived := sum(s.counts.get("waived", 0) for s in by_word.get(word, [])):
            detail += f" with {waived} waived"
        preposition = {"conforms": f"conforms to {document}", "does not conform": f"does not conform to {document}"}
        parts.append(f"{preposition.get(word, f'{document}: {word}')}{about}{detail}")
    return ", ".join(parts) or f"{document}: not claimed"


def _limits(group: list[Standing], claims: Claims, target: Target) -> str:
    families = {left for left in claims.leaves_out if ":" not in left}
    left = dict.fromkeys(
        family if (family := facet.partition(":")[0]) in families else facet
        for standing in group
        for facet in standing.not_claimed
    )
    types = [standing.type for standing in group if standing.word == "not claimed"]
    limits = [f"type:{type_}" for type_ in types] + [facet for facet in left if not facet.startswith("type:")]
    parts = []
    if limits:
        parts.append(f"not claimed: {', '.join(limits)}")
    if target.types:
        parts.append(f"no more than {_list(list(target.types))} was asked for")
    if target.shard:
        parts.append(f"only shard {target.shard}")
    if target.select:
        parts.append(f"only the cases of -k {target.select!r}")
    if not target.large:
        parts.append("not run: tensors of more than 2^31 elements")
    parts += ["special_zero answered by the adapter"] * claims.answers_special_zero
    return "".join(f"; {part}" for part in parts)


def _works(found: Iterable[Alike], claims: Claims) -> Iterable[str]:
    """The facets left out of which every row that lacks nothing else was answered rightly."""
    right: dict[str, bool] = {}
    for each in found:
        row, verdicts = each.rows[0], {*each.verdicts.values()} - {"not run"}
        left = [facet for facet in row.facets if claims.leaves(facet)]
        if len(left) == 1 and row.operation in claims.operations and verdicts:
            right[left[0]] = right.get(left[0], True) and verdicts <= {"pass", "observed"}
    if works := sorted(facet for facet, well in right.items() if well):
        yield f"left out of the claims, and every row of it is right: {', '.join(works)}"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
