"""Compare an answer with the expected one by type, dims and bytes, and name the difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..model import STRIDED, Declared, DifferingElements, Elements, Meaning, Outcome
from ..model.types import WIDTH, dtype_of
from ..plan.contents import Words
from ..plan.memory import GUARD_BYTE, GUARD_BYTES, TensorSpec, are_equal, lay_out, view_of, volume_of

Conversion = Callable[[Words], Words]
"""What patterns become on the way to another type and back."""


class Diagnosis(NamedTuple):
    """A wrong answer: a fixed name for its kind, a sentence, and the elements that differ if nothing else does."""

    name: str
    text: str
    differing: DifferingElements | None = None


STALE = "stale: an earlier answer"
_MAX_PLACES_NAMED = 16
"""Differing elements that are named one by one."""

_ELEMENTS_AT_ONCE = 1 << 16
"""Elements that are compared at once where a comparison of all would need much memory."""

_MANY_INFINITIES = 3
"""Numbers that become infinite as in a conversion, and so show one."""

_MANY_VALUES = 9
"""Different values that no change of single elements makes one."""


class ExpectedAnswer(NamedTuple):
    """The elements that are due, and by what a wrong answer shows how it came about."""

    src_spec: TensorSpec
    elements: Elements
    earlier: Sequence[Elements] = ()
    """The answers to steps before."""
    dst: Declared | None = None
    """What the graph declares for dst, if it declares strides."""


class _Float(NamedTuple):
    """The bits of a type of numbers, without the sign."""

    exponent_bits: int
    fraction_bits: int

    @property
    def size(self) -> int:
        """All bits but the sign."""
        return (1 << (self.exponent_bits + self.fraction_bits)) - 1

    @property
    def fraction(self) -> int:
        """The bits of the fraction, which is also the greatest subnormal number."""
        return (1 << self.fraction_bits) - 1

    @property
    def infinity(self) -> int:
        return self.size - self.fraction


_FLOAT = {"f32": _Float(8, 23), "bf16": _Float(8, 7), "f16": _Float(5, 10), "f64": _Float(11, 52)}


def diagnose(outcome: Outcome, meaning: Meaning, expected: ExpectedAnswer) -> Diagnosis | None:
    """Return what is wrong with a tensor; None if it is right, or if it agrees with all that is specified.

    Without data, as evidence holds it, its elements are wrong.
    """
    assert outcome.dims is not None
    src_spec = expected.src_spec
    if outcome.type != src_spec.type:
        return Diagnosis("wrong type", f"answered {outcome.type}, src is {src_spec.type}")
    wrong = diagnose_dims(outcome.dims, meaning, src_spec.dims)
    if wrong:
        return wrong
    if outcome.data is None:
        return Diagnosis("wrong elements", "the elements were not kept")
    if not are_equal(outcome.data, expected.elements):
        return diagnose_elements(expected, outcome.dims, outcome.data)
    return None


def diagnose_dims(got: tuple[int, ...], meaning: Meaning, src: tuple[int, ...]) -> Diagnosis | None:
    want = meaning.dst
    if got == want and meaning.kind == "legal":  # what is due has no length below 0
        return None
    if any(length < 0 for length in got):
        return Diagnosis("wrong dims", f"answered {list(got)}, and no length is below 0")
    if meaning.kind == "legal":
        return Diagnosis("wrong dims", f"answered {list(got)}, due is {list(want or ())}")
    if want is not None and (
        len(got) != len(want) or any(w is not None and w != g for g, w in zip(got, want, strict=True))
    ):
        known = ["?" if w is None else w for w in want]
        return Diagnosis("wrong dims", f"answered {list(got)}, where {known} is settled".replace("'", ""))
    if meaning.max_length is not None and any(length > meaning.max_length for length in got):
        return Diagnosis("wrong dims", f"answered {list(got)}, and no length may be above {meaning.max_length}")
    if volume_of(got) != volume_of(src):
        return Diagnosis("wrong volume", f"answered {list(got)}, {volume_of(got)} elements for {volume_of(src)}")
    return None


def diagnose_elements(expected: ExpectedAnswer, dims: tuple[int, ...], got: Elements) -> Diagnosis:
    """Name the way in which the elements differ."""
    src_spec, want = expected.src_spec, expected.elements
    if len(got) < len(want):
        return Diagnosis("truncated", f"{len(got)} bytes of {len(want)}")
    if len(got) > len(want):
        return Diagnosis("too many elements", f"{len(got)} bytes for {len(want)}")
    kind = np.dtype(f"<u{WIDTH[src_spec.type]}")
    right, wrong = np.frombuffer(want[:], kind), np.frombuffer(got[:], kind)
    # a NaN that changed may have the bits of an earlier call by chance
    keeps_values = _are_equal_values(src_spec.type, right, wrong) or _are_flushed(src_spec.type, right, wrong)
    if not keeps_values and any(old and are_equal(got, old) for old in expected.earlier):
        name = STALE
    else:
        moved = None if keeps_values else _find_move(expected, dims, right, wrong)
        name = moved or name_changes(src_spec.type, right, wrong)
    first, digits = _find_first_places(right, wrong, _MAX_PLACES_NAMED), 2 * WIDTH[src_spec.type]
    due, came = (tuple(f"{int(bits):0{digits}x}" for bits in each[first]) for each in (right, wrong))
    differing = DifferingElements(int(np.count_nonzero(right != wrong)), tuple(map(int, first)), came)
    where = f"{differing.number} of {right.size} elements differ, first at {first[0]} in row-major order"
    return Diagnosis(name, f"{name}: {where}: want {due[0]}, got {came[0]}", differing)


def _find_first_places(want: Words, got: Words, most: int) -> Words:
    """Return the indexes of the first elements that differ. Those of all would take more memory than the elements."""
    first = np.zeros(0, np.intp)
    for at in range(0, want.size, _ELEMENTS_AT_ONCE):
        if first.size >= most:
            break
        part = slice(at, at + _ELEMENTS_AT_ONCE)
        first = np.append(first, np.flatnonzero(want[part] != got[part]) + at)
    return first[:most]


def _are_equal_values(type_: str, want: Words, got: Words) -> bool:
    """Ask whether the elements differ only in the sign of zeros and in the bits of NaNs."""
    if type_ not in _FLOAT:
        return False
    size, infinity = _FLOAT[type_].size, _FLOAT[type_].infinity
    for at in range(0, want.size, _ELEMENTS_AT_ONCE):
        part = slice(at, at + _ELEMENTS_AT_ONCE)
        different = want[part] != got[part]
        old, new = want[part][different] & size, got[part][different] & size
        if not np.all(((old == 0) & (new == 0)) | ((old > infinity) & (new > infinity))):
            return False
    return True


def _are_flushed(type_: str, want: Words, got: Words) -> bool:
    """Ask whether all subnormal numbers became 0, and nothing else changed."""
    if type_ not in _FLOAT:
        return False
    size, fraction = _FLOAT[type_].size, _FLOAT[type_].fraction
    for at in range(0, want.size, _ELEMENTS_AT_ONCE):
        old, new = want[at : at + _ELEMENTS_AT_ONCE], got[at : at + _ELEMENTS_AT_ONCE]
        is_subnormal = (old & size > 0) & (old & size <= fraction)
        if not np.all(np.where(is_subnormal, new & size == 0, old == new)):
            return False
    return True


# ── elements in the wrong places ──────────────────────────────────────────────────────────────────


def _find_move(expected: ExpectedAnswer, dims: tuple[int, ...], want: Words, got: Words) -> str | None:
    src_spec = expected.src_spec
    if read := _find_wrong_read(src_spec, want, got):
        return read
    if expected.dst and _is_dense_dst(expected.dst, want, got):
        return "strides of dst ignored"
    if np.array_equal(got, want.view(want.dtype.newbyteorder())):
        return "bytes of each element reversed"  # of every pattern in turn, that is a transposition, too
    if _is_in_columns(src_spec.dims, dims, want, got):
        return "column-major order"
    if not got.any() and want.any():
        return "all zero"
    half = _find_first_places(want, got, 1)[0] if want.size else 0
    if half and got[half:].any() and np.array_equal(got[half:], got[:-half]):
        return "repeated"
    sums = got.sum(dtype=np.uint64), want.sum(dtype=np.uint64)  # sorting takes long
    if sums[0] == sums[1] and np.array_equal(np.sort(got), np.sort(want)):
        return "same elements in another order"
    is_shifted = np.array_equal(got[1:], want[:-1]) or np.array_equal(got[:-1], want[1:])
    if is_shifted and np.count_nonzero(want != got) > 1:  # one of many equal elements may be lost
        return "shifted by one element"
    if src_spec.bits is None and 4 * want.size < 1 << min(16, 8 * want.itemsize):  # few words are elements
        moved = np.isin(got, want)
        if np.any(moved & (got != want)) and np.all(moved | (got == 0)):
            return "elements in the wrong places" + ("" if moved.all() else ", others lost")
    tail = got[half:]
    lost = want[half:]  # a constant instead of another constant is a change of that element, as of one NaN
    if half and tail.size and np.all(tail == tail[0]) and np.any(lost != lost[0]):
        has_many_values = np.unique(lost[:_ELEMENTS_AT_ONCE]).size >= _MANY_VALUES
        return "truncated: a constant after the first elements" if has_many_values or tail[0] not in want else None
    return None


def _find_wrong_read(src_spec: TensorSpec, want: Words, got: Words) -> str | None:
    """Name the way in which memory was read at other places than those of src."""
    if src_spec.layout != "dense" and _is_read_as_dense(src_spec, got):
        return "strides ignored" if src_spec.layout in STRIDED else "offset ignored"
    mark = np.frombuffer(bytes([GUARD_BYTE]) * want.itemsize, want.dtype)
    if want.itemsize > 1 and np.any(got == mark) and not np.any(want == mark):
        return "offset ignored" if _is_read_without_offset(src_spec, got) else "memory around src read"
    return None


def _is_in_columns(src: tuple[int, ...], dst: tuple[int, ...], want: Words, got: Words) -> bool:
    """Ask whether the elements of src were taken, or put into dst, or both, in column-major order."""
    if not want.size or got[0] != want[0] or got[-1] != want[-1]:  # both stay in any of these orders
        return False
    src, dst = (tuple(n for n in dims if n != 1) for dims in (src, dst))  # NumPy has no rank 65
    taken = want.reshape(src).ravel(order="F")
    orders = (taken, want.reshape(dst, order="F").ravel(), taken.reshape(dst, order="F").ravel())
    return any(np.array_equal(got, order) for order in orders)


def _is_read_as_dense(src_spec: TensorSpec, got: Words) -> bool:
    """Ask whether the answer is the memory of src, read as if src had no strides or no offset."""
    buffer = lay_out(src_spec)  # the memory as it was; rare, so made again
    starts = {buffer.tensor.offset, GUARD_BYTES}  # the first element, and the lowest one
    rows = (buffer.before[at : at + got.size * WIDTH[src_spec.type]] for at in starts)
    return any(row == got.tobytes() for row in rows)


def _is_read_without_offset(src_spec: TensorSpec, got: Words) -> bool:
    """Ask whether the answer is the memory of src, read from its first byte at the strides of src."""
    buffer = lay_out(src_spec)
    tensor = buffer.tensor
    if any(step < 0 for step in tensor.strides):
        return False
    return np.array_equal(view_of(buffer.before, got.dtype, tensor.dims, tensor.strides).reshape(-1), got)


def _is_dense_dst(dst: Declared, want: Words, got: Words) -> bool:
    """Ask whether the answer is a dense dst, read at the strides that were declared for it."""
    dims, width = tuple(length for length in dst.dims or () if length is not None), want.itemsize
    if dst.strides is None or len(dims) != len(dst.strides) or volume_of(dims) != want.size:
        return False
    places: Any = np.int64(0)  # not through memory: the strides may be huge
    for length, step in zip(dims, dst.strides, strict=True):
        if length != 1:
            places = np.add.outer(places, np.arange(length) * (step // width))
    places = places.ravel()
    is_inside = places < want.size  # what lies behind dense elements may be anything
    read = want[places[is_inside]]
    return bool(np.any(read != want[is_inside]) and np.all(read == got[is_inside]))


# ── elements changed on the way ───────────────────────────────────────────────────────────────────


def name_changes(type_: str, want: Words, got: Words) -> str:
    """Name the ways in which single elements changed, or say that elements are wrong."""
    if type_ not in _FLOAT:
        return "wrong elements"
    different = _find_first_places(want, got, 4096)
    few = want[different], got[different]  # first, as conversions of millions of elements take long
    roundings: dict[str, Conversion] = {
        f"rounded through {other}": partial(_round_through, other, type_)
        for other in ("bf16", "f16", "f32") if other != type_
    }  # fmt: skip
    conversions = roundings | ({"cut to bf16": _cut_to_bf16} if type_ == "f32" else {})
    for name, convert in conversions.items():
        if _are_converted(type_, *few, convert) and _are_converted(type_, want, got, convert):
            return name
    rounds = (name for name, each in roundings.items()
              if _are_rounded(type_, *few, each) and _are_rounded(type_, want, got, each))  # fmt: skip
    through = next(rounds, None)
    rounded = roundings[through](few[0]) if through else few[0]
    pairs = zip(*(each.tolist() for each in (*few, rounded)), strict=True)
    ways = {_name_change(type_, old, new, through if new == back else None) for old, new, back in pairs}
    for way in ("wrong elements", "elements lost"):  # then the others say nothing of how the backend treats them
        if way in ways:
            return way
    if _is_block_lost(type_, want, got):
        return "elements lost"
    return ", ".join(sorted(ways, key=_WAYS.index))


def _is_block_lost(type_: str, want: Words, got: Words) -> bool:
    """Ask whether elements in a row are 0 although others like them were kept, so that no treatment explains it."""
    kind, first = _FLOAT[type_], _find_first_places(want, got, 1)[0]
    end = want.size - _find_first_places(want[::-1], got[::-1], 1)[0]
    limits = [1, kind.fraction + 1, kind.infinity, kind.infinity + 1]  # of subnormal, normal, infinite, and NaN
    others = np.append(want[:first], want[end:])
    kept, lost = (np.digitize(part[part != 0] & kind.size, limits) for part in (others, want[first:end]))
    is_special = lost != 2  # of normal numbers, a conversion may make the smallest ones 0
    return not got[first:end].any() and bool(np.isin(lost[is_special], kept).any())


def _are_converted(type_: str, want: Words, got: Words, convert: Conversion) -> bool:
    """Ask whether a conversion explains every element. It may give a NaN other bits.

    Elements that became 0 may be lost, and a few that became infinite, too.
    """
    size, infinity = _FLOAT[type_].size, _FLOAT[type_].infinity
    is_nan = (want & size) > infinity
    changed = got[(want != got) & ~is_nan] & size
    tells = np.any((changed != 0) & (changed != infinity)) or np.count_nonzero(changed) >= _MANY_INFINITIES
    return bool(tells and np.all((convert(want) == got) | (is_nan & ((got & size) > infinity))))


def _are_rounded(type_: str, want: Words, got: Words, convert: Conversion) -> bool:
    """Ask whether a conversion to another type and back explains all numbers, or all that differ.

    A 0 or an infinity alone shows nothing: it may be an element that was lost.
    """
    size, infinity = _FLOAT[type_].size, _FLOAT[type_].infinity
    are_numbers = (want & size) <= infinity
    want, got = want[are_numbers], got[are_numbers]
    fits, differs = convert(want) == got, want != got
    telling = differs & ((got & size) != 0) & ((got & size) != infinity)
    return bool(np.any(differs) and (np.all(fits) or (np.all(fits[telling]) and np.any(telling))))


_WAYS = (
    "rounded through bf16", "rounded through f16", "rounded through f32", "NaN payload lost", "subnormals flushed",
    "NaN quieted", "sign changed", "sign of NaN lost", "sign of zero lost", "NaN lost", "infinity lost",
)  # fmt: skip
"""Names of changes, in the order in which a diagnosis has them: it is the same for every tensor."""


def _name_change(type_: str, want: int, got: int, rounded: str | None) -> str:
    """Name the change of one element; `rounded`: the name if a conversion to another type and back explains it."""
    kind = _FLOAT[type_]
    sign, fraction, infinity, quiet = kind.size + 1, kind.fraction, kind.infinity, 1 << (kind.fraction_bits - 1)
    size, same = want & ~sign, got & ~sign
    if size > infinity:
        return _name_nan_change(want, got, sign, infinity, quiet)
    if 0 < size <= fraction and same == 0:
        return "subnormals flushed"
    if size == 0 and got == want ^ sign:
        return "sign of zero lost"
    if got == want ^ sign:
        return "sign changed"
    if rounded:
        return rounded
    if size == infinity:
        return "infinity lost"
    return "wrong elements" if same else "elements lost"


def _name_nan_change(want: int, got: int, sign: int, infinity: int, quiet: int) -> str:
    if got & ~sign <= infinity:
        return "NaN lost"
    if got == want | quiet:
        return "NaN quieted"
    if got == want ^ sign:
        return "sign of NaN lost"
    return "NaN payload lost"


def _cut_to_bf16(bits: Words) -> Words:
    """Return patterns of f32 without the second half of each, as a library does that copies the first one."""
    cut: Words = bits & np.array(0xFFFF0000, bits.dtype)
    return cut


def _round_through(other: str, type_: str, bits: Words) -> Words:
    """Return patterns after a conversion to another type and back."""
    with np.errstate(all="ignore"):
        back = bits.view(dtype_of(type_)).astype(np.float64).astype(dtype_of(other)).astype(dtype_of(type_))
    return back.view(bits.dtype)
