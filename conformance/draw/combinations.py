"""The rows of cases/combinations.txt: a call, and a value of each factor that a call leaves to choose.

A line has one digit or letter for each such factor, in the order of spec/factors.yaml, and the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from ..load.folders import find_cases_folder
from ..meaning.domain import Lengths
from ..model import Case, Place
from ..model.types import WIDTH
from ..plan.contents import make_default_words, rotate_edges
from ..plan.memory import strides_of, volume_of
from .calls import MAX_BIT_PATTERNS, DrawnCall, guess_answer, step_of
from .factors import Factors, Values, find_factors

COMBINATIONS_FILE = "combinations.txt"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_LARGER = 70_000
"""Elements of a larger call that comes before, to fill memory that is then used again."""
_THREADS = 4


class Combination(NamedTuple):
    call: DrawnCall
    chosen: Values

    def line(self, factors: Factors) -> str:
        digits = "".join(DIGITS[factors.values[name].index(self.chosen[name])] for name in factors.chosen)
        lists = (",".join(map(str, lengths)) or "-" for lengths in (self.call.src, self.call.shape))
        return f"{digits} {' '.join(lists)} {'true' if self.call.special_zero else 'false'}"


def read_combinations(factors: Factors) -> Iterator[Combination]:
    return (read_combination(factors, number) for number in range(count_combinations()))


def read_combination(factors: Factors, number: int) -> Combination:
    """Read one line of the bundled file. A specification with other operations has other ways, taken in turn."""
    digits, src, shape, flag = _read_lines()[number].split()
    chosen = {
        name: factors.values[name][DIGITS.index(digit) % len(factors.values[name])]
        for name, digit in zip(factors.chosen, digits, strict=True)
    }
    return Combination(DrawnCall(_parse_lengths(src), _parse_lengths(shape), flag == "true"), chosen)


def _parse_lengths(text: str) -> Lengths:
    return tuple(map(int, text.split(","))) if text != "-" else ()


def count_combinations() -> int:
    return len(_read_lines())


@lru_cache(1)
def _read_lines() -> tuple[str, ...]:
    lines = (find_cases_folder() / COMBINATIONS_FILE).read_text(encoding="ascii").splitlines()
    return tuple(line for line in lines if line and line[0] != "#")


# ── as a case ─────────────────────────────────────────────────────────────────────────────────────


def case_of(call: DrawnCall, chosen: Values, number: int, name: str = "drawn") -> Case:
    """Return the case of a combination; its number varies what no factor says."""
    type_, node, of_any_length = chosen["type"], chosen["node"], chosen["before"] == "other-lengths"
    steps = [
        step_of(
            type_, _list_nodes(each, node, of_any_length), layout=chosen["layout"],
            in_place=chosen["in_place"] == "yes",
            bits=_choose_bits(type_, chosen["content"], math.prod(each.src), number + at), shared_src=node == "fork",
            shared_shape=node == "shared-shape",
            constant_nodes={"mixed": "first", "mixed-second": "second"}.get(node, "none"),
        )
        for at, each in enumerate(_list_calls(call, chosen["before"], chosen["threads"], number))
    ]  # fmt: skip
    in_node = chosen["declared_in"]
    dst = guess_answer(_list_nodes(call, node, of_any_length)[0 if in_node == "first" else -1])
    declared: Any = {"nothing": None, "rank-unknown": "unknown", "exact": dst}.get(chosen["declared"], ())
    if chosen["declared"] == "partly":
        declared = tuple(None if (axis + number) % 2 else length for axis, length in enumerate(dst))
    is_rank_unknown, strides = chosen["known"] == "rank-unknown", None
    if chosen["dst_layout"] != "none":
        strides = " ".join(map(str, strides_of(dst, chosen["dst_layout"], 1)))  # type: ignore[arg-type]
    return Case(
        name, COMBINATIONS_FILE, "same-volume", tuple(steps), Place(f"cases/{COMBINATIONS_FILE}"),
        declared=declared, dst_strides=strides, in_node=in_node, shape_step=int(chosen["shape_step"]),  # type: ignore[arg-type]
        known="all" if is_rank_unknown else chosen["known"], unknown_rank=is_rank_unknown,  # type: ignore[arg-type]
        concurrent=_THREADS if chosen["threads"] != "one" else 1, one_program=chosen["threads"] == "one-program",
    )  # fmt: skip


def _list_calls(call: DrawnCall, before: str, threads: str, number: int) -> list[DrawnCall]:
    """Return the calls of a program: a call, and those before it or at the same time."""
    if threads != "one":
        return [call] * _THREADS
    if before == "rejection":
        return [call._replace(shape=(math.prod(call.src) + 1, *[1] * (len(call.shape) - 1))), call]
    if before == "larger":
        larger = min(1000 + 4 * math.prod(call.src), _MAX_LARGER)
        src, shape = ((larger, *[1] * (len(lengths) - 1)) for lengths in (call.src, call.shape))
        return [DrawnCall(src, shape, call.special_zero), call]
    if before == "other-lengths":  # a graph that knows no more than every other length takes both: see Case.known
        return [call, _with_another_length(call, number), call]
    return [call, call] if before == "repeated" else [call]


def _with_another_length(call: DrawnCall, number: int) -> DrawnCall:
    """Return a call with one length of src doubled that graphs may leave open; a legal one if there is one.

    Another length may be halved, so that the volume is the same.
    """
    lengths = [at for at, length in enumerate(call.src) if length and at % 2 == 0]
    calls = []
    for twice in lengths:
        for half in (None, *(at for at in lengths if at != twice and call.src[at] % 2 == 0)):
            src = [*call.src]
            src[twice] *= 2
            if half is not None:
                src[half] //= 2
            calls.append(call._replace(src=tuple(src)))
    legal = [each for each in calls if "broken" not in find_factors(each)]
    among = legal or calls or [call]
    return among[number % len(among)]


def _list_nodes(call: DrawnCall, node: str, of_any_length: bool) -> list[DrawnCall]:
    """Return the nodes of a graph: one makes the call, and the others have plain lengths.

    `of_any_length`: the graph takes other lengths of src, too, so the shapes of its other nodes name none.
    """
    src, volume = call.src, math.prod(call.src)
    before, after = DrawnCall(src[::-1], src, False), DrawnCall((), src[::-1], False)
    whole = (volume,)
    if of_any_length:
        before, after, whole = DrawnCall(src, (0,) * len(src), True), DrawnCall((), (-1,), False), (-1,)
    infer = next((at for at in range(len(src)) if volume_of((*src[:at], *src[at + 1 :]))), None)
    inferred = tuple(-1 if at == infer else length for at, length in enumerate(src))
    flat = [DrawnCall(src[::-1], shape, False) for shape in ((volume,), (1, volume), (volume, 1))]
    return {
        "single": [call],
        "first-of-2": [call, after],
        "last-of-2": [before, call],
        "there-and-back": [call, DrawnCall((), src, False)],
        "middle-of-3": [before, call, after],
        "mixed": [before, call, after],
        "mixed-second": [before, call, after],
        "behind-infer": [before._replace(shape=inferred), call],
        "last-of-5": [*flat, before, call],
        "fork": [DrawnCall(src, whole, False), call],
        "shared-shape": [call, call],
    }[node]


# ── contents ──────────────────────────────────────────────────────────────────────────────────────


def _choose_bits(type_: str, content: str, volume: int, number: int) -> str | None:
    """Return bit patterns, repeated over and over; None for the default elements."""
    if content == "scrambled" or not volume:
        return None
    usual, edges = make_default_words(type_, 977 * number, MAX_BIT_PATTERNS).tolist(), rotate_edges(type_, number)
    words = {
        "constant": usual[:1],
        "zeros": [0],
        "sorted": sorted(usual),
        "small": [*range(MAX_BIT_PATTERNS)],
        "runs": [word for word in usual[:13] for _ in range(7)],
        "one-special": [edges[0], *usual[1:]],
        "all-special": edges,
    }[content]
    return " ".join(f"{word:0{2 * WIDTH[type_]}x}" for word in words[:volume])
