"""Helpers of the tests of contracts."""

from typing import Any

from conformance.load.spec import load_spec
from conformance.model import CallForm, Expression, Level, Operation, Place, Rule, Spec

HERE = Place("spec/rules.yaml", 1)
FORM = CallForm("f32", "f32", "s64")

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


def binding(spec: Spec, document: str) -> list[Rule]:
    return [each for each in spec.rules.values() if document in each.documents]


def forms(operation: Operation | None = None) -> list[CallForm]:
    """A well-formed call and every way in which a form can be wrong or unlisted."""
    shape_type = operation.shape_types[0] if operation else FORM.shape_type
    fields: list[dict[str, Any]] = [
        {}, {"dst_type": "f16"}, {"src_type": "s8", "dst_type": "s8"}, {"shape_type": "f32"},
        *({"shape_type": each} for each in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")),
        {"shape_rank": 0}, {"shape_rank": 2}, {"special_zero_type": "s32"},
        {"special_zero_type": "f32", "special_zero_is_exact": False}, {"missing_attributes": ("special_zero",)},
        {"missing_attributes": ("shape",)},
        {"declared": (2,), "dst_overlaps": True},
        {"missing_operands": ("src",)}, {"extra_attributes": ("axis",)}, {"extra_operands": ("more",)},
        {"missing_operands": ("dst",)}, *({"declared": dims} for dims in ((), (1,), (None,), (0, 5))),
    ]  # fmt: skip
    return [FORM._replace(shape_type=shape_type)._replace(**each) for each in fields]


CONTRACTED = [name for name, each in load_spec().rules.items() if each.has_contract]
IMPLIED = [name for name in CONTRACTED if load_spec().rules[name].implied]
