"""The factors of a call: properties that an implementation may treat apart, their values, and which can meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from ..load.folders import find_spec_folder
from ..load.schema import explained_by_schema, read_file
from ..load.strict_yaml import YamlMap, raise_problems
from ..meaning.domain import Lengths
from ..model import Operation, Place, Problem, ShapePassedAs, Spec
from ..system.text import describe_unknown
from .calls import DrawnCall, guess_answer

OF_CALL = ("src_rank", "dst_rank", "size", "lengths", "entries", "special_zero", "broken")
"""The factors that follow from src, shape and special_zero; a drawn row chooses the others."""
Group = tuple[str, ...]
"""Two or three factors."""
Values = Mapping[str, str]
"""A value of each factor, or of some."""


class FactorLimit(NamedTuple):
    """Values of a factor that go with some values of another factor only."""

    factor: str
    values: frozenset[str]
    other: str
    allowed: frozenset[str]

    def holds(self, values: Values) -> bool:
        other = values.get(self.other)
        return values.get(self.factor) not in self.values or other is None or other in self.allowed


class Design(NamedTuple):
    """Factors with values that meet, on legal or on illegal calls."""

    name: str
    threes: tuple[str, ...]
    pairs: tuple[str, ...]

    @property
    def of_call(self) -> tuple[str, ...]:
        return tuple(name for name in OF_CALL if name in self.factors)

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(name for name in self.factors if name not in OF_CALL)

    @property
    def factors(self) -> tuple[str, ...]:
        return (*self.threes, *self.pairs)

    @property
    def groups(self) -> list[Group]:
        return [*combinations(self.threes, 3), *product(self.threes, self.pairs)]

    def conditions_of(self, group: Group, factors: Factors) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the factors of a group that may be of another node; beside one of the values they are of the call.

        If the group itself has such a factor, all its values meet.
        """
        for name in group:
            condition = factors.is_of_call.get(name, {})
            any_of = [
                (other, value) for other, values in condition.items() if other in self.factors for value in values
            ]
            if any_of and not condition.keys() & {*group}:
                yield name, any_of


class Factors:
    """The factors and their values, the simplest first, for the operations of a specification."""

    def __init__(self, spec: Spec) -> None:
        content = _read()
        of_spec = {"way": list_operation_ways(spec), "type": spec.types}
        self.values: dict[str, tuple[str, ...]] = {
            name: tuple(of_spec[name] if each["values"] == "from operations" else each["values"])
            for name, each in content["factors"].items()
        }
        self.about: dict[str, str] = {name: each["about"] for name, each in content["factors"].items()}
        self.is_of_call: dict[str, Mapping[str, list[str]]] = {
            name: each["is_of_call"] for name, each in content["factors"].items() if "is_of_call" in each
        }
        """Beside one of these values a factor is of the call; beside others it is of another node."""
        self.designs = tuple(
            Design(name, tuple(each["threes"]), tuple(each["pairs"])) for name, each in content["designs"].items()
        )
        self.chosen = tuple(name for name in self.values if name not in OF_CALL)
        self.limits = tuple(
            FactorLimit(factor, self._find(factor, values), other, self._find(other, allowed))
            for limit in content["only"]
            for factor, values in limit["if"].items()
            for other, allowed in limit["then"].items()
        )

    def _find(self, factor: str, names: Iterable[str]) -> frozenset[str]:
        """Find the values with some names; `runtime` is every way that has it."""
        wanted = set(names)
        return frozenset(value for value in self.values[factor] if wanted & {value, *value.split("/")})

    def fit(self, values: Values) -> bool:
        """Ask whether values can meet, as far as two of them say."""
        return all(limit.holds(values) for limit in self.limits)

    def fitting(self, call: DrawnCall, chosen: Values) -> Values:
        """Return values for a call: the simplest one for each that cannot meet the others."""
        values = {**chosen, **find_factors(call)}
        while not self.fit(values):
            for limit in self.limits:
                if not limit.holds(values):
                    name = limit.factor if limit.factor in self.chosen else limit.other
                    values[name] = self.values[name][0]
        return {name: values[name] for name in self.chosen}


@lru_cache(1)
@explained_by_schema()
def _read() -> Any:
    path = find_spec_folder() / "factors.yaml"
    content, problems = read_file(path, "factors")
    raise_problems(problems or [*_find_unknown_names(content, f"{path.parent.name}/{path.name}")])
    return content


def _find_unknown_names(content: Any, file: str) -> Iterator[Problem]:
    """Find names of factors and values that there are not. Each specification has its own values from operations."""
    values = {name: each["values"] for name, each in content["factors"].items()}
    for names in (each[key] for each in content["designs"].values() for key in ("threes", "pairs")):
        for name, line in zip(names, names.lines, strict=True):
            if name not in values:
                yield Problem(Place(file, line), describe_unknown("factor", name, values))
    choices = [limit[key] for limit in content["only"] for key in ("if", "then")]
    for choice in choices + [each.get("is_of_call", YamlMap()) for each in content["factors"].values()]:
        for name, chosen in choice.items():
            if name not in values:
                yield Problem(Place(file, choice.lines[name]), describe_unknown("factor", name, values))
            for value, line in zip(chosen, chosen.lines, strict=True) if isinstance(values.get(name), list) else ():
                if value not in values[name]:
                    yield Problem(Place(file, line), describe_unknown(f"value of {name}", value, values[name]))


class OperationWay(NamedTuple):
    """An operation, a way to pass shape to it, and the type of shape."""

    operation: Operation
    shape_passed_as: ShapePassedAs
    shape_type: str


def list_operation_ways(spec: Spec) -> dict[str, OperationWay]:
    """Return the ways by the names that they have as values."""
    return {
        f"{operation.id}/{shape_passed_as}/{shape_type}": OperationWay(operation, shape_passed_as, shape_type)
        for operation in spec.operations.values()
        for shape_passed_as in operation.shape_passed_as
        for shape_type in operation.shape_types
    }


# ── the factors of a call ─────────────────────────────────────────────────────────────────────────


def find_factors(call: DrawnCall) -> dict[str, str]:
    """Return the factors that follow from a call: what is broken, or how it is legal."""
    facts = {
        "src_rank": _classify_rank(len(call.src)),
        "dst_rank": _classify_rank(len(call.shape)),
        "size": _size_class(math.prod(call.src)),
        "special_zero": "true" if call.special_zero else "false",
    }
    if broken := _classify_break(call):
        return {**facts, "broken": broken}
    lengths = _classify_lengths(call.src, guess_answer(call))
    return {**facts, "lengths": lengths, "entries": _classify_entries(call.shape, call.special_zero)}


def _classify_rank(rank: int) -> str:
    return str(rank) if rank < 6 else "6-8" if rank < 9 else "9-12"


def _size_class(size: int) -> str:
    limits = {2: str(size), 16: "2-15", 256: "16-255", 4096: "256-4095", 65536: "4096-65535"}
    return next((name for limit, name in limits.items() if size < limit), "65536-")


def _classify_break(call: DrawnCall) -> str | None:
    """Return why a call is illegal; None if its volume is right."""
    src, shape, special_zero = call
    volume, least = math.prod(src), min(shape, default=0)
    if least < -1:
        return "negative-pair" if math.prod(shape) == volume else "below-minus-one"
    if shape.count(-1) > 1:
        return "two-infers"
    known = math.prod(length for length in guess_answer(call._replace(shape=tuple(1 if n < 0 else n for n in shape))))
    if least < 0:
        return "infer-no-divide" if known and volume % known else None
    if known == volume:
        return None
    if 0 in shape:
        return "copied" if special_zero else "literal-zero"
    for bits in (64, 32):
        if (known - volume) % 2**bits == 0:
            return f"wraps-{bits}"
    return "too-long" if known > volume else "too-short"


def _classify_lengths(src: Lengths, dst: Lengths) -> str:
    if src == dst:
        return "identity"
    shorter, longer = sorted((src, dst), key=len)
    if [n for n in src if n != 1] == [n for n in dst if n != 1]:
        if len(longer) != len(shorter) + 1:
            return "ones"
        first, last = (1, *shorter) == longer, (*shorter, 1) == longer
        return "1-first" if first else "1-last" if last else "1-middle"
    if len(dst) == 1:
        return "flatten"
    if sorted(src) == sorted(dst):
        return "permuted"
    for parts in (2, 3):
        more = len(longer) - len(shorter) == parts - 1
        places = range(len(shorter) if more else 0)
        at = next((k for k in places if (*shorter[:k], *longer[k : k + parts], *shorter[k + 1 :]) == longer), None)
        if at is not None and math.prod(longer[at : at + parts]) == shorter[at]:
            if longer[at + parts - 2] == longer[at + parts - 1]:
                return "square" if parts == 2 else "three"
            if parts == 2 and at == len(shorter) - 1:
                return "last-two"
    ours, theirs = (set(_ends(lengths)) for lengths in (src, dst))
    if ours == theirs:  # both have a 0, and the products say nothing
        return "split" if len(dst) > len(src) else "merge" if len(dst) < len(src) else "both"
    return "split" if ours < theirs else "merge" if theirs < ours else "both"


def _ends(lengths: Lengths) -> Iterable[int]:
    """Return the products of the first lengths: of dims that are split the products are among those of the parts."""
    return (math.prod(lengths[:count]) for count in range(1, len(lengths)))


def _classify_entries(shape: Lengths, special_zero: bool) -> str:
    zeros = [at for at, entry in enumerate(shape) if entry == 0]
    if zeros and not special_zero:
        return "literal-zero"
    if zeros and -1 in shape:
        return "copy-and-infer"
    if zeros:
        if len(zeros) == len(shape):
            return "copy-all"
        if 1 in shape[: zeros[0]]:
            return "copy-behind-one"
        if 1 in shape[zeros[-1] :]:
            return "copy-before-one"
        return "copy-one" if len(zeros) == 1 else "copy-several"
    if -1 in shape:
        at = shape.index(-1)
        return "infer-first" if at == 0 else "infer-last" if at == len(shape) - 1 else "infer-middle"
    return "positive"


# ── what can meet ─────────────────────────────────────────────────────────────────────────────────


class Meetings:
    """Says which values of the factors of a design can meet, given the calls that are known to be possible."""

    def __init__(self, factors: Factors, design: Design, calls: Iterable[Values]) -> None:
        self._factors, self._design = factors, design
        self._known = list({tuple(call.values()): call for call in calls}.values())
        chosen = [(name, value) for name in design.chosen for value in factors.values[name]]
        self._places = {each: 1 << at for at, each in enumerate(chosen)}
        self._of_factor = [sum(self._places[name, v] for v in factors.values[name]) for name in design.chosen]
        self._calls = {
            (name, value): _pack_bits(call[name] == value for call in self._known)
            for name in design.of_call
            for value in factors.values[name]
        }
        fitting = _pack_bits(map(factors.fit, self._known))
        self._calls |= {each: self._find_calls_beside(*each, fitting, design.of_call) for each in chosen}
        self._others = {each: self._find_values_beside(*each) for each in chosen}

    def _find_calls_beside(self, name: str, value: str, beside: int, of_call: Iterable[str]) -> int:
        """Return those of some calls that go with a chosen value, one bit each."""
        for limit in self._factors.limits:
            if limit.factor == name and value in limit.values and limit.other in of_call:
                beside &= sum(self._calls[limit.other, each] for each in limit.allowed)
            elif limit.other == name and value not in limit.allowed and limit.factor in of_call:
                beside &= ~sum(self._calls[limit.factor, each] for each in limit.values)
        return beside

    def _find_values_beside(self, name: str, value: str) -> int:
        """Return the chosen values that go with one of them, one bit each."""
        return sum(
            place
            for (other, its), place in self._places.items()
            if ((other, its) == (name, value) if other == name else self._factors.fit({name: value, other: its}))
        )

    def table(self, group: Group) -> Any:
        """Return an array with an axis for each factor of a group, which says for each of their values if they can."""
        every = [[(name, value) for value in self._factors.values[name]] for name in group]
        needed = [
            sum(map(self._places.__getitem__, any_of)) for _, any_of in self._design.conditions_of(group, self._factors)
        ]
        met = np.array([self._can_meet(values, needed) for values in product(*every)])
        return met.reshape([len(each) for each in every])

    def _can_meet(self, values: Iterable[tuple[str, str]], needed: Iterable[int]) -> bool:
        """Ask whether some call goes with all the values, and each other factor has a value that does, too."""
        calls = others = -1
        for each in values:
            calls &= self._calls[each]
            others &= self._others.get(each, -1)
        return bool(calls) and all(others & places for places in (*self._of_factor, *needed))


def _pack_bits(flags: Iterable[bool]) -> int:
    return sum(1 << at for at, flag in enumerate(flags) if flag)


class CombinationCodes:
    """Numbers for every two or three values of the factors of a design, and a last one for those that do not meet.

    `at_any_node`: they meet also where a factor is not of the call.
    """

    def __init__(self, factors: Factors, design: Design, at_any_node: bool = False) -> None:
        self._places = {name: {v: at for at, v in enumerate(factors.values[name])} for name in design.factors}
        sizes = np.array([*map(len, self._places.values()), 1])  # a group of two has a third factor with one value
        names, end = list(design.factors), len(design.factors)
        self.groups = np.array([[*map(names.index, group), end][:3] for group in design.groups])
        i, j, k = self.groups.T
        self.scale_i, self.scale_j = sizes[j] * sizes[k], sizes[k]
        ends = np.cumsum(sizes[i] * self.scale_i)
        self.starts, self.count = np.concatenate([[0], ends[:-1]]), int(ends[-1]) + 1
        self._conditions: dict[str, tuple[list[tuple[int, int]], Any]] = {}
        """For factors that may be of another node: values, by places, beside which they are of the call; the groups."""
        for number, group in enumerate(() if at_any_node else design.groups):
            for name, any_of in design.conditions_of(group, factors):
                places = [(names.index(factor), self._places[factor][value]) for factor, value in any_of]
                flags = self._conditions.setdefault(name, (places, np.zeros(len(self.groups), bool)))[1]
                flags[number] = True

    def places(self, values: Values) -> Any:
        """Return the places of the values of a row among those of each factor."""
        return np.array([places[values[name]] for name, places in self._places.items()])

    def of(self, rows: Any) -> Any:
        """Return the numbers for all that meets in a row of places, or in each of some rows."""
        i, j, k = self.groups.T
        rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], 1), rows.dtype)], -1)
        numbers = self.starts + rows[..., i] * self.scale_i + rows[..., j] * self.scale_j + rows[..., k]
        for any_of, groups in self._conditions.values():
            is_of_call = np.logical_or.reduce([rows[..., factor] == value for factor, value in any_of])
            numbers[~is_of_call[..., None] & groups] = self.count - 1
        return numbers
