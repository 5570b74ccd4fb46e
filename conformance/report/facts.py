"""What the reports share: the plan's rows with what is known of each, and calls, wants and answers in words."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from ..certify.conclude import Conclusion, Standing, in_target, reach
from ..certify.evidence import IDLE, Evidence, Refused, Target, folder_words
from ..model import VERDICTS, Case, Claims, Meaning, Operand, Result, Rule, Step, Verdict
from ..plan.rows import Plan, Row
from ..run.judge import WORST
from ..system.terminal import printable

MARKS: Mapping[str, str] = {
    "pass": "✓", "fail": "✗", "observed": "◆", "not claimed": "○", "error": "▲", "waived": "◐", "not run": "□",
    "conforms": "✓", "does not conform": "✗", "incomplete": "□", "nothing shown": "□",
}  # fmt: skip
"""A shape for each verdict and each word about a document, so that no reader depends on colour."""
BAD = frozenset(("fail", "error"))
CAUGHT_LYING = 5
"""The exit code where a planted bad backend was not caught, so that no verdict holds."""
SKIPPED = frozenset(("not run", "not claimed", "waived"))
TOO_LARGE = "more than 2^31 elements: add --large"
LOST = "the results hold no such row: run again"
MOST_KINDS = 60
STANDING_ORDER = ("does not conform", "incomplete", "nothing shown", "conforms", "not claimed")


class Shown(NamedTuple):
    """A row of the plan with what the evidence holds of it; `not run` where it holds nothing."""

    row: Row
    verdicts: Mapping[str, Verdict]
    worst: Verdict
    outcome: Mapping[str, Any]
    diagnosis: str | None
    detail: str | None

    @property
    def failing(self) -> tuple[str, ...]:
        """The documents in which the row fails or errs."""
        return tuple(document for document, verdict in self.verdicts.items() if verdict in BAD)

    @property
    def step(self) -> int:
        """The index of the step that decided."""
        step = self.outcome.get("step", 1)
        return step - 1 if isinstance(step, int) and 0 < step <= len(self.row.steps) else 0


Wants = tuple[tuple[str, tuple[str, ...]], ...]


class Kind(NamedTuple):
    """Rows of one operation and type that came to the same in each document."""

    shown: Shown
    """The first of them."""
    number: int


def kinds_of(rows: Iterable[Shown]) -> tuple[Kind, ...]:
    """The kinds of some rows of one rule, in the order of the first of each."""
    found = grouped(((s.row.operation, s.row.type, "large" in s.row.facets, *s.verdicts.items()), s) for s in rows)
    return tuple(Kind(same[0], len(same)) for same in found.values())


class Share(NamedTuple):
    """The worst verdict among some rows, and how many have it."""

    word: Verdict
    number: int
    total: int
    aside: int
    """Rows that are not in the target and were not run; they are not in the total."""


@dataclass(frozen=True)
class Facts:
    """A plan, what was found, and what it amounts to."""

    plan: Plan
    evidence: Evidence
    conclusion: Conclusion

    @cached_property
    def rows(self) -> tuple[Shown, ...]:
        """Every row of the plan, in its order."""
        found = {result.row: result for result in self.evidence.results}
        known: Known = {}
        return tuple(_shown(row, found.get(row.id), known) for row in self.plan.rows)

    @cached_property
    def foreign(self) -> tuple[str, ...]:
        """Rows of the evidence that the plan does not have; they count for nothing."""
        known = {row.id for row in self.plan.rows}
        return tuple(result.row for result in self.evidence.results if result.row not in known)

    @cached_property
    def cases(self) -> Mapping[str, tuple[Shown, ...]]:
        """The rows of each case."""
        return grouped((shown.row.case.id, shown) for shown in self.rows)

    @cached_property
    def rules(self) -> Mapping[str, tuple[Shown, ...]]:
        """The rows of each rule of the specification, in its order; none where no case cites it."""
        found = grouped((shown.row.case.rule, shown) for shown in self.rows)
        return {rule: found.get(rule, ()) for rule in self.plan.suite.spec.rules}

    @cached_property
    def kinds(self) -> Mapping[str, tuple[Kind, ...]]:
        """The kinds of rows of each rule."""
        return {rule: kinds_of(rows) for rule, rows in self.rules.items()}

    @cached_property
    def failures(self) -> Mapping[str, Mapping[str, tuple[Shown, ...]]]:
        """What failed or erred: diagnosis → case → rows; the commonest diagnosis first."""
        bad = grouped((shown.diagnosis or "no diagnosis", shown) for shown in self.rows if shown.worst in BAD)
        order = sorted(bad, key=lambda name: (-len(bad[name]), name))
        if len(order) > MOST_KINDS:  # our own words for what is wrong are few; a page must not burst over others
            rest = f"{len(order) - MOST_KINDS} more kinds"
            bad[rest] = tuple(shown for name in order[MOST_KINDS:] for shown in bad[name])
            order = [*order[:MOST_KINDS], rest]
        return {name: grouped((shown.row.case.id, shown) for shown in bad[name]) for name in order}

    @cached_property
    def facets(self) -> dict[tuple[tuple[str, ...], ...], int]:
        """What the lines of the page are of, numbered in the order in which they are written."""
        return {}

    @cached_property
    def claims(self) -> Claims:
        """What the backend claimed before the first row."""
        claims = self.evidence.header["claims"]
        return Claims(*(tuple(claims.get(field, ())) for field in Claims._fields))

    @cached_property
    def target(self) -> Target:
        """What the run was asked to look at."""
        return Target.of(self.evidence.header["target"])

    @cached_property
    def waivers(self) -> tuple[tuple[Mapping[str, Any], tuple[Shown, ...]], ...]:
        """Each waiver of the run with the rows that it waives."""
        if not self.evidence.header.get("waivers"):
            return ()
        used = grouped((shown.outcome.get("waiver"), shown) for shown in self.rows)
        return tuple((waiver, used.get(waiver["number"], ())) for waiver in self.evidence.header.get("waivers", ()))

    @property
    def backend(self) -> str:
        """The name that starts the backend."""
        return str(self.evidence.header["backend"]["adapter"])

    @property
    def name(self) -> str:
        """The backend and its version."""
        backend = self.evidence.header["backend"]
        return f"{backend['name']} {backend['version']}".strip()

    @property
    def reach(self) -> str:
        """How far verdicts go that the whole bundled suite does not show, after a blank; nothing where it does."""
        return reach(self.plan.suite)

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """The conclusion's standings; nothing is shown where the harness caught itself lying."""
        if self.conclusion.exit_code != CAUGHT_LYING:
            return self.conclusion.standings
        return tuple(replace(standing, word="nothing shown") for standing in self.conclusion.standings)

    @cached_property
    def documents(self) -> Mapping[str, tuple[str, str]]:
        """Each document → the word for it, and its sentence."""
        groups = grouped((standing.document, standing.word) for standing in self.standings)
        told: dict[str, tuple[str, str]] = {}
        for (document, words), sentence in zip(groups.items(), self.conclusion.sentences, strict=True):
            told[document] = (min(words, key=STANDING_ORDER.index), sentence)
        if self.conclusion.exit_code == CAUGHT_LYING:
            told = {name: (word, f"not to be relied on: {sentence}") for name, (word, sentence) in told.items()}
        for document in self.plan.suite.spec.documents:
            told.setdefault(document, ("not claimed", f"{document}: nothing of it was in the target of this run"))
        return {document: told[document] for document in self.plan.suite.spec.documents}

    def share(self, rows: Iterable[Shown], documents: Sequence[str] = ()) -> Share:
        """The worst verdict of rows; those that were not run and are in no target are counted apart."""
        return self.share_of(kinds_of(rows), documents)

    def share_of(self, kinds: Iterable[Kind], documents: Sequence[str] = ()) -> Share:
        """The same of rows by their kinds."""
        inside: Counter[Verdict] = Counter()
        aside = 0
        for shown, number in kinds:
            verdict = worst([shown.verdicts[document] for document in documents]) if documents else shown.worst
            if verdict == "not run" and not self._asked(shown.row, documents or shown.row.documents):
                aside += number
            else:
                inside[verdict] += number
        word = worst(inside)
        return Share(word, inside[word], inside.total(), aside)

    def _asked(self, row: Row, documents: Iterable[str]) -> bool:
        key = (row.operation, row.type, "large" in row.facets, tuple(documents))
        found = self._memory.get(key)
        if found is None:
            found = any(in_target(row, document, self.target, self.claims) for document in key[3])
            self._memory[key] = found
        return found

    @cached_property
    def _memory(self) -> dict[tuple[str, str, bool, tuple[str, ...]], bool]:
        return {}

    @cached_property
    def told(self) -> tuple[Shown, ...]:
        """The rows that reports tell one by one: all but those that the run was not to make."""
        left = {shown.row.id for rows in self.left.values() for shown in rows}
        return tuple(shown for shown in self.rows if shown.row.id not in left)

    @cached_property
    def left(self) -> Mapping[str, tuple[Shown, ...]]:
        """Rows that were left out by the run’s own choice, by what it was; reports give their number."""
        chosen = self.target.select or self.target.shard
        told = (LOST,) if chosen else (LOST, TOO_LARGE)
        return {why: rows for why, rows in self.not_run.items() if why not in told}

    @cached_property
    def not_run(self) -> Mapping[str, tuple[Shown, ...]]:
        """Rows that were not run, by why."""
        return grouped((self.why_not_run(shown), shown) for shown in self.rows if shown.worst == "not run")

    def commands(self, row: Row) -> tuple[str, str]:
        """What repeats a row, ready to be pasted."""
        rest = ["-k", row.id, *(["--large"] if "large" in row.facets else [])]
        header = self.evidence.header
        return (
            shlex.join(["conformance", "run", self.backend, *folder_words(header), *rest]),
            shlex.join(["pytest", "--adapter", self.backend, *folder_words(header, "--conformance-"), *rest]),
        )

    def want(self, row: Row, step: int) -> Wants:
        """What is due of a row at a step, in words, with the documents that say so."""
        key = (row.case.id, row.operation, step)
        found = self._wants.get(key)
        if found is None:
            found = tuple((text, tuple(documents)) for text, documents in wants([row], step).items())
            self._wants[key] = found
        return found

    @cached_property
    def _wants(self) -> dict[tuple[str, str, int], Wants]:
        return {}

    def why_not_run(self, shown: Shown) -> str:
        """What kept a row from being run."""
        row = shown.row
        if "large" in row.facets and not self.target.large:
            return TOO_LARGE
        if not self._asked(row, row.documents):
            return "outside the target of this run"
        if self.target.select:
            return f"not chosen by -k {self.target.select!r}"
        if self.target.shard:
            return f"not in the part {self.target.shard} of the suite"
        return LOST


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, tuple[Any, ...]]:
    """Values by key, both in the order in which they come."""
    found: dict[Any, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


Known = dict[tuple[Any, ...], tuple[Mapping[str, Verdict], Verdict]]


def _shown(row: Row, result: Result | None, known: Known) -> Shown:
    """A row with its result; what verdicts amount to is worked out once for all rows that share what was read."""
    if result is None:
        return Shown(row, dict.fromkeys(row.documents, "not run"), "not run", IDLE, None, None)
    key = (row.documents, id(result.verdicts))
    if key not in known:
        verdicts: dict[str, Verdict] = {
            document: result.verdicts.get(document, "not run") for document in row.documents
        }
        for document, verdict in verdicts.items():
            if verdict not in VERDICTS:
                raise Refused(
                    f"the row {row.id} has the verdict {verdict!r} for {document}; verdicts are {', '.join(VERDICTS)}"
                )
        known[key] = verdicts, worst(verdicts.values())
    return Shown(row, *known[key], result.outcome, result.diagnosis, result.detail)


_PLACE: Mapping[Verdict, int] = {verdict: place for place, verdict in enumerate(WORST)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides; `not run` where there is none."""
    return min(verdicts, key=_PLACE.__getitem__, default="not run")


def counts_of(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """How often each verdict occurs, those that do, in the order of the vocabulary."""
    found = Counter(verdicts)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def sum_of(counts: Mapping[Verdict, int]) -> str:
    """`409 pass + 2 observed + 1 fail`."""
    return " + ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts.get(verdict)) or "0"


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def visible(text: object) -> str:
    """One line of text in which every character that acts instead of showing is written out."""
    line = str(text)
    return line if line.isprintable() else printable(line)


def cut(text: str, most: int) -> str:
    """The beginning of a long text, and how long it is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def tensor(type_: object, dims: Sequence[object]) -> str:
    """`f32[2, 3]`."""
    return f"{type_}{lengths(dims)}"


def lengths(dims: Iterable[object]) -> str:
    """`[2, ?, 3]`; what is not known is a question mark."""
    return f"[{', '.join('?' if each is None else str(each) for each in dims)}]"


def call_of(case: Case, step: Step) -> str:
    """One call as a person writes it; T stands for each type in turn."""
    links = zip(step.shapes, step.special_zero, strict=True)
    shapes = ", then ".join(f"shape {lengths(shape)}, special_zero {str(zero).lower()}" for shape, zero in links)
    return ", ".join([f"src {tensor(step.src_type, step.src)}", shapes, *_step_extras(step), *_form_extras(case)])


def _step_extras(step: Step) -> Iterable[str]:
    if step.layout != "dense":
        yield f"src laid out {step.layout}"
    if step.in_place:
        yield "dst may overwrite src"
    if step.bits:
        yield f"bits {cut(step.bits, 60)}"


def _form_extras(case: Case) -> Iterable[str]:
    if case.declared is not None:
        yield f"dst declared {'without a rank' if case.declared == 'unknown' else lengths(case.declared)}"
    if case.dst_type:
        yield f"dst declared as {case.dst_type}"
    if case.shape_type:
        yield f"shape of {case.shape_type}"
    if case.shape_rank != 1:
        yield f"shape of rank {case.shape_rank}"
    for name, operand in case.attributes.items():
        yield f"{name} {_operand(operand)}"
    for what, named in (("input", case.inputs), ("output", case.outputs)):
        for name, number in named.items():
            yield f"{number} extra {what}{'s' if number > 1 else ''}" if name == "extra" else f"{number or 'no'} {name}"


def _operand(operand: Operand | None) -> str:
    if operand is None:
        return "missing"
    return f"written as {operand.type} {lengths(operand.values or ())}"


def want_of(meaning: Meaning, type_: str) -> str:
    """What is due in words."""
    if meaning.kind == "legal":
        return tensor(type_, meaning.dst or ())
    if meaning.kind == "illegal":
        return f"a refusal: breaks {', '.join(meaning.rules)}"
    known = f", but {tensor(type_, meaning.dst)}" if meaning.dst else ""
    return f"left open by {', '.join(meaning.rules)}{known}"


def wants(rows: Iterable[Row], step: int) -> dict[str, list[str]]:
    """What is due at a step → the documents that say so."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for judged in row.steps[step].meanings:
            documents = found.setdefault(want_of(judged.meaning, row.case.steps[step].src_type), [])
            documents += [document for document in judged.documents if document not in documents]
    return found


def answer_of(shown: Shown, generic: bool = False) -> str:
    """What the backend did, apart from whether that was right; `generic` writes T for the row's own type."""
    outcome = shown.outcome
    kind, message = outcome.get("kind"), outcome.get("message")
    if kind == "tensor":
        type_, dims = outcome.get("type"), outcome.get("dims")
        own = generic and type_ == shown.row.type and shown.row.case.steps[shown.step].src_type == "T"
        told = tensor("T" if own else type_, dims if isinstance(dims, list | tuple) else (dims,))
    elif kind == "none":
        return "not called"
    else:
        told = {"rejected": f"refused at {outcome.get('stage')}", "error": "adapter error"}.get(str(kind), str(kind))
        told += f": {message}" if message else ""
    for fault in outcome.get("faults", ()):
        told += f", {fault}"
    if "steps" in outcome:
        told = f"step {shown.step + 1}: {told}"
    return told


def lines_of(rule: Rule, document: str) -> str:
    """Where a document states a rule, or why it binds there."""
    lines = sorted({pointer.line for pointer in rule.stated if pointer.document == document})
    if lines:
        return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    if document not in rule.documents:
        return "not bound"
    return {"silent": "silent", "may": "allowed"}.get(rule.level, "our ruling")


def clauses(rule: Rule, documents: Iterable[str]) -> str:
    """`static-2021, static-2020: our ruling; static-2022: line 12`."""
    standing = grouped((lines_of(rule, document), document) for document in documents)
    return "; ".join(f"{', '.join(there)}: {lines}" for lines, there in standing.items())


def label_of(row: Row) -> str:
    """What tells a row from the others of its case and operation: `f32 s32 constant`."""
    return row.id[len(row.case.id) + 1 : -1].removeprefix(row.operation).lstrip("-").replace("-", " ")


def labels(rows: Iterable[Row]) -> str:
    """What tells rows of a case and operation from the others, together: `f32, f16 · s32, s64 · runtime`."""
    return "; ".join(_products(tuple(dict.fromkeys(tuple(label_of(row).split()) for row in rows))))


def _products(names: Sequence[tuple[str, ...]]) -> list[str]:
    """Names of several parts as few lists of which every combination is meant."""
    by_first = grouped((name[0], name[1:]) for name in names if name)
    alike = grouped((rests, first) for first, rests in by_first.items())
    return [
        " · ".join(filter(None, (", ".join(firsts), tail)))
        for rests, firsts in alike.items()
        for tail in (_products(rests) or [""])
    ]
