"""Run one block of calls and collect its counts and failures.

The meaning of a call is computed once for all types and layouts. A call that goes as it should, in type, dims, bytes
and memory, is only counted. Any other call is handed, with its answer, to the judge that runs use. So a sweep says what
a run would say, at a fraction of the cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..isolate.backend import as_remote
from ..meaning.contract import Contract
from ..meaning.domain import Lengths
from ..model import NOT_CLAIMED, OBSERVED, PASS, STRIDED, Claims, Declared, Identity, Kind, Meaning, Result, TimedOut
from ..model.types import WIDTH
from ..plan.memory import GuardedBuffer, TensorSpec, lay_out, strides_of
from ..plan.rows import Row, row_of
from ..run.call import call_outcome
from ..run.row import judge_row
from ..shrink.write_case import find_rule_against, make_case_of_call, write_case_text
from ..system.text import format_call
from .blocks import Block, CallVariant, SweepRequest, list_lengths
from .calls import JUDGE, NO_SHAPE, ShapeArguments, Want, call_each, lay_out_shapes, make_nodes_of_calls
from .context import BackendLost, SweepContext, context_of
from .tally import FailedCalls, Tally

_MAX_LATE_IN_A_ROW, _MAX_LATE_IN_A_BLOCK = 10, 50
"""Calls without an answer in time after which a sweep is given up: each costs twice the time limit."""
Call = tuple[Lengths, Lengths, bool]


def run_block(request: SweepRequest, block: Block, who: tuple[Identity, Claims] | None = None) -> Tally:
    """Run one block, in whatever process this is called; BackendLost if the backend there is not `who`."""
    context = context_of(request)
    if who is not None and who != context.who:
        there, here = who[0], context.who[0]
        raise BackendLost(f"{request.backend} is {here.name} {here.version} here, {there.name} {there.version} there")
    return BlockRun(context, block).tally()


class _Source(NamedTuple):
    """The calls of one src in one way."""

    way: CallVariant
    source: TensorSpec
    buffer: GuardedBuffer
    shapes: Sequence[GuardedBuffer]
    """The shapes that are passed when the calls run; empty where they are attributes."""
    first: int
    """The place of the first of them among all calls of the block."""


def list_wants(readings: Iterable[Sequence[Sequence[Meaning]]]) -> list[list[Want]]:
    """List, for each src, what each call wants: dims if all documents want the same, None if none wants any."""

    def want(meanings: Iterable[Meaning]) -> Want:
        due = {meaning.dst if meaning.kind == "legal" else None for meaning in meanings}
        return due.pop() if len(due) == 1 else JUDGE

    return [[want(each) for each in zip(*of_src, strict=True)] for of_src in zip(*readings, strict=True)]


class BlockRun:
    def __init__(self, context: SweepContext, block: Block) -> None:
        self.context, self.block = context, block
        domain = context.request.domain
        self.srcs = list_lengths(block.first_src, block.srcs, block.rank, 0, domain.max_length)
        self.shapes = list_lengths(block.first_shape, block.shapes, block.entries, domain.lowest, domain.highest)
        self._meanings: dict[str, Counter[str]] = {}
        self._verdicts: dict[str, Counter[str]] = {}
        self._failures: dict[tuple[str, str], FailedCalls] = {}
        self._late: list[int] = []
        """The places, among all calls of the block, of those that were not answered in time."""

    def tally(self) -> Tally:
        """Make every call of the block in every way."""
        ways = self.context.request.ways
        for operation in dict.fromkeys(way.operation for way in ways):
            readings = [
                (self.list_meanings(contract), documents)
                for contract, documents in self.context.readings[operation].items()
            ]
            numbers = [(Counter(each.kind for row in rows for each in row), documents) for rows, documents in readings]
            wants = list_wants([rows for rows, _ in readings])
            for way in ways:
                if way.operation == operation:
                    self._count(way, numbers)
                    if operation in self.context.claims.operations:
                        self._call(way, wants)
        return Tally(self.block.calls * len(ways), self._meanings, self._verdicts, self._failures)

    def list_meanings(self, contract: Contract) -> list[list[Meaning]]:
        """List, for each src, the meaning of each call; all types and layouts share it."""
        calls = [(shape, flag) for flag in (False, True) for shape in self.shapes]
        return [[contract.meaning(src, *call) for call in calls] for src in self.srcs]

    def _count(self, way: CallVariant, numbers: Iterable[tuple[Counter[Kind], Sequence[str]]]) -> None:
        """Count the calls of a way as if each went as it should."""
        claimed = way.operation in self.context.claims.operations
        for kinds, documents in numbers:
            observed = kinds["unspecified"]
            good = {PASS: kinds.total() - observed, OBSERVED: observed}
            counts = good if claimed else {NOT_CLAIMED: kinds.total()}
            for document in documents:
                self._meanings.setdefault(document, Counter()).update(kinds)
                self._verdicts.setdefault(document, Counter()).update(counts)

    def _call(self, way: CallVariant, wants: list[list[Want]]) -> None:
        nodes = make_nodes_of_calls(way.operation, way.shape_passed_as, way.shape_type, self.shapes)
        shapes = lay_out_shapes(way.shape_type, self.shapes) if way.shape_passed_as == "runtime" else []
        passed = [ShapeArguments((shape.tensor,), shape.tensor.memory, shape.before) for shape in shapes] * 2
        arguments = passed or [NO_SHAPE] * len(nodes)
        facets = self._row_of(way, (self.srcs[0], self.shapes[0], False)).facets  # all calls of the block have these
        if self.context.claims.find_unclaimed(facets):  # the judge knows what is not claimed
            wants = [[JUDGE] * (2 * self.block.shapes)] * self.block.srcs
        first = self.context.request.ways.index(way) * self.block.calls
        for number, (src, wanted) in enumerate(zip(self.srcs, wants, strict=True)):
            source = TensorSpec(way.type, src, way.layout, None, 7 * (self.block.first_src + number) % 251)
            buffer = lay_out(source)
            strides = strides_of(src, way.layout, WIDTH[way.type]) if way.layout in STRIDED else None
            of_src = _Source(way, source, buffer, shapes, first + number * len(nodes))
            declared, judge = Declared(way.type, src, strides), partial(self._judge, of_src)
            call_each(self.context.adapter, declared, nodes, arguments, wanted, buffer, judge)

    def _row_of(self, way: CallVariant, call: Call) -> Row:
        case = make_case_of_call("swept", "same-volume", way.type, call, way.layout)
        operation = self.context.spec.operations[way.operation]
        return row_of(case, operation, way.shape_passed_as, way.shape_type, self.context.contracts)

    def _judge(self, calls: _Source, number: int, answer: Any, error: BaseException | None) -> None:
        """Judge call `number` of a src, which did not go as it should, by its answer or its error."""
        way, adapter = calls.way, self.context.adapter
        flag, at = divmod(number, len(self.shapes))
        call = calls.source.dims, self.shapes[at], bool(flag)
        row = self._row_of(way, call)
        row_step = row.steps[0]
        row_step.src_spec, row_step.src = calls.source, calls.buffer  # the memory that the backend was given
        if calls.shapes:
            row_step.arriving = (calls.shapes[at],)
        outcome = call_outcome(row_step, answer, error)
        unclaimed = self.context.claims.find_unclaimed(row.facets)
        self._correct(way, call, row, judge_row(row, adapter, [(0, [outcome])], unclaimed))
        if (remote := as_remote(adapter)) and remote.given_up:
            raise BackendLost(f"the backend was {remote.given_up}")
        if isinstance(error, TimedOut):
            self._limit_waiting(calls.first + number, way, call)

    def _correct(self, way: CallVariant, call: Call, row: Row, result: Result) -> None:
        """Replace the verdicts that were counted in advance by those of the judge, and keep a failure."""
        for judged in row.steps[0].meanings:
            usual = OBSERVED if judged.meaning.kind == "unspecified" else PASS
            for document in judged.documents:
                if result.verdicts[document] != usual:
                    self._verdicts[document][usual] -= 1
                    self._verdicts[document][result.verdicts[document]] += 1
        if result.is_failure:
            self._keep(way, call, row, result)

    def _keep(self, way: CallVariant, call: Call, row: Row, result: Result) -> None:
        """Count a failure, and keep its example if it is the smallest so far."""
        src, shape, special_zero = call
        size = (
            len(src) + len(shape), sum(src) + sum(map(abs, shape)), src, shape, special_zero,
            self.context.request.ways.index(way),
        )  # fmt: skip
        rule, diagnosis = group = find_rule_against(row, result), result.diagnosis or "failed"
        known = self._failures.get(group)
        if known is not None and known.size <= size:
            self._failures[group] = known._replace(calls=known.calls + 1)
            return
        example = {
            "call": str(way),
            "detail": result.detail,
            "verdicts": dict(result.verdicts),
            "case": write_case_text(row, rule, f"{diagnosis} {rule}"),
        }
        self._failures[group] = FailedCalls(known.calls + 1 if known else 1, size, example)

    def _limit_waiting(self, place: int, way: CallVariant, call: Call) -> None:
        """Give the sweep up if too many calls, the last of them at that place, were not answered in time."""
        self._late.append(place)
        last = self._late[-_MAX_LATE_IN_A_ROW:]
        in_a_row = len(last) == _MAX_LATE_IN_A_ROW and last[-1] - last[0] == _MAX_LATE_IN_A_ROW - 1
        if in_a_row or len(self._late) >= _MAX_LATE_IN_A_BLOCK:
            count = f"{_MAX_LATE_IN_A_ROW} calls in a row" if in_a_row else f"{_MAX_LATE_IN_A_BLOCK} calls of a block"
            raise BackendLost(
                f"no answer within {self.context.request.limits.seconds:g} s to {count}, the last of them {way} "
                f"{format_call(*call)}; the sweep is given up; mend that, or give a shorter --timeout"
            )
