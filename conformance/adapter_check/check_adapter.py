"""Tell a broken adapter from a backend that does not conform: does the adapter return the backend's own answers?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..adapter import find_bundled, resolve_claims
from ..isolate.backend import Isolation, use_backend
from ..isolate.process.launch import DEFAULT_LIMITS, ProcessLimits
from ..isolate.protocol.remote import RemoteAdapter
from ..model import LAYOUTS, STRIDED, Adapter, Declared, Graph, Isolated, Layout, Node, Operand, Outcome, Program
from ..model.types import WIDTH, range_of
from ..plan.memory import TensorSpec, strides_of
from ..plan.rows import Plan
from ..plan.steps import RowStep
from ..run.call import make_call
from ..run.diagnose import ExpectedAnswer, diagnose_elements
from ..run.row import has_changed
from .check_claims import Check, check_claims

_ILLEGAL: tuple[tuple[int, ...], ...] = ((7,), (5, 2), (-1, -1), (4, -1), (0, -1), (0, 1 << 40))
"""Shapes that (2, 3) cannot take with special_zero false, whatever document is asked."""
_WRAPS: tuple[tuple[int, ...], ...] = (((1 << 32) + 6,), (-1, 2, (1 << 31) + 3))
"""The same; their lengths have a product of 2^32 + 6, which is the 6 of (2, 3) if it, or an entry, is cut to 32 bits.

An answer of that many f32 elements needs more memory than a process has by default, so that nothing is filled in vain.
"""
_SPECIAL = {
    "f32": "00000000 80000000 00000001 80000001 007fffff 807fffff 00800000 7f7fffff 7f800000 ff800000 7fc00000 "
    "ffc00000 7f800001 ff800001 7fa00000 7fbfffff 7fffffff ffffffff 7fc12345 3f800000 3f808000 3f800001 "
    "33000000 477ff000"
}
"""Patterns of a type that has too many to try each."""


def check_adapter(
    backend: str, isolation: Isolation, plan: Plan, limits: ProcessLimits = DEFAULT_LIMITS
) -> Iterator[Check]:
    """Make every check; CannotStart if the backend does not start."""
    with use_backend(backend, isolation, limits) as adapter:
        checks = _Checks(adapter, plan, backend)
        yield from checks.check_self_description()
        step, outcome = checks.call(checks.type, (2, 3), (3, 2))
        sound = f"{checks.type}[2, 3] → [3, 2] comes back as a tensor"
        yield Check.of("answer", sound, _find_problem(step, outcome, (3, 2)))
        if outcome.kind == "tensor":  # the other checks would report the same fault
            yield checks.check_special_zero()
            yield from checks.check_rejection()
            sound = "a call means the same after others, after a rejection, and beside another program"
            yield Check.of("state", sound, checks.check_state())
            yield from checks.check_round_trips()
            yield from check_claims(adapter, checks.claims, plan)
        else:
            yield Check("note", "answer", "nothing further is called before that is mended")
        with use_backend(backend, isolation, limits) as other:
            after, before = (other.identity, other.claims), (adapter.identity, adapter.claims)
        problem = f"started again it says {after[0]}, {after[1]}, where it said {before[0]}, {before[1]}"
        yield Check.of("restart", "started again it describes itself the same", None if after == before else problem)
    if isinstance(adapter, RemoteAdapter):  # a library may end its process badly; `check_program` checks a program
        bad_end = adapter.ends[-1].problem
        yield Check("note" if bad_end else "ok", "stop", bad_end or "ends when it is told to")


class _Checks:
    """The checks of one running adapter. A method that returns a text names the problem, if there is one."""

    def __init__(self, adapter: Adapter, plan: Plan, backend: str) -> None:
        self.adapter, self.spec, self.backend = adapter, plan.suite.spec, backend
        self.bundled = find_bundled(backend) is not None
        self.claims = resolve_claims(adapter, plan.suite.spec.operations)
        self.operation = next(iter(self.claims.operations), "")
        self.type = next((t for t in ("f32", "f16", "bf16") if self.claims.has_type(t)), "f32")
        given = plan.suite.spec.operations.get(self.operation)
        listed = [t for t in ("s64", "s32") if given is not None and t in given.shape_types]
        self.shape_type = next((t for t in listed if not self.claims.excludes(f"shape-type:{t}")), "s64")

    # ── one call ──

    def step(self, type_: str, dims: tuple[int, ...], shape: tuple[int, ...], layout: Layout = "dense",
             bits: str | None = None, start: int = 0, special_zero: bool = False) -> RowStep:  # fmt: skip
        strides = strides_of(dims, layout, WIDTH[type_]) if layout in STRIDED else None
        operation = self.spec.operations.get(self.operation)
        given = operation is not None and "attribute" in operation.shape_passed_as
        values = shape if given else None
        operand = Operand(self.shape_type, (len(shape),), values)
        node = Node(self.operation, operand, Operand("bool", (), (special_zero,)))
        graph = Graph(Declared(type_, dims, strides), (node,))
        arriving = () if given else ((self.shape_type, (len(shape),), shape),)
        return RowStep(graph, TensorSpec(type_, dims, layout, bits, start), arriving, False, (), False)

    def call(self, *arguments: object, **more: object) -> tuple[RowStep, Outcome]:
        step = self.step(*arguments, **more)  # type: ignore[arg-type]
        return step, make_call(self.adapter, step, None)[0]

    # ── the checks ──

    def check_self_description(self) -> Iterator[Check]:
        name, version, _ = self.adapter.identity
        problem = f"{name} has no version; give the library's own, so that results say what was tested"
        yield Check.of("identity", f"{name} {version}", None if version.strip() else problem)
        operations, not_claimed = ", ".join(self.claims.operations), ", ".join(self.claims.not_claimed)
        wrong = None if operations else "no operation is claimed; name at least one of those it offers"
        listed = {type_ for each in self.spec.operations.values() for type_ in each.types}
        if operations and not any(map(self.claims.has_type, listed)):
            wrong = f"no type is claimed that a document lists; claim at least one of {', '.join(sorted(listed))}"
        facets = f"does not claim {not_claimed}" if not_claimed else "claims every facet"
        yield Check.of("claims", f"{operations}; {facets}", wrong)

    def check_special_zero(self) -> Check:
        """Check that special_zero is not lost in the adapter; or its library would get the blame."""
        step, outcome = self.call(self.type, (2, 3), (0, 3), special_zero=True)
        problem = _find_problem(step, outcome, (2, 3)) if outcome.dims != (2, 3) else None
        what = problem and f"[2, 3] by (0, 3) with special_zero: {problem}"
        if what and not self.claims.answers_special_zero:
            return Check("note", "special_zero", f"{what}; does the adapter pass it on? `run` blames the library")
        sound = f"special_zero copies: {self.type}[2, 3] by (0, 3) → [2, 3]"
        return Check.of("special_zero", sound, what and f"{what}; copy lengths, or drop answers_special_zero")

    def check_rejection(self) -> Iterator[Check]:
        """Check that calls which every document forbids come back as Rejected."""
        shapes: dict[str, list[list[int]]] = {"rejected": [], "tensor": [], "ended": []}
        illegal = self.choose_expressible(_ILLEGAL)
        for shape in illegal:
            _, outcome = self.call(self.type, (2, 3), shape)
            if outcome.kind == "unsupported" and self.claims.excludes(outcome.message or ""):
                continue  # as it says in `not_claimed`
            ended = outcome.ends_process and self.bundled  # the library's own doing
            kind = "ended" if ended else outcome.kind
            if kind not in shapes:
                what = f"[2, 3] → {list(shape)} is illegal, and came back as {outcome.kind}: {outcome.message}"
                yield Check("mend", "rejection", f"{what}; {_HOW_TO_REJECT}")
                return
            if kind == "rejected" and not outcome.message:
                yield Check("note", "rejection", "the rejection has no message; pass on the message of the library")
            shapes[kind].append(list(shape))
        sound = f"{len(shapes['rejected'])} of {len(illegal)} illegal calls come back as Rejected"
        if shapes["tensor"]:
            sound += f"; {shapes['tensor']} were answered, which `conformance run` will judge"
        if shapes["ended"]:
            sound += f"; {shapes['ended']} ended the process or did not end, which it will judge too"
        problem = (
            f"none of {len(illegal)} illegal calls was rejected: does the adapter change shapes itself, "
            "or return the library's error as an answer?"
        )
        yield Check.of("rejection", sound, None if shapes["rejected"] else problem)
        wraps = self.choose_expressible(_WRAPS)
        if wraps and isinstance(self.adapter, Isolated):  # a process with limited memory
            yield self.check_volume(wraps)

    def choose_expressible(self, shapes: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the shapes that fit the type of shape."""
        return [shape for shape in shapes if all(entry in range_of(self.shape_type) for entry in shape)]

    def check_volume(self, wraps: Iterable[tuple[int, ...]]) -> Check:
        """Check that neither counts of elements nor entries are kept in 32 bits, by the library or by the adapter."""
        for shape in wraps:
            _, outcome = self.call(self.type, (2, 3), shape)
            if outcome.kind not in ("rejected", "unsupported"):
                what = f"answered {list(outcome.dims or ())}" if outcome.kind == "tensor" else outcome.kind
                why = f": {outcome.message}" if outcome.message else ""
                return Check(
                    "note", "volume",
                    f"[2, 3] → {list(shape)} has 2^32 elements too many, and came back as {what}{why}; does the "
                    "library or the adapter keep counts or entries in 32 bits, where both volumes are 6?",
                )  # fmt: skip
        return Check("ok", "volume", "a volume that is equal only in 32 bits is rejected")

    def check_state(self) -> str | None:
        """Check that a call gives the same after other calls, after a rejection, and beside another program."""
        step, first = self.call(self.type, (2, 3), (3, 2))
        other_step, other = self.call(self.type, (2, 3), (3, 2), start=50)
        wrong = _find_problem(other_step, other, (3, 2))
        if wrong and not _find_problem(step, first, (3, 2)):
            remedy = "one process makes all calls, until `stop`" if other.ends_process else "keep nothing between calls"
            return f"the same call with other elements: {wrong}; {remedy}"
        self.call(self.type, (4, 5), (20,), start=99)
        self.call(self.type, (2, 3), (7,))
        second = self.call(self.type, (2, 3), (3, 2))[1]
        if first[:4] != second[:4]:
            how = "with other bytes" if first[:3] == second[:3] else f"as {second.kind}"
            what = f"a call came back as {first.kind}, and the same call after others {how}"
            return f"{what}; keep nothing from one call to the next"
        programs: dict[Graph, Program] = {}
        steps = [self.step(self.type, (2, 3), (3, 2)), self.step(self.type, (2, 3), (6,), start=7)]
        calls = [make_call(self.adapter, each, programs) for each in (*steps, *steps)]
        if [outcome[:4] for outcome, _ in calls[:2]] != [outcome[:4] for outcome, _ in calls[2:]]:
            return (
                "of two programs that live at once, one is taken for the other; keep what was compiled with its program"
            )
        if any(has_changed(*call) for call in calls):
            return "an answer changed when a later call was made; return a copy of it"
        return None

    def check_round_trips(self) -> Iterator[Check]:
        """Check that every bit pattern of every claimed type and layout comes back unchanged."""
        for type_ in sorted(filter(self.claims.has_type, {*self.spec.types} & {"f32", "f16", "bf16"})):
            claimed = filter(self.claims.has_layout, LAYOUTS)
            problems = (
                f"{type_}, {layout}: {wrong}" for layout in claimed if (wrong := self.check_round_trip(type_, layout))
            )
            count = "every bit pattern" if WIDTH[type_] == 2 else f"{len(_SPECIAL[type_].split())} special bit patterns"
            check = Check.of("round trip", f"{type_}: {count} in every layout that is claimed", next(problems, None))
            if check.word == "mend" and self.bundled:  # then the library changes the bytes
                how = f"as `conformance explain CASE --backend {self.backend}` shows without the adapter"
                check = check._replace(word="note", text=f"{check.text}; the library's own doing, {how}")
            yield check

    def check_round_trip(self, type_: str, layout: Layout) -> str | None:
        dims, bits = ((128, 512), "all") if WIDTH[type_] == 2 else ((4, 6), _SPECIAL[type_])
        step, outcome = self.call(type_, dims, dims, layout, None if layout == "broadcast" else bits)  # of equal rows
        return _find_problem(step, outcome, dims)


_HOW_TO_REJECT = (
    "name the library's exception in `rejections`, or raise Rejected(stage, message); "
    "over the protocol, reply `rejected`"
)


def _find_problem(step: RowStep, outcome: Outcome, dims: tuple[int, ...]) -> str | None:
    """Describe what is wrong with an answer that should be src's elements as `dims`."""
    if outcome.kind != "tensor":
        return f"a legal call came back as {outcome.kind}: {outcome.message}"
    if outcome.type != step.src_spec.type:
        return f"the answer's type is {outcome.type}, src's is {step.src_spec.type}: does the adapter convert?"
    if outcome.dims != dims:
        return f"the answer's dims are {list(outcome.dims or ())}, due are {list(dims)}"
    if outcome.side_effects:
        return f"{', '.join(outcome.side_effects)}: hand the library a copy, or memory that it cannot write into"
    if outcome.data != step.src.elements:
        assert outcome.data is not None
        diagnosis = diagnose_elements(ExpectedAnswer(step.src_spec, step.src.elements), dims, outcome.data)
        width, whole = WIDTH[step.src_spec.type], bytes(step.src.elements[:])
        swapped = b"".join(whole[at : at + width][::-1] for at in range(0, len(whole), width))
        how = "the bytes of every element are in the wrong order" if outcome.data[:] == swapped else diagnosis.text
        return f"the bytes are not src's: {how}"
    return None
