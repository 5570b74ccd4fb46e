"""The language of contracts refuses what it must."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import TINY_DOMAIN, calls
from conformance.meaning.expression import CALL_NAMES, FORM_NAMES, Invalid, parse
from conformance.model import Malformed, Spec
from tests.builders import one_rule, problems_of, write_tiny_spec

from ..builders import some_slow
from .rules import FORM, REFUSED, literal, rule

NAMES = CALL_NAMES | FORM_NAMES


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:60])
@pytest.mark.filterwarnings("error")
def test_an_expression_outside_of_the_language_is_rejected(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(text, NAMES)
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 2 * len(text) + 400


UNSAFE = {
    # an expression: (the part to write, the expression with that part)
    "len(shape) == 0 or shape[0] != 7": (
        "(0 < len(shape) and shape[0] != 7)", "len(shape) == 0 or (0 < len(shape) and shape[0] != 7)"),
    "src[1] > 2 or len(src) > 4": ("(1 < len(src) and src[1] > 2)", "(1 < len(src) and src[1] > 2) or len(src) > 4"),
    "not shape[0] == 7": ("(0 < len(shape) and not shape[0] == 7)", "(0 < len(shape) and not shape[0] == 7)"),
    "any(src[i] == d for i, d in enumerate(shape))": (
        "(i < len(src) and src[i] == d)", "any((i < len(src) and src[i] == d) for i, d in enumerate(shape))"),
    "sum(src[i] for i in range(len(shape))) > 1": (
        "if i < len(src)", "sum(src[i] for i in range(len(shape)) if i < len(src)) > 1"),
}  # fmt: skip


@pytest.mark.parametrize("text", UNSAFE)
def test_the_hint_about_an_entry_that_may_be_missing_is_right(text: str) -> None:
    hint, repaired = UNSAFE[text]
    with pytest.raises(Invalid) as refused:
        parse(text, NAMES)
    assert f"may read past the end; write `{hint}`" in str(refused.value)
    parse(repaired, NAMES)


def test_a_length_that_may_be_missing_gets_another_hint(tmp_path: Path) -> None:
    (problem,) = problems_of(write_tiny_spec(tmp_path, rules=one_rule("where: d > 0", "gives: shape[0]")))
    assert problem.what.endswith("may read past the end; only shape[i] and entries of src can be read here")


def test_every_invalid_expression_is_named_with_its_line(tmp_path: Path) -> None:
    rules = one_rule("where: x > 0", "gives: z")
    wrong = {"a": "requires: z", "b": "ensures: product(dst) == dst", "c": "ensures: product(dst) == w", "d": "when: v"}
    for name, form in wrong.items():
        level = "silent" if form.startswith("when") else "must"
        rules += f"  - id: {name}\n    {level}: Another.\n    stated:\n      only: [3, here]\n    {form}\n"
    problems = [str(problem) for problem in problems_of(write_tiny_spec(tmp_path, rules=rules))]
    named = zip((6, 12, 17, 22, 27), ("one-infer", *wrong), strict=True)
    begin = [f"spec/rules.yaml:{line}: rule {name!r}: " for line, name in named]
    assert [each[: len(words)] for each, words in zip(problems, begin, strict=True)] == begin


def test_invalid_rules_of_all_documents_are_reported(spec: Spec) -> None:
    wrong = [
        replace(rule(name, requires="x"), documents=frozenset({document}))
        for name, document in {"a": "static-oneapi", "b": "reshape-spec-v0.7"}.items()
    ]
    with pytest.raises(Malformed) as malformed:
        contracts(replace(spec, rules={each.id: each for each in wrong}))
    assert [problem.what[:9] for problem in malformed.value.problems] == ["rule 'a':", "rule 'b':"]


@pytest.mark.parametrize("text", [
    "product(dst) == product(dst)", "product(dst) == len(dst)", "product(dst) == product(src) * len(declared)",
    "product(dst) == product(src) and agrees(dst, declared)", "product(dst) <= product(src)",
    "product(src) == product(dst)", "dst == src", "agrees(declared, dst)", "agrees(dst, src)",
    "not agrees(dst, declared)", "all(d > 0 for d in dst)", "product(dst) == 1 == 1", "all(n <= n for n in dst)",
    "all(n <= len(dst) for n in dst)", "all(n <= 3 for n in dst if n > 1)", "all(n < 3 for n in dst)",
    "all(n <= 3 for n in shape)", "any(n <= 3 for n in dst)", "all(n <= 3 <= 4 for n in dst)",
])  # fmt: skip
def test_an_ensures_without_closed_form_is_rejected(text: str) -> None:
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
    for src, shape, zero in calls(TINY_DOMAIN):
        assert contract.meaning(src, shape, zero, FORM).kind in ("illegal", "unspecified", "legal")


def test_an_index_is_a_number_and_no_truth() -> None:
    with pytest.raises(Malformed, match="'i' is an index, where true or false is wanted"):
        Contract([rule("a", where="i", gives="d")])
    contract = Contract([rule("a", where="shape == (d, i)", gives="i"), rule("b", where="i > 0", gives="d")])
    assert contract.meaning((0,), (0, 0), False).dst == (0, 0)


def test_names_of_a_loop_do_not_hide_others() -> None:
    contract = Contract([
        rule("a", requires="all(volume != product(src) for volume in shape)"),
        rule("b", requires="all(rank < 9 for rank in shape)"),
        rule("c", requires="all(known + free < 99 for known, free in enumerate(shape))"),
        literal(),
    ])  # fmt: skip
    assert contract.meaning((6,), (2, 3), False).kind == "legal"
    assert contract.meaning((6,), (6,), False).rules == ("a",)


def test_a_quoted_expression_stays_text() -> None:
    contract = Contract([rule("a", requires="src_type == 'product(src)'")])
    assert contract.meaning((), (), False, FORM._replace(src_type="product(src)")).kind == "legal"


WORDS = ["src", "shape", "special_zero", "d", "i", "dst", "declared", "types", "src_type", "missing_operands", "x"]
WORDS += ["len(", "product(", "sum(", "all(", "any(", "enumerate(", "range(", "(", ")", ")", ")", "[", "]", ",", "."]
WORDS += ["for", "in", "and", "or", "not", "==", "<", "+", "-", "*", "//", "%", "**", ":=", ":", "if", "else", "lambda"]
WORDS += ["0", "1", "-1", "'f32'", "1.5"]


def random_expression(rng: random.Random) -> str:
    """A row of words of the language, mostly nonsense."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 12)))


@pytest.mark.parametrize("seed", some_slow(("1", "2", "3"), ("1",)))
def test_a_random_expression_is_rejected_or_evaluated(seed: str) -> None:
    rng = random.Random(seed)
    accepted = 0
    for _ in range(10_000):
        text = random_expression(rng)
        try:
            contract = Contract([rule("a", requires=text)], ("f32",), ("s64",))
        except Malformed:
            continue
        accepted += 1
        for src, shape, zero in [((), (), True), ((2, 0), (-1,), False), ((1,), (0, 3, -2), True)]:
            contract.meaning(src, shape, zero, FORM)
    assert accepted > 10
