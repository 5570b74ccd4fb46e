"""Lengths that are not known: numbers on which the function of a contract runs, once for each way that it can go.

A length is a product of names with a factor, such as 3*n/2. A comparison of lengths is true or false, never "perhaps":
where both are possible, a run takes one of them as a fact that its later answers agree with, and another run the other.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

_MAX_RUNS = 500
"""The most runs of one function. Calls of models need at most 30."""
_MAX_STEPS = 100


class Undecidable(Exception):
    """An expression asks for more than products of names can tell, such as a sum of two of them."""


class Fact(NamedTuple):
    """A relation that a run took as holding, or as not holding, where both were possible."""

    left: str
    relation: str
    """`=`, `<`, `is a multiple of`, or `is` of a text or a flag."""
    right: str
    holds: bool


class FunctionPath(NamedTuple):
    """One way that a function can go."""

    facts: tuple[Fact, ...]
    result: Any
    """None if the run met something undecidable."""


def runs(function: Callable[[Facts], Any], most: int = _MAX_RUNS) -> Iterator[FunctionPath]:
    """Yield every way that a function of unknown lengths can go; what is left after `most` is undecidable."""
    plans: list[tuple[bool, ...]] = [()]
    for _ in range(most):
        if not plans:
            return
        plan = plans.pop()
        facts = Facts(plan)
        try:
            result = function(facts)
        except Undecidable:
            result = None
        answers = tuple(facts.taken.values())
        plans += [(*answers[:k], False) for k in range(len(plan), len(answers))]
        yield FunctionPath(tuple(Fact(*asked, holds) for asked, holds in facts.taken.items()), result)
    yield FunctionPath((), None)


HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "is a multiple of": lambda n, number: n % number == 0,
    "divides": lambda n, number: n != 0 and number % n == 0,
}


class _NamedLength(NamedTuple):
    """What a run knows about the length with one name."""

    low: Any
    high: Any = math.inf
    step: int = 1
    """The length is a multiple of this."""
    facts: tuple[tuple[str, Any, bool], ...] = ()
    """A relation, a number, and whether it holds."""


@lru_cache(4096)
def _narrow_both_ways(
    about: _NamedLength, relation: str, number: Any
) -> tuple[_NamedLength | None, _NamedLength | None]:
    return _narrow(about, relation, number, True), _narrow(about, relation, number, False)


def _narrow(about: _NamedLength, relation: str, number: Any, holds: bool) -> _NamedLength | None:
    """Add a fact; None if no length is left."""
    low, high, step, facts = about
    facts = *facts, (relation, number, holds)
    if relation == "<":
        low, high = (low, min(high, math.ceil(number) - 1)) if holds else (max(low, math.ceil(number)), high)
    elif relation == "is a multiple of":
        step = math.lcm(step, number) if holds else step
    elif holds:
        low, high = max(low, number) if relation == "=" else low, min(high, number)
    if any(each == "is a multiple of" and not step % other and not known for each, other, known in facts):
        return None
    for _ in range(_MAX_STEPS):  # bounds that are too wide only leave more questions open
        low = -(-low // step) * step if low > -math.inf else low
        high = high // step * step if high < math.inf else high
        if low > high:
            return None
        if low > -math.inf and not _can_be(low, facts):
            low += step
        elif high < math.inf and not _can_be(high, facts):
            high -= step
        else:
            break
    return _NamedLength(low, high, step, facts)


def _can_be(number: int, facts: Iterable[tuple[str, Any, bool]]) -> bool:
    return all(HOLDS[relation](number, other) == holds for relation, other, holds in facts)


class Facts:
    """The facts that one run has taken as holding."""

    def __init__(self, plan: tuple[bool, ...]) -> None:
        self.taken: dict[tuple[str, str, str], bool] = {}
        self._plan = plan
        self.names: dict[str, _NamedLength] = {}

    def length(self, text: str, low: float = 1) -> Symbol:
        """Return the length with this text, such as `batch` or `3*n/2`; a new name is at least `low`."""
        is_product = re.fullmatch(r"\w+([*/]\w+)*", text)  # src[0] is one name
        factor, powers = Fraction(1), dict[str, int]()
        for sign, part in re.findall(r"([*/]?)(\w+)", text) if is_product else [("", text)]:
            power = -1 if sign == "/" else 1
            if part.isdecimal():
                factor *= Fraction(int(part)) ** power
            else:
                powers[part] = powers.get(part, 0) + power
                self.names.setdefault(part, _NamedLength(low))
        return Symbol(self, factor, powers)

    def holds(self, left: object, relation: str, right: object) -> bool:
        """Take a relation as holding or not, as the plan says; first as holding. Of <, = and > only one can hold."""
        asked, number = (str(left), relation, str(right)), len(self.taken)
        order = {(a, sign, b) for a, b in (asked[::2], asked[::-2]) for sign in "=<"}
        if asked in order and any(self.taken.get(other) for other in order - {asked}):
            return False
        return self.taken.setdefault(asked, self._plan[number] if number < len(self._plan) else True)

    def name_holds(self, name: str, relation: str, number: Any) -> bool:
        """Answer by what is known about a name. If both answers are possible, take one."""
        number = int(number) if number.denominator == 1 else number
        yes, no = _narrow_both_ways(self.names[name], relation, number)
        if yes is None or no is None:
            return no is None
        asked = (number, "is a multiple of", name) if relation == "divides" else (name, relation, number)
        answer = self.holds(*asked)
        self.names[name] = yes if answer else no
        return answer


class WholeNumber:
    """What follows from `==`, `<` and `divmod`, which gives a quotient of None if only the remainder is known."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise Undecidable  # only of one number

    def __bool__(self: Any) -> bool:
        return bool(self != 0)

    def __ge__(self: Any, other: Any) -> bool:
        return not self < other

    def __gt__(self: Any, other: Any) -> bool:
        return bool(other < self) if isinstance(other, WholeNumber) else not self < other + 1

    def __le__(self: Any, other: Any) -> bool:
        return not self > other

    def __floordiv__(self: Any, other: Any) -> Any:
        return _require_known(divmod(self, other)[0])

    def __rfloordiv__(self: Any, other: int) -> Any:
        return _require_known(divmod(other, self)[0])

    def __mod__(self: Any, other: Any) -> Any:
        return divmod(self, other)[1]

    def __rmod__(self: Any, other: int) -> Any:
        return divmod(other, self)[1]


def _require_known(quotient: Any) -> Any:
    if quotient is None:
        raise Undecidable
    return quotient


class Symbol(WholeNumber):
    """A length as a product of names, which behaves like the whole number that it is."""

    __slots__ = ("factor", "facts", "powers")

    def __init__(self, facts: Facts, factor: Fraction, powers: Mapping[str, int]) -> None:
        self.facts, self.factor = facts, factor
        self.powers = {name: power for name, power in sorted(powers.items()) if power}

    def __str__(self) -> str:
        above = [name for name, power in self.powers.items() for _ in range(power)]
        below = [name for name, power in self.powers.items() for _ in range(-power)]
        if self.factor.numerator != 1 or not above:
            above = [str(self.factor.numerator), *above]
        if self.factor.denominator != 1:
            below = [str(self.factor.denominator), *below]
        if len(above) + len(below) > 1:
            above, below = ([_enclose(part) for part in parts] for parts in (above, below))
        return "/".join(["*".join(above), *below])

    # ── arithmetic ────────────────────────────────────────────────────────────────────────────────

    def times(self, other: Any, power: int = 1) -> Any:
        """Return self * other ** power; an int if neither a name nor a fraction is left."""
        factor, powers = (other.factor, other.powers) if isinstance(other, Symbol) else (Fraction(other), {})
        known = self.facts.names
        if powers and any(known[name].low <= 0 for name in (*self.powers, *powers)):
            raise Undecidable
        names = {name: self.powers.get(name, 0) + powers.get(name, 0) * power for name in (*self.powers, *powers)}
        factor = self.factor * factor**power
        for name in [name for name in names if known[name].low == known[name].high]:
            factor *= Fraction(known[name].low) ** names.pop(name)
        result = Symbol(self.facts, factor, names)
        return result if result.powers or result.factor.denominator != 1 else int(result.factor)

    def __mul__(self, other: Any) -> Any:
        return self.times(other) if other else 0

    __rmul__ = __mul__

    def __neg__(self) -> Symbol:
        return Symbol(self.facts, -self.factor, self.powers)

    def __add__(self, other: Any) -> Symbol:
        if other == 0:  # as `sum` begins
            return self
        raise Undecidable

    __radd__ = __sub__ = __add__

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        quotient = self.times(other, -1)
        if not isinstance(quotient, Symbol) or quotient.is_whole():
            return quotient, 0
        name = f"({self} mod {other})"  # it is known not to be 0
        self.facts.names.setdefault(name, _NamedLength(1, other - 1 if isinstance(other, int) else math.inf))
        return None, Symbol(self.facts, Fraction(1), {name: 1})

    def __rdivmod__(self, other: int) -> tuple[Any, Any]:
        return divmod(Symbol(self.facts, Fraction(other), {}), self) if other else (0, 0)

    # ── comparisons ───────────────────────────────────────────────────────────────────────────────

    def _split_fraction(self) -> tuple[Symbol, Symbol]:
        """Return what is above and what is below the line of a fraction."""
        above = Symbol(self.facts, Fraction(self.factor.numerator), {n: p for n, p in self.powers.items() if p > 0})
        below = Symbol(self.facts, Fraction(self.factor.denominator), {n: -p for n, p in self.powers.items() if p < 0})
        return above, below

    def _find_range(self) -> tuple[Any, Any]:
        """Return bounds of a length of one name, or of a positive one."""
        found: list[Any] = [1, 1]
        for name, power in self.powers.items():
            bounds = self.facts.names[name][:2]
            ends = [Fraction(end) ** power if power < 0 and end < math.inf else end**power for end in bounds]
            found = [found[0] * min(ends), found[1] * max(ends)]
        sign = 1 if self.factor > 0 else -1
        low, high = sorted(end * (sign if isinstance(end, float) else self.factor) for end in found)  # inf, -inf or 0.0
        return low, high

    def is_whole(self) -> bool:
        """Ask whether this quotient is a whole number."""
        above, below = self._split_fraction()
        known = self.facts.names
        if not below.powers:  # 3n / 2 is whole if n comes in steps of 2
            divisors = (known[name].step ** power for name, power in above.powers.items())
            if (math.prod(divisors, start=above.factor) / below.factor).denominator == 1:
                return True
            if name := _find_name(above.powers):
                return self.facts.name_holds(name, "is a multiple of", int(below.factor))
        if not above.powers and (name := _find_name(below.powers)):  # 6 / n is whole only for some n: which is stated
            return below.factor == 1 and self.facts.name_holds(name, "divides", int(above.factor))
        if (not above.powers and below.factor != 1) or max(map(abs, self._find_range())) < 1:
            return False
        whole = self.facts.holds(above, "is a multiple of", below)
        if whole and not above.powers:
            for name in below.powers:
                known[name] = _narrow(known[name], "<", above.factor + 1, True) or known[name]
        return whole

    def _is(self, relation: str, other: Any) -> bool:
        """Ask whether this is equal to, or less than, another length or an int."""
        is_plain = isinstance(other, int) and (_find_name(self.powers) or other <= 0 or self.factor < 0)
        one, ratio = (other, self) if is_plain else (1, self.times(other, -1))
        if isinstance(other, Symbol) and other.factor < 0:  # a ratio to it has the order turned
            return self.factor < 0 and (-other)._is(relation, -self)
        if not isinstance(ratio, Symbol) or not ratio.powers:
            return HOLDS[relation](getattr(ratio, "factor", ratio), one)
        if name := _find_name(ratio.powers):
            bound, is_inverse = one / ratio.factor, ratio.factor < 0
        elif name := _find_name(ratio.powers, -1 if one == 1 else 1):
            bound, is_inverse = ratio.factor, True
        if name and is_inverse and relation == "<":
            return not self.facts.name_holds(name, "<", math.floor(bound) + 1)
        if name:
            return self.facts.name_holds(name, relation, bound)
        if relation == "=" and one == 1 and (power := math.gcd(*ratio.powers.values())) > 1:  # 2*n*n = m*m never holds
            parts = ratio.factor.as_integer_ratio()
            roots = tuple(bisect_left(range(sys.maxsize), part, key=lambda n: n**power) for part in parts)
            root = Symbol(self.facts, Fraction(*roots), {n: p // power for n, p in ratio.powers.items()})
            return tuple(n**power for n in roots) == parts and root._is("=", 1)
        if one == 0 and relation == "=":
            return False  # several names, each of them at least 1
        low, high = ratio._find_range()
        if not low <= one <= high or (relation == "<" and low == one):
            return relation == "<" and bool(high < one)
        if one != 1:
            return self.facts.holds(self, relation, other)
        above, below = ratio._split_fraction()
        if relation == "<":
            return self.facts.holds(above, "<", below)
        if (not below.powers and above.factor != 1) or (not above.powers and below.factor != 1):
            return False
        sides = sorted((above, below), key=lambda side: (not side.powers, str(side)))  # one question, asked either way
        return self.facts.holds(sides[0], "=", sides[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Symbol) and self._is("=", other)

    __hash__ = WholeNumber.__hash__

    def __lt__(self, other: Any) -> bool:
        return self._is("<", other)


def _enclose(name: str) -> str:
    """Put a name that is itself an expression, such as `n + 1`, in parentheses."""
    return name if re.fullmatch(r"[\w.\[\]]+|\(.*\)", name) else f"({name})"


def _find_name(powers: Mapping[str, int], power: int = 1) -> str | None:
    """Return the name of a product of one name to this power."""
    (name, found), *others = powers.items() or [("", 0)]
    return name if found == power and not others else None


class UnknownTruth:
    """A truth, or a text such as an element type, that is not known."""

    def __init__(self, facts: Facts, name: str) -> None:
        self._facts, self._name = facts, name

    def __bool__(self) -> bool:
        return self._facts.holds(self._name, "is", "true")

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        found = next(
            (text for (name, _, text), holds in self._facts.taken.items() if name == self._name and holds), None
        )
        return self._facts.holds(self._name, "is", other) if found is None else found == other

    __hash__ = None  # type: ignore[assignment]
