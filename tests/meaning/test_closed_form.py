"""The closed form of a contract says what a search says."""

import functools
import itertools
import math
import random
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import SMALL_DOMAIN, TINY_DOMAIN, calls
from conformance.meaning.expression import FORM_NAMES
from conformance.model import CallForm, Expression, Meaning, Rule, Spec
from tests.builders import DOCUMENTS

from .rules import FORM, HERE, binding, forms, inferred, literal, rule


def slow_agrees(dst: tuple[int, ...], declared: tuple[int | None, ...] | None) -> bool:
    if declared is None:
        return True
    return len(dst) == len(declared) and not any(b is not None and a != b for a, b in zip(dst, declared, strict=True))


@functools.cache
def code(text: str) -> CodeType:
    return compile(text.strip(), "<rule>", "eval")


def of_form(rule: Rule) -> bool:
    expression = rule.requires or rule.when
    return expression is not None and bool(set(code(expression.text).co_names) & FORM_NAMES)


class Search:
    """Find the meaning of a call by trying every dst, without the compiled function."""

    def __init__(self, rules: list[Rule], types: tuple[str, ...] = (), shape_types: tuple[str, ...] = ()) -> None:
        self.rules = rules
        self.of_call = [each for each in rules if not of_form(each)]
        self.functions = {"product": math.prod, "agrees": slow_agrees, "types": types, "shape_types": shape_types}

    def value(self, expression: Expression, names: dict[str, Any], **more: Any) -> Any:
        """The value for these names; more of them are added for good, as the next value replaces them."""
        names.update(more)
        return eval(code(expression.text), names)

    def meaning(
        self, src: tuple[int, ...], shape: tuple[int, ...], zero: bool, form: CallForm | None = None
    ) -> Meaning:
        names: dict[str, Any] = {**self.functions, "src": src, "shape": shape, "special_zero": zero}
        if form is not None:
            names |= form._asdict()
        asked = self.of_call if form is None else self.rules
        broken = tuple(r.id for r in asked if r.requires and not self.value(r.requires, names))
        if broken:
            return Meaning("illegal", None, broken)
        open_, possible = self.solutions(names)
        bounds = [r.ensures for r in self.rules if r.ensures and r.ensures.text.startswith("all")]
        if not any(all(self.value(e, names, dst=dst) for e in bounds) for dst in possible):
            return Meaning("illegal", None, ())
        silent = tuple(r.id for r in asked if r.when and r.level == "silent" and self.value(r.when, names))
        each = [{dst[i] for dst in possible} for i in range(len(shape))]
        dst = tuple(min(values) if len(values) == 1 else None for values in each)
        if silent or len(open_) > 1 or self.has_unknown_entry(src, shape, zero):
            limits = [self.value(Expression(e.text.split("<=")[1].split(" for ")[0], HERE), names) for e in bounds]
            return Meaning("unspecified", dst, silent, min(limits, default=None))
        names["dst"] = dst
        return Meaning(
            "legal", dst, tuple(r.id for r in asked if r.level == "capacity" and r.when and self.value(r.when, names))
        )

    def has_unknown_entry(self, src: tuple[int, ...], shape: tuple[int, ...], zero: bool) -> bool:
        """An entry is unexplained if no rule gives it a meaning."""
        names = {**self.functions, "src": src, "shape": shape, "special_zero": zero}
        wheres = [r.where for r in self.rules if r.where]
        return not all(any(self.value(w, names, i=i, d=d) for w in wheres) for i, d in enumerate(shape))

    def solutions(self, names: dict[str, Any]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Every dst up to the bound that the rules allow, and those of them that agree with what was declared."""
        ensures = [r.ensures for r in self.rules if r.ensures]
        volumes = [e for e in ensures if e.text.startswith("product")]
        # Where a product is not 0 no length in it exceeds it, and where it is 0 three lengths show that any will do.
        bound = max([2, *(self.value(Expression(e.text.split("==", 1)[1], HERE), names) for e in volumes)])
        declared = names.get("declared") or ()
        free = sorted({*range(bound + 1), *(length for length in declared if length is not None and length >= 0)})
        choices = [self.choice(i, d, names, free) for i, d in enumerate(names["shape"])]
        open_ = [dst for dst in itertools.product(*choices) if all(self.value(e, names, dst=dst) for e in volumes)]
        agreeing = [e for e in ensures if e.text.startswith("agrees")] if "declared" in names else []
        return open_, [dst for dst in open_ if all(self.value(e, names, dst=dst) for e in agreeing)]

    def choice(self, i: int, d: int, names: dict[str, Any], free: list[int]) -> list[int]:
        given = set()
        for each in self.rules:
            if not (each.where and each.gives) or each.gives.text == "inferred":
                continue
            if self.value(each.where, names, i=i, d=d):
                try:
                    given.add(self.value(each.gives, names))
                except IndexError:  # reads past src: the entry is free
                    continue
        if not given:
            return free
        return [next(iter(given))] if len(given) == 1 and min(given) >= 0 else []


def assert_same(contract: Contract, search: Search, *call: Any) -> None:
    want, got = search.meaning(*call), contract.meaning(*call)
    where = f"{call} means {got}, a search says {want}"
    if search.has_unknown_entry(*call[:3]) and want.kind != "illegal":  # the volume decides nothing then
        assert got.kind == "unspecified", where
        assert len(got.dst or ()) == len(want.dst or ()), where
        assert all(a in {None, b} for a, b in zip(got.dst or (), want.dst or (), strict=True)), where
        return
    assert (want.kind, want.dst, want.max_length) == (got.kind, got.dst, got.max_length), where
    if want.rules:  # which of several equations fails is not for a search to say
        assert want.rules == got.rules, where


def search_of(spec: Spec, document: str) -> Search:
    operation = spec.operations[spec.documents[document].operation]
    return Search(binding(spec, document), operation.types, operation.shape_types)


def test_the_documents_are_those_that_these_tests_name(spec: Spec) -> None:
    assert sorted(spec.documents) == sorted(DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_closed_form_says_what_a_search_says(spec: Spec, document: str) -> None:
    contract, search = contracts(spec)[document], search_of(spec, document)
    turn = DOCUMENTS.index(document)  # each document takes its turn, for most rules are shared
    for call in itertools.islice(calls(SMALL_DOMAIN), turn, None, 5):
        assert_same(contract, search, *call)
    for call, form in itertools.islice(itertools.product(calls(TINY_DOMAIN), forms()), 0, None, 3):
        assert_same(contract, search, *call, form)


def declarations(shape: tuple[int, ...]) -> Iterator[tuple[int | None, ...]]:
    for length in (len(shape), len(shape) + 1):
        yield from itertools.product((None, 0, 1, 2, 5), repeat=min(length, 3))


@pytest.mark.parametrize("third", [0, *(pytest.param(third, marks=pytest.mark.slow) for third in (1, 2))])
def test_a_declaration_is_weighed_as_a_search_would(spec: Spec, third: int) -> None:
    contract, search = (
        contracts(spec)["reshape-spec-v0.7"],
        Search(binding(spec, "reshape-spec-v0.7"), ("f32",), ("s64",)),
    )
    sources = [(), (0,), (2,), (4,), (0, 3), (2, 2)]
    shapes = [(), (0,), (-1,), (2,), (0, -1), (2, -1), (0, 0), (-1, 0), (1, 0, -1), (0, 0, -1), (2, 0, -1), (0, 2)]
    for src, shape, zero in itertools.product(sources, shapes, (True, False)):
        for declared in itertools.islice(declarations(shape), third, None, 3):  # lengths there come in fives
            assert_same(contract, search, src, shape, zero, FORM._replace(declared=declared))


NUMBERS = ["d", "i", "src[i]", "shape[i]", "src[1]", "len(src)", "len(shape)", "product(src)", "sum(shape)"]
NUMBERS += ["0", "1", "2", "-1", "sum(x for x in src if x > 1)"]
NUMBERS += ["product(src[k] for k in range(len(src)) if k < len(shape))"]
TARGETS = ["product(src)", "product(src) * 2", "product(src) + len(shape)", "sum(src)", "len(src) - 1", "0", "6"]


def random_rules(rng: random.Random) -> list[Rule]:
    """A set of rules such as a person might write, contradictions included."""
    compare = ("==", "!=", "<", ">=")

    def truth(numbers: list[str]) -> str:
        parts = []
        for _ in range(rng.choice((1, 1, 2))):
            simple = [n for n in numbers if "src[" not in n or "for" in n]
            part = f"{rng.choice(simple)} {rng.choice(compare)} {rng.choice(simple)}"
            others = (f"not {part}", "special_zero", "-1 in shape", "any(x == 0 for x in src)")
            parts.append(rng.choice((part, part, *others)))
        return rng.choice((" and ", " or ")).join(parts)

    of_call = [n for n in NUMBERS if n not in ("d", "i", "src[i]", "shape[i]", "src[1]")]
    rules = [rule("first", where="d > 0", gives="d")] if rng.random() < 0.7 else []
    rules += [rule(f"gives-{n}", where=truth(NUMBERS), gives=rng.choice(NUMBERS)) for n in range(rng.randrange(3))]
    rules += [rule("inferred", where=rng.choice(("d == -1", "d < 1")), gives="inferred")] if rng.random() < 0.7 else []
    rules += [rule(f"requires-{n}", requires=truth(of_call)) for n in range(rng.choice((0, 0, 1)))]
    rules += [rule(f"silent-{n}", "silent", when=truth(of_call)) for n in range(rng.choice((0, 1)))]
    targets = rng.sample(TARGETS, rng.choice((0, 1, 1, 1, 2)))
    rules += [rule(f"ensures-{n}", ensures=f"product(dst) == {target}") for n, target in enumerate(targets)]
    if rng.random() < 0.5:
        rules.append(rule("declared", "decided", ensures="agrees(dst, declared)"))
    if rng.random() < 0.4:
        most = rng.choice(("2", "1", "3", "len(shape)", "product(src) - 1"))
        rules.append(rule("longest", ensures=f"all(n <= {most} for n in dst)"))
    return rules


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8))])
def test_the_closed_form_of_any_rules_says_what_a_search_says(seed: int) -> None:
    rng = random.Random(seed)
    kinds = set()
    for _ in range(60):
        rules = random_rules(rng)
        contract, search = Contract(rules), Search(rules)
        for _ in range(25):
            src = tuple(rng.randrange(4) for _ in range(rng.randrange(3)))
            shape = tuple(rng.randrange(-2, 4) for _ in range(rng.randrange(4)))
            declared = tuple(rng.choice((None, 0, 1, 2, 3)) for _ in shape) if rng.random() < 0.5 else None
            form = rng.choice((None, FORM._replace(declared=declared)))
            assert_same(contract, search, src, shape, rng.random() < 0.5, form)
            kinds.add(contract.meaning(src, shape, False).kind)
    assert kinds == {"legal", "illegal", "unspecified"}


@pytest.mark.parametrize(
    ("src", "shape", "kind"),
    [
        ((8,), (-1, -1), "illegal"), ((6,), (-1, -1), "unspecified"), ((10,), (-1, -1, -1), "illegal"),
        ((18,), (-1, -1, -1), "unspecified"), ((18,), (-1, -1), "illegal"), ((0,), (-1, -1), "unspecified"),
        ((3,), (3,), "legal"), ((4,), (4,), "illegal"), ((4,), (-1,), "illegal"), ((0,), (4, 0), "illegal"),
        ((2**40,), (-1,) * 39, "illegal"), ((2**40,), (-1,) * 41, "unspecified"), ((3**25,), (-1,) * 24, "illegal"),
        ((2**61 - 1,), (-1,) * 60, "illegal"),
    ],
)  # fmt: skip
def test_a_call_is_illegal_if_every_dst_has_too_large_a_length(
    src: tuple[int, ...], shape: tuple[int, ...], kind: str
) -> None:
    volume = rule("volume", ensures="product(dst) == product(src)")
    zero = rule("zero", where="d == 0", gives="0")
    longest = rule("longest", ensures="all(n <= 3 for n in dst)")
    meaning = Contract([literal(), zero, inferred(), volume, longest]).meaning(src, shape, False)
    assert meaning.kind == kind
    assert meaning.rules == (("longest",) if kind == "illegal" else ())
    assert meaning.max_length == (3 if kind == "unspecified" else None)
