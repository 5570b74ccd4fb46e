"""The result of a run in few words: a state and counts for each document, the whole, what is not claimed or not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ..model import BLAMES, LIMITS, NOT_RUN, WAIVED, Document, Verdict
from ..model.verdicts import count_failed
from ..system.exit_codes import CONFORMS, FAILS, OVERDUE, VOIDS_CERTIFICATES
from ..system.terminal import count_noun
from ..verdict.sentences import LARGE_TENSORS, describe_blames, name_limits
from ..verdict.standing import Standing, count_tests
from .finished_run import FinishedRun
from .rows import group_pairs

State = Literal[
    "conforms", "conforms, limited", "keeps the text, differs from rulings", "breaks the text", "adapter errs",
    "incomplete", "nothing shown", "not claimed", "not run",
]  # fmt: skip


class StateEntry(NamedTuple):
    """The look and the meaning of a state."""

    mark: str
    colour: str
    """Its class in style.css."""
    legend: str


STATES: Mapping[State, StateEntry] = {
    "breaks the text": StateEntry("✗", "fail", "Some test breaks a sentence of the document, however one reads it."),
    "keeps the text, differs from rulings": StateEntry(
        "△", "warn",
        "No sentence is broken. Some test accepts what the text forbids, or differs from a ruling of the suite.",
    ),
    "adapter errs": StateEntry("▲", "error", "The adapter went wrong in some tests; nothing else failed."),
    "nothing shown": StateEntry("□", "warn", "The run shows nothing that can be relied on."),
    "incomplete": StateEntry("□", "warn", "Nothing failed, but some test was not run, or some rule has no pass."),
    "not run": StateEntry("□", "warn", "The run was not meant to test this document."),
    "conforms, limited": StateEntry(
        "✓", "pass", "Every claimed test passes. Features are not claimed, or the adapter does a part of the work."
    ),
    "conforms": StateEntry("✓", "pass", "Every test passes, and the backend claims every feature."),
    "not claimed": StateEntry("–", "open", "The backend does not claim the operation, or no element type of it."),
}  # fmt: skip
"""Each state of a document, the one that decides for several documents first."""
_FAMILIES: Mapping[str, str] = {
    "type": "element type {}",
    "shape-type": "shape of {}",
    "length": "lengths and entries of shape from {} on",
    "layout": "src laid out {}",
    "form": "graphs that are not well formed: {}",
    "declared": "declared output shapes",
    "dst-strides": "declared output strides",
    "runtime-shape": "shape that arrives with run",
    "shape-strides": "strided shape tensors",
    "chain": "chains of nodes",
    "in-place": "dst in the memory of src",
    "shared-src": "nodes that share src",
    "shared-shape": "nodes that share shape",
    "threads": "calls at the same time",
}
_WHOLE_FAMILIES: Mapping[str, str] = {"layout": "src with strides", "form": "graphs that are not well formed"}


class DocumentState(NamedTuple):
    """The state of a backend in one document, in tests."""

    document: Document
    state: State
    sentence: str
    """The verdict with all its limits, as the conclusion words it."""
    counts: Mapping[Verdict, int]
    """Its tests by verdict."""
    limits: tuple[str, ...]
    blames: str
    """How many tests break the text, answer what it forbids, or break only our rulings; empty if none fails."""

    @property
    def failed(self) -> int:
        return count_failed(self.counts)

    @property
    def tests(self) -> int:
        return sum(self.counts.values())


class Whole(NamedTuple):
    """The state of a run as a whole."""

    state: State
    words: str
    counts: Mapping[Verdict, int]
    """Its tests by verdict."""

    @property
    def failed(self) -> int:
        return count_failed(self.counts)


def describe_documents(run: FinishedRun) -> tuple[DocumentState, ...]:
    """Describe the state in each document of the specification, in its order."""
    standings = group_pairs((standing.document, standing) for standing in run.standings)
    documents = run.plan.suite.spec.documents
    return tuple(
        _describe_document(run, documents[name], sentence, standings.get(name, ()))
        for name, (_, sentence) in run.documents.items()
    )


def describe_whole(run: FinishedRun, documents: Iterable[DocumentState]) -> Whole:
    """Describe the whole run: the state that decides, in words, and its tests by verdict."""
    counts = count_tests(run.standings)
    failed = count_failed(counts)
    there = {each.state for each in documents}
    state = next(state for state in STATES if state in there and (state != "not run" or there == {"not run"}))
    code = run.conclusion.exit_code
    if code not in (CONFORMS, OVERDUE) and state.startswith("conforms"):
        state = "incomplete"
    words = state.capitalize()
    if code == OVERDUE:
        words = "A waiver is overdue"
    elif failed and state != "nothing shown":
        words = "Does not conform"
    elif code == FAILS and not failed:
        words = "Fails where nothing is claimed"
    return Whole(state, words, counts)


def _describe_document(
    run: FinishedRun, document: Document, sentence: str, standings: Sequence[Standing]
) -> DocumentState:
    counts = count_tests(standings)
    limits = tuple(_limits(run, standings))
    state = _state(run, document, standings, bool(limits))
    blames = describe_blames(standings) if count_failed(counts) else ""
    return DocumentState(document, state, sentence, counts, limits, blames)


def _state(run: FinishedRun, document: Document, standings: Sequence[Standing], limited: bool) -> State:
    words = {standing.word for standing in standings}
    blames = Counter[str]()
    for standing in standings:
        blames.update(standing.blames)
    if "nothing shown" in words:
        return "nothing shown"
    if "does not conform" in words:
        text, *others = (blames[blame] for blame in BLAMES)
        return "breaks the text" if text else "keeps the text, differs from rulings" if any(others) else "adapter errs"
    if "incomplete" in words:
        return "incomplete"
    if "conforms" in words:
        if run.conclusion.exit_code in VOIDS_CERTIFICATES:
            return "incomplete"
        return "conforms, limited" if limited else "conforms"
    return "not claimed" if words or document.operation not in run.claims.operations else "not run"


# ── what is not claimed, and what was not run ─────────────────────────────────────────────────────


def _limits(run: FinishedRun, standings: Sequence[Standing]) -> Iterable[str]:
    """Name the features that the backend does not claim in some standings, and what its adapter does for it."""
    if not standings:
        return
    yield from map(name_facet, name_limits(standings, run.claims))
    if run.claims.answers_special_zero:
        yield "special_zero (answered by the adapter)"
    if waived := count_tests(standings).get(WAIVED):
        yield f"{count_noun(waived, 'test')} that fail and are waived"


def name_facet(facet: str) -> str:
    """Name a facet in plain words; an unknown one by its own name."""
    family, _, value = LIMITS.get(facet, facet).partition(":")
    if family == "rank" and value.isdecimal():
        return f"more than {int(value) - 1} dimensions"
    if not value and family in _WHOLE_FAMILIES:
        return _WHOLE_FAMILIES[family]
    return _FAMILIES.get(family, facet).format(value.replace("-", " "))


def list_limits(run: FinishedRun) -> list[str]:
    """List in plain words the operations and features that the backend does not claim, and what its adapter does."""
    operations = run.plan.suite.spec.operations
    return [*(each for each in operations if each not in run.claims.operations), *_limits(run, run.standings)]


def list_not_run(run: FinishedRun) -> list[str]:
    """List in plain words what was not run: too large, not chosen, or lost."""
    names = [LARGE_TENSORS] * (not run.target.large)
    names += [
        f"all but {what}" for what in (run.target.filter, run.target.shard and f"part {run.target.shard}") if what
    ]
    lost = run.conclusion.counts.get(NOT_RUN, 0)
    return names + [f"{count_noun(lost, 'test')} that did not run"] * bool(lost)
