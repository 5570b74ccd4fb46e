"""The one table of verdicts row by row, the comparison of tensors, and a small example of every diagnosis."""

import itertools
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest

from conformance.model import VERDICTS, Declared, Layout, Meaning, Outcome, OutcomeKind, Tensor, Verdict
from conformance.model.types import WIDTH, dtype_of
from conformance.model.verdicts import WORST, worst
from conformance.plan.memory import GUARD_BYTES, TensorSpec, lay_out, patterns
from conformance.run.call import find_named_type
from conformance.run.diagnose import Diagnosis, ExpectedAnswer, diagnose
from conformance.run.judge import COLUMNS, OUTCOME_VERDICTS, Column, Judgement, find_deciding_step, judge

SOURCE = TensorSpec("f32", (2, 3))
SRC = lay_out(SOURCE)
RIGHT = Outcome("tensor", "f32", (6,), SRC.elements)
OUTCOMES: dict[OutcomeKind, Outcome] = {
    "tensor": RIGHT,
    "rejected": Outcome("rejected", stage="run", message="no"),
    "unsupported": Outcome("unsupported", message="chain"),
    "crash": Outcome("crash", message="SIGSEGV"),
    "timeout": Outcome("timeout", message="20 s"),
    "error": Outcome("error", message="KeyError"),
    "none": Outcome("none"),
}
MEANINGS: dict[Column, Meaning] = {
    "legal": Meaning("legal", (6,), ()),
    "illegal": Meaning("illegal", None, ("one-infer",)),
    "unspecified": Meaning("unspecified", (None,), ("rank-zero",)),
    "capacity": Meaning("legal", (6,), ("rank-limit",)),
    "no room": Meaning("unspecified", None, ("strides-of-dst-overlap",), no_room=True),
}
# Written out again, as the design has it: legal, illegal, unspecified, capacity, no room; then the same if not claimed.
DUE: dict[OutcomeKind, tuple[tuple[Verdict, ...], tuple[Verdict, ...]]] = {
    "tensor": (("pass", "fail", "observed", "pass", "observed"),) * 2,
    "rejected": (("fail", "pass", "observed", "observed", "observed"), ("not claimed",) * 5),
    "unsupported": (("fail",) * 5, ("not claimed",) * 5),
    "crash": (("fail",) * 5, ("fail",) * 5),
    "timeout": (("fail",) * 5, ("fail",) * 5),
    "error": (("error",) * 5, ("not claimed",) * 5),
    "none": (("not run",) * 5, ("not run",) * 5),
}
CELLS = list(itertools.product(get_args(OutcomeKind), COLUMNS, (False, True)))


def given(outcome: Outcome, meaning: Meaning, unclaimed: bool = False) -> Judgement:
    return judge(outcome, meaning, ExpectedAnswer(SOURCE, SRC.elements), ("chain",) if unclaimed else ())


def told(diagnosis: Diagnosis | None) -> Diagnosis:
    assert diagnosis is not None
    return diagnosis


def test_the_table_has_a_cell_for_every_outcome_and_meaning() -> None:
    assert set(OUTCOME_VERDICTS) == set(get_args(OutcomeKind)) == set(DUE)
    assert all(set(cells) == set(COLUMNS) for cells in OUTCOME_VERDICTS.values())
    assert set(WORST) == set(VERDICTS)


@pytest.mark.parametrize(("outcome", "kind", "unclaimed"), CELLS)
def test_each_cell_gives_the_verdict_of_the_design(outcome: OutcomeKind, kind: Column, unclaimed: bool) -> None:
    judgement = given(OUTCOMES[outcome], MEANINGS[kind], unclaimed)
    assert judgement.verdict == DUE[outcome][unclaimed][COLUMNS.index(kind)]
    assert (judgement.diagnosis is not None) == (judgement.verdict in ("fail", "error"))


@pytest.mark.parametrize(("outcome", "kind", "unclaimed"), CELLS)
def test_a_call_that_changed_memory_fails_with_any_answer(outcome: OutcomeKind, kind: Column, unclaimed: bool) -> None:
    judgement = given(
        OUTCOMES[outcome]._replace(side_effects=("src changed", "shape changed")), MEANINGS[kind], unclaimed
    )
    assert judgement.verdict == "fail"
    assert told(judgement.diagnosis).name == "src changed"
    assert "shape changed" in told(judgement.diagnosis).text


@pytest.mark.parametrize(
    ("column", "unclaimed", "answer", "verdict"),
    [
        ("legal", "chain", RIGHT._replace(type="s32"), "not claimed"),
        ("legal", "chain", RIGHT._replace(data=b"\0" * 24), "fail"),
        ("legal", "type:f32", RIGHT._replace(data=b"\0" * 24), "not claimed"),
        ("legal", "type:f16", RIGHT._replace(data=b"\0" * 24), "fail"),
        ("no room", None, RIGHT._replace(data=b"\0" * 24), "observed"),
    ],
)
def test_a_wrong_answer_where_nothing_is_due(
    column: Column, unclaimed: str | None, answer: Outcome, verdict: Verdict
) -> None:
    expected = ExpectedAnswer(SOURCE, SRC.elements)
    assert judge(answer, MEANINGS[column], expected, (unclaimed,) if unclaimed else ()).verdict == verdict


@pytest.mark.parametrize(
    ("outcome", "kind", "name", "words"),
    [
        (OUTCOMES["tensor"], "illegal", "answered an illegal call", "f32[6], though the call breaks one-infer"),
        (OUTCOMES["rejected"], "legal", "rejected a legal call", "rejected at run: no"),
        (OUTCOMES["unsupported"], "legal", "unsupported", "chain"),
        (OUTCOMES["crash"], "illegal", "crash", "SIGSEGV"),
        (OUTCOMES["timeout"], "unspecified", "timeout", "20 s"),
        (OUTCOMES["error"], "legal", "adapter error", "KeyError"),
        (Outcome("crash"), "legal", "crash", "crash"),
    ],
)
def test_what_is_no_tensor_is_told_in_words(outcome: Outcome, kind: Column, name: str, words: str) -> None:
    diagnosis = told(given(outcome, MEANINGS[kind]).diagnosis)
    assert diagnosis.name == name
    assert words in diagnosis.text


@pytest.mark.parametrize("verdicts", list(itertools.permutations(("pass", "not claimed", "fail"))))
def test_the_worst_step_decides_a_row(verdicts: tuple[Verdict, ...]) -> None:
    assert worst(verdicts) == "fail"


def test_a_step_that_ends_the_process_decides_before_any_other() -> None:
    assert find_deciding_step([("pass", "fail", "fail")], [Outcome("tensor")] * 3) == 1, "the first of equal ones"
    outcomes = [Outcome("tensor"), Outcome("rejected"), Outcome("crash")]
    assert find_deciding_step([("pass", "fail", "fail")], outcomes) == 2
    assert find_deciding_step([("pass", "error", "fail")], outcomes) == 1, (
        "an error of the adapter is the worst verdict"
    )


# ── type, then dims, then bytes ───────────────────────────────────────────────────────────────────


def diagnose_answer(
    outcome: Outcome,
    dst: tuple[int, ...],
    source: TensorSpec = SOURCE,
    earlier: Sequence[bytes] = (),
    strided: Declared | None = None,
) -> Diagnosis | None:
    """Say what is wrong with an answer where `dst` is due."""
    expected = ExpectedAnswer(source, lay_out(source).elements, earlier, strided)
    return diagnose(outcome, Meaning("legal", dst, ()), expected)


def named(*call: Any) -> str | None:
    """The name of what is wrong."""
    diagnosis = diagnose_answer(*call)
    return diagnosis and diagnosis.name


def test_type_is_compared_before_dims_and_dims_before_bytes() -> None:
    wrong = Outcome("tensor", "s32", (7,), b"\0" * 28)
    assert named(wrong, (6,)) == "wrong type"
    assert named(wrong._replace(type="f32"), (6,)) == "wrong dims"
    assert named(wrong._replace(type="f32", dims=(6,), data=b"\0" * 24), (6,)) == "all zero"
    assert named(RIGHT, (6,)) is None


@pytest.mark.parametrize("dims", [(0,), (3, 0), (0, 3), (0, 3, 1), ()])
def test_empty_tensors_of_other_dims_are_wrong(dims: tuple[int, ...]) -> None:
    empty = TensorSpec("f32", (0, 4))
    answer = Outcome("tensor", "f32", dims, b"")
    assert named(answer, (0, 7), empty) == "wrong dims"
    assert named(answer._replace(dims=(0, 7)), (0, 7), empty) is None


BITS = "7fc00000 7fc00001 ffc00000 7f800001 80000000 00000000"


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("bit", [0, 22, 31])
def test_every_bit_counts(at: int, bit: int) -> None:
    source = TensorSpec("f32", (6,), bits=BITS)
    flipped = np.frombuffer(lay_out(source).elements[:], "<u4").copy()
    assert named(Outcome("tensor", "f32", (6,), flipped.tobytes()), (6,), source) is None
    flipped[at] ^= np.uint32(1 << bit)
    assert named(Outcome("tensor", "f32", (6,), flipped.tobytes()), (6,), source)


# ── unspecified calls ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("known", "answer", "verdict"),
    [
        ((None, 3), RIGHT._replace(dims=(2, 3)), "observed"),
        ((None, 3), RIGHT._replace(dims=(3, 2)), "fail"),
        ((None, 3), RIGHT._replace(dims=(6,)), "fail"),
        ((None, 3), RIGHT._replace(dims=(2, 3), type="s32"), "fail"),
        ((None, 3), RIGHT._replace(dims=(2, 3), data=b"\0" * 24), "fail"),
        ((None, 3), RIGHT._replace(dims=(3, 3), data=b"\0" * 36), "fail"),
        (None, RIGHT._replace(dims=(1, 6, 1)), "observed"),
        (None, RIGHT._replace(dims=(7,), data=b"\0" * 28), "fail"),
        (None, RIGHT._replace(dims=(7,)), "fail"),
        (None, RIGHT._replace(dims=(-2, -3, 1)), "fail"),
    ],
)
def test_an_unspecified_answer_must_agree_with_what_is_known(
    known: tuple[int | None, ...] | None, answer: Outcome, verdict: Verdict
) -> None:
    assert given(answer, Meaning("unspecified", known, ("zero-past-rank",))).verdict == verdict


@pytest.mark.parametrize(("most", "verdict"), [(None, "observed"), (6, "observed"), (5, "fail")])
def test_an_unspecified_answer_keeps_to_the_largest_length(most: int | None, verdict: Verdict) -> None:
    assert given(RIGHT, Meaning("unspecified", (None,), (), most)).verdict == verdict


def test_wrong_dims_are_told_with_those_due() -> None:
    assert told(diagnose_answer(RIGHT._replace(dims=(3, 2)), (6,))).text == "answered [3, 2], due is [6]"


def test_what_is_settled_is_shown_with_marks_for_the_rest() -> None:
    diagnosis = given(RIGHT, Meaning("unspecified", (None, 3), ("zero-past-rank",))).diagnosis
    assert "[6], where [?, 3] is settled" in told(diagnosis).text


# ── diagnoses ─────────────────────────────────────────────────────────────────────────────────────


def of(source: TensorSpec, change: object = None, earlier: tuple[bytes, ...] = ()) -> str | None:
    """The diagnosis of a changed answer to a call that flattens `source`."""
    bits = patterns(source)
    got = change(bits.copy()) if callable(change) else bits
    outcome = Outcome("tensor", source.type, (bits.size,), np.asarray(got, bits.dtype).tobytes())
    return named(outcome, (bits.size,), source, earlier)


def put(at: int, bits: int) -> object:
    def change(old: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> object:
        old[at] = bits
        return old

    return change


def test_order_and_places() -> None:
    wide = TensorSpec("f32", (2, 3))
    assert of(wide) is None
    assert of(wide, lambda b: b.reshape(2, 3).ravel(order="F")) == "column-major order"
    assert of(TensorSpec("f32", (2, 1, 3)), lambda b: b.reshape(2, 3).ravel(order="F")) == "column-major order"
    assert of(wide, lambda b: b[::-1]) == "same elements in another order"
    for got in ("0 3 1 4 2 5", "0 4 3 2 1 5"):  # put into dst, and taken from src as well, in column-major order
        answer = Outcome("tensor", "f32", (3, 2), patterns(wide)[[*map(int, got.split())]].tobytes())
        assert named(answer, (3, 2), wide) == "column-major order"
    assert of(wide, lambda b: np.resize(b[:4], 6)) == "repeated"
    assert of(wide, lambda b: np.append(7, b[:-1])) == "shifted by one element"
    assert of(wide, lambda b: np.append(b[1:], 7)) == "shifted by one element"
    assert of(wide._replace(bits="3f800000"), put(5, 0)) == "elements lost"
    assert of(wide, lambda b: b * 0) == "all zero"
    assert of(wide, lambda b: np.append(b[1:], 0xA5A5A5A5)) == "memory around src read"
    assert of(wide, lambda b: b.byteswap()) == "bytes of each element reversed"
    every = TensorSpec("f16", (256, 256), bits="all")  # bytes in the other order transpose it
    assert of(every, lambda b: b.byteswap()) == "bytes of each element reversed"
    assert of(every._replace(dims=(65_536,)), lambda b: b.byteswap()) == "bytes of each element reversed"
    assert of(wide, lambda b: np.append(b[:4], [7, 7])) == "truncated: a constant after the first elements"
    assert of(wide, lambda b: b + 1) != "repeated"
    assert of(wide, lambda b: b[[0, 2, 1, 2, 4, 4]]) == "elements in the wrong places"
    assert of(wide, lambda b: b[[0, 2, 1, 2, 4, 4]] * [1, 1, 1, 0, 1, 0]) == "elements in the wrong places, others lost"


@pytest.mark.parametrize("layout", ["transposed", "padded", "broadcast", "reversed"])
def test_strides_ignored(layout: Layout) -> None:
    source = TensorSpec("f32", (3, 4), layout)
    buffer = lay_out(source)
    low = min(buffer.tensor.offset, buffer.tensor.offset + sum(
        (n - 1) * s for n, s in zip(buffer.tensor.dims, buffer.tensor.strides, strict=True) if s < 0
    ))  # fmt: skip
    read = np.frombuffer((buffer.before * 2)[low : low + 48], "<u4")
    assert of(source, lambda b: read) == "strides ignored"
    assert of(source) is None


def test_strides_of_dst_that_are_ignored() -> None:
    """Dense elements are read at the strides that the graph declares; what lies behind them may be anything."""
    wide = TensorSpec("f32", (3, 4))
    columns, gap = Declared("f32", (3, 4), (4, 12)), Declared("f32", (2, 6), (36, 4))
    elements = patterns(wide)
    for dst, got, name in (
        (columns, elements.reshape(4, 3).T, "strides of dst ignored"),
        (gap, [*elements[:6], *elements[9:], 0, 7, 7], "strides of dst ignored"),
        (gap, [*elements[:6], *elements[8:], 7, 7], "wrong elements"),
        (columns, elements[::-1], "same elements in another order"),
        (Declared("f32", (2, 6), (24, 4)), elements[::-1], "same elements in another order"),
        (Declared("f32", (2, 5), (36, 4)), elements[::-1], "same elements in another order"),
    ):
        answer = Outcome("tensor", "f32", (12,), np.asarray(got, "<u4").tobytes())
        assert named(answer, (12,), wide, (), dst) == name


@pytest.mark.parametrize("layout", ["offset", "offset-8"])
def test_reading_without_the_offset_has_a_name(layout: Layout) -> None:
    source = TensorSpec("f16", (3, 4), layout)
    read = np.frombuffer(lay_out(source).before[GUARD_BYTES : GUARD_BYTES + 24], "<u2")
    assert of(source, lambda b: read) == "offset ignored"
    assert of(source, lambda b: np.frombuffer(lay_out(source).before[:24], "<u2")) == "offset ignored"


def test_an_earlier_answer_is_stale() -> None:
    first, second = TensorSpec("f32", (2, 3)), TensorSpec("f32", (2, 3), start=977)
    old = lay_out(first).elements
    assert of(second, lambda b: patterns(first), (bytes(old[:]),)) == "stale: an earlier answer"
    assert of(second, None, (bytes(old[:]),)) is None
    assert of(second, lambda b: b[::-1], (bytes(old[:]),)) == "same elements in another order"
    nan = TensorSpec("f16", (1,), bits="7c01")
    assert of(nan, lambda b: np.array([0x7E00], "<u2"), (b"\x00\x7e",)) == "NaN payload lost", "not stale by chance"


def test_bytes_too_few_and_too_many() -> None:
    assert named(RIGHT._replace(data=bytes(SRC.elements[:])[:20]), (6,)) == "truncated"
    assert named(RIGHT._replace(data=bytes(SRC.elements[:]) + b"\0"), (6,)) == "too many elements"


SINGLE = {
    "subnormals flushed": {"f32": (0x80000001, 0x80000000), "f16": (0x0001, 0), "bf16": (0x807F, 0x8000)},
    "NaN quieted": {"f32": (0x7F800001, 0x7FC00001), "f16": (0xFC01, 0xFE01), "bf16": (0x7F81, 0x7FC1)},
    "NaN payload lost": {"f32": (0x7FC12345, 0x7FC00000), "f16": (0x7E01, 0x7E00), "bf16": (0x7FC1, 0x7FC0)},
    "sign of NaN lost": {"f32": (0xFFC00000, 0x7FC00000), "f16": (0xFE00, 0x7E00), "bf16": (0xFFC0, 0x7FC0)},
    "NaN lost": {"f32": (0x7FC00000, 0x7F800000), "f16": (0x7E00, 0x7C00), "bf16": (0x7FC0, 0x7F80)},
    "sign of zero lost": {"f32": (0x80000000, 0), "f16": (0x8000, 0), "bf16": (0x8000, 0), "f64": (1 << 63, 0)},
    "sign changed": {"f32": (0x3F800001, 0xBF800001), "f16": (0x3C00, 0xBC00), "bf16": (0x3F80, 0xBF80)},
    "rounded through bf16": {"f32": (0x3F808001, 0x3F810000), "f16": (0x3C01, 0x3C00)},
    "rounded through f16": {"f32": (0x3F803001, 0x3F804000), "bf16": (0x3280, 0)},
    "rounded through f32": {"f64": (0x3FF0000010000001, 0x3FF0000020000000)},
    "infinity lost": {"f32": (0x7F800000, 0x7F7FFFFF), "f16": (0xFC00, 0xFBFF), "bf16": (0x7F80, 0x7F7F)},
    "elements lost": {"f32": (0x3F800000, 0), "f16": (0x3C00, 0x8000), "bf16": (0x3F80, 0)},
    "wrong elements": {
        "f32": (0x3F800000, 0x12345678),
        "f16": (0x3C00, 0x1234),
        "bf16": (0x3F80, 0x1234),
        "f64": (1, 2),
    },
}


@pytest.mark.parametrize(("name", "type_"), [(name, type_) for name, by_type in SINGLE.items() for type_ in by_type])
def test_an_element_changed_on_the_way(name: str, type_: str) -> None:
    before, after = SINGLE[name][type_]
    digits = 2 * WIDTH[type_]
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f64": 0x3FF0 << 48}[type_]
    source = TensorSpec(type_, (4,), bits=" ".join(f"{n:0{digits}x}" for n in (one + 4, before, one + 2, one + 3)))
    assert of(source, put(1, after)) == name


def test_lost_elements_are_not_rounded() -> None:
    """A conversion to f16 makes most elements of f32 an infinity or 0, and so explains some that are 0."""
    lost = TensorSpec("f32", (17, 3))
    assert of(lost, lambda b: b * (np.arange(51) % 4 > 0)) == "elements lost"


def test_an_infinity_alone_is_not_rounded() -> None:
    """Most numbers of bf16 are infinite in f16, and those beside these two stay as they are."""
    source = TensorSpec("bf16", (5,), bits="6034 3f80 7034 4120 5d76")
    assert of(source, put(0, 0x7F80)) == "wrong elements"


def test_all_rounded_elements_have_one_name() -> None:
    def through_f16(bits: np.ndarray[Any, np.dtype[np.uint32]]) -> object:
        with np.errstate(over="ignore"):
            return bits.view("f4").astype("f2").astype("f4").view("u4")

    assert of(TensorSpec("f32", (17, 3)), through_f16) == "rounded through f16"


def test_a_mixture_is_named_by_its_parts() -> None:
    source = TensorSpec("f32", (6,), bits="00000001 00000002 80000000 3f800000 7f800001 3f800002")

    def change(old: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> object:
        old[[0, 1, 2]], old[4] = 0, 0x7FC00001
        return old

    assert of(source, change) == "subnormals flushed, NaN quieted, sign of zero lost"


def test_what_no_change_of_single_elements_explains() -> None:
    """Among special numbers, a lost tail or another number looks as if some were flushed or quieted."""
    special = TensorSpec("f32", (50,), bits="edges")
    assert of(special, lambda b: b * (np.arange(50) < 27)) == "truncated: a constant after the first elements"
    assert of(special, lambda b: b * (np.arange(50) % 9 > 0)) == "elements lost"
    assert of(special, lambda b: b + (np.arange(50) > 27)) == "wrong elements"


@pytest.mark.parametrize("last", ["7fc00000", "00000003", "80000000", "7f800000"])
def test_an_element_of_0_is_lost_if_others_like_it_are_kept(last: str) -> None:
    """Without another NaN, the backend may be one that turns NaN into 0; with one, it lost an element."""
    alone = TensorSpec("f32", (3,), bits=f"3f800000 3f800002 {last}")
    assert of(alone, put(2, 0)) != "elements lost"
    beside = TensorSpec("f32", (3,), bits=f"3f800000 {last} {last}")
    assert of(beside, put(2, 0)) == "elements lost"
    assert of(beside, put(1, 0)) == "elements lost"


def test_some_subnormals_of_a_vector_are_flushed() -> None:
    """A library may flush in the main part of its loop only."""
    source = TensorSpec("f32", (5,), bits="00000003 3f800000 00000005 3f800002 00000007")
    assert of(source, lambda b: b * [0, 1, 0, 1, 1]) == "subnormals flushed"


def test_subnormals_that_became_0_are_no_repetition() -> None:
    few = TensorSpec("bf16", (2,), bits="0000 0001")
    assert of(few, put(1, 0)) == "subnormals flushed"
    small = TensorSpec("f32", (60,), bits=" ".join(f"{n:08x}" for n in range(60)))
    assert of(small, lambda b: b * 0) == "subnormals flushed"
    assert of(small, lambda b: b * (np.arange(60) < 30)) == "truncated: a constant after the first elements"


@pytest.mark.parametrize("type_", ["s8", "u8", "s32", "u64", "bool"])
def test_integers_have_no_ways_but_wrong(type_: str) -> None:
    digits = 2 * WIDTH[type_]
    source = TensorSpec(type_, (4,), bits=" ".join(f"{n:0{digits}x}" for n in (1, 0, 0, 1)))
    assert of(source, put(1, 1)) == "wrong elements"


def test_the_first_difference_is_told_in_hex_of_the_element() -> None:
    source = TensorSpec("bf16", (3,), bits="3f80 3f81 3f82")
    bits = patterns(source)
    bits[1:] = 0x4000, 0x4001
    outcome = Outcome("tensor", "bf16", (3,), bits.tobytes())
    words = "2 of 3 elements differ, first at 1 in row-major order: want 3f81, got 4000"
    assert told(diagnose_answer(outcome, (3,), source)).text.endswith(words)


@pytest.mark.parametrize("type_", sorted(WIDTH))
def test_each_type_is_told_from_all_others(type_: str) -> None:
    array = np.zeros(2, dtype_of(type_))
    assert find_named_type(array) == type_


def test_lengths_and_strides_that_are_no_int() -> None:
    words = (
        "run returned a Tensor of dims (2.0, 3.0), strides None and offset 0; give tuples of int, and an int as offset"
    )
    answer = Tensor("f32", (2.0, 3.0), None, bytearray(24), 0)  # type: ignore[arg-type]
    assert str(find_named_type(answer)) == words
