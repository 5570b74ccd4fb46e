"""onnx's own runner of backend tests, on folders of node tests."""

from __future__ import annotations

import importlib
import io
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

import pytest


class EvaluatorBackend:
    """The ReferenceEvaluator of onnx, behind the interface that the runner asks for."""

    @staticmethod
    def prepare(model: Any, device: str = "CPU", **_: Any) -> EvaluatorBackend:
        return EvaluatorBackend(model)

    @staticmethod
    def supports_device(device: str) -> bool:
        return device == "CPU"

    def __init__(self, model: Any) -> None:
        self._evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
        self._names = [value.name for value in model.graph.input]

    def run(self, inputs: Any) -> Any:
        return self._evaluator.run(None, dict(zip(self._names, inputs, strict=True)))


def run_node_tests(folder: Path, backend: Any, monkeypatch: pytest.MonkeyPatch, leave_out: str = "") -> Counter[str]:
    """Return the number of passed tests, and of the others by the last line of their report.

    `leave_out` is a pattern of names that are not run.
    """
    module = importlib.import_module("onnx.backend.test.runner")
    load = importlib.import_module("onnx.backend.test.loader").load_model_tests
    tests = load(str(folder.parent), folder.name)
    monkeypatch.setattr(module, "load_model_tests", lambda kind: tests if kind == "simple" else [])
    runner = module.Runner(backend)
    if leave_out:
        runner.exclude(leave_out)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(runner.test_suite)
    lines = Counter(report.strip().splitlines()[-1] for _, report in (*result.failures, *result.errors))
    return Counter({"passed": result.testsRun - len(result.skipped) - lines.total()}) + lines
