"""The language of contracts refuses what it must, the closed form says what a search says, every rule counts."""

from __future__ import annotations

import ast
import functools
import itertools
import math
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from conformance.load.spec import load_spec
from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import FULL, SMALL, TINY, calls
from conformance.meaning.expression import CALL_NAMES, ENTRY_NAMES, FORM_NAMES, NUMBER, Invalid, parse
from conformance.model import Expression, Form, Level, Malformed, Meaning, Place, Rule, Spec
from conformance.tests.folders import one_rule, problems_of, quoted, tiny
from conformance.tests.small import DOCUMENTS

HERE = Place("spec/rules.yaml", 1)
NAMES = CALL_NAMES | FORM_NAMES
LARGE = 2**63 - 1
FORM = Form("f32", "f32", "s64")

# ── the language ──────────────────────────────────────────────────────────────────────────────────
REFUSED_FOR = {
    # words of the message: texts
    "call of 'shape.count'": ["shape.count(-1) <= 1"],
    "'src.__class__' is not allowed": ["src.__class__ == shape"],
    "is not allowed": [
        "().__class__ == ()", "True if special_zero else False", "product(src) << 2 == 4", "product(src) & 2 == 4",
        "product(src) / 2 == 4", "~product(src) == 4", "+product(src) == 4", "src @ src == 4", "(lambda d: d)",
        "(n := 1) == 1", "any((n := d) == 1 for d in shape)", "f'{src}' == 'a'", "f'{src_type}' == src_type",
        "[1, 2] == src", "[d for d in shape] == src", "{1, 2} == src", "{d for d in shape} == src", "{1: 2} == src",
        "len({d: d for d in shape}) > 1", "sum(*shape) == 1", "special_zero is True", "(yield special_zero)",
        "await special_zero",
    ],
    "'src.real' is not allowed": ["len(src.real) > 1"],
    "call of 'max'": ["max(shape) > 1"],
    "call of '__import__'": ["__import__('os') == 1"],
    "call of 'eval'": ["eval('1') == 1"],
    "call of 'product(src)'": ["product(src)(src) == 1"],
    "call of": ["(lambda: 1)() == 1"],
    "unknown name 'dst'": ["dst == src"],
    "unknown name 'd'": ["d > 0"],
    "unknown name 'len'": ["len == 1"],
    "unknown name 'product'": ["all(product for d in shape)"],
    "* a few times": ["product(src) ** 2 == 4"],
    "larger than 2^63": ["product(src) < 9223372036854775809", f"product(src) < {'9' * 300}"],
    "not a whole number": [
        "product(src) < 1.5", "product(src) < 1e300", "product(src) == 1j", "src_type == b'f32'",
        "special_zero == None", "src == ...",
    ],
    "loop inside a loop": [
        "any(any(a == b for a in src) for b in shape)", "any(a == b for a in src for b in shape)",
        "any(sum(a for a in src) == b for b in shape)",
    ],
    "a loop over 'range(10)'": ["all(d > 0 for d in range(10))"],
    "a loop over 'range(product(src))'": ["all(d > 0 for d in range(product(src)))"],
    "a loop over": [
        "all(d > 0 for d in range(len(src) * 9))", "all(d > 0 for d in (1, 2, 3))", "all(d > 0 for d in src + shape)",
        "all(d > 0 for d in src[0])", "all(d == 'a' for d in 'abc')", "all(d > 0 for i, d in enumerate(shape, 1))",
    ],
    "is text": [
        "all(d == 'a' for d in src_type)", "len('a' * 1000000) > 1",
        "any(t * 1000000000 == 'a' for t in extra_attributes)", "src_type * 1000000000 == 'a'",
        "any(t % 1 == 'a' for t in extra_attributes)", "agrees(src_type, src)",
    ],
    "is true or false": [
        "all(d > 0 for d in special_zero)", "special_zero[0] == 1", "len(special_zero) == 1",
        "product(src) + True == 2",
    ],
    "is a declaration": ["all(d > 0 for d in declared)", "len(declared) == 1"],
    "is a number": ["all(d > 0 for d in shape_rank)"],
    "outside of a loop": ["len(range(len(src))) > 1", "len(enumerate(src)) > 1"],
    "hides the name 'src'": ["all(src > 0 for src in shape)"],
    "hides the name 'len'": ["all(len > 0 for len in shape)"],
    "hides the name 'dst'": ["all(dst > 0 for dst in shape)"],
    "hides the name 'types'": ["all(types > 0 for types in shape)"],
    "hides the name '_volume'": ["all(_volume == product(src) for _volume in shape)"],
    "hides the name '__debug__'": ["all(__debug__ > 0 for __debug__ in shape)"],
    "binds two plain names": [
        "all(i > 0 for i, i in enumerate(shape))", "all(i > 0 for i in enumerate(shape))",
        "all(d > 0 for (d,) in enumerate(shape))", "all(d > 0 for (a, b), d in enumerate(shape))",
        "all(d > 0 for i, d, src[0] in enumerate(shape))", "all(d > 0 for i, i, d in enumerate(shape))",
    ],
    "binds one plain name": [
        "all(i > 0 for i, d in shape)", "all(1 > 0 for src[0] in shape)", "all(1 > 0 for *d, in shape)",
    ],
    "may read past the end": [
        "(types[0] * 1000000000) == 'a'", "src[0] == 1", "0 < len(src) and src[1] == 1",
        "0 < len(shape) and src[0] == 1", "0 < len(src) or src[0] == 1", "src[0] == 1 and 0 < len(src)",
        "not 0 < len(src) and src[0] == 1", "any(src[i] == d for i, d in enumerate(shape))",
        "any(src[0] == d for i, d in enumerate(src))",
    ],
    "where a number or an index is wanted": [
        "len((1,) * 1000000) > 1", "len(src * 1000000) > 1", "src + shape == src", "special_zero * 3 == 3",
        "-special_zero == 1",
    ],
    "neither a row of numbers nor one of names": ["(1, 'a') == src"],
    "not a plain subscript": [
        "src[-1] == 1", "src[0:1] == shape", "src[True] == 1", "src[len(src) - 1] == 1", "(1, 2)[0] == 1",
        "src['a'] == 1", "src[i] == 1", "any(src[d] == 1 for d in shape)",
    ],
    "may divide by 0": ["product(src) % product(shape) == 0", "product(src) // 0 == 0"],
    "plain argument": [
        "product(start=2, iterable=src) == 1", "sum(src, start=1) == 1", "sum(src, 1) == 1", "len() == 1",
    ],
    "two plain arguments": ["agrees(src) == 1"],
    "a loop outside of a function": ["len(d for d in shape) == 1", "(d for d in shape) == src"],
    "computes with text": ["sum(types) == 1", "product('a' for d in shape) == 1"],
    "write a comparison": ["all(shape)", "any(d for d in shape)"],
    "compares a row of numbers with a row of numbers": ["src < shape"],
    "compares text with text": ["src_type < 'f32'", "'f' in src_type"],
    "compares text with a row of numbers": ["'f32' in src"],
    "compares a number with text": ["1 == '1'"],
    "compares a declaration": ["declared == src", "declared == declared"],
    "compares text with a number": ["0 < len(types) and types[0] == 1"],
    "where true or false is wanted": ["any(d > 0 for d in shape if src)", "special_zero and product(src)"],
    "async": ["any(d > 0 async for d in shape)"],
    "is a number, where true or false": ["not product(src)"],
    "unknown name 'nowhere'": ["not nowhere"],
    "is a number, where true or false is wanted": ["product(src)"],
    "is a row of numbers, where true or false is wanted": ["src"],
    "nested more than": ["1 == 1 + " + "1 + " * 95 + "1", "1 == " + "-" * 300 + "1", "not " * 90 + "special_zero"],
    "not an expression": [
        "(" * 199 + "special_zero" + ")" * 188, "(" * 60 + "special_zero,", "special_zero; 1", "import os", "x = 1",
        "special_zero\nspecial_zero", "", "special_zero and", "1or special_zero", r"src_type == '\d'", "special_zero\0",
        "src_type == '\ud800'", "yield special_zero",
    ],
    "characters long": ["special_zero" + " or special_zero" * 25, "0" * 100000],
}  # fmt: skip
REFUSED = {text: words for words, texts in REFUSED_FOR.items() for text in texts}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:60])
@pytest.mark.filterwarnings("error")
def test_an_expression_outside_of_the_language_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(text, NAMES)
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 2 * len(text) + 400


LOADABLE = [text for text in REFUSED if 0 < len(text) <= 400 and text.isprintable()]


@pytest.mark.parametrize("key", ["requires", "when"])
@pytest.mark.parametrize("text", LOADABLE, ids=lambda text: repr(text)[:60])
def test_a_refusal_at_load_says_path_and_line(tmp_path: Path, text: str, key: str) -> None:
    rules = one_rule("because: none", quoted(key, text))
    if key == "when":
        rules = rules.replace("must:", "silent:")
    (problem,) = problems_of(tiny(tmp_path, rules=rules))
    assert str(problem).startswith("spec/rules.yaml:7: rule 'one-infer': ")
    assert REFUSED[text] in problem.what


def test_every_refused_expression_of_a_folder_is_named_with_its_own_line(tmp_path: Path) -> None:
    rules = one_rule("where: x > 0", "gives: z")
    wrong = {"a": "requires: z", "b": "ensures: product(dst) == dst", "c": "ensures: product(dst) == w"}
    rules += "".join(
        f"  - id: {name}\n    must: Another.\n    stated:\n      only: [3, here]\n    {form}\n"
        for name, form in wrong.items()
    )
    problems = problems_of(tiny(tmp_path, rules=rules))
    assert [problem.place.line for problem in problems] == [6, 12, 17, 22]


def test_what_is_refused_in_one_document_does_not_hide_what_is_in_another(spec: Spec) -> None:
    wrong = [
        replace(rule(name, requires="x"), documents=frozenset({document}))
        for name, document in {"a": "static-2022", "b": "reshape-2020"}.items()
    ]
    with pytest.raises(Malformed) as malformed:
        contracts(replace(spec, rules={each.id: each for each in wrong}))
    assert [problem.what[:9] for problem in malformed.value.problems] == ["rule 'a':", "rule 'b':"]


def test_a_gives_is_refused_at_its_own_line(tmp_path: Path) -> None:
    (problem,) = problems_of(tiny(tmp_path, rules=one_rule("where: d > 0", "gives: special_zero")))
    assert str(problem) == (
        "spec/rules.yaml:7: rule 'one-infer': 'special_zero' is true or false, where a number is wanted"
    )


@pytest.mark.parametrize("text", [
    "product(dst) == product(dst)", "product(dst) == len(dst)", "product(dst) == product(src) * len(declared)",
    "product(dst) == product(src) and agrees(dst, declared)", "product(dst) <= product(src)",
    "product(src) == product(dst)", "dst == src", "agrees(declared, dst)", "agrees(dst, src)",
    "not agrees(dst, declared)", "all(d > 0 for d in dst)", "product(dst) == 1 == 1", "all(n <= n for n in dst)",
    "all(n <= len(dst) for n in dst)", "all(n <= 3 for n in dst if n > 1)", "all(n < 3 for n in dst)",
    "all(n <= 3 for n in shape)", "any(n <= 3 for n in dst)", "all(n <= 3 <= 4 for n in dst)",
])  # fmt: skip
def test_a_condition_on_the_answer_without_closed_form_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match=r"spec/rules\.yaml:1: rule 'a': "):
        Contract([rule("a", ensures=text)])


@pytest.mark.parametrize("text", ["(agrees(dst, declared))", " agrees(dst, declared)"[1:], "agrees( dst,declared )"])
def test_an_agreement_is_known_however_it_is_spaced(text: str) -> None:
    contract = Contract([rule("a", ensures=text), literal()])
    assert contract.meaning((2,), (2,), False, FORM._replace(declared=(3,))).rules == ("a",)
    assert contract.meaning((2,), (2,), False, FORM._replace(declared=(2,))).kind == "legal"


@pytest.mark.parametrize("text", [
    "sum(d == -1 for d in shape) <= 1", "special_zero or not (0 in shape and -1 in shape)",
    "any(d == 0 and i >= len(src) for i, d in enumerate(shape))",
    "any(i < len(src) and src[i] == d for i, d in enumerate(shape))",
    "any(src[i] == d for i, d in enumerate(shape) if i < len(src))", "all(src[k] > 0 for k in range(len(src)))",
    "2 < len(src) and src[2] == 1 and src[0] == 1", "len(src) > 0 and (special_zero or src[0] == 1)",
    "0 <= product(src) % 7 < 3 and product(src) // 2 != -4", "shape_rank == 1 and shape_type in ('s32', 's64')",
    "not missing_attributes and src_type in types", "shape != () and extra_attributes == ()",
    "any(t == src_type for t in shape_types)", "product(src) <= 9223372036854775808",
    "special_zero == (len(shape) > 3)", "agrees(src, shape)", "shape == (2, -1) or product((2, 3)) == product(src)",
    "product(src) < 3 and special_zero", "sum(i for i in range(len(src))) < 9",
    "any((i < len(src) and d > 0) and src[i] == d for i, d in enumerate(shape))",
])  # fmt: skip
def test_an_expression_of_the_language_is_accepted(text: str) -> None:
    contract = Contract([rule("a", requires=text)], ("f32",), ("s64",))
    for src, shape, zero in calls(TINY):
        assert contract.meaning(src, shape, zero, FORM).kind in ("illegal", "unspecified", "legal")


def test_an_index_is_a_number_and_no_truth() -> None:
    with pytest.raises(Malformed, match="'i' is an index, where true or false is wanted"):
        Contract([rule("a", where="i", gives="d")])
    contract = Contract([rule("a", where="shape == (d, i)", gives="i"), rule("b", where="i > 0", gives="d")])
    assert contract.meaning((0,), (0, 0), False).dst == (0, 0)


def test_a_loop_in_a_rule_does_not_mix_its_names_with_those_around_it() -> None:
    contract = Contract([
        rule("a", requires="all(volume != product(src) for volume in shape)"),
        rule("b", requires="all(rank < 9 for rank in shape)"),
        rule("c", requires="all(known + free < 99 for known, free in enumerate(shape))"),
        literal(),
    ])  # fmt: skip
    assert contract.meaning((6,), (2, 3), False).kind == "legal"
    assert contract.meaning((6,), (6,), False).rules == ("a",)


def test_a_name_in_quotes_that_looks_like_an_expression_stays_text() -> None:
    contract = Contract([rule("a", requires="src_type == 'product(src)'")])
    assert contract.meaning((), (), False, FORM._replace(src_type="product(src)")).kind == "legal"


WORDS = ["src", "shape", "special_zero", "d", "i", "dst", "declared", "types", "src_type", "missing_operands", "x"]
WORDS += ["len(", "product(", "sum(", "all(", "any(", "enumerate(", "range(", "(", ")", ")", ")", "[", "]", ",", "."]
WORDS += ["for", "in", "and", "or", "not", "==", "<", "+", "-", "*", "//", "%", "**", ":=", ":", "if", "else", "lambda"]
WORDS += ["0", "1", "-1", "'f32'", "1.5"]


def random_expression(rng: random.Random) -> str:
    """A row of words of the language, mostly nonsense."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 12)))


def test_whatever_is_written_is_refused_or_can_be_evaluated() -> None:
    rng = random.Random(5)
    accepted = 0
    for _ in range(30_000):
        text = random_expression(rng)
        try:
            contract = Contract([rule("a", requires=text)], ("f32",), ("s64",))
        except Malformed:
            continue
        accepted += 1
        for src, shape, zero in [((), (), True), ((2, 0), (-1,), False), ((1,), (0, 3, -2), True)]:
            contract.meaning(src, shape, zero, FORM)
    assert accepted > 20


# ── the closed form against a search ──────────────────────────────────────────────────────────────
def rule(name: str, level: Level = "must", **forms: str) -> Rule:
    written: dict[str, Any] = dict.fromkeys(("requires", "where", "gives", "ensures", "when"))
    written.update({key: Expression(text, HERE) for key, text in forms.items()})
    return Rule(
        id=name, level=level, sentence="A.", stated=(), decided_for={}, documents=frozenset({"only"}), because=None,
        implied=False, place=HERE, **written,
    )  # fmt: skip


def literal() -> Rule:
    return rule("literal", where="d > 0", gives="d")


def inferred() -> Rule:
    return rule("inferred", where="d == -1", gives="inferred")


def volume() -> Rule:
    return rule("volume", ensures="product(dst) == product(src)")


def slow_agrees(dst: tuple[int, ...], declared: tuple[int | None, ...] | None) -> bool:
    if declared is None:
        return True
    return len(dst) == len(declared) and not any(b is not None and a != b for a, b in zip(dst, declared, strict=True))


@functools.cache
def code(text: str) -> CodeType:
    return compile(text.strip(), "<rule>", "eval")


class Search:
    """What a call means, found by trying every dst: nothing of the compiled function is used."""

    def __init__(self, rules: list[Rule], types: tuple[str, ...] = (), shape_types: tuple[str, ...] = ()) -> None:
        self.rules = rules
        self.functions = {"product": math.prod, "agrees": slow_agrees, "types": types, "shape_types": shape_types}

    def value(self, expression: Expression, names: dict[str, Any]) -> Any:
        return eval(code(expression.text), {**self.functions, **names})

    def meaning(self, src: tuple[int, ...], shape: tuple[int, ...], zero: bool, form: Form | None = None) -> Meaning:
        names: dict[str, Any] = {"src": src, "shape": shape, "special_zero": zero}
        if form is not None:
            names |= form._asdict()
        asked = [r for r in self.rules if form is not None or not self.of_form(r)]
        broken = tuple(r.id for r in asked if r.requires and not self.value(r.requires, names))
        if broken:
            return Meaning("illegal", None, broken)
        open_, possible = self.solutions(names)
        bounds = [r.ensures for r in self.rules if r.ensures and r.ensures.text.startswith("all")]
        if not any(all(self.value(e, {**names, "dst": dst}) for e in bounds) for dst in possible):
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
        """True if no rule says what some entry stands for."""
        names = {"src": src, "shape": shape, "special_zero": zero}
        wheres = [r.where for r in self.rules if r.where]
        return not all(any(self.value(w, {**names, "i": i, "d": d}) for w in wheres) for i, d in enumerate(shape))

    def of_form(self, rule: Rule) -> bool:
        expression = rule.requires or rule.when
        return expression is not None and bool(set(code(expression.text).co_names) & FORM_NAMES)

    def solutions(self, names: dict[str, Any]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Every dst up to the bound that the rules allow, and those of them that agree with what was declared."""
        ensures = [r.ensures for r in self.rules if r.ensures]
        volumes = [e for e in ensures if e.text.startswith("product")]
        # Where a product is not 0 no length in it exceeds it, and where it is 0 three lengths show that any will do.
        bound = max([2, *(self.value(Expression(e.text.split("==", 1)[1], HERE), names) for e in volumes)])
        declared = names.get("declared") or ()
        free = sorted({*range(bound + 1), *(length for length in declared if length is not None and length >= 0)})
        choices = [self.choice(i, d, names, free) for i, d in enumerate(names["shape"])]
        open_ = [
            dst for dst in itertools.product(*choices) if all(self.value(e, {**names, "dst": dst}) for e in volumes)
        ]
        agreeing = [e for e in ensures if e.text.startswith("agrees")] if "declared" in names else []
        return open_, [dst for dst in open_ if all(self.value(e, {**names, "dst": dst}) for e in agreeing)]

    def choice(self, i: int, d: int, names: dict[str, Any], free: list[int]) -> list[int]:
        given = set()
        for each in self.rules:
            if not (each.where and each.gives) or each.gives.text == "inferred":
                continue
            if self.value(each.where, {**names, "i": i, "d": d}):
                try:
                    given.add(self.value(each.gives, {**names, "i": i, "d": d}))
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
    assert (want.kind, want.dst, want.most) == (got.kind, got.dst, got.most), where
    if want.rules:  # which of several equations fails is not for a search to say
        assert want.rules == got.rules, where


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_spec()


def binding(spec: Spec, document: str) -> list[Rule]:
    return [each for each in spec.rules.values() if document in each.documents]


def search_of(spec: Spec, document: str) -> Search:
    operation = spec.operations[spec.documents[document].operation]
    return Search(binding(spec, document), operation.types, operation.shape_types)


def test_the_documents_are_those_that_these_tests_name(spec: Spec) -> None:
    assert sorted(spec.documents) == sorted(DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_closed_form_says_what_a_search_says(spec: Spec, document: str) -> None:
    contract, search = contracts(spec)[document], search_of(spec, document)
    for number, call in enumerate(calls(SMALL)):
        if number % 5 == DOCUMENTS.index(document):  # each document takes its turn, for most rules are shared
            assert_same(contract, search, *call)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_closed_form_says_what_a_search_says_of_every_form(spec: Spec, document: str) -> None:
    contract, search = contracts(spec)[document], search_of(spec, document)
    for number, (call, form) in enumerate(itertools.product(calls(TINY), forms())):
        if number % 3 == 0:
            assert_same(contract, search, *call, form)


def declarations(shape: tuple[int, ...]) -> Iterator[tuple[int | None, ...]]:
    for length in (len(shape), len(shape) + 1):
        yield from itertools.product((None, 0, 1, 2, 5), repeat=min(length, 3))


def test_a_declaration_is_weighed_as_a_search_would(spec: Spec) -> None:
    contract, search = contracts(spec)["reshape-2020"], Search(binding(spec, "reshape-2020"), ("f32",), ("s64",))
    sources = [(), (0,), (2,), (4,), (0, 3), (2, 2)]
    shapes = [(), (0,), (-1,), (2,), (0, -1), (2, -1), (0, 0), (-1, 0), (1, 0, -1), (0, 0, -1), (2, 0, -1), (0, 2)]
    for src, shape, zero in itertools.product(sources, shapes, (True, False)):
        for declared in declarations(shape):
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


@pytest.mark.parametrize("seed", range(8))
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
def test_a_call_is_illegal_if_each_dst_has_a_length_above_the_largest(
    src: tuple[int, ...], shape: tuple[int, ...], kind: str
) -> None:
    volume = rule("volume", ensures="product(dst) == product(src)")
    zero = rule("zero", where="d == 0", gives="0")
    longest = rule("longest", ensures="all(n <= 3 for n in dst)")
    meaning = Contract([literal(), zero, inferred(), volume, longest]).meaning(src, shape, False)
    assert meaning.kind == kind
    assert meaning.rules == (("longest",) if kind == "illegal" else ())
    assert meaning.most == (3 if kind == "unspecified" else None)


# ── what the closed form promises beyond the domain ───────────────────────────────────────────────
@pytest.mark.parametrize(
    ("src", "shape", "want"),
    [
        ((LARGE,), (-1, 7), (LARGE // 7, 7)),
        ((LARGE - 1,), (-1, 7), None),
        ((LARGE,), (LARGE, 1), (LARGE, 1)),
        ((LARGE,), (LARGE - 1,), None),
        ((2**62, 3), (-1, 2), (3 * 2**61, 2)),
        ((LARGE, LARGE), (-1, LARGE), (LARGE, LARGE)),
        ((LARGE, LARGE), (-1, LARGE - 1), None),
        ((2**63, 2**63, 2**63), (2**126, -1), (2**126, 2**63)),
        ((2**53 + 1,), (2**53,), None),
        ((2**53 + 1,), (-1,), (2**53 + 1,)),
    ],
)  # fmt: skip
def test_lengths_near_two_to_the_sixty_third_are_exact(
    spec: Spec, src: tuple[int, ...], shape: tuple[int, ...], want: tuple[int, ...] | None
) -> None:
    for contract in contracts(spec).values():
        meaning = contract.meaning(src, shape, False)
        assert (meaning.kind, meaning.dst) == (("illegal", None) if want is None else ("legal", want))


def test_rank_sixty_five_is_answered_in_closed_form(spec: Spec) -> None:
    src, shape = (2,) * 65, (0, -1, *(2,) * 63)
    for contract in contracts(spec).values():
        assert contract.meaning(src, shape, True) == Meaning("legal", (2,) * 65, ("rank-limit",))
        assert contract.meaning(src, (3, *(2,) * 64), False).kind == "illegal"
        assert contract.meaning((1,) * 65, (0,) * 60 + (-1,), True).dst == (1,) * 61


def test_time_grows_with_the_rank_and_not_faster(spec: Spec) -> None:
    contract = contracts(spec)["static-2021"]

    def took(rank: int) -> float:
        call = ((1,) * rank, (*(0,) * (rank - 1), -1), True)
        best = 9.0
        for _ in range(5):
            start = time.process_time()
            assert contract.meaning(*call).kind == "legal"
            best = min(best, time.process_time() - start)
        return best

    assert took(40_000) < 40 * took(4_000), "ten times the rank takes more than forty times as long"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_definite_breach_is_never_excused_by_a_silence(spec: Spec, document: str) -> None:
    rules = binding(spec, document)
    loud = Contract([each for each in rules if each.level != "silent"])
    mute = Contract([*rules, rule("everything", "silent", when="len(src) >= 0")])
    for src, shape, zero in itertools.islice(calls(FULL), 0, None, 31):
        without = loud.meaning(src, shape, zero)
        with_ = mute.meaning(src, shape, zero)
        if without.kind == "illegal":
            assert with_ == without, f"{(src, shape, zero)} breaks {without.rules}, and silence makes of it {with_}"
        else:
            assert with_.kind == "unspecified", f"{(src, shape, zero)} is {with_} in full silence"


@pytest.mark.parametrize(
    ("src", "shape", "zero", "form", "broken"),
    [
        ((), (2,), False, None, "same-volume"),
        ((2,) * 13, (2,), False, None, "same-volume"),
        ((), (-1, -1), False, None, "one-infer"),
        ((2, 0), (2**40, 3), False, None, "same-volume"),
        ((2,), (3, 0), True, None, "same-volume"),
        ((2,), (2,), False, FORM._replace(src_type="s8"), "same-type"),
        ((2,), (2,), False, FORM._replace(missing_operands=("src",), extra_attributes=("x",)), "operands-required"),
        ((2,), (2,), False, FORM._replace(shape_type="f32"), "shape-is-integer"),
        ((2,), (2,), False, FORM._replace(missing_operands=("dst",)), "output-required"),
        ((2,), (2,), False, FORM._replace(shape_rank=2), "shape-has-one-dimension"),
        ((0, 3), (0, -1), True, FORM._replace(declared=(0, 1, 1)), "declared-output"),
        ((0, 3), (0, -1), True, FORM._replace(declared=(1, None)), "declared-output"),
        ((12,), (6, 0, -1), True, FORM._replace(declared=(6, 2, 2)), "declared-output"),
        ((12,), (6, 0, -1), True, FORM._replace(declared=(None, None, 5)), "declared-output"),
        ((0, 3), (0, -1), True, FORM._replace(declared=(0, -4)), "declared-output"),
    ],
)  # fmt: skip
def test_a_breach_beside_a_silence_is_illegal(
    spec: Spec, src: tuple[int, ...], shape: tuple[int, ...], zero: bool, form: Form | None, broken: str
) -> None:
    for contract in contracts(spec).values():
        meaning = contract.meaning(src, shape, zero, form)
        assert meaning.kind == "illegal"
        assert broken in meaning.rules


def test_rules_that_contradict_each_other_leave_no_answer() -> None:
    seven, copies = rule("other", where="i == 1", gives="7"), rule("copies", where="d == 5", gives="src[i]")
    contract = Contract([literal(), seven, copies])
    assert contract.meaning((1,), (3, 7), False) == Meaning("legal", (3, 7), ())
    assert contract.meaning((1,), (3, 8), False) == Meaning("illegal", None, ("other",))
    assert contract.meaning((5,), (5,), False) == Meaning("legal", (5,), ())
    assert contract.meaning((4,), (5,), False) == Meaning("illegal", None, ("copies",))
    assert contract.meaning((), (5,), False) == Meaning("legal", (5,), ()), "what cannot be read fixes nothing"
    contract = Contract([rule("minus", where="d == -1", gives="d"), literal()])
    assert contract.meaning((), (-1, 2), False) == Meaning("illegal", None, ("minus",)), "an entry below zero"
    contract = Contract([literal(), volume(), rule("double", ensures="product(dst) == product(src) * 2")])
    assert contract.meaning((3,), (1,), False) == Meaning("illegal", None, ("double",))
    contract = Contract([inferred(), volume(), rule("double", ensures="product(dst) == product(src) * 2")])
    assert contract.meaning((0,), (-1,), False) == Meaning("legal", (0,), ())


@pytest.mark.parametrize(
    ("src", "shape", "want"),
    [
        ((6,), (-1, 2), Meaning("legal", (3, 2), ())),
        ((7,), (-1, 2), Meaning("illegal", None, ("volume",))),
        ((0,), (-1, 2), Meaning("legal", (0, 2), ())),
        ((1,), (-1, -1), Meaning("legal", (1, 1), ())),
        ((2,), (-1, -1), Meaning("unspecified", (None, None), ())),
        ((0,), (-1, -1), Meaning("unspecified", (None, None), ())),
    ],
)  # fmt: skip
def test_free_entries_take_the_quotient_of_the_volumes(
    src: tuple[int, ...], shape: tuple[int, ...], want: Meaning
) -> None:
    assert Contract([literal(), inferred(), volume()]).meaning(src, shape, False) == want


# ── every rule counts ─────────────────────────────────────────────────────────────────────────────
EXTREMES: list[tuple[tuple[int, ...], tuple[int, ...], bool]] = [
    ((1,) * 13, (1,), False), ((1,), (1,) * 13, False), ((0, 2**31), (0,), False), ((0,), (0, 2**31), False),
    ((2, 3, 4), (3, 2, 0), True),
]  # fmt: skip


def forms() -> list[Form]:
    """A well-formed call and every way in which a form can be wrong or unlisted."""
    fields: list[dict[str, Any]] = [
        {}, {"dst_type": "f16"}, {"src_type": "s8", "dst_type": "s8"}, {"shape_type": "s8"}, {"shape_type": "f32"},
        {"shape_rank": 0}, {"shape_rank": 2}, {"special_zero_type": "s32"},
        {"special_zero_type": "f32", "special_zero_is_exact": False}, {"missing_attributes": ("special_zero",)},
        {"declared": (2,), "dst_overlaps": True},
        {"missing_operands": ("src",)}, {"extra_attributes": ("axis",)}, {"extra_operands": ("more",)},
        {"missing_operands": ("dst",)}, *({"declared": dims} for dims in ((), (1,), (None,), (0, 5))),
    ]  # fmt: skip
    return [FORM._replace(**each) for each in fields]


def candidates(domain: Any) -> Iterator[tuple[Any, ...]]:
    """Calls of a domain as they are, some beyond it, and small ones in every form."""
    for call in itertools.chain(calls(domain), EXTREMES):
        yield (*call, None)
    for call, form in itertools.product(itertools.chain(calls(TINY), EXTREMES), forms()):
        yield (*call, form)


def witness(spec: Spec, name: str, domain: Any) -> tuple[str, tuple[Any, ...]] | None:
    """A document and a call in it whose meaning changes when a rule is deleted."""
    whole, partial = contracts(spec), contracts(spec, without=name)
    seen = set()
    for document in spec.documents:
        pair = (whole[document].source, partial[document].source)
        if document not in spec.rules[name].documents or pair in seen:
            continue
        seen.add(pair)
        for call in candidates(domain):
            if due(whole[document].meaning(*call)) != due(partial[document].meaning(*call)):
                return document, call
    return None


def due(meaning: Meaning) -> tuple[Any, ...]:
    """What a backend has to do, and whether it may reject a legal call."""
    return meaning.kind, meaning.dst, meaning.kind == "legal" and bool(meaning.rules)


CONTRACTED = [name for name, each in load_spec().rules.items() if each.has_contract]
IMPLIED = [name for name in CONTRACTED if load_spec().rules[name].implied]


@pytest.mark.parametrize("name", [name for name in CONTRACTED if name not in IMPLIED])
def test_a_rule_with_a_contract_is_witnessed_by_a_call(spec: Spec, name: str) -> None:
    assert witness(spec, name, SMALL), f"no call needs {name!r}: mark it implied, or delete it"


@pytest.mark.parametrize("name", IMPLIED)
def test_a_rule_marked_implied_changes_no_call(spec: Spec, name: str) -> None:
    assert witness(spec, name, SMALL) is None, "the rule counts, so it is not implied"


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPLIED)
def test_a_rule_marked_implied_changes_no_call_of_the_whole_domain(spec: Spec, name: str) -> None:
    assert witness(spec, name, FULL) is None, "the rule counts, so it is not implied"


def test_only_rules_with_a_contract_are_marked_implied(spec: Spec) -> None:
    assert [name for name, each in spec.rules.items() if each.implied and not each.has_contract] == []


def test_documents_whose_rules_and_types_are_the_same_share_a_contract(spec: Spec) -> None:
    known = contracts(spec)
    assert known["static-2021"] is known["static-2020"]
    assert known["static-2022"] is not known["static-2021"]


def test_numbers_and_names_of_an_entry_have_their_own_doors() -> None:
    assert isinstance(parse("d", CALL_NAMES | ENTRY_NAMES, NUMBER), ast.Name)
    with pytest.raises(Invalid, match="where a number is wanted"):
        parse("special_zero", CALL_NAMES, NUMBER)
    with pytest.raises(Invalid, match="unknown name 'i'"):
        parse("i", CALL_NAMES, NUMBER)
    with pytest.raises(Invalid, match="hides the name 'd'"):
        parse("any(d == 1 for d in shape)", CALL_NAMES | ENTRY_NAMES)


def test_each_entry_names_the_rule_that_gives_its_length(spec: Spec) -> None:
    entries = contracts(spec)["static-2022"].entries
    copied, literal, inferred = ("zero-copies", 2, 0), ("literal-lengths", 6, None), ("infer-keeps-count", None, None)
    assert entries((2, 3), (0, 6, -1), True) == (copied, literal, inferred)
    assert entries((2, 3), (0,), False) == (("zero-literal", 0, None),)
    assert entries((6,), (6, 0), True)[1] == ("zero-copies", None, 1), "past the rank of src"


def test_the_lengths_of_entries_are_those_of_the_answer(spec: Spec) -> None:
    for contract in set(contracts(spec).values()):
        for src, shape, special_zero in calls(TINY):
            meaning = contract.meaning(src, shape, special_zero)
            if meaning.kind == "legal" and meaning.dst is not None:
                entries = contract.entries(src, shape, special_zero)
                assert len(entries) == len(meaning.dst)
                assert all(entry.length in (None, length) for entry, length in zip(entries, meaning.dst, strict=True))
