"""A decision about a call with unknown parts holds for every value of those parts."""

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction

import pytest

from conformance.load.spec import load_spec
from conformance.meaning import partial, symbols
from conformance.meaning.contract import Contract, contracts
from conformance.meaning.partial import Branch, Length, Lengths, PartialCall
from conformance.meaning.symbols import Fact
from conformance.model import CallForm

from .rules import inferred, literal, rule, volume

SPEC = load_spec(None)
COMPILED = contracts(SPEC)
FORM = CallForm("f32", "f32", "s64")
OTHERWISE = "; otherwise illegal: same-volume"


def decide(
    src: Lengths | None, shape: Lengths | None, zero: bool | None = True, form: CallForm = FORM
) -> tuple[Branch, ...]:
    return partial.decide(COMPILED["static-graph-v0.9"], PartialCall(src, shape, zero, form))


def kind(branches: tuple[Branch, ...]) -> str | None:
    """Return what a call means in any case; None if that depends on what is not known."""
    found = {branch.kind for branch in branches}
    return found.pop() if len(found) == 1 else None


def rows(values: tuple[Length, ...], most: int) -> Iterator[Lengths]:
    return itertools.chain.from_iterable(itertools.product(values, repeat=rank) for rank in range(most + 1))


def completions(row: Lengths, unknown: tuple[int, ...], name: int) -> Iterator[tuple[int, ...]]:
    choices = [(n,) if isinstance(n, int) else (name,) if isinstance(n, str) else unknown for n in row]
    return itertools.product(*choices)


def count_decided(document: str, src: Iterable[Lengths], shapes: Iterable[Lengths]) -> int:
    """Compare each decision about partly known calls with the meanings of all completions; return their number."""
    whole = COMPILED[document].meaning
    decided = 0
    for call in (PartialCall(*each, FORM) for each in itertools.product(src, shapes, (True, False, None))):
        decision = kind(partial.decide(COMPILED[document], call))
        if decision is None or call.src is None or call.shape is None:
            continue
        decided += 1
        zeros = (True, False) if call.special_zero is None else (call.special_zero,)
        for name in (1, 2, 3):
            rows = completions(call.src, (1, 2, 3), name), completions(call.shape, (-2, -1, 0, 1, 2, 3), name)
            for full in itertools.product(*rows, zeros):
                assert whole(*full, FORM).kind == decision, (call, full)
    return decided


@pytest.mark.parametrize(
    ("document", "src", "shape", "least"),
    [
        ("static-graph-v0.9", (2, None, "b"), (-1, 0, 2, "b"), 150),
        *(
            pytest.param(document, (1, 2, None, "b"), (-2, -1, 0, 2, None, "b"), 900, marks=pytest.mark.slow)
            for document in ("static-graph-v0.9", "static-oneapi")
        ),
    ],
)
def test_a_decision_holds_for_every_completion(
    document: str, src: tuple[Length, ...], shape: tuple[Length, ...], least: int
) -> None:
    assert count_decided(document, rows(src, 2), rows(shape, 2)) > least


def value(text: str, names: dict[str, int]) -> Fraction:
    """The value of a length such as `3*n/2`, or of what a division leaves."""
    if text in names:
        return Fraction(names[text])
    if " mod " in text:
        left, right = text[1:-1].split(" mod ")
        return value(left, names) % value(right, names)
    above, *below = text.split("/")
    factors = [value(part, names) if part in names else Fraction(int(part)) for part in above.split("*")]
    divisors = [value(part, names) if part in names else Fraction(int(part)) for part in below]
    return Fraction(math.prod(factors)) / Fraction(math.prod(divisors))


def holds(fact: Fact, names: dict[str, int]) -> bool:
    left, right = value(fact.left, names), value(fact.right, names)
    truths = {"=": left == right, "<": left < right, "is a multiple of": right != 0 and left % (right or 1) == 0}
    return truths[fact.relation] == fact.holds


def check_runs(document: str, call: PartialCall, most: int) -> None:
    """For each value of the names, the facts of one run hold, and it means what the whole call means."""
    assert call.src is not None
    assert call.shape is not None
    found = list(symbols.runs(lambda facts: partial.find_meaning_with(facts, COMPILED[document], call)))
    own = [f"shape[{k}]" for k, n in enumerate(call.shape) if n is None]
    for n, m, *unknown in itertools.product(*[range(1, most)] * 2, *[(-2, -1, 0, 1, 2, 6)] * len(own)):
        names = {"n": n, "m": m, **dict(zip(own, unknown, strict=True))}
        src = tuple(int(value(str(n), names)) for n in call.src)
        texts = [f"shape[{k}]" if n is None else str(n) for k, n in enumerate(call.shape)]
        shape = tuple(names[t] if t in names else int(t) if t[0] == "-" else int(value(t, names)) for t in texts)
        (run,) = (run for run in found if all(holds(fact, names) for fact in run.facts))
        assert run.result is not None
        dst = run.result.dst and tuple(d if not isinstance(d, str) else value(d, names) for d in run.result.dst)
        assert run.result._replace(dst=dst) == COMPILED[document].meaning(src, shape, call.special_zero, FORM), call


def drawn_calls(seed: int) -> Iterator[tuple[str, PartialCall]]:
    draw = random.Random(seed)
    lengths = (0, 1, 2, 3, 4, 6, 12, "n", "m", "2*n", "3*m", "n*m")
    while True:
        src = tuple(draw.choice(lengths) for _ in range(draw.randint(0, 3)))
        shape = tuple(draw.choice((*lengths, -1, -1, -1, 0, 0, None)) for _ in range(draw.randint(0, 3)))
        yield draw.choice([*COMPILED]), PartialCall(src, shape, draw.random() < 0.5, FORM)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "count", "most", "most_unknown"),
    [(1, 150, 9, 9), pytest.param(2, 1_000, 51, 12, marks=pytest.mark.exhaustive)],
)
def test_each_run_is_the_meaning_where_its_facts_hold(seed: int, count: int, most: int, most_unknown: int) -> None:
    for document, call in itertools.islice(drawn_calls(seed), count):
        check_runs(document, call, most if None not in (call.shape or ()) else most_unknown)


@pytest.mark.parametrize(
    ("src", "shape", "said"),
    [
        (("batch", 256, 6, 6), (0, 9216), "legal for every length (dst [batch, 9216])"),
        (("batch", 3, 4), (-1, 12), "legal for every length (dst [batch, 12])"),
        (("batch", 3, 4), ("batch", -1), "legal for every length (dst [batch, 12])"),
        (("batch", "time", 4), (-1,), "legal for every length (dst [4*batch*time])"),
        (("n", 3), (3, "n", 0), "unspecified for every length (if answered, [3, n, 1]): zero-past-rank"),
        (("batch", 256, 6, 6), (1, 9216), "legal if and only if batch = 1; otherwise illegal: same-volume"),
        (("n", 3), (-1, 2), "legal if and only if n is even (dst [3*n/2, 2]); otherwise illegal: same-volume"),
        (("n", "n"), (-1, 6), f"legal if and only if n*n is a multiple of 6 (dst [n*n/6, 6]){OTHERWISE}"),
        (("n", "n"), (3,), "illegal for every length: same-volume"),
        (("n", "n"), (9,), f"legal if and only if n = 3{OTHERWISE}"),
        (("n", "n", "n"), (3,), "illegal for every length: same-volume"),
        (("n", "n", "n"), (2, 4), f"legal if and only if n = 2{OTHERWISE}"),
        (("n", "n"), (2, "m", "m"), "illegal for every length: same-volume"),
        (("n", "n"), (9, "m", "m"), f"legal if and only if 3*m = n (dst [9, m, m]){OTHERWISE}"),
        (("n", 2, "n"), (4, 2), f"legal if and only if n = 2{OTHERWISE}"),
        ((12,), ("n", "n"), "illegal for every length: same-volume"),
        ((12,), ("n", 3, "n"), f"legal if and only if n = 2{OTHERWISE}"),
        (("n + 1", 3), (-1, 2), f"legal if and only if n + 1 is even (dst [3*(n + 1)/2, 2]){OTHERWISE}"),
        (("m",), (-1, 1, 0), "unspecified for every length: zero-past-rank"),
        (("m", "n"), (-1, 1, 0, 0), "unspecified for every length: zero-past-rank"),
        (("n", 6), (0, "m", -1), f"legal if and only if 6 is a multiple of m (dst [n, m, 6/m]){OTHERWISE}"),
        ((8, 2), ("k", -1, "n", 6), "illegal for every length: same-volume"),
        (("n", 2), ("m", 2), "legal if and only if m = n (dst [m, 2]); otherwise illegal: same-volume"),
        (("n", 0), (0, -1), "legal for every length (dst [n, 0])"),
        (("n", 0), (-1, 0), "unspecified for every length: infer-undetermined"),
        (("batch", 3), (7,), "illegal for every length: same-volume"),
        (("batch", 5), (0, 7), "illegal for every length: same-volume"),
        ((None, 5), (-1, -1), "illegal for every length: one-infer"),
        (None, (-2,), "illegal for every length: lower-bound"),
        (None, (2, 3), "not decided"),
    ],
)
def test_conditions(src: Lengths | None, shape: Lengths, said: str) -> None:
    assert partial.describe(decide(src, shape)) == said


LENGTHS_PAST_FLOATS = (2**62,) * 18
"""Its product does not fit a float."""


@pytest.mark.parametrize(
    ("yours", "src", "shape", "said"),
    [
        (
            {"requires": "all(d <= 4 for d in shape)"}, ("n",), ("m",),
            "legal if and only if m < 5 and m = n (dst [m]); otherwise illegal: volume, yours",
        ),
        (
            {"requires": "len(src) > 1 and src[0] < src[1]"}, ("n", "m"), (3, "m"),
            "legal if and only if n < m and n = 3 (dst [3, m]); otherwise illegal: volume, yours",
        ),
        (
            {"requires": "product(src) > product(shape)"}, ("m", 3, "m"), ("n",),
            "illegal for every length: volume, yours",
        ),
        ({"requires": "product(shape) < product(src)"}, ("n",), (-1, -1, "n"), "illegal for every length: yours"),
        (
            {"requires": "product(shape) <= product(src)"}, ("n",), (-1, "m"),
            "legal if and only if n is a multiple of m (dst [n/m, m]); otherwise illegal: volume",
        ),
        (
            {"requires": "len(src) > 1 and -src[0] < -src[1]"}, ("n", "m"), ("n", "m"),
            "legal if and only if m < n (dst [n, m]); otherwise illegal: yours",
        ),
        (
            {"requires": "product(shape) % 6 == 0"}, ("n", "m"), (-1, "n", "m"),
            "legal if and only if (-1)*m*n is a multiple of 6 (dst [1, n, m]); otherwise illegal: yours",
        ),
        ({"ensures": "all(n <= 9 for n in dst)"}, ("n", 3), (3, 0, 0, 0), "not decided"),
        ({"requires": "len(src) > 0"}, ("n", "m", *LENGTHS_PAST_FLOATS), (7,), "illegal for every length: volume"),
        (
            {"requires": "len(src) > 0"}, LENGTHS_PAST_FLOATS, tuple("abcdefghijklmnopqr"),
            f"legal if and only if a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*q*r = {math.prod(LENGTHS_PAST_FLOATS)} "
            "(dst [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r]); otherwise illegal: volume",
        ),
    ],
)  # fmt: skip
def test_conditions_of_your_rules(yours: dict[str, str], src: Lengths, shape: Lengths, said: str) -> None:
    copied = rule("copied", where="d == 0", gives="src[i]")
    contract = Contract([literal(), inferred(), copied, volume(), rule("yours", "must", **yours)])
    assert partial.describe(partial.decide(contract, PartialCall(src, shape, True, None))) == said


def test_without_a_volume_rule_another_volume_is_legal() -> None:
    rules = [rule for rule in SPEC.rules.values() if "static-graph-v0.9" in rule.documents and rule.id != "same-volume"]
    contract = Contract(rules, ("f32",), ("s64",))
    (legal,), (many,) = (
        partial.decide(contract, PartialCall(("batch", 3), shape, True, FORM)) for shape in ((7,), (-1,))
    )
    assert (legal.kind, legal.dst, many.kind, many.dst) == ("legal", (7,), "unspecified", (None,))


def test_a_type_that_is_not_known_leaves_a_call_undecided() -> None:
    assert kind(decide((2, 3), (6,), form=FORM._replace(src_type="", dst_type=""))) is None
    assert kind(decide((2, 3), (-1, -1), form=FORM._replace(src_type="", dst_type=""))) == "illegal"


def test_each_call_of_a_branch_breaks_each_of_its_rules() -> None:
    """With m = 3 and special_zero the volumes are equal, and only the declared dims are broken."""
    contract, form = COMPILED["static-oneapi"], FORM._replace(declared=(1, 4))
    assert contract.meaning((3, 3), (3, 0), True, form).rules == ("declared-output",)
    branches = partial.decide(contract, PartialCall(("m", 3), (3, 0), None, form))
    assert {rules for _, _, rules, _ in branches} == {("declared-output",), ("same-volume",)}
    assert partial.describe(branches) == "illegal for every length: declared-output, same-volume"


def test_contradictory_declared_dims_are_illegal() -> None:
    assert kind(decide(("batch", 6), (0, 2, 3), form=FORM._replace(declared=(None, 3, 2)))) == "illegal"
    assert kind(decide(("batch", 6), (0, 2, 3), form=FORM._replace(declared=(None, None, 3)))) == "legal"
    assert kind(decide(("batch", 6), (0, 2, 3), form=FORM._replace(declared=(1, 2, 3)))) is None
    assert kind(decide(("batch", 6), (0, 6), form=FORM._replace(declared=(None, 2, 3)))) == "illegal"
