"""Every call of a bounded domain on one backend, judged by the contracts.

What the calls mean is computed for a block of them at once and shared by all types and layouts. A call that goes as its
meaning wants, in type, dims, bytes and memory, is counted and no more; any other is handed, with what it came to, to
the one judge. So a sweep says what a run would say, at a fraction of the cost.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..adapter import resolve_claims
from ..isolate.backend import Isolation, open_backend
from ..isolate.started import USUAL, Limits
from ..load.spec import load_spec
from ..meaning.contract import Clauses, Contract, clauses, contracts
from ..meaning.domain import Domain, Lengths
from ..model import (
    Adapter,
    Claims,
    Declared,
    Given,
    Graph,
    Identity,
    Isolated,
    Layout,
    Node,
    Operand,
    Operation,
    Program,
    Rejected,
    Result,
    Spec,
    Tensor,
    TimedOut,
)
from ..model.types import WIDTH, dtype_of
from ..plan.facets import RUNTIME_SHAPE
from ..plan.memory import Image, Source, image_of, shape_image, strides_of
from ..plan.rows import Row, row_of
from ..run.row import run_row
from .found import call_case, case_text, flawed, rule_against
from .tabulate import KINDS, LEGAL, Table, lengths, tabulated

_SHAPES = 1024
"""Shapes of a block; their nodes are kept while the sources pass by."""
_CALLS = 16384
"""Calls of a block, about, for each way of making them."""
_IN_A_ROW, _IN_A_BLOCK = 10, 50
"""Calls without an answer in time after which a sweep is given up: each costs twice the time limit."""
_MOST = 1 << 62
"""No product of lengths in a domain may be larger: they are counted in 64 bits."""
Call = tuple[Lengths, Lengths, bool]


class Way(NamedTuple):
    """One way in which a call can be made."""

    operation: str
    given: Given
    shape_type: str
    type: str
    layout: Layout

    def __str__(self) -> str:
        parts = [self.operation, self.type]
        if self.given != "attribute":
            parts += [self.shape_type, self.given]
        return " ".join(parts if self.layout == "dense" else [*parts, self.layout])

    @property
    def facets(self) -> frozenset[str]:
        """What the way needs beyond the core, as for rows of a suite."""
        found = {f"type:{self.type}"}
        if self.given != "attribute":
            found |= {f"shape-type:{self.shape_type}"} | ({RUNTIME_SHAPE} if self.given == "runtime" else set())
        return frozenset(found | ({f"layout:{self.layout}"} if self.layout != "dense" else set()))


class Block(NamedTuple):
    """Calls that are made together: some srcs of one rank, each with some shapes of one length and both flags."""

    rank: int
    entries: int
    first_shape: int
    shapes: int
    first_src: int
    srcs: int

    @property
    def calls(self) -> int:
        return 2 * self.shapes * self.srcs


class Order(NamedTuple):
    """What is to be swept, and how; all that a process needs to know to take a block."""

    backend: str
    domain: Domain
    ways: tuple[Way, ...]
    isolation: Isolation = "none"
    limits: Limits = USUAL
    spec: Path | None = None
    digest: str = ""
    """Of the specification that whoever takes a block must have."""
    version: str = __version__
    """Of the suite that whoever takes a block must have."""


class Failure(NamedTuple):
    """Calls that failed alike: how many, and the smallest."""

    calls: int
    size: tuple[Any, ...]
    """What makes an example smaller than another."""
    example: Mapping[str, Any]


class Part(NamedTuple):
    """What came of one block."""

    calls: int
    meanings: Mapping[str, Mapping[str, int]]
    """By document: how many calls were legal, illegal and unspecified."""
    verdicts: Mapping[str, Mapping[str, int]]
    """By document."""
    failures: Mapping[tuple[str, str], Failure]
    """By rule and diagnosis."""


class Lost(Exception):
    """The backend cannot be called any more, or is another than the one that the sweep began with."""


# ── the domain ────────────────────────────────────────────────────────────────────────────────────


def ways_of(
    spec: Spec, operations: Sequence[str] = (), types: Sequence[str] = (), layouts: Sequence[Layout] = ("dense",)
) -> tuple[Way, ...]:
    """Every way in which the chosen operations can be called with the chosen types and layouts."""
    return tuple(
        Way(operation.id, given, shape_type, type_, layout)
        for operation in spec.operations.values()
        if not operations or operation.id in operations
        for given in operation.given
        for shape_type in operation.shape_types
        for type_ in operation.types
        if not types or type_ in types
        for layout in layouts
    )


def too_large(domain: Domain) -> bool:
    """Whether a product of lengths would not fit the columns in which they are counted."""
    longest = max(domain.longest, domain.highest, -domain.lowest, 1)
    return bool(longest ** max(domain.ranks, domain.entries, 1) >= _MOST)


def blocks(domain: Domain) -> Iterator[Block]:
    """The blocks of a domain, fewer dimensions first; together they hold each call once."""
    pairs = [(rank, entries) for rank in range(domain.ranks + 1) for entries in range(domain.entries + 1)]
    for rank, entries in sorted(pairs, key=lambda pair: (sum(pair), pair)):
        srcs, shapes = (domain.longest + 1) ** rank, (domain.highest - domain.lowest + 1) ** entries
        for first_shape in range(0, shapes, _SHAPES):
            width = min(_SHAPES, shapes - first_shape)
            step = max(1, _CALLS // (2 * width))
            for first_src in range(0, srcs, step):
                yield Block(rank, entries, first_shape, width, first_src, min(step, srcs - first_src))


# ── a place where blocks are taken ────────────────────────────────────────────────────────────────


_spec = lru_cache(2)(load_spec)


class Site:
    """What a process keeps between blocks: specification, contracts, the backend and what it claims."""

    def __init__(self, order: Order, adapter: Adapter) -> None:
        self.order, self.adapter = order, adapter
        self.spec = _spec(order.spec)
        if order.digest and order.digest != self.spec.digest:
            raise Lost(f"the specification here is {self.spec.digest[:12]}, the sweep is of {order.digest[:12]}")
        if order.version != __version__:
            raise Lost(f"the suite here is version {__version__}, the sweep is of {order.version}; install the same")
        self.identity: Identity = adapter.identity
        self.claims = resolve_claims(adapter, self.spec.operations)
        self.contracts: dict[str, Contract] = contracts(self.spec)
        self.readings = {operation.id: _readings(self.spec, operation) for operation in self.spec.operations.values()}


def _readings(spec: Spec, operation: Operation) -> list[tuple[Clauses, tuple[str, ...]]]:
    """The different rules that documents of an operation have, and the documents that have them."""
    found: dict[Clauses, list[str]] = {}
    for document in operation.documents:
        of_document = clauses(rule for rule in spec.rules.values() if document in rule.documents)
        found.setdefault(of_document, []).append(document)
    return [(rules, tuple(documents)) for rules, documents in found.items()]


_ALONE = threading.Lock()
"""A backend is called by one thread at a time."""


@lru_cache(1)
def _site(order: Order) -> Site:
    return Site(order, open_backend(order.backend, order.isolation, order.limits))


def described(order: Order) -> tuple[Identity, Claims]:
    """Who is swept, as the place says that takes the blocks in this process."""
    with _ALONE:
        site = _site(order)
        return site.identity, site.claims


def leave() -> None:
    """Lets go of the backend that this process kept."""
    with _ALONE:
        kept = _site.cache_info().currsize
        if kept and _opened:
            adapter = _opened.pop()
            if isinstance(adapter, Isolated):
                adapter.close()
        _site.cache_clear()


_opened: list[Adapter] = []


def part(order: Order, block: Block, who: tuple[Identity, Claims] | None = None) -> Part:
    """Takes one block, in whatever process this is called."""
    with _ALONE:
        site = _site(order)
        _opened[:] = [site.adapter]
        if who is not None and who != (site.identity, site.claims):
            there, here = who[0], site.identity
            raise Lost(f"{order.backend} is {here.name} {here.version} here, {there.name} {there.version} there")
        return _Taking(site, block).part()


# ── a block ───────────────────────────────────────────────────────────────────────────────────────

Want = Any
"""The dims due, None where an answer is not due, or _LOOK."""
_LOOK = "look"


@lru_cache(12)
def _nodes(way: tuple[str, Given, str], entries: int, shapes: tuple[Lengths, ...]) -> list[tuple[Node, ...]]:
    """The nodes of calls: with special_zero false for every shape, then with true."""
    operation, given, shape_type = way
    flags = [Operand("bool", (), (flag,)) for flag in (False, True)]
    operands = [Operand(shape_type, (entries,), None if given == "runtime" else shape) for shape in shapes]
    return [(Node(operation, operand, flag),) for flag in flags for operand in operands]


@lru_cache(4)
def _arriving(shape_type: str, entries: int, shapes: tuple[Lengths, ...]) -> list[Image]:
    """The shapes of calls in memory, for both flags."""
    return [shape_image(shape_type, (entries,), shape) for shape in shapes] * 2


class _Taking:
    """One block on its way to a part."""

    def __init__(self, site: Site, block: Block) -> None:
        self.site, self.block = site, block
        domain = site.order.domain
        src = lengths(block.first_src, block.srcs, block.rank, 0, domain.longest)
        shape = lengths(block.first_shape, block.shapes, block.entries, domain.lowest, domain.highest)
        self.columns = src, shape
        self.srcs: tuple[Lengths, ...] = tuple(map(tuple, src.T.tolist()))
        self.shapes: tuple[Lengths, ...] = tuple(map(tuple, shape.T.tolist()))
        self.meanings: dict[str, Counter[str]] = {}
        self.verdicts: dict[str, Counter[str]] = {}
        self.failures: dict[tuple[str, str], Failure] = {}
        self.late: list[int] = []
        """The places, among all calls of the block, of those that were not answered in time."""

    def part(self) -> Part:
        ways = self.site.order.ways
        for operation in dict.fromkeys(way.operation for way in ways):
            tables = [(tabulated(rules, *self.columns), of) for rules, of in self.site.readings[operation]]
            wants = self.wants([table for table, _ in tables])
            for way in ways:
                if way.operation == operation:
                    self.count(way, tables)
                    if operation in self.site.claims.operations:
                        self.take(way, wants)
        return Part(self.block.calls * len(ways), self.meanings, self.verdicts, self.failures)

    def wants(self, tables: Sequence[Table]) -> list[list[Want]]:
        """For each src, what each call wants: dims where all documents want the same, None where none wants any."""
        result: list[list[Want]] = [[None] * (2 * self.block.shapes) for _ in self.srcs]
        first, *others = tables
        legal = first.kinds == LEGAL
        unsure = np.zeros_like(legal)
        for other in others:
            differs = (other.kinds == LEGAL) != legal
            for mine, theirs in zip(first.dst, other.dst, strict=True):
                differs |= legal & (mine != theirs)
            unsure |= differs
        flags, srcs, shapes = np.nonzero(legal)
        entries = [entry[flags, srcs, shapes].tolist() for entry in first.dst]
        dst = zip(*entries, strict=True) if entries else iter([()] * len(srcs))
        for src, at, dims in zip(srcs.tolist(), (flags * self.block.shapes + shapes).tolist(), dst, strict=True):
            result[src][at] = dims
        for flag, src, at in np.argwhere(unsure).tolist():
            result[src][flag * self.block.shapes + at] = _LOOK
        return result

    def count(self, way: Way, tables: Sequence[tuple[Table, tuple[str, ...]]]) -> None:
        """Counts the calls of a way as if each went as it should."""
        claimed = way.operation in self.site.claims.operations
        for table, documents in tables:
            numbers = np.bincount(table.kinds.ravel(), minlength=len(KINDS)).tolist()
            good = Counter({"pass": sum(numbers[:2]), "observed": numbers[2]})
            for document in documents:
                self.meanings.setdefault(document, Counter()).update(dict(zip(KINDS, numbers, strict=True)))
                fine = good if claimed else Counter({"not claimed": sum(numbers)})
                self.verdicts.setdefault(document, Counter()).update(fine)

    def take(self, way: Way, wants: list[list[Want]]) -> None:
        """Makes every call of a way."""
        nodes = _nodes(way[:3], self.block.entries, self.shapes)
        arriving = _arriving(way.shape_type, self.block.entries, self.shapes) if way.given == "runtime" else None
        left_out = any(self.site.claims.leaves(facet) for facet in way.facets)
        if left_out:  # the judge knows what is not claimed
            wants = [[_LOOK] * (2 * self.block.shapes)] * self.block.srcs
        first = self.site.order.ways.index(way) * self.block.calls
        for number, (src, wanted) in enumerate(zip(self.srcs, wants, strict=True)):
            source = Source(way.type, src, way.layout, None, 7 * (self.block.first_src + number) % 251)
            image = image_of(source)
            strides = strides_of(src, way.layout, WIDTH[way.type]) if way.layout not in ("dense", "offset") else None
            looking = _Looking(self, way, source, image, left_out, first + number * len(nodes))
            made = _called if arriving is None else _called_with
            made(self.site.adapter, Declared(way.type, src, strides), nodes, arriving or [], wanted, image, looking.at)

    def wait_no_more(self, place: int, way: Way, call: Call) -> None:
        """Give the sweep up if too many calls, the last of them at that place, were not answered in time."""
        self.late.append(place)
        row = self.late[-_IN_A_ROW:]
        in_a_row = len(row) == _IN_A_ROW and row[-1] - row[0] == _IN_A_ROW - 1
        if in_a_row or len(self.late) >= _IN_A_BLOCK:
            src, shape, special_zero = call
            count = f"{_IN_A_ROW} calls in a row" if in_a_row else f"{_IN_A_BLOCK} calls of a block"
            raise Lost(
                f"no answer within {self.site.order.limits.seconds:g} s to {count}, the last of them {way} "
                f"src {list(src)}, shape {list(shape)}, special_zero {str(special_zero).lower()}; the sweep is given "
                "up; mend that, or give a shorter --timeout, and add --resume"
            )

    def tell(self, way: Way, call: Call, row: Row, result: Result) -> None:
        """Takes the verdicts of the judge for those that were counted in advance, and keeps a failure."""
        for judged in row.steps[0].meanings:
            usual = "observed" if judged.meaning.kind == "unspecified" else "pass"
            for document in judged.documents:
                if result.verdicts[document] != usual:
                    self.verdicts[document][usual] -= 1
                    self.verdicts[document][result.verdicts[document]] += 1
        if flawed(result):
            rule = rule_against(row, result)
            self.keep((rule, result.diagnosis or "failed"), way, call, row, result)

    def keep(self, group: tuple[str, str], way: Way, call: Call, row: Row, result: Result) -> None:
        src, shape, special_zero = call
        size = (
            len(src) + len(shape), sum(src) + sum(map(abs, shape)), src, shape, special_zero,
            self.site.order.ways.index(way),
        )  # fmt: skip
        known = self.failures.get(group)
        if known is not None and known.size <= size:
            self.failures[group] = known._replace(calls=known.calls + 1)
            return
        example = {
            "call": str(way),
            "detail": result.detail,
            "verdicts": dict(result.verdicts),
            "case": case_text(row.case, group[0], row, f"{group[1]} {group[0]}"),
        }
        self.failures[group] = Failure(known.calls + 1 if known else 1, size, example)


class _Looking:
    """Looks closer at calls of one src that did not go as they should."""

    def __init__(
        self, taking: _Taking, way: Way, source: Source, image: Image, left_out: bool, first: int
    ) -> None:  # fmt: skip
        self.taking, self.way, self.source, self.image, self.left_out = taking, way, source, image, left_out
        self.first = first
        """The place of the first of them among all calls of the block."""

    def at(self, number: int, answer: Any, error: BaseException | None) -> None:
        """Judges call `number` by what it came to."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        taking, way, site = self.taking, self.way, self.taking.site
        flag, at = divmod(number, len(taking.shapes))
        call = self.source.dims, taking.shapes[at], bool(flag)
        case = call_case("swept", "same-volume", way.type, call, way.layout)
        operation = site.spec.operations[way.operation]
        row = row_of(case, operation, way.given, way.shape_type, site.contracts)
        task = row.steps[0]
        task.source = self.source
        task.__dict__["src"] = self.image
        if way.given == "runtime":
            task.__dict__["arriving"] = (_arriving(way.shape_type, taking.block.entries, taking.shapes)[at],)
        taking.tell(way, call, row, run_row(row, replayed(site.adapter, answer, error), self.left_out))
        if getattr(site.adapter, "lost", None):
            raise Lost(f"the backend was {site.adapter.lost}")  # type: ignore[attr-defined]
        if isinstance(error, TimedOut):
            taking.wait_no_more(self.first + number, way, call)


# ── the calls themselves ──────────────────────────────────────────────────────────────────────────

_STAGES = ("compile", "run")


def _memory(image: Image) -> tuple[Any, bytes]:
    """The memory of a call, and what it held before; the one is compared with the other."""
    return image.tensor.memory, image.before


_Look = Callable[[int, Any, "BaseException | None"], None]


def _called(
    adapter: Adapter, src: Declared, nodes: list[tuple[Node, ...]], _: Sequence[Image], wants: list[Want],
    image: Image, look: _Look,
) -> None:  # fmt: skip
    """Makes calls of one src whose shapes are known beforehand; the loop in which a sweep spends its time."""
    compiled, tensor, elements = adapter.compile, image.tensor, image.elements
    memory, before = _memory(image)
    type_, dtype, new, graph, array, none = src.type, dtype_of(src.type), tuple.__new__, Graph, np.ndarray, ()
    for number, (node, want) in enumerate(zip(nodes, wants, strict=True)):
        try:
            answer = compiled(new(graph, (src, node))).run(tensor, none, False)
        except Rejected as refused:  # noqa: PERF203 - what a call comes to is the point
            if want is not None or memory != before or refused.stage not in _STAGES or type(refused.message) is not str:
                look(number, None, refused)
        except BaseException as error:
            look(number, None, error)
        else:
            if type(answer) is array:
                if (
                    answer.shape != want
                    or (answer.dtype is not dtype and answer.dtype != dtype)
                    or answer.tobytes() != elements
                    or memory != before
                ):
                    look(number, answer, None)
            elif elements or memory != before or not _is_empty(answer, type_, want):
                look(number, answer, None)


def _called_with(
    adapter: Adapter, src: Declared, nodes: list[tuple[Node, ...]], arriving: Sequence[Image], wants: list[Want],
    image: Image, look: _Look,
) -> None:  # fmt: skip
    """The same with shapes that arrive with the run, which must be left as they are too."""
    compiled, tensor, elements = adapter.compile, image.tensor, image.elements
    memory, before = _memory(image)
    type_, dtype, new, graph, array = src.type, dtype_of(src.type), tuple.__new__, Graph, np.ndarray
    for number, (node, want, shape) in enumerate(zip(nodes, wants, arriving, strict=True)):
        given: Any = shape.tensor
        kept = shape.before
        try:
            answer = compiled(new(graph, (src, node))).run(tensor, (given,), False)
        except Rejected as refused:
            if (
                want is not None or memory != before or given.memory != kept
                or refused.stage not in _STAGES or type(refused.message) is not str
            ):  # fmt: skip
                look(number, None, refused)
        except BaseException as error:
            look(number, None, error)
        else:
            if type(answer) is array:
                if (
                    answer.shape != want
                    or (answer.dtype is not dtype and answer.dtype != dtype)
                    or answer.tobytes() != elements
                    or memory != before
                    or given.memory != kept
                ):
                    look(number, answer, None)
            elif elements or memory != before or given.memory != kept or not _is_empty(answer, type_, want):
                look(number, answer, None)


def _is_empty(answer: Any, type_: str, want: Want) -> bool:
    """Whether an answer is the tensor without elements that was due."""
    return (
        type(answer) is Tensor
        and answer.dims == want
        and answer.type == type_
        and type(answer.memory) is bytearray
        and len(answer.strides) == len(answer.dims)
    )


class _Replayed:
    """A backend that has been called already: what its call came to, as if it came now."""

    def __init__(self, adapter: Adapter, answer: Any, error: BaseException | None) -> None:
        self.adapter, self.answer, self.error = adapter, answer, error

    @property
    def identity(self) -> Identity:
        return self.adapter.identity

    @property
    def claims(self) -> Claims:
        return self.adapter.claims

    def compile(self, graph: Graph) -> Program:
        return self

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


class _ReplayedOnce(_Replayed):
    """The same of a backend in a process of its own, which can be asked again in a fresh one."""

    again = False

    def restart(self) -> None:
        self.again = True
        self.adapter.restart()  # type: ignore[attr-defined]

    def compile(self, graph: Graph) -> Program:
        return self.adapter.compile(graph) if self.again else self


def replayed(adapter: Adapter, answer: Any, error: BaseException | None) -> Adapter:
    """An adapter that gives what a call has come to, for the judge to look at."""
    kind = _ReplayedOnce if hasattr(adapter, "restart") else _Replayed
    return kind(adapter, answer, error)


# ── putting parts together ────────────────────────────────────────────────────────────────────────


def joined(one: Part, other: Part) -> Part:
    """Two parts as one; in whatever order they are joined, the same comes out."""
    failures = dict(one.failures)
    for group, failure in other.failures.items():
        known = failures.get(group)
        if known is None:
            failures[group] = failure
        else:
            smaller = min(known, failure, key=lambda each: each.size)
            failures[group] = smaller._replace(calls=known.calls + failure.calls)
    return Part(
        one.calls + other.calls, _sum(one.meanings, other.meanings), _sum(one.verdicts, other.verdicts), failures
    )


NOTHING = Part(0, {}, {}, {})


def _sum(one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    documents = dict.fromkeys([*one, *other])
    return {d: dict(_counter(one.get(d)) + _counter(other.get(d))) for d in documents}


def _counter(counts: Mapping[str, int] | None) -> Counter[str]:
    return Counter({name: number for name, number in (counts or {}).items() if number})
