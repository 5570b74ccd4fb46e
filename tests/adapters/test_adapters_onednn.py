"""oneDNN Graph: what the adapter tells the library, what it makes of the answers."""

import ctypes as c
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.adapter import CannotStart, load_adapter
from conformance.adapters import onednn, onednn_api
from conformance.model import Declared, Graph, Node, Operand, Rejected, Tensor, Unsupported
from conformance.model.types import dtype_of
from conformance.plan.memory import TensorSpec, lay_out, patterns

from .backends import load_or_skip, node


def graph(src: tuple[int, ...], *nodes: Node, type_: str = "f32", strides: tuple[int, ...] | None = None) -> Graph:
    return Graph(Declared(type_, src, strides), nodes)


@pytest.fixture(scope="module")
def adapter() -> onednn.OneDnn:
    found = load_or_skip("onednn")
    assert isinstance(found, onednn.OneDnn)
    return found


def answer(adapter: onednn.OneDnn, graph: Graph, source: TensorSpec, may_overwrite: bool = False) -> Tensor:
    dst: Tensor = adapter.compile(graph).run(lay_out(source).tensor, (), may_overwrite)
    return dst


# ── what the library is told ──────────────────────────────────────────────────────────────────────
def test_a_graph_is_put_down_in_the_librarys_numbers() -> None:
    plan = onednn.blueprint(graph((2, 6), node((3, 4)), node((0, -1), Operand("bool", (), (True,)))))
    dims = {0: (2, 6), 1: None, 2: None}
    assert plan.tensors == {number: onednn.TensorFields(number, 3, dims[number]) for number in dims}
    first, second = plan.ops
    assert (first.inputs, first.outputs, second.inputs, second.outputs) == ((0,), (1,), (1,), (2,))
    assert second.attributes == (onednn.Attribute(0x48, "s64", (0, -1)), onednn.Attribute(0x64, "bool", (True,)))


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (graph((3, 4), node((12,)), type_="bf16", strides=(2, 6)), onednn.TensorFields(0, 2, (3, 4), (1, 3))),
        (
            graph((12,), node((3, 4), result=Declared("f32", (3, 4), (4, 12)))),
            onednn.TensorFields(1, 3, (3, 4), (1, 3)),
        ),
        (graph((12,), node((3, 4), result=Declared("f16", (3, None)))), onednn.TensorFields(1, 1, (3, None))),
    ],
)
def test_a_declaration_is_kept_with_strides_in_elements(given: Graph, fields: onednn.TensorFields) -> None:
    assert onednn.blueprint(given).tensors[fields.id] == fields


def test_an_answer_at_the_strides_declared_of_dst_is_read_there(adapter: onednn.OneDnn) -> None:
    declared = Declared("f32", (3, 4), (4 * 8, 8))  # each element takes two places
    dst = answer(adapter, graph((12,), node((3, 4), result=declared)), TensorSpec("f32", (12,)))
    assert (dst.dims, dst.strides) == ((3, 4), (32, 8))
    assert dst.array().tobytes() == patterns(TensorSpec("f32", (12,))).tobytes()


def test_every_node_of_a_fork_takes_src() -> None:
    plan = onednn.blueprint(graph((2, 6), node((12,)), node((3, 4), takes_src=True)))
    assert [op.inputs for op in plan.ops] == [(0,), (0,)]


TWO = onednn.Attribute(0x48, "s64", (2,))
EXTRA = (("axis", Operand("s64", (), (0,))), ("allowzero", Operand("s64", (), (1,))))


@pytest.mark.parametrize(
    ("given", "attributes"),
    [
        (node(None, None), ()),
        (node((2,), Operand("f32", (), (1,))), (TWO, onednn.Attribute(0x64, "f32", (1,)))),
        (  # an unknown attribute gets an unused number
            node((2,), None, attributes=EXTRA),
            (TWO, onednn.Attribute(0x30, "s64", (0,)), onednn.Attribute(0x3F, "s64", (1,))),
        ),
    ],
)
def test_an_attribute_is_set_as_it_is_typed(given: Node, attributes: tuple[onednn.Attribute, ...]) -> None:
    (op,) = onednn.blueprint(graph((2,), given)).ops
    assert op.attributes == attributes


@pytest.mark.parametrize(("inputs", "outputs"), [(0, 1), (2, 1), (1, 0), (1, 2)])
def test_operands_too_few_and_too_many_are_connected_as_written(inputs: int, outputs: int) -> None:
    plan = onednn.blueprint(graph((2,), node((2,), inputs=inputs, outputs=outputs)))
    assert (len(plan.ops[0].inputs), len(plan.ops[0].outputs)) == (inputs, outputs)
    assert {*plan.ops[0].inputs, *plan.ops[0].outputs} <= set(plan.tensors)


@pytest.mark.parametrize(
    ("given", "facet"),
    [
        (graph((1,) * 13, node((1,))), "rank:13"),
        (graph((2, 3), node((6,)), strides=(12, -4)), "layout:reversed"),
        (graph((2,), node((2,)), type_="u16"), "type:u16"),
        (graph((2,), node((2,))._replace(operation="Reshape-1")), "runtime-shape"),
        (graph((1,), node((1,), result=Declared("f32", (1,) * 13))), "rank:13"),
        (graph((1,), node((1,))._replace(shape=Operand("s64", (), (1,)))), "form:shape-rank"),
        (graph((1,), node((1,))._replace(shape=Operand("s64", (1, 1), (1,)))), "form:shape-rank"),
        (graph((1,), node((1,), Operand("bool", (1,), (True,)))), "form:attribute-types"),
    ],
)
def test_what_the_c_interface_lacks_is_unsupported(given: Graph, facet: str) -> None:
    with pytest.raises(Unsupported) as unsupported:
        onednn.blueprint(given)
    assert unsupported.value.facet == facet


def test_a_value_is_set_with_its_number_of_entries() -> None:
    """The C++ interface does the same: a float beside it has one entry, and a text ends with a zero."""
    library = Recorded()
    for attribute in (
        onednn.Attribute(0x48, "s64", (3, 4)),
        onednn.Attribute(0x48, "s64", ()),
        onednn.Attribute(0x64, "f32", (1,)),
        onednn.Attribute(0x64, "string", ("true",)),
    ):
        onednn.set_attribute(library, c.c_void_p(), attribute)
    assert library.seen == [
        ("dnnl_graph_op_set_attr_s64", struct.pack("<2q", 3, 4), 2),
        ("dnnl_graph_op_set_attr_s64", b"", 0),
        ("dnnl_graph_op_set_attr_f32", struct.pack("<f", 1), 1),
        ("dnnl_graph_op_set_attr_str", b"true", 4),
    ]
    assert library.texts == [b"true\0"]


class Recorded:
    """A library that keeps the values that it is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes, int]] = []
        self.texts: list[bytes] = []

    def call(self, name: str, _: object, number: int, values: Any, length: int) -> None:
        self.seen.append((name, bytes(values)[: length * c.sizeof(values._type_)], length))
        if name.endswith("str"):
            self.texts.append(bytes(values))


# ── finding the library ───────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("text", "why"), [(None, "no file"), ("no library", "cannot be loaded")])
def test_a_library_that_is_not_there_or_none_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, why: str
) -> None:
    if text:
        (tmp_path / "libdnnl.so.3").write_text(text)
    monkeypatch.setenv("ONEDNN_LIBRARY", str(tmp_path / "libdnnl.so.3"))
    with pytest.raises(CannotStart, match=rf"{why}.*pip install onednn$") as cannot:
        load_adapter("onednn")
    assert "\n" not in str(cannot.value)


def test_what_is_loaded_says_who_it_is(adapter: onednn.OneDnn) -> None:
    assert re.fullmatch(r"3\.\d+\.\d+", adapter.identity.version)
    detail = dict(adapter.identity.detail)
    assert re.fullmatch(r"[0-9a-f]{40}", detail["commit"])
    assert {"instruction set", "runtime"} <= set(detail)
    assert adapter.claims.operations == ("StaticReshape",)


# ── what is made of its answers ───────────────────────────────────────────────────────────────────
def test_every_16_bits_of_f32_come_back(adapter: onednn.OneDnn) -> None:
    words = np.arange(1 << 16, dtype="<u4") * 0x10001
    source = TensorSpec("f32", (256, 256))
    buffer = lay_out(source)
    buffer.tensor.array().view("<u4")[...] = words.reshape(256, 256)
    dst = adapter.compile(graph((256, 256), node((-1,)))).run(buffer.tensor, (), False)
    assert dst.array().view("<u4").tolist() == words.tolist()


def test_every_pattern_of_bf16_comes_back_from_a_transposed_src(adapter: onednn.OneDnn) -> None:
    if adapter.claims.excludes("type:bf16"):
        pytest.skip("this processor has no bf16 for oneDNN")
    source = TensorSpec("bf16", (256, 256), "transposed", "all")
    dst = answer(adapter, graph((256, 256), node((-1,)), type_="bf16", strides=(2, 512)), source)
    assert dst.array().view("<u2").tolist() == list(range(1 << 16))


def test_a_repeated_src_is_read_again(adapter: onednn.OneDnn) -> None:
    source = TensorSpec("f32", (2, 6), "broadcast")
    dst = answer(adapter, graph((2, 6), node((12,)), strides=(0, 4)), source)
    assert dst.array().view("<u4").tolist() == patterns(source).tolist()


def test_src_is_shared_only_if_allowed_and_offered(adapter: onednn.OneDnn) -> None:
    for layout, strides, leave in (("dense", None, True), ("dense", None, False), ("padded", (36, 4), True)):
        buffer = lay_out(TensorSpec("f32", (2, 6), layout))  # type: ignore[arg-type]
        dst = adapter.compile(graph((2, 6), node((3, 4)), strides=strides)).run(buffer.tensor, (), leave)
        assert (dst.memory is buffer.tensor.memory) == (leave and layout == "dense")


def test_a_chain_is_a_graph_of_several_ops(adapter: onednn.OneDnn) -> None:
    source = TensorSpec("f32", (2, 6))
    program = adapter.compile(graph((2, 6), node((3, 4)), node((12,)), node((4, -1))))
    dst = program.run(lay_out(source).tensor, (), False)
    assert (dst.dims, dst.array().tobytes()) == ((4, 3), lay_out(source).elements)
    assert len(program.parts) >= 1


def test_a_program_answers_again(adapter: onednn.OneDnn) -> None:
    program = adapter.compile(graph((6,), node((2, 3))))
    for start in (0, 7):
        buffer = lay_out(TensorSpec("f32", (6,), start=start))
        assert program.run(buffer.tensor, (), False).array().tobytes() == buffer.elements


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (graph((2, 3), node((4,))), "invalid_shape at dnnl_graph_partition_compile"),
        (graph((2, 3), node((6,), None)), "invalid_graph_op at dnnl_graph_add_op"),
        (graph((2, 3), node((6,), inputs=2)), "invalid_graph_op at dnnl_graph_add_op"),
    ],
)
def test_a_refusal_names_the_status_and_the_function(adapter: onednn.OneDnn, given: Graph, message: str) -> None:
    with pytest.raises(Rejected) as rejected:
        adapter.compile(given)
    assert (rejected.value.stage, rejected.value.message) == ("compile", message)


def test_a_library_that_writes_outside_an_output_has_crashed() -> None:
    script = (
        "from conformance.adapters import onednn\n"
        "memory = onednn.Memory.allocate(8)\n"
        "onednn.end_process_if_overrun([memory])\n"
        "memory.memory[memory.offset + 8] = 0\n"
        "onednn.end_process_if_overrun([memory])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGABRT
    assert ended.stderr == "the library wrote after the 8 bytes of an output\n"


def test_dims_past_the_struct_are_read_as_in_c() -> None:
    tensor = onednn_api.LogicalTensor(ndims=13, dims=onednn_api.Dims(*range(12)), data_type=3)
    assert tensor.read("dims") == (*range(12), 3)
    assert tensor.read("strides") == (0,) * 13


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(ValueError, match="data type 99"):
        onednn_api.type_of(onednn_api.LogicalTensor(data_type=99))
    assert dtype_of(onednn_api.type_of(onednn_api.LogicalTensor(data_type=2))).name == "bfloat16"
