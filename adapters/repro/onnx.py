"""Reshape of an ONNX model as a script, for ONNX Runtime, onnx's own evaluator, tract and TVM."""

from __future__ import annotations

from textwrap import indent

from conformance.graphs.onnx_model import TYPES as ONNX_TYPES
from conformance.model import STRIDED, Declared, Graph, Operand, Unsupported
from conformance.plan.memory import volume_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from ..shared import most_inputs, onnx_parts
from .plain import check_steps, spell
from .script import LOOK, NUMPY, ScriptParts, write_body, write_memory, write_numpy_array, write_numpy_imports

TYPES = {ours: theirs for theirs, ours in ONNX_TYPES.items()}
LOOK_RUNTIME = """
def look(answer):
    size = prod(answer.shape()) * BYTES[answer.data_type()]
    return answer.data_type(), answer.shape(), string_at(answer.data_ptr(), size) if size else b""
"""
BYTES = """
BYTES = {
    "tensor(float16)": 2, "tensor(bfloat16)": 2, "tensor(float)": 4, "tensor(double)": 8, "tensor(bool)": 1,
    "tensor(int32)": 4, "tensor(int64)": 8, "tensor(uint8)": 1, "tensor(uint64)": 8,
}
"""
RUNTIME_REJECTIONS = """(
    ValueError, RuntimeError, OverflowError,
    *(each for each in vars(native).values() if isinstance(each, type) and issubclass(each, Exception)),
)"""
SESSION = """
@cache
def session(model):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(model().SerializeToString(), options, providers=["CPUExecutionProvider"])
"""
EVALUATOR = """
@cache
def evaluator(model):
    return ReferenceEvaluator(model())
"""
CONSTANT = {
    "tract": (
        ("import os", "import tempfile", 'os.environ["RUST_LIB_BACKTRACE"] = "0"', "import tract"),
        "(tract.TractError, ValueError)",
        """
def run(model, *given):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:  # it loads from a path only
        file.write(model().SerializeToString())
        file.flush()
        program = tract.onnx().load(file.name).into_model().into_runnable()
    return program.run(list(given))[0].to_numpy()
""",
    ),
    "tvm": (
        ("import tvm", "from tvm.relax.frontend.onnx import from_onnx"),
        "(ValueError, RuntimeError, OverflowError, IndexError, TypeError, AssertionError)",
        """
def run(model, *given):
    program = tvm.relax.VirtualMachine(tvm.compile(from_onnx(model()), target="llvm"), tvm.cpu())
    return program["main"](*map(tvm.runtime.tensor, given)).numpy()
""",
    ),
}
"""Libraries that take constant shapes only: imports, rejections, and how a model is run."""
LEVELS = {
    "onnxruntime": "ORT_ENABLE_ALL",
    "onnxruntime-plain": "ORT_DISABLE_ALL",
    "onnxruntime-opset-18": "ORT_ENABLE_ALL",
}
OPSETS = {"onnxruntime-opset-18": 18}
"""The opset of a backend's models, if it is not 21."""


def write_script(row: Row, backend: str) -> ScriptParts:
    steps, level = check_steps(row), LEVELS.get(backend)
    names = {graph: f"model_{k}" for k, graph in enumerate(dict.fromkeys(step.graph for step in steps), 1)}
    models = "".join(model(graph, name, OPSETS.get(backend, 21)) for graph, name in names.items())
    imports = [*write_numpy_imports(row), "from onnx import TensorProto, helper"]
    if backend in CONSTANT:
        if row.shape_passed_as == "runtime":
            raise Unsupported("runtime-shape")
        own, rejections, run = CONSTANT[backend]
        bodies = [write_constant_step(step, names[step.graph], backend) for step in steps]
        return ScriptParts([*imports, *own], rejections, LOOK, bodies, models + run)
    imports.insert(0, "from functools import cache")
    if level:
        bodies = [write_session_step(step, names[step.graph]) for step in steps]
        own = ("from ctypes import string_at", "from math import prod", "import onnxruntime as ort",
               "from onnxruntime.capi import onnxruntime_pybind11_state as native")  # fmt: skip
        before = BYTES + models + SESSION.format(level=level)
        return ScriptParts([*own, *imports], RUNTIME_REJECTIONS, LOOK_RUNTIME, bodies, before)
    imports.append("from onnx.reference import ReferenceEvaluator")
    rejections = "(ValueError, IndexError, RuntimeError, OverflowError, TypeError)"
    bodies = [write_evaluator_step(step, names[step.graph]) for step in steps]
    return ScriptParts(imports, rejections, LOOK, bodies, models + EVALUATOR)


# ── the model ─────────────────────────────────────────────────────────────────────────────────────


def model(graph: Graph, name: str, opset: int) -> str:
    parts = onnx_parts(graph)
    nodes = [
        f"helper.make_node({spell(operator)}, {spell(operands)}, {spell(outputs)}"
        f"{f', **{spell(attributes)}' if attributes else ''})"
        for operator, operands, outputs, attributes in parts.nodes
    ]
    inputs, constants = [info(*each) for each in parts.inputs], [initializer(*each) for each in parts.constants]
    declared = {f"between{number}": node.result for number, node in enumerate(graph.nodes[:-1]) if node.result}
    outputs = [info(name, declared.pop(name, of_output)) for name, of_output in parts.outputs]
    between = [info(*each) for each in declared.items()]
    lists = (("nodes", nodes), ("inputs", inputs), ("outputs", outputs), ("constants", constants), ("between", between))
    lines = [f"{what} = [\n{indent(''.join(f'{each},{chr(10)}' for each in some), '    ')}]" for what, some in lists]
    lines.append('graph = helper.make_graph(nodes, "graph", inputs, outputs, constants, value_info=between)')
    lines.append(f'return helper.make_model(graph, opset_imports=[helper.make_opsetid("", {opset})], ir_version=10)')
    return f"\ndef {name}():\n{indent(chr(10).join(lines), '    ')}\n"


def info(name: str, declared: Declared) -> str:
    dims = None if declared.dims is None else list(declared.dims)
    return f'helper.make_tensor_value_info("{name}", TensorProto.{TYPES[declared.type]}, {spell(dims)})'


def initializer(name: str, operand: Operand) -> str:
    values, dims = operand.values or (), [n for n in operand.dims if n is not None]
    if operand.type == "string":
        texts = [str(each).encode() for each in values]
        return f'helper.make_tensor("{name}", TensorProto.STRING, {spell(dims)}, {spell(texts)})'
    elements = f"np.array({spell(list(values))}, {NUMPY[operand.type]}).tobytes()"
    return f'helper.make_tensor("{name}", TensorProto.{TYPES[operand.type]}, {spell(dims)}, {elements}, raw=True)'


# ── a call ────────────────────────────────────────────────────────────────────────────────────────


def write_constant_step(step: RowStep, name: str, backend: str) -> str:
    """A call of a model that holds every shape."""
    if backend == "tract" and step.src_spec.type == "bf16":
        raise Unsupported("type:bf16")
    return write_body(
        step, write_numpy_array(step.src_spec), (), f"run({name}, {', '.join(['src'] * most_inputs(step.graph))})"
    )


def feeds_of(step: RowStep, src: str) -> list[tuple[str, str, tuple[int, ...], str]]:
    """The name, type, dims and NumPy code of each input."""
    type_, dims, *_ = step.src_spec
    names = ("src", *(f"extra{k}" for k in range(1, most_inputs(step.graph))))
    return [(name, type_, dims, src) for name in names] + [
        (f"arriving{k}", type_, dims, f"np.array({spell(list(values))}, {NUMPY[type_]}).reshape({spell(dims)})")
        for k, (type_, dims, values) in enumerate(step.shapes)
    ]


def write_evaluator_step(step: RowStep, name: str) -> str:
    told = ", ".join(f'"{each}": {code}' for each, _, _, code in feeds_of(step, write_numpy_array(step.src_spec)))
    return f"{write_memory(step.src_spec)}\nreturn words, evaluator({name}).run(None, {{{told}}})[0]"


def write_session_step(step: RowStep, name: str) -> str:
    """A call of a session, with inputs bound to memory that stays; of a dense src only the words are wanted."""
    is_strided = step.src_spec.layout in STRIDED
    if is_strided and step.src_spec.type == "bf16":
        raise Unsupported(f"layout:{step.src_spec.layout}")
    src = write_numpy_array(step.src_spec) if is_strided else "np.array(words)"
    lines = [write_memory(step.src_spec), f"program = session({name})", "binding, held = program.io_binding(), []"]
    for each, type_, dims, code in feeds_of(step, src):
        if is_strided and volume_of(dims) and not each.startswith("arriving"):
            lines.append(f'binding.bind_ortvalue_input("{each}", ort.OrtValue.ortvalue_from_numpy({code}))')
        else:
            given = f'"{each}", "cpu", 0, TensorProto.{TYPES[type_]}, {spell(list(dims))}, held[-1].ctypes.data'
            lines += [f"held.append({code})", f"binding.bind_input({given})"]
    lines += ['binding.bind_output("dst", "cpu")', "program.run_with_iobinding(binding)"]
    return "\n".join([*lines, "return words, binding.get_outputs()[0]"])
