"""The parts that all scripts share: the words of src, its memory, the shapes, and the frame around them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from conformance.adapter.function import check_rank_in_numpy
from conformance.model import Node, Unsupported
from conformance.model.types import WIDTH
from conformance.plan.contents import SPREAD, rotate_edges, scramble_of
from conformance.plan.memory import EDGES, REPEATING, TensorSpec, patterns, reach_of, strides_of, volume_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from .plain import spell

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The type codes of `array` for unsigned integers, by their bytes."""
LOOK = """
def look(answer):
    return answer.dtype, answer.shape, answer.tobytes()
"""
"""The function that returns an answer's type, dims and bytes, of a library with NumPy's arrays."""
_MAX_LITERAL_WORDS = 48
"""More words than this are computed or repeated, not written out."""
_LAID_OUT = '''
def laid_out(words, dims, strides, offset, size):
    """Memory of `size` words that holds the elements at these strides; both are counted in elements."""
    memory = array(words.typecode, bytes(size * words.itemsize))
    for index, word in zip(product(*map(range, dims)), words):
        memory[offset + sum(i * step for i, step in zip(index, strides))] = word
    return memory
'''
_TELL = '''
def tell(number, step, look, rejections, *due):
    """What was due of a step, and what it came to."""
    print(f"step {number}", *due, "came: ", sep="\\n    ", end="", flush=True)
    try:
        words, answer = step()
    except rejections as error:
        return print(f"rejected: {type(error).__name__}: {error}")
    type_, dims, data = look(answer)
    got = array(words.typecode, data)
    changed = [k for k, (want, have) in enumerate(zip(words, got)) if want != have] if data != words.tobytes() else []
    result = "every element as it was"
    if len(got) != len(words):
        result = f"{len(got)} elements of {len(words)}"
    elif changed:
        k = changed[0]
        result = f"{len(changed)} of {len(words)} elements changed, first {k}: {words[k]:#x} became {got[k]:#x}"
    print(f"answered {type_} {list(dims)}, {result}")
'''


_RUN_ROWS = """
if sys.argv[1:]:
    ROWS[sys.argv[1]]()
else:  # a row may end its process
    for name in ROWS:
        print(f"\\n{name}", flush=True)
        if code := subprocess.run([sys.executable, __file__, name]).returncode:
            print(f"ended with {code}")
"""


class ScriptParts(NamedTuple):
    imports: Sequence[str]
    rejections: str
    """The exceptions by which it rejects, as Python."""
    look: str
    """The function that tells an answer's type, dims and bytes."""
    steps: Sequence[str]
    """The body of each step, which returns src's words and the answer."""
    before: str = ""
    """Code before the steps: the models."""
    library: str = ""
    """Code that is the same for each row."""


def join_parts(rows: Mapping[str, ScriptParts], due: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Return the script of a row, or of several by name, each in a separate process; without the head.

    `due`: for each row what is due of its steps, in words.
    """
    every = list(rows.values())
    imports = ["from array import array", *chain(*(parts.imports for parts in every))]
    frames = {name: f"{parts.before}\n{parts.look}\nREJECTIONS = {parts.rejections}\n" for name, parts in rows.items()}
    shared = next(iter(frames.values())) if len(set(frames.values())) == 1 else ""
    codes = {name: ("" if shared else frames[name]) + _steps_of(parts, due[name]) for name, parts in rows.items()}
    if len(rows) > 1:
        imports += ["import subprocess", "import sys"]
        codes = {name: f"\ndef row_{k}():{indent(code, '    ')}" for k, (name, code) in enumerate(codes.items(), 1)}
        names = "".join(f"    {spell(name)}: row_{k},\n" for k, name in enumerate(codes, 1))
        codes["all"] = f"\nROWS = {{\n{names}}}\n{_RUN_ROWS}"
    laid_out = ""
    if any("laid_out(" in step for parts in every for step in parts.steps):
        imports, laid_out = [*imports, "from itertools import product"], _LAID_OUT
    if any("->" in parts.library + parts.before for parts in every):  # functions of an adapter, with types
        imports.insert(0, "from __future__ import annotations")
    return "\n".join([*dict.fromkeys(imports), laid_out, every[0].library, shared, _TELL, *codes.values()])


def _steps_of(parts: ScriptParts, due: Sequence[Sequence[str]]) -> str:
    steps = [f"\n\ndef step_{number}():\n{indent(body, '    ')}\n" for number, body in enumerate(parts.steps, 1)]
    calls = "".join(
        f"tell({number}, step_{number}, look, REJECTIONS{''.join(f', {each!a}' for each in words)})\n"
        for number, words in enumerate(due, 1)
    )
    return "".join([*steps, f"\n\n{calls}"])


def source_of(adapter: str, *names: str) -> str:
    """Return functions and constants of an adapter as they are written there; the library need not be installed."""
    text = (Path(__file__).parents[1] / f"{adapter}.py").read_text(encoding="utf-8")
    parts = {}
    for node in ast.parse(text).body:
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else getattr(node, "name", "")
        if name in names:  # each segment splits the whole text again
            parts[name] = ast.get_source_segment(text, node)
    return "".join(f"\n\n{parts[name]}\n" for name in names)


# ── src ───────────────────────────────────────────────────────────────────────────────────────────


def write_words(src_spec: TensorSpec) -> str:
    """src's elements in row-major order, as the expression of an array of unsigned integers."""
    code = CODES[WIDTH[src_spec.type]]
    volume = volume_of(src_spec.dims)
    if volume <= _MAX_LITERAL_WORDS:
        return f'array("{code}", [{", ".join(map(hex, patterns(src_spec).tolist()))}])'
    if src_spec.bits is None and src_spec.layout not in REPEATING:  # no two elements share a place in memory
        count = min(volume, scramble_of(src_spec.type).size)
        numbers = f"{_number(src_spec.type)} for n in range({src_spec.start}, {src_spec.start + count})"
        return _repeat(f'array("{code}", ({numbers}))', *divmod(volume, count), volume)
    cycle, count = cycle_of(src_spec, volume)
    ranges = [f"range({part.start:#x}, {part.stop:#x})" if isinstance(part, range) else hex(part) for part in cycle]
    joined = ", ".join(f"*{part}" if part.startswith("range") else part for part in ranges)
    inner = ranges[0] if len(cycle) == 1 and isinstance(cycle[0], range) else f"[{joined}]"
    return _repeat(f'array("{code}", {inner})', *divmod(volume, count), volume)


def _repeat(whole: str, times: int, rest: int, volume: int) -> str:
    """Return the expression of an array that is repeated some times, and cut off."""
    if rest:
        return f"({whole} * {times + 1})[:{volume}]"
    return whole if times == 1 else f"{whole} * {times}"


def _number(type_: str) -> str:
    """Return the default element `n` of a type as Python, for people without the suite; see `Scramble`."""
    places, jump, fine, low, positive, gap = scramble_of(type_)
    word = f"n % {places} * {jump} % {places} << {fine}" if fine else f"n % {places} * {jump} % {places}"
    if low:
        word = f"{low:#x} + (at := {word}) + (at >= {positive:#x}) * {gap:#x}"
    noise = f"(n % {places} * {SPREAD:#x} % 2**64 >> {64 - fine}) ^ n // {places} * {SPREAD:#x} % 2**{fine}"
    return f"({word}) ^ {noise}" if fine else word


def cycle_of(src_spec: TensorSpec, volume: int) -> tuple[list[range | int], int]:
    """Return the words that the elements repeat, as words and ranges, and the number of these words."""
    if src_spec.layout in REPEATING or src_spec.bits is None:
        run = patterns(src_spec).tolist()
        return run, max(len(run), 1)
    if src_spec.bits == "all":
        return [range(volume)], max(volume, 1)
    if src_spec.bits == "edges":
        return [*rotate_edges(src_spec.type, src_spec.start)], len(EDGES[src_spec.type])
    given: list[range | int] = [int(word, 16) for word in src_spec.bits.split()]
    return given, len(given)


class MemoryLayout(NamedTuple):
    """The layout of src in memory; all in elements."""

    strides: tuple[int, ...]
    offset: int
    size: int


def find_memory_layout(src_spec: TensorSpec) -> MemoryLayout | None:
    """Return the layout of a source; None if it is dense and begins at the first word."""
    if src_spec.layout == "dense" or not volume_of(src_spec.dims):
        return None
    strides = strides_of(src_spec.dims, src_spec.layout, 1)
    below, above = reach_of(src_spec.dims, strides)
    offset = below + {"offset": 3, "offset-8": 8 // WIDTH[src_spec.type]}.get(src_spec.layout, 0)
    return MemoryLayout(strides, offset, offset + above + 1)


def write_memory(src_spec: TensorSpec) -> str:
    """The lines that make `words`, and `memory` where src is not dense."""
    lines = [f"words = {write_words(src_spec)}"]
    if at := find_memory_layout(src_spec):
        lines.append(f"memory = laid_out(words, {spell(src_spec.dims)}, {at.strides}, {at.offset}, {at.size})")
    return "\n".join(lines)


NUMPY = {
    "f16": "np.float16", "bf16": "ml_dtypes.bfloat16", "f32": "np.float32", "f64": "np.float64", "bool": "np.bool_",
    "s8": "np.int8", "u8": "np.uint8", "s16": "np.int16", "u16": "np.uint16", "s32": "np.int32", "u32": "np.uint32",
    "s64": "np.int64", "u64": "np.uint64",
}  # fmt: skip
"""A type as NumPy code."""


def write_numpy_array(src_spec: TensorSpec) -> str:
    """src as NumPy code, the words being there."""
    check_rank_in_numpy(src_spec.dims)
    type_, width = NUMPY[src_spec.type], WIDTH[src_spec.type]
    if at := find_memory_layout(src_spec):
        strides = tuple(step * width for step in at.strides)
        return f"np.ndarray({spell(src_spec.dims)}, {type_}, memory, {at.offset * width}, {strides})"
    return f"np.array(words).view({type_}).reshape({spell(src_spec.dims)})"


def write_numpy_imports(row: Row) -> list[str]:
    bf16 = any(step.src_spec.type == "bf16" for step in row.steps)
    return [*(["import ml_dtypes"] if bf16 else []), "import numpy as np"]


# ── shape ─────────────────────────────────────────────────────────────────────────────────────────


def write_function_calls(step: RowStep, mapped: bool = True) -> Iterator[tuple[str, str]]:
    """For each node of a graph that function calls can say, its shape as Python and its type; `src` is what it takes.

    `mapped`: a library without special_zero is given the lengths that are copied.
    """
    arriving, rank = iter(step.shapes), len(step.src_spec.dims)
    for node in step.graph.nodes:
        if not node.well_formed:
            raise Unsupported("form")
        if node.result is not None:
            raise Unsupported("declared")
        assert node.shape is not None
        shape = node.shape.values if node.shape.values is not None else next(arriving)[2]
        zeros = mapped and has_special_zero(node)
        lengths = [f"src.shape[{i}]" if zeros and n == 0 and i < rank else spell(n) for i, n in enumerate(shape)]
        rank = len(shape)
        yield f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})", node.shape.type


def has_special_zero(node: Node) -> bool:
    return node.special_zero is not None and bool((node.special_zero.values or (False,))[0])


def write_body(step: RowStep, src: str, calls: Iterable[str], answer: str = "src") -> str:
    """Return the body of a step: src's words, src, the calls, and the answer."""
    return "\n".join([write_memory(step.src_spec), f"src = {src}", *calls, f"return words, {answer}"])
