"""Tells an adapter that is broken from a backend that does not conform: is what comes back the backend's own answer?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ..adapter import bundled_backends, resolve_claims
from ..isolate.backend import Isolation, open_backend
from ..isolate.remote import Remote
from ..isolate.started import USUAL, Limits
from ..model import LAYOUTS, Adapter, Claims, Declared, Graph, Isolated, Layout, Node, Operand, Outcome, Program, Spec
from ..model.types import WIDTH
from ..plan.memory import Source, strides_of
from ..plan.rows import Plan, Row
from ..plan.steps import RowStep
from ..run.call import make_call
from ..run.diagnose import content
from ..run.row import call_steps

Word = Literal["ok", "mend", "note"]
_ILLEGAL: tuple[tuple[int, ...], ...] = ((7,), (5, 2), (-1, -1), (4, -1), (0, 1 << 40))
"""Shapes that (2, 3) cannot take, whatever document is asked."""
_SPECIAL = {
    "f32": "00000000 80000000 00000001 80000001 007fffff 807fffff 00800000 7f7fffff 7f800000 ff800000 7fc00000 "
    "ffc00000 7f800001 ff800001 7fa00000 7fbfffff 7fffffff ffffffff 7fc12345 3f800000 3f808000 3f800001 "
    "33000000 477ff000"
}
"""Patterns of a type that has too many to try each."""


class Found(NamedTuple):
    """What one check came to, in a line."""

    word: Word
    check: str
    text: str


def checked(backend: str, isolation: Isolation, plan: Plan, limits: Limits = USUAL) -> Iterator[Found]:
    """Every check in turn; CannotStart where there is nothing to check."""
    adapter = open_backend(backend, isolation, limits)
    try:
        check = _Check(adapter, plan)
        yield from check.identity()
        yield from check.trivial()
        if not check.silent:  # what else would be said would be said of the same fault
            yield from check.refusal()
            yield from check.state()
            yield from (_whose(found, backend) for found in check.round_trips())
            yield from check.claims_kept()
        yield from check.again(backend, isolation, limits)
    finally:
        if isinstance(adapter, Isolated):
            adapter.close()
    if isinstance(adapter, Remote):
        yield Found("mend", "stop", adapter.amiss) if adapter.amiss else Found("ok", "stop", "ends when it is told to")


def _whose(found: Found, backend: str) -> Found:
    """Bytes that change on a bundled adapter are the library's doing: a script without the adapter shows the same."""
    if found.word != "mend" or backend not in bundled_backends():
        return found
    shown = f"the library's own doing, as `conformance explain CASE --backend {backend}` shows without the adapter"
    return found._replace(word="note", text=f"{found.text}; {shown}")


class _Check:
    """The checks of one running adapter."""

    silent = False
    """Whether it does not answer at all."""

    def __init__(self, adapter: Adapter, plan: Plan) -> None:
        self.adapter, self.plan, self.spec = adapter, plan, plan.suite.spec
        self.claims = resolve_claims(adapter, plan.suite.spec.operations)
        self.operation = next(iter(self.claims.operations), "")
        self.type = next((t for t in ("f32", "f16", "bf16") if not self.claims.leaves(f"type:{t}")), "f32")

    # ── one call ──

    def task(self, type_: str, dims: tuple[int, ...], shape: tuple[int, ...], layout: Layout = "dense",
             bits: str | None = None, start: int = 0) -> RowStep:  # fmt: skip
        strides = strides_of(dims, layout, WIDTH[type_]) if layout not in ("dense", "offset") else None
        shape_type = "s64"
        given = _static(self.spec, self.operation)
        values = shape if given else None
        node = Node(self.operation, Operand(shape_type, (len(shape),), values), Operand("bool", (), (False,)))
        graph = Graph(Declared(type_, dims, strides), (node,))
        arriving = () if given else ((shape_type, (len(shape),), shape),)
        return RowStep(graph, Source(type_, dims, layout, bits, start), arriving, False, (), False)

    def call(self, *arguments: object, **more: object) -> tuple[RowStep, Outcome]:
        task = self.task(*arguments, **more)  # type: ignore[arg-type]
        return task, make_call(self.adapter, task, None)[0]

    # ── the checks ──

    def identity(self) -> Iterator[Found]:
        identity = self.adapter.identity
        if not identity.version.strip():
            yield Found(
                "mend",
                "identity",
                f"{identity.name} has no version; give the library's own, so that results say what was tested",
            )
        else:
            yield Found("ok", "identity", f"{identity.name} {identity.version}")
        if not self.claims.operations:
            yield Found("mend", "claims", "no operation is claimed; name at least one of those it offers")
        else:
            left = ", ".join(self.claims.leaves_out) or "nothing"
            yield Found("ok", "claims", f"{', '.join(self.claims.operations)}; leaves out {left}")

    def trivial(self) -> Iterator[Found]:
        """A tensor of the right kind, in f32 or what is claimed."""
        task, outcome = self.call(self.type, (2, 3), (3, 2))
        wrong = _amiss(task, outcome, (3, 2))
        self.silent = outcome.kind != "tensor"
        fine = f"{self.type}[2, 3] → [3, 2] comes back as a tensor"
        yield Found("mend", "answer", wrong) if wrong else Found("ok", "answer", fine)
        if self.silent:
            yield Found("note", "answer", "nothing further is called before that is mended")

    def refusal(self) -> Iterator[Found]:
        """Calls that every document forbids come back as Rejected, and nothing else."""
        refused, answered = 0, []
        for shape in _ILLEGAL:
            _, outcome = self.call(self.type, (2, 3), shape)
            if outcome.kind == "rejected":
                refused += 1
                if not outcome.message:
                    yield Found(
                        "note", "refusal", "the refusal has no message; pass on the library's own, readers will want it"
                    )
            elif outcome.kind == "tensor":
                answered.append(list(shape))
            else:
                yield Found(
                    "mend", "refusal",
                    f"[2, 3] → {list(shape)} is illegal, and came back as {outcome.kind}: {outcome.message}; "
                    + _HOW_TO_REFUSE,
                )  # fmt: skip
                return
        if refused:
            but = f"; {answered} were answered, which `conformance run` will judge" if answered else ""
            yield Found("ok", "refusal", f"{refused} of {len(_ILLEGAL)} illegal calls come back as Rejected{but}")
        else:
            yield Found(
                "mend", "refusal",
                f"none of {len(_ILLEGAL)} illegal calls was refused: does the adapter resolve or mend shapes itself, "
                "or take the library's refusal for an answer?",
            )  # fmt: skip

    def state(self) -> Iterator[Found]:
        """The same call means the same after others, and after a refusal."""
        first = self.call(self.type, (2, 3), (3, 2))[1]
        task, other_elements = self.call(self.type, (2, 3), (3, 2), start=50)
        if first.kind == "tensor" and (wrong := _amiss(task, other_elements, (3, 2))):
            yield Found("mend", "state", f"the same call with other elements: {wrong}; keep nothing between calls")
            return
        self.call(self.type, (4, 5), (20,), start=99)
        self.call(self.type, (2, 3), (7,))
        second = self.call(self.type, (2, 3), (3, 2))[1]
        if first[:4] != second[:4]:
            other = "with other bytes" if first[:3] == second[:3] else f"as {second.kind}"
            what = f"a call came back as {first.kind}, and the same call after others {other}"
            yield Found("mend", "state", f"{what}; keep nothing from one call to the next")
            return
        programs: dict[Graph, Program] = {}
        tasks = [self.task(self.type, (2, 3), (3, 2)), self.task(self.type, (2, 3), (6,), start=7)]
        outcomes = [make_call(self.adapter, each, programs)[0] for each in (*tasks, *tasks)]
        if [o[:4] for o in outcomes[:2]] != [o[:4] for o in outcomes[2:]]:
            what = "of two programs that live at once, one is taken for the other"
            yield Found("mend", "state", f"{what}; keep what was compiled with its program")
            return
        yield Found("ok", "state", "a call means the same after others, after a refusal, and beside another program")

    def round_trips(self) -> Iterator[Found]:
        """Every bit pattern of every claimed type through every claimed layout, with the same dims."""
        for type_ in _types(self.spec):
            if self.claims.leaves(f"type:{type_}"):
                yield from self.left_out(f"type:{type_}", self.call(type_, (2, 3), (2, 3))[1])
                continue
            wrong = None
            for layout in LAYOUTS:
                if self.claims.leaves(f"layout:{layout}") and layout != "dense":
                    continue
                wrong = self.round_trip(type_, layout)
                if wrong:
                    yield Found("mend", "round trip", f"{type_}, {layout}: {wrong}")
                    break
            if wrong is None:
                count = (
                    "every bit pattern" if WIDTH[type_] == 2 else f"{len(_SPECIAL[type_].split())} special bit patterns"
                )
                yield Found("ok", "round trip", f"{type_}: {count} in every layout that is claimed")

    def round_trip(self, type_: str, layout: Layout) -> str | None:
        dims = (256, 256) if WIDTH[type_] == 2 else (4, 6)
        bits = "all" if WIDTH[type_] == 2 else _SPECIAL[type_]
        if layout == "broadcast":  # its rows are one row
            task, outcome = self.call(type_, dims, dims, layout)
            return _amiss(task, outcome, dims)
        task, outcome = self.call(type_, dims, dims, layout, bits)
        return _amiss(task, outcome, dims)

    def claims_kept(self) -> Iterator[Found]:
        """A legal call for each facet: unsupported though it is claimed, working though it is left out."""
        broken = False
        for facet, row in _with_rank(self.plan.rows, self.claims):
            outcome = call_steps(row, self.adapter)[0]
            if not self.claims.leaves(facet) and outcome.kind in ("unsupported", "error"):
                broken = True
                what = f"{facet} is claimed, and src of that rank is {outcome.kind}: {outcome.message}"
                yield Found("mend", "claims", f"{what}; add {facet!r} to leaves_out, or support it")
        for facet, row in sorted(_witnesses(self.plan.rows, self.claims).items()):
            outcome = call_steps(row, self.adapter)[0]
            if self.claims.leaves(facet):
                yield from self.left_out(facet, outcome)
            elif outcome.kind in ("unsupported", "error"):
                broken = True
                what = (
                    "is claimed, and unsupported"
                    if outcome.kind == "unsupported"
                    else "is claimed, and the adapter fails"
                )
                yield Found(
                    "mend", "claims", f"{facet} {what}: {outcome.message}; add {facet!r} to leaves_out, or support it"
                )
            elif outcome.kind != "tensor":
                yield Found(
                    "note",
                    "claims",
                    f"{facet} is claimed, and {outcome.kind}: {outcome.message}; `conformance run` will judge that",
                )
        for operation in self.spec.operations:
            if operation not in self.claims.operations:
                row = next(row for row in self.plan.rows if row.operation == operation and _plain(row))
                if call_steps(row, self.adapter)[0].kind == "tensor":
                    yield Found("note", "claims", f"{operation} is not claimed, and works: it may be claimed")
        if not broken:
            yield Found("ok", "claims", "nothing that is claimed is unsupported")

    def left_out(self, facet: str, outcome: Outcome) -> Iterator[Found]:
        if outcome.kind == "tensor":
            yield Found("note", "claims", f"{facet} is left out, and works: it may be claimed")

    def again(self, backend: str, isolation: Isolation, limits: Limits) -> Iterator[Found]:
        """Started once more it says the same of itself."""
        other = open_backend(backend, isolation, limits)
        try:
            said, before = (other.identity, other.claims), (self.adapter.identity, self.adapter.claims)
            if said != before:
                yield Found(
                    "mend",
                    "restart",
                    f"started again it says {said[0]}, {said[1]}, where it said {before[0]}, {before[1]}",
                )
            else:
                yield Found("ok", "restart", "started again it describes itself the same")
        finally:
            if isinstance(other, Isolated):
                other.close()


_HOW_TO_REFUSE = (
    "name the library's exception in `refusals`, or raise Rejected(stage, message); over the protocol, reply `rejected`"
)


def _static(spec: Spec, operation: str) -> bool:
    return operation in spec.operations and "attribute" in spec.operations[operation].given


def _types(spec: Spec) -> list[str]:
    return sorted(
        {type_ for operation in spec.operations.values() for type_ in operation.types} & {"f32", "f16", "bf16"}
    )


def _amiss(task: RowStep, outcome: Outcome, dims: tuple[int, ...]) -> str | None:
    """What is wrong with an answer that should be src's elements as `dims`."""
    if outcome.kind != "tensor":
        return f"a legal call came back as {outcome.kind}: {outcome.message}"
    if outcome.type != task.source.type:
        return f"the answer's type is {outcome.type}, src's is {task.source.type}: does the adapter convert?"
    if outcome.dims != dims:
        return f"the answer's dims are {list(outcome.dims or ())}, due are {list(dims)}"
    if outcome.faults:
        return f"{', '.join(outcome.faults)}: hand the library a copy, or memory that it cannot write into"
    if outcome.data != task.src.elements:
        assert outcome.data is not None
        diagnosis = content(task.source, task.src.elements, outcome.data, ())
        swapped = _swapped(task.src.elements, WIDTH[task.source.type])
        how = "the bytes of every element are in the wrong order" if bytes(outcome.data) == swapped else diagnosis.text
        return f"the bytes are not src's: {how}"
    return None


def _swapped(data: bytes | memoryview, width: int) -> bytes:
    whole = bytes(data)
    return b"".join(whole[at : at + width][::-1] for at in range(0, len(whole), width))


def _plain(row: Row) -> bool:
    return len(row.steps) == 1 and all(judged.meaning.kind == "legal" for judged in row.steps[0].meanings)


def _with_rank(rows: Iterable[Row], claims: Claims) -> Iterable[tuple[str, Row]]:
    """For each rank that the documents leave open a call whose src has it, which arrays may have no room for."""
    found: dict[str, Row] = {}
    for row in rows:
        facet = f"rank:{len(row.case.steps[0].src)}"
        if row.operation in claims.operations and row.type == "f32" and facet in row.facets:
            found.setdefault(facet, row)
    return found.items()


def _witnesses(rows: Iterable[Row], claims: Claims) -> dict[str, Row]:
    """For each facet a legal row that has it and no other, beyond what every row has."""
    ordinary = {"type:f32", "shape-type:s64", "runtime-shape"}
    found: dict[str, Row] = {}
    for row in rows:
        if row.operation in claims.operations and _plain(row) and not row.case.large:
            own = row.facets - ordinary
            if len(own) == 1:
                found.setdefault(next(iter(own)), row)
            for facet in row.facets & {"runtime-shape"}:
                if row.facets <= ordinary:
                    found.setdefault(facet, row)
    return found
