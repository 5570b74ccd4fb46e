"""Adapters of libraries: what goes in and comes out, what those of array libraries resolve."""

from typing import Any

import numpy as np
import pytest

from conformance.adapter import CannotStart, load_adapter, read_bundled_backends
from conformance.adapters.numpy import NumPy
from conformance.adapters.shared import NodeCall, read_answer, resolve_infer, resolve_zeros
from conformance.model import Declared, Graph, Node, Operand, Rejected, Unsupported
from conformance.plan.memory import TensorSpec, lay_out, lay_out_shape, patterns
from conformance.run.call import elements_of

from . import backends
from .backends import LAYOUTS, NO, YES, load_or_skip, node, parts_of

MODULES = (
    "numpy", "torch", "jax", "array_api_strict", "dask", "mlx", "tensorflow", "ndonnx", "paddle", "pytensor",
    "litert", "mnn", "cupy", "tinygrad", "sparse", "keras_jax", "keras_tensorflow", "tosa", "executorch",
    "warp", "hidet", "candle",
)  # fmt: skip
ARRAYS = tuple(name for name, known in read_bundled_backends().items() if known.module in MODULES)
RUNTIMES = (
    "onnxruntime", "onnxruntime-plain", "onnxruntime-opset-18", "onnx-reference", "tract", "tvm", "ncnn",
    "openvino", "openvino-one-thread", "openvino-reference",
)  # fmt: skip
RAW = ("numpy", "torch-raw", "paddle", "mnn", "hidet", *RUNTIMES)


@pytest.fixture(scope="module", params=ARRAYS)
def adapter(request: pytest.FixtureRequest) -> Any:
    return load_or_skip(request.param)


@pytest.fixture(scope="module", params=[*ARRAYS, *RUNTIMES])
def any_adapter(request: pytest.FixtureRequest) -> Any:
    return load_or_skip(request.param)


def answer(adapter: Any, source: TensorSpec, *nodes: Node) -> tuple[str, tuple[int, ...], bytes]:
    return backends.answer(adapter, Graph(Declared(source.type, source.dims), nodes), source)


# ── who it is ─────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_what_is_loaded_says_who_it_is(any_adapter: Any) -> None:
    assert any_adapter.identity.name in (*ARRAYS, *RUNTIMES)
    assert any_adapter.identity.version[0].isdigit()


def test_a_backend_says_whether_it_answers_special_zero(any_adapter: Any) -> None:
    assert any_adapter.claims.answers_special_zero == (any_adapter.identity.name not in RAW)


@pytest.mark.parametrize("backend", ["torch@nowhere", "jax@nowhere", "tensorflow@nowhere"])
def test_a_device_that_is_not_there_is_one_line(backend: str) -> None:
    load_or_skip(backend.partition("@")[0])
    with pytest.raises(CannotStart) as cannot:
        load_adapter(backend)
    assert str(cannot.value).startswith(backend)
    assert "\n" not in str(cannot.value)


def test_results_of_another_device_have_a_name_of_their_own() -> None:
    load_or_skip("torch")
    assert [load_adapter(backend).identity.name for backend in ("torch", "torch@meta")] == ["torch", "torch-meta"]


def test_a_backend_without_devices_takes_none() -> None:
    with pytest.raises(CannotStart, match="numpy has no choice of device"):
        load_adapter("numpy@cuda")


@pytest.mark.parametrize("backend", ["torch@cuda", "jax@cuda"])
def test_a_device_answers_as_the_cpu_does(backend: str) -> None:
    found = load_or_skip(backend)
    got = answer(found, TensorSpec("bf16", (256, 256), "transposed", bits="all"), node((0, 2, -1), YES))
    assert got == ("bf16", (256, 2, 128), np.arange(1 << 16, dtype="<u2").tobytes())
    assert "cuda" in str(found.identity.detail)


# ── what goes in and comes out ────────────────────────────────────────────────────────────────────
@pytest.mark.slow
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_every_pattern_comes_back(any_adapter: Any, type_: str) -> None:
    of_f16 = ("openvino", "openvino-one-thread") if type_ == "f16" else ()
    if any_adapter.identity.name in ("torch-mkldnn", "sparse", "tosa", *of_f16):
        pytest.skip("its own conversion changes some, which a run counts")
    if any_adapter.claims.excludes(f"type:{type_}"):
        pytest.skip(f"takes no {type_}")
    got = answer(any_adapter, TensorSpec(type_, (256, 256), bits="all"), node((-1,)))
    assert got == (type_, (65536,), np.arange(1 << 16, dtype="<u2").tobytes())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_handed_over_wherever_they_lie(any_adapter: Any, layout: Any) -> None:
    if any_adapter.identity.name == "torch-inductor":
        pytest.skip("compiles C++ for each")
    if any_adapter.identity.name.startswith("openvino"):
        pytest.skip("may crash on rows of f32 with gaps; it has a test of bf16")
    source = TensorSpec("f32", (3, 4), layout)
    try:
        got = answer(any_adapter, source, node((12,)))
    except Unsupported:
        assert any_adapter.claims.excludes(f"layout:{layout}")
    else:
        assert got == ("f32", (12,), patterns(source).tobytes())


@pytest.mark.parametrize(("src", "shape"), [((0, 3), (3, 0)), ((2, 3), (3, 2)), ((1,), (1, 1)), ((3, 0), (1, 0, 7))])
def test_tensors_go_in_and_out(any_adapter: Any, src: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if any_adapter.identity.name in ("mnn", "hidet") and 0 in shape:
        pytest.skip("copies every 0, also where there is nothing to copy")
    if any_adapter.identity.name == "candle" and 0 in shape:
        pytest.skip("rejects every 0")
    if any_adapter.identity.name in ("tosa", "ncnn") and 0 in src:
        pytest.skip("rejects every tensor without elements")
    source = TensorSpec("f32", src)
    assert answer(any_adapter, source, node(shape)) == ("f32", shape, lay_out(source).elements)


def test_a_chain_hands_each_answer_on(any_adapter: Any) -> None:
    source = TensorSpec("f32", (2, 6))
    zero = NO if any_adapter.identity.name in RAW else YES
    last = node((4, -1) if zero is NO else (0, -1), zero)
    assert answer(any_adapter, source, node((4, 3)), last) == ("f32", (4, 3), lay_out(source).elements)


@pytest.mark.parametrize("type_", ["s32", "s64"])
def test_a_shape_that_arrives_is_read_at_each_call(any_adapter: Any, type_: str) -> None:
    if "DynamicReshape-1" not in any_adapter.claims.operations:
        pytest.skip("takes shapes beforehand only")
    arriving = Node("DynamicReshape-1", Operand(type_, (2,), None), NO)
    program = any_adapter.compile(Graph(Declared("f32", (2, 6)), (arriving,)))
    buffer = lay_out(TensorSpec("f32", (2, 6)))
    for shape, want in (((3, 4), (3, 4)), ((1, -1), (1, 12)), ((4, -1), (4, 3))):
        dst = program.run(buffer.tensor, (lay_out_shape(type_, (2,), shape).tensor,), False)
        assert parts_of(dst)[1] == want
        assert bytes(elements_of(dst)) == buffer.elements


# ── what is resolved, what is left alone, what is refused ─────────────────────────────────────────
@pytest.mark.parametrize(
    ("shape", "special_zero", "want"),
    [
        ((0, 0), True, (2, 3)),
        ((0, 0), False, (0, 0)),
        ((4, -1, 0), True, (4, -1, 0)),  # past the rank of src
        ((-1, 0, -7), True, (-1, 3, -7)),
        ((), True, ()),
    ],
)
def test_only_zeros_that_copy_are_resolved(shape: tuple[int, ...], special_zero: bool, want: tuple[int, ...]) -> None:
    assert resolve_zeros((2, 3), NodeCall(shape, special_zero, "s64", runtime=False)) == want


@pytest.mark.parametrize(
    ("shape", "want"),
    [
        ((4, -1), (4, 6)),
        ((-1,), (24,)),
        ((8, 3), (8, 3)),
        ((-1, -1), (-1, -1)),
        ((5, -1), (5, -1)),
        ((0, -1), (0, -1)),
        ((-2, -1, -12), (-2, 1, -12)),  # the library rejects the others
    ],
)
def test_only_a_length_that_fits_is_inferred(shape: tuple[int, ...], want: tuple[int, ...]) -> None:
    assert resolve_infer((2, 12), shape) == want


@pytest.mark.parametrize(
    ("backend", "kind"), [("tensorflow", "EagerTensor"), ("tensorflow-array", "ndarray"), ("tensorflow-list", "list")]
)
def test_tensorflow_is_given_shape_in_each_form(backend: str, kind: str) -> None:
    shape = load_or_skip(backend).shape_argument((4, 2**32 + 6), "s32")  # a copied length may not fit the type
    assert type(shape).__name__ == kind
    assert np.array(shape).tolist() == [4, 2**32 + 6]


@pytest.mark.parametrize("type_", ["u8", "s16", "u64", "f32", "bool", "string"])
def test_a_shape_of_any_integers_is_well_formed(type_: str) -> None:
    assert node((2,))._replace(shape=Operand(type_, (1,), (2,))).well_formed == (type_ in ("u8", "s16", "u64"))


@pytest.mark.parametrize("shape", [(4,), (7, -1), (-1, -1, 5)])
def test_a_rejection_has_the_message_of_the_library(adapter: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(Rejected) as rejected:
        answer(adapter, TensorSpec("f32", (2, 3)), node(shape))
    assert rejected.value.stage == "run"
    assert "Error: " in rejected.value.message


@pytest.mark.parametrize(
    ("type_", "more", "facet"),
    [
        ("bf16", {}, "type:bf16"),
        ("f32", {"shape": Operand("s64", (1,), None)}, "runtime-shape"),
        ("f32", {"takes_src": True}, "shared-src"),
    ],
)
def test_a_facet_that_is_not_claimed_is_unsupported(type_: str, more: dict[str, Any], facet: str) -> None:
    limited = type("Limited", (NumPy,), {"not_claimed": ("type:bf16", "runtime-shape", "shared-src")})
    given = Graph(Declared(type_, (2, 3)), (node((6,)), node((6,))._replace(**more)))
    with pytest.raises(Unsupported, match=f"^{facet}$"):
        limited().compile(given)
    assert NumPy().compile(given)


@pytest.mark.parametrize(("dims", "is_read"), [((2, 3), True), ((), True), ((0, 3), False), ((-1, 2), False)])
def test_an_answer_without_elements_is_not_read(dims: tuple[int, ...], is_read: bool) -> None:
    elements = np.zeros(6)
    got = read_answer("f64", dims, lambda: elements)
    assert (got is elements) == is_read
    assert is_read or parts_of(got) == ("f64", dims, b"")


def test_an_answer_of_a_rank_past_numpy_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="rank:65"):
        read_answer("f64", (1,) * 65, lambda: np.zeros(1))


@pytest.mark.parametrize(("more", "facet"), [({"inputs": 2}, "form"), ({"result": Declared("f32", (6,))}, "declared")])
def test_extra_inputs_and_declared_dims_are_unsupported(adapter: Any, more: dict[str, Any], facet: str) -> None:
    with pytest.raises(Unsupported, match=facet):
        answer(adapter, TensorSpec("f32", (2, 3)), node((6,), **more))


def test_pytensor_takes_no_unsigned_shape() -> None:
    unsigned = Node("Reshape-1", Operand("u8", (1,), (6,)), NO)
    with pytest.raises(Unsupported, match="shape-type:u8"):
        answer(load_or_skip("pytensor"), TensorSpec("f32", (2, 3)), unsigned)


def test_a_pytensor_without_the_mode_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytensor")
    monkeypatch.setattr("conformance.adapters.pytensor.PyTensor.mode", "SLOW")
    with pytest.raises(CannotStart, match=r"has no mode SLOW; it has .*NUMBA"):
        load_adapter("pytensor")


def test_pytensor_copies_zeros_of_the_tensor_between() -> None:
    source, arriving = TensorSpec("f32", (2, 6)), Node("DynamicReshape-1", Operand("s64", (2,), None), YES)
    program = load_or_skip("pytensor").compile(Graph(Declared("f32", (2, 6)), (arriving, arriving)))
    shapes = tuple(lay_out_shape("s64", (2,), shape).tensor for shape in ((4, 3), (0, -1)))
    dst = program.run(lay_out(source).tensor, shapes, False)
    assert (dst.shape, dst.tobytes()) == ((4, 3), lay_out(source).elements)


def test_blosc2_is_given_arrays_of_one_dimension_and_of_more() -> None:
    blosc2, source = load_or_skip("blosc2"), TensorSpec("f32", (6,), "reversed")
    assert answer(blosc2, source, node((2, -1))) == ("f32", (2, 3), lay_out(source).elements)
    assert answer(blosc2, TensorSpec("f32", (0,)), node((3, 0))) == ("f32", (3, 0), b"")
    with pytest.raises(Rejected, match="only works when"):
        answer(blosc2, TensorSpec("f32", (2, 3)), node((6,)))


@pytest.mark.parametrize("backend", ["litert", "litert-xnnpack"])
def test_a_litert_model_declares_the_rank_of_dst(backend: str) -> None:
    """Converters do; without it XNNPACK counts dst as a scalar, and takes ranks and zeros that it does not support."""
    source, shape = TensorSpec("f32", (3, 1, 2, 1, 2, 2)), (1, 2, 3, 2, 1, 1, 2)
    assert answer(load_or_skip(backend), source, node(shape))[1] == shape
    with pytest.raises(Rejected):
        answer(load_or_skip(backend), TensorSpec("f32", (6,)), node((0, 6)))


@pytest.mark.parametrize(
    ("src", "shape", "signature"),
    [((2, 3), (3, -1), [3, 2]), ((2, 3), (4, -1), [4, -1]), ((2,), (-1, -1), [-1, -1]), ((2,), (-3,), [-1])],
)
def test_litert_knows_of_dst_what_a_converter_knows(
    src: tuple[int, ...], shape: tuple[int, ...], signature: list[int]
) -> None:
    load_or_skip("litert")
    from conformance.adapters import litert

    got = litert.describe_dst(src, np.array(shape, np.int32))
    assert (got["shapeSignature"], got["shape"]) == (signature, [abs(length) for length in signature])
    assert litert.describe_dst(src, 2)["shapeSignature"] == [-1, -1]
