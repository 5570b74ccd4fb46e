"""Lengths that are not known: numbers on which the function of a contract runs, once for each way that it can go.

A length is a product of names with a factor, such as 3*n/2. A comparison of lengths is true or false, never "perhaps":
where both are possible, a run takes one of them as a fact that its later answers agree with, and another run the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
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


class Way(NamedTuple):
    """One way that a function can go."""

    facts: tuple[Fact, ...]
    result: Any
    """None if the run met something undecidable."""


def runs(function: Callable[[Facts], Any], most: int = _MAX_RUNS) -> Iterator[Way]:
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
        answers = tuple(fact.holds for fact in facts.taken)
        plans += [(*answers[:k], False) for k in range(len(plan), len(answers))]
        yield Way(tuple(facts.taken), result)
    yield Way((), None)


class _Name:
    """The facts of a run about the length with one name."""

    def __init__(self, low: float) -> None:
        self.low, self.high = low, math.inf
        self.excluded: set[Fraction] = set()
        self.multiple_of = 1
        self.no_multiple_of: set[int] = set()
        self.divisor_of = 0

    def can_be(self, number: Fraction) -> bool:
        return (
            self.low <= number <= self.high
            and number not in self.excluded
            and number % self.multiple_of == 0
            and not any(number % factor == 0 for factor in self.no_multiple_of)
            and (not self.divisor_of or (number != 0 and self.divisor_of % number == 0))
        )

    def tighten(self) -> None:
        """Move the bounds towards numbers that the length can be."""
        step = self.multiple_of
        if self.low > -math.inf:
            self.low = -(-self.low // step) * step
        if self.high < math.inf:
            self.high = self.high // step * step
        for _ in range(_MAX_STEPS):  # bounds that are too wide only leave more questions open
            if self.low > self.high:
                return
            if self.low > -math.inf and not self.can_be(Fraction(self.low)):
                self.low += step
            elif self.high < math.inf and not self.can_be(Fraction(self.high)):
                self.high -= step
            else:
                return


class Facts:
    """The facts that one run has taken as holding."""

    def __init__(self, plan: tuple[bool, ...]) -> None:
        self.taken: list[Fact] = []
        self._plan = plan
        self._names: dict[str, _Name] = {}

    def length(self, text: str, low: float = 1) -> Symbol:
        """Return the length with this text, such as `batch` or `3*n/2`; a new name is at least `low`."""
        parts = text.replace("/", "*/").split("*")
        if not all(part.lstrip("/").isidentifier() or part.lstrip("/").isdecimal() for part in parts):
            parts = [text]  # src[0] is one name
        factor, powers = Fraction(1), dict[str, int]()
        for part in parts:
            name, power = (part[1:], -1) if part.startswith("/") else (part, 1)
            if name.isdecimal():
                factor *= Fraction(int(name)) ** power
            else:
                powers[name] = powers.get(name, 0) + power
                self._names.setdefault(name, _Name(low))
        return Symbol(self, factor, powers)

    def holds(self, left: object, relation: str, right: object) -> bool:
        """Take a relation as holding or not, as the plan says; first as holding."""
        wanted = str(left), relation, str(right)
        for fact in self.taken:
            if fact[:3] == wanted:
                return fact.holds
        answer = self._plan[len(self.taken)] if len(self.taken) < len(self._plan) else True
        self.taken.append(Fact(*wanted, answer))
        return answer

    def name_equals(self, name: str, number: Fraction) -> bool:
        about = self._names[name]
        if not about.can_be(number) or about.low == about.high:
            return about.can_be(number)
        if self.holds(name, "=", number):
            about.low = about.high = int(number)
            return True
        about.excluded.add(number)
        about.tighten()
        return False

    def name_is_below(self, name: str, number: Fraction) -> bool:
        about = self._names[name]
        if about.high < number or about.low >= number:
            return about.high < number
        below = self.holds(name, "<", number)
        if below:
            about.high = math.ceil(number) - 1
        else:
            about.low = math.ceil(number)
        about.tighten()
        return below

    def name_is_multiple(self, name: str, factor: int) -> bool:
        about = self._names[name]
        whole = math.lcm(about.multiple_of, factor)
        if whole == about.multiple_of or any(whole % other == 0 for other in about.no_multiple_of):
            return whole == about.multiple_of
        if about.low == about.high:
            return about.low % factor == 0
        multiple = self.holds(name, "is a multiple of", factor)
        if multiple:
            about.multiple_of = whole
        else:
            about.no_multiple_of.add(factor)
        about.tighten()
        return multiple

    def name_divides(self, name: str, number: int) -> bool:
        about = self._names[name]
        if about.low > number or about.low == about.high:
            return about.low <= number and number % int(about.low) == 0
        divides = self.holds(number, "is a multiple of", name)
        if divides:
            about.divisor_of = math.gcd(about.divisor_of, number)
            self.limit([name], number)
        return divides

    def limit(self, names: Iterable[str], most: int) -> None:
        """Note that no length with one of these names is above a number."""
        for name in names:
            self._names[name].high = min(self._names[name].high, most)
            self._names[name].tighten()

    def range_of(self, length: Symbol) -> tuple[Any, Any]:
        """Return bounds of a length of one name, or of a positive one."""
        low = high = Fraction(1)
        for name, power in length.powers.items():
            ends = [_power(end, power) for end in (self._names[name].low, self._names[name].high)]
            low, high = low * min(ends), high * max(ends)
        ends = [low * length.factor, high * length.factor]
        return min(ends), max(ends)

    def is_fixed(self, name: str) -> bool:
        return self._names[name].low == self._names[name].high

    def are_positive(self, names: Iterable[str]) -> bool:
        return all(self._names[name].low > 0 for name in names)

    def factor_of(self, length: Symbol) -> Fraction:
        """Return a number that is sure to divide a length."""
        return math.prod(
            (self._names[n].multiple_of ** power for n, power in length.powers.items()), start=length.factor
        )

    def remainder(self, left: Symbol, right: Any) -> Symbol:
        """Return what a division leaves that is known not to leave 0."""
        name = f"({left} mod {right})"
        about = self._names.setdefault(name, _Name(1))
        about.high = right - 1 if isinstance(right, int) else math.inf
        return Symbol(self, Fraction(1), {name: 1})


class Symbol:
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
        return "/".join(["*".join(above), *below])

    # ── arithmetic ────────────────────────────────────────────────────────────────────────────────

    def times(self, other: Any, power: int = 1) -> Any:
        """Return self * other ** power; an int if neither a name nor a fraction is left."""
        factor, powers = (other.factor, other.powers) if isinstance(other, Symbol) else (Fraction(other), {})
        if powers and not self.facts.are_positive((*self.powers, *powers)):
            raise Undecidable
        names = {name: self.powers.get(name, 0) + powers.get(name, 0) * power for name in (*self.powers, *powers)}
        factor = self.factor * factor**power
        for name in [name for name in names if self.facts.is_fixed(name)]:
            factor *= self.facts.range_of(Symbol(self.facts, Fraction(1), {name: names.pop(name)}))[0]
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
        return None, self.facts.remainder(self, other)

    def __rdivmod__(self, other: int) -> tuple[Any, Any]:
        return divmod(Symbol(self.facts, Fraction(other), {}), self) if other else (0, 0)

    def __floordiv__(self, other: Any) -> Any:
        return _whole_quotient(divmod(self, other)[0])

    def __rfloordiv__(self, other: int) -> Any:
        return _whole_quotient(divmod(other, self)[0])

    def __mod__(self, other: Any) -> Any:
        return divmod(self, other)[1]

    def __rmod__(self, other: int) -> Any:
        return divmod(other, self)[1]

    # ── comparisons ───────────────────────────────────────────────────────────────────────────────

    def _parts(self) -> tuple[Symbol, Symbol]:
        """Return what is above and what is below the line of a fraction."""
        above = Symbol(self.facts, Fraction(self.factor.numerator), {n: p for n, p in self.powers.items() if p > 0})
        below = Symbol(self.facts, Fraction(self.factor.denominator), {n: -p for n, p in self.powers.items() if p < 0})
        return above, below

    def is_whole(self) -> bool:
        """Ask whether this quotient is a whole number."""
        above, below = self._parts()
        if not below.powers:
            if (self.facts.factor_of(above) / below.factor).denominator == 1:
                return True
            if name := _only(above.powers):
                return self.facts.name_is_multiple(name, int(below.factor))
        if not above.powers and (name := _only(below.powers)):
            return below.factor == 1 and self.facts.name_divides(name, int(above.factor))
        if (not above.powers and not below.powers) or abs(self.facts.range_of(self)[1]) < 1:
            return False
        whole = self.facts.holds(above, "is a multiple of", below)
        if whole and not above.powers:
            self.facts.limit(below.powers, int(above.factor))
        return whole

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Symbol):
            return False
        if (name := _only(self.powers)) and isinstance(other, int):
            return self.facts.name_equals(name, other / self.factor)
        if not other:
            return False  # several names, each of them at least 1
        ratio = self.times(other, -1)
        if not isinstance(ratio, Symbol) or not ratio.powers:
            return bool(ratio == 1) if isinstance(ratio, int) else False
        if name := _only(ratio.powers):
            return self.facts.name_equals(name, 1 / ratio.factor)
        if name := _only(ratio.powers, -1):
            return self.facts.name_equals(name, ratio.factor)
        low, high = self.facts.range_of(ratio)
        above, below = ratio._parts()
        if (not below.powers and above.factor != 1) or (not above.powers and below.factor != 1) or not low <= 1 <= high:
            return False
        sides = sorted((above, below), key=lambda side: (not side.powers, str(side)))  # one question, asked either way
        return self.facts.holds(sides[0], "=", sides[1])

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self != 0

    def is_below(self, other: Any) -> bool:
        """Ask whether this is less than another length or an int."""
        if isinstance(other, int) and (name := _only(self.powers)):
            bound = other / self.factor
            return self.facts.name_is_below(name, bound) if self.factor > 0 else not self._reaches(name, bound)
        if isinstance(other, int) and (other <= 0 or self.factor < 0):
            low, high = self.facts.range_of(self)
            return bool(high < other) or (not low >= other and self.facts.holds(self, "<", other))
        ratio = self.times(other, -1)
        if not isinstance(ratio, Symbol) or not ratio.powers:
            return bool((ratio if isinstance(ratio, int) else ratio.factor) < 1)
        if name := _only(ratio.powers):
            return self.facts.name_is_below(name, 1 / ratio.factor)
        if name := _only(ratio.powers, -1):
            return not self._reaches(name, ratio.factor)
        low, high = self.facts.range_of(ratio)
        above, below = ratio._parts()
        return bool(high < 1) or (not low >= 1 and self.facts.holds(above, "<", below))

    def _reaches(self, name: str, bound: Fraction) -> bool:
        """Ask whether a name is at most a number."""
        return self.facts.name_is_below(name, Fraction(math.floor(bound) + 1))

    def __lt__(self, other: Any) -> bool:
        return self.is_below(other)

    def __ge__(self, other: Any) -> bool:
        return not self.is_below(other)

    def __gt__(self, other: Any) -> bool:
        return other.is_below(self) if isinstance(other, Symbol) else not self.is_below(other + 1)

    def __le__(self, other: Any) -> bool:
        return not self > other


def _whole_quotient(quotient: Any) -> Any:
    if quotient is None:
        raise Undecidable
    return quotient


def _power(end: float, power: int) -> Any:
    return Fraction(int(end)) ** power if abs(end) != math.inf else end**power


def _only(powers: Mapping[str, int], power: int = 1) -> str | None:
    """Return the name of a product of one name to this power."""
    (name, found), *others = powers.items() or [("", 0)]
    return name if found == power and not others else None


class Flag:
    """A truth that is not known."""

    def __init__(self, facts: Facts, name: str) -> None:
        self._facts, self._name = facts, name

    def __bool__(self) -> bool:
        return self._facts.holds(self._name, "is", "true")


class Text:
    """A text that is not known, such as an element type."""

    def __init__(self, facts: Facts, name: str) -> None:
        self._facts, self._name = facts, name

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        found = next((fact.right for fact in self._facts.taken if fact.left == self._name and fact.holds), None)
        return self._facts.holds(self._name, "is", other) if found is None else found == other

    __hash__ = None  # type: ignore[assignment]
