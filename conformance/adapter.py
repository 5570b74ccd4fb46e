"""How a backend is written down in ten lines, and how one is found by name."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .model import LAYOUTS, Adapter, Array, Claims, Graph, Identity, Node, Rejected, Tensor, Unsupported
from .protocol import short
from .types import WIDTH

OPERATIONS = ("StaticReshape", "DynamicReshape-1", "Reshape-1")
BUNDLED: Mapping[str, tuple[str, str]] = {
    "numpy": ("numpy_reference", "NumpyReference"),
    "numpy-raw": ("numpy_raw", "NumpyRaw"),
    "onednn": ("onednn", "OneDnn"),
    "torch": ("torch", "Torch"),
    "torch-raw": ("torch", "TorchRaw"),
    "torch-compile": ("torch", "TorchCompile"),
    "torch-inductor": ("torch", "TorchInductor"),
    "torch-mkldnn": ("torch", "TorchMkldnn"),
    "jax": ("jax", "Jax"),
    "jax-jit": ("jax", "JaxJit"),
    "array-api-strict": ("array_api_strict", "ArrayApiStrict"),
    "dask": ("dask", "Dask"),
    "mlx": ("mlx", "Mlx"),
    "tensorflow": ("tensorflow", "TensorFlow"),
    "tensorflow-function": ("tensorflow", "TensorFlowFunction"),
    "tensorflow-xla": ("tensorflow", "TensorFlowXla"),
    "ndonnx": ("ndonnx", "Ndonnx"),
    "paddle": ("paddle", "Paddle"),
    "pytensor": ("pytensor", "PyTensor"),
    "pytensor-numba": ("pytensor", "PyTensorNumba"),
    "litert": ("litert", "LiteRt"),
    "litert-xnnpack": ("litert", "LiteRtXnnpack"),
    "mnn": ("mnn", "Mnn"),
    "cupy": ("cupy", "CuPy"),
    "openvino": ("openvino", "OpenVino"),
    "openvino-one-thread": ("openvino", "OpenVinoOneThread"),
    "openvino-reference": ("openvino", "OpenVinoReference"),
    "onnxruntime": ("onnxruntime", "OnnxRuntime"),
    "onnxruntime-plain": ("onnxruntime", "OnnxRuntimePlain"),
    "onnx-reference": ("onnx_reference", "OnnxReference"),
    "ncnn": ("ncnn", "Ncnn"),
    "tract": ("tract", "Tract"),
    "tvm": ("tvm", "Tvm"),
}
"""The name of a backend that comes along → its module in adapters/ and its class."""
INSTALL: Mapping[str, str] = {
    "onednn": "pip install onednn==2026.1.0",
    "torch": "pip install torch==2.13.0",
    "jax": "pip install jax",
    "array_api_strict": "pip install array-api-strict",
    "dask": "pip install dask",
    "mlx": 'pip install "mlx[cpu]"',
    "tensorflow": "pip install tensorflow-cpu",
    "paddle": "pip install paddlepaddle 'numpy<2.4'",
    "pytensor": "pip install pytensor",
    "ndonnx": "pip install ndonnx onnxruntime",
    "litert": "pip install ai-edge-litert flatbuffers",
    "mnn": "pip install MNN",
    "ncnn": "pip install ncnn",
    "cupy": "pip install cupy-cuda12x",
    "openvino": "pip install openvino",
    "onnxruntime": "pip install onnxruntime onnx",
    "onnx_reference": "pip install onnx",
    "tract": "pip install tract onnx",
    "tvm": "pip install apache-tvm onnx",
}
"""A module in adapters/ → the command that installs what it needs."""
_ON_DEVICE = re.compile(r"(?P<backend>.+:\w+|[\w.-]+)@(?P<device>[A-Za-z0-9_:]+)")
"""`torch@cuda`, `package.module:Class@cuda:1`."""


class FunctionAdapter:
    """A backend that is one function from an array to an array; subclass it and write `reshape`."""

    name: str = ""
    version: str = ""
    operations: tuple[str, ...] = OPERATIONS
    leaves_out: tuple[str, ...] = ("declared", "form", "rank:65")
    """Facets that a function of NumPy arrays cannot express; add what the library lacks, such as `layout:reversed`."""
    mapped: tuple[str, ...] = ()
    """What `reshape` answers itself because the library has no notion of it, such as `special_zero`."""
    refusals: tuple[type[Exception], ...] = (ValueError, RuntimeError, OverflowError)
    """The exceptions by which the library refuses a call; never Exception, TypeError or AttributeError."""

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        raise NotImplementedError(f"{type(self).__name__} does not define reshape(self, src, shape, special_zero)")

    @property
    def identity(self) -> Identity:
        return Identity(self.name, self.version)

    @property
    def claims(self) -> Claims:
        listed: Mapping[str, object] = {
            "operations": self.operations,
            "leaves_out": self.leaves_out,
            "mapped": self.mapped,
        }
        for name, names in listed.items():
            if isinstance(names, str):  # ("declared") is text, which tuple() would take apart
                raise TypeError(f"`{name}` is {names!r}; write ({names!r},), with the comma")
        return Claims(tuple(self.operations), tuple(self.leaves_out), tuple(self.mapped))

    def compile(self, graph: Graph) -> FunctionProgram:
        for node in graph.nodes:
            if not node.well_formed:
                raise Unsupported("form")
            if node.result is not None:
                raise Unsupported("declared")
        return FunctionProgram(self, graph.nodes)


class FunctionProgram:
    """The nodes of a graph, called one after another."""

    def __init__(self, adapter: FunctionAdapter, nodes: tuple[Node, ...]) -> None:
        self.adapter, self.nodes = adapter, nodes

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Array:
        array, arriving = array_of(src), iter(shapes)
        for node in self.nodes:
            assert node.shape is not None
            assert node.special_zero is not None
            assert node.special_zero.values is not None
            shape = node.shape.values if node.shape.values is not None else tuple(next(arriving).array().tolist())
            try:
                array = self.adapter.reshape(array, shape, node.special_zero.values[0])
            except self.adapter.refusals as refusal:
                raise Rejected("run", f"{type(refusal).__name__}: {refusal}") from refusal
        return array


def array_of(src: Tensor) -> Array:
    """src as a NumPy array, which some cannot be; lengths that NumPy refuses are refused by all that takes arrays."""
    rank_in_numpy(src.dims)
    try:
        return src.array()
    except ValueError as refusal:
        raise Rejected("run", f"src cannot be a NumPy array: {refusal}") from refusal


def rank_in_numpy(dims: Sequence[int]) -> None:
    """Past 64 dims nothing goes in or out through NumPy."""
    if len(dims) > 64:
        raise Unsupported(f"rank:{len(dims)}")


# ── finding one ───────────────────────────────────────────────────────────────────────────────────


class CannotStart(Exception):
    """The adapter cannot be started: what is wrong and what to do, for exit code 3."""


def load_adapter(backend: str) -> Adapter:
    """A backend by bundled name, `package.module:Class` or `path/to/file.py:Class`; checked to be an adapter.

    What follows an `@` is a device, which the class gets as its argument.
    """
    name, device = name_and_device(backend)
    try:
        adapter_class = _class(name)
        if device is None:
            return _checked(adapter_class(), backend)
        if not inspect.signature(adapter_class).parameters:
            raise CannotStart(f"{backend}: {name} has no choice of device")
        return _checked(adapter_class(device), backend)
    except CannotStart:
        raise
    except ImportError as error:
        remedy = INSTALL.get(BUNDLED[name][0]) if name in BUNDLED else None
        raise CannotStart(f"{backend}: cannot be imported: {error}; {remedy or 'install what it needs'}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = f"{type(error).__name__}: {error}{place_in(_file_of(backend), error)}"
        raise CannotStart(f"{backend}: cannot be started: {what}") from error


def import_adapter(backend: str) -> None:
    """Imports what `load_adapter` imports, and makes no adapter."""
    _class(name_and_device(backend)[0])


def name_and_device(backend: str) -> tuple[str, str | None]:
    on_device = _ON_DEVICE.fullmatch(backend)
    return (on_device["backend"], on_device["device"]) if on_device else (backend, None)


def place_in(file: Path | str | None, error: BaseException) -> str:
    """` (mine.py:25)`: where in a file an exception went through last; nothing where it did not."""
    line, trace = 0, error.__traceback__
    while trace is not None and file is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" ({os.path.basename(file)}:{line})" if file is not None and line else ""


def digest_of_adapter(backend: str) -> str | None:
    """The sha256 of an adapter or program, its files one after another; None where none is to be found."""
    path = _file_of(backend)
    if path is None or not path.is_file():
        return None
    return hashlib.sha256(b"".join(each.read_bytes() for each in _with_imported(path))).hexdigest()


def _with_imported(path: Path) -> list[Path]:
    """A file, then those beside it that it and they import relatively, by name."""
    found, left = {path}, [path] if path.suffix == ".py" else []
    while left:
        beside = {path.with_name(f"{name}.py") for name in _names_from_beside(left.pop())}
        left += (new := {each for each in beside - found if each.is_file()})
        found |= new
    return [path, *sorted(found - {path})]


def _names_from_beside(path: Path) -> Iterator[str]:
    """The modules, or what may be one, that a file imports from its own folder."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # it cannot be imported either
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]


def _file_of(backend: str) -> Path | None:
    if backend.startswith("cmd:"):
        program = next(iter(backend.removeprefix("cmd:").split()), "")
        return Path(shutil.which(program) or program)
    name, _ = name_and_device(backend)
    module = f"conformance.adapters.{BUNDLED[name][0]}" if name in BUNDLED else name.rpartition(":")[0]
    if module == "broken":
        module = "conformance.adapters.broken"
    if module.endswith(".py"):
        return Path(module)
    try:
        found = importlib.util.find_spec(module) if module else None
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found is not None and found.origin else None


def _class(backend: str) -> Any:
    module, separator, name = backend.rpartition(":")
    if module == "broken":
        return _broken(name)
    if not separator:
        if backend not in BUNDLED:
            raise CannotStart(_unknown(backend))
        file, name = BUNDLED[backend]
        module = f"conformance.adapters.{file}"
    if separator and not module.endswith(".py") and _beside(module):
        raise CannotStart(f"{backend}: no module {module!r}, but a file; write {_beside(module)}:{name}")
    found = _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    if not hasattr(found, name):
        own = {n: value for n, value in vars(found).items() if isinstance(value, type) and n[0] != "_"}
        near = ", ".join(sorted(n for n, value in own.items() if value.__module__ == found.__name__)) or "none"
        raise CannotStart(f"{backend}: {module} has no class {name!r}; its classes are {near}")
    if inspect.isfunction(getattr(found, name)):
        raise CannotStart(
            f"{backend}: {name!r} is a function; an adapter is a class, as `conformance new-adapter` writes"
        )
    if not callable(getattr(found, name)):
        raise CannotStart(f"{backend}: {name!r} is no class; name the adapter's class")
    return getattr(found, name)


def is_own(backend: str) -> bool:
    """True for the reference and the planted backends, plain Python of ours that a run may hold in its own process."""
    return backend == "numpy" or backend.startswith("broken:")


def _beside(module: str) -> str:
    """The file that is meant where there is no module of that name, such as ./mine.py; else nothing."""
    path = Path(f"{module}.py")
    return f"./{path}" if module.isidentifier() and path.is_file() and not importlib.util.find_spec(module) else ""


def _broken(name: str) -> Any:
    """A backend with one false belief, by name: `broken:zero-flag-ignored`."""
    known = importlib.import_module("conformance.adapters.broken").BROKEN
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`conformance mutants` shows them"
        raise CannotStart(f"unknown planted backend {name!r}; {hint}")
    return known[name]


def _unknown(backend: str) -> str:
    import difflib

    near = difflib.get_close_matches(backend, BUNDLED, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"bundled are {', '.join(sorted(BUNDLED))}"
    if Path(backend).suffix == ".py" or _beside(backend):
        return f"unknown backend {backend!r}; name the file and the class: {_beside(backend) or backend}:Class"
    return f"unknown backend {backend!r}; {hint}; or give package.module:Class or path/to/file.py:Class"


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CannotStart(f"{path}: no such file; give the path of the adapter, then :Class")
    spec = importlib.util.spec_from_file_location(f"adapter_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _checked(adapter: Any, backend: str) -> Adapter:
    """The adapter, if it has what the protocol asks for and claims nothing that does not exist."""
    for member in ("identity", "claims", "compile"):
        if not hasattr(adapter, member):
            what = f"the adapter has no `{member}`; subclass FunctionAdapter or see adapters/README.md"
            raise CannotStart(f"{backend}: {what}")
    if not callable(adapter.compile):
        raise CannotStart(f"{backend}: `compile` is not a method")
    if type(adapter) is FunctionAdapter or (
        isinstance(adapter, FunctionAdapter) and type(adapter).reshape is FunctionAdapter.reshape
    ):
        raise CannotStart(f"{backend}: the adapter does not define reshape(self, src, shape, special_zero)")
    check_description(adapter.identity, adapter.claims, backend)
    if isinstance(adapter, FunctionAdapter):
        if not isinstance(adapter.refusals, tuple):
            raise CannotStart(f"{backend}: `refusals` is no tuple; write (ValueError,), with the comma")
        for refusal in adapter.refusals:
            if refusal in (BaseException, Exception, TypeError, AttributeError):
                what = f"`refusals` names {refusal.__name__}, by which bugs speak too; name the library's own"
                raise CannotStart(f"{backend}: {what}")
    return adapter  # type: ignore[no-any-return]


_LONGEST_NAME, _LONGEST_DETAIL = 200, 2000
"""Characters of a backend's name, its version or a name in its claims; and of one detail, which may be a build line."""
_MOST_DETAILS, _MOST_CLAIMS = 100, 200
"""Details of an identity, and names in each list of the claims: all of it goes into every report."""


def check_description(identity: Any, claims: Any, backend: str) -> None:
    """CannotStart where a backend does not say who it is, or claims what does not exist."""
    _check_identity(identity, backend)
    _check_claims(claims, backend)


def _check_identity(identity: Any, backend: str) -> None:
    said: tuple[Any, ...] = tuple(identity) if isinstance(identity, Identity) else ()
    if len(said) != 3 or not all(isinstance(part, str) for part in said[:2]) or not said[0]:
        raise CannotStart(
            f"{backend}: `identity` is {short(identity)}; give Identity(name, version), both text, and a name not empty"
        )
    for what, part in zip(("name", "version"), said[:2], strict=True):
        if len(part) > _LONGEST_NAME:
            raise CannotStart(
                f"{backend}: the {what} has {len(part):,} characters: {short(part)}; give at most {_LONGEST_NAME}"
            )
        if not part.isprintable():
            raise CannotStart(
                f"{backend}: `identity` has {part!r}, with a line break or a character that does not show; "
                "give one line of plain text"
            )
    pairs = isinstance(said[2], tuple) and all(isinstance(d, tuple) and [*map(type, d)] == [str, str] for d in said[2])
    if not pairs:
        raise CannotStart(f"{backend}: the detail of `identity` is {short(said[2])}; give pairs of text, a tuple each")
    if len(said[2]) > _MOST_DETAILS:
        raise CannotStart(f"{backend}: the detail has {len(said[2]):,} entries; give at most {_MOST_DETAILS}")
    for key, value in said[2]:
        if len(key) > _LONGEST_NAME or len(value) > _LONGEST_DETAIL:
            raise CannotStart(
                f"{backend}: the detail {short(key)} has {len(value):,} characters: {short(value)}; "
                f"give a name of at most {_LONGEST_NAME} and at most {_LONGEST_DETAIL} for it"
            )


def _check_claims(claims: Any, backend: str) -> None:
    if not isinstance(claims, Claims) or not all(isinstance(part, tuple) for part in claims):
        raise CannotStart(
            f"{backend}: `claims` is {short(claims)}; give Claims(operations, leaves_out, mapped), all tuples"
        )
    for field, names in zip(Claims._fields, claims, strict=True):
        if len(names) > _MOST_CLAIMS:
            raise CannotStart(f"{backend}: {field!r} has {len(names):,} names; give at most {_MOST_CLAIMS}")
    everything: list[Any] = [name for part in claims for name in part]
    for name in everything:
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            raise CannotStart(
                f"{backend}: `claims` has {short(name)}, where the name of an operation or a facet was due"
            )
    for operation in claims.operations:
        if operation not in OPERATIONS:
            raise CannotStart(f"{backend}: claims an operation {operation!r}; there are {', '.join(OPERATIONS)}")
    for facet in claims.leaves_out:
        family, colon, member = facet.partition(":")
        if family not in FAMILIES:
            raise CannotStart(f"{backend}: leaves out {facet!r}, which is no facet; there are {', '.join(FAMILIES)}")
        known = MEMBERS.get(family, ())
        if colon and member not in known and not (family == "rank" and member.isdecimal()):
            near = f"there are {', '.join(known)}" if known else f"the facet is {family!r}"
            raise CannotStart(f"{backend}: leaves out {facet!r}, and {member!r} is no {family}; {near}")
    for mapped in claims.mapped:
        if mapped not in MAPPED:
            raise CannotStart(f"{backend}: maps {mapped!r}; an adapter may answer {', '.join(MAPPED)} and nothing else")


FAMILIES = (
    "type", "shape-type", "given", "layout", "in-place", "chain", "declared", "form", "large", "rank", "unknown-rank",
)  # fmt: skip
"""The families of facets; `layout:reversed` is a member of one."""
MEMBERS: Mapping[str, tuple[str, ...]] = {
    "type": tuple(WIDTH),
    "shape-type": (*WIDTH, "string"),
    "given": ("attribute", "constant", "runtime"),
    "layout": LAYOUTS,
    "form": ("attributes", "attribute-types", "inputs", "outputs", "shape", "types"),
}
"""Families that have members; those of `rank` are numbers."""
MAPPED = ("special_zero",)


def bundled_folder() -> Path:
    """The adapters that come along."""
    return Path(importlib.import_module("conformance.adapters").__path__[0])


# ── what comes along ──────────────────────────────────────────────────────────────────────────────


class Bundled(NamedTuple):
    """A backend that comes along, and whether what it needs is here; nothing is imported to tell."""

    backend: str
    version: str | None
    about: str
    install: str | None


def bundled() -> list[Bundled]:
    """Every bundled backend."""
    return [_bundled(backend, module, name) for backend, (module, name) in BUNDLED.items()]


def _bundled(backend: str, module: str, name: str) -> Bundled:
    install = INSTALL.get(module)
    wanted = (install or "numpy").removeprefix("pip install").strip(" \"'")
    distribution = re.split(r"[\[=<>\"' ]", wanted)[0]
    from importlib import metadata  # slow to import, and only needed here

    try:
        version: str | None = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = f"by ONEDNN_LIBRARY ({os.environ['ONEDNN_LIBRARY']})" if _by_path(module) else None
    return Bundled(backend, version, _about(module, name), install)


def _by_path(module: str) -> bool:
    return module == "onednn" and bool(os.environ.get("ONEDNN_LIBRARY"))


def _about(module: str, name: str) -> str:
    """The first line of the class's docstring."""
    path = bundled_folder() / f"{module}.py"
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""
