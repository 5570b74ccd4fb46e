"""Shapes that an ONNX model computes: ONNX Runtime runs it, and each reshape of the main graph tells its inputs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..adapter import CannotStart
from ..isolate.process.launch import ProcessLimits, import_code, kill_tree, start
from ..system.text import shorten
from .nodes import Binding, Dims, Model, ReshapeNode, UnreadableModel, known_dims, make_odd_form
from .onnx_model import TYPES

LIMITS = ProcessLimits(seconds=60)
"""Limits of the process in which the model runs."""
_CODE = f"{import_code()}from conformance.graphs.onnx_run import main\nmain()\n"


@dataclass(frozen=True)
class TracedModel:
    """A model that runs in ONNX Runtime once for each binding of its inputs."""

    path: Path
    model: Model

    @property
    def inputs(self) -> Mapping[str, Dims | None]:
        return self.model.inputs

    def nodes(self, binding: Binding) -> tuple[ReshapeNode, ...]:
        """Return the reshapes, with what the run has shown; what it has not shown is as in the file."""
        nodes = self.model.nodes(binding)
        answer = _run({"path": str(self.path), "inputs": self._choose_input_dims(binding)})
        traced = answer.get("reshapes", {})
        failure = answer.get("failure") or answer.get("error")
        return tuple(_merge(node, traced.get(node.place), failure) for node in nodes)

    def _choose_input_dims(self, binding: Binding) -> dict[str, tuple[int, ...]]:
        dims = {}
        for name, declared in self.inputs.items():
            known = known_dims(binding.get(name, declared))
            if known is None:
                raise UnreadableModel(
                    f"--trace needs every length of the input {shorten(name)!r}; give --input {name}=DIMS"
                )
            dims[name] = known
        return dims


def trace_model(path: Path, model: Model) -> TracedModel:
    """Return a model that was read, to be run; UnreadableModel if it cannot be run."""
    if path.suffix.lower() != ".onnx":
        raise UnreadableModel("--trace runs ONNX models only; leave it out for other files")
    if importlib.util.find_spec("onnxruntime") is None:
        raise UnreadableModel("--trace runs the model in ONNX Runtime; pip install onnxruntime")
    return TracedModel(path, model)


def _run(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a model in a process with limits; {"error"} if it crashed, hung or needed too much memory."""
    with tempfile.TemporaryFile() as inputs, tempfile.TemporaryFile() as outputs:
        inputs.write(json.dumps(request).encode())
        inputs.seek(0)
        try:
            handle = start(
                [sys.executable, "-c", _CODE], LIMITS, streams=(inputs.fileno(), outputs.fileno(), subprocess.DEVNULL)
            )
        except CannotStart as cannot:
            return {"error": str(cannot)}
        try:
            code = handle.child.wait(LIMITS.seconds)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {LIMITS.seconds:g} s"}
        finally:
            kill_tree(handle)
        outputs.seek(0)
        lines = outputs.read().splitlines()
    try:
        answer: Mapping[str, Any] = json.loads(lines[-1])
    except (ValueError, IndexError):
        return {"error": f"the process ended with {code} before it answered; memory is limited to 16 GiB"}
    return answer


def _merge(node: ReshapeNode, traced: Mapping[str, Any] | None, failure: str | None) -> ReshapeNode:
    """Return a node with what the run has shown of it, or with the reason why the run shows nothing."""
    if traced is None:
        reason = f"; the run failed: {failure}" if failure else ""
        return node._replace(missing=f"{node.missing}{reason}") if node.missing else node
    src_type = node.src_type or TYPES.get(traced["type"].upper(), traced["type"])
    node = node._replace(src_type=src_type, src=tuple(traced["src"]), missing="")
    if traced["shape_rank"] != 1:
        return node._replace(form=make_odd_form(src_type, node.declared, shape_rank=traced["shape_rank"]))
    return node._replace(shape=tuple(traced["shape"]))
