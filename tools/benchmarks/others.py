"""The cost of other projects' test suites, beside ours on the same backend: ONNX's backend test and array-api-tests."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from conformance.adapter import load_adapter
from conformance.model import Adapter
from conformance.run.row import run_rows

from .clock import Measured, cpu, once
from .whole_runs import command, legal_rows, plan, run_of_a_row

_ONNX = """
import sys, unittest
import onnx.backend.base
from onnx.backend.test import BackendTest
from onnx.reference import ReferenceEvaluator

class Prepared(onnx.backend.base.BackendRep):
    def __init__(self, model):
        self.session = ReferenceEvaluator(model)
    def run(self, inputs, **_):
        names = self.session.input_names
        return tuple(self.session.run(None, dict(zip(names, inputs))))

class Backend(onnx.backend.base.Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **_):
        return Prepared(model)
    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

def suite():
    tests = BackendTest(Backend, "reshape")
    tests.include("test_reshape_.*_cpu")
    chosen = [each for group in tests.test_suite for each in _flat(group) if not _skipped(each)]
    return chosen

def _flat(group):
    return [each for part in group for each in _flat(part)] if isinstance(group, unittest.TestSuite) else [group]

def _skipped(test):
    return getattr(getattr(test, test._testMethodName), "__unittest_skip__", False)

def run(tests):
    result = unittest.TestResult()
    for test in tests:
        test(result)
    assert result.wasSuccessful() and result.testsRun == len(tests) > 0, result
"""
"""The Reshape node tests of ONNX, through their own runner, on their own reference evaluator."""


@cache
def _onnx() -> tuple[Callable[[Any], None], Any]:
    names: dict[str, Any] = {"__name__": "onnx_reshape"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ONNX computes the answers of all its tests, overflows and all
        exec(compile(_ONNX, "<onnx>", "exec"), names)
        return names["run"], names["suite"]()


def row_beside_onnx() -> Measured:
    """One row on ONNX's reference evaluator, beside one Reshape node test of the ONNX backend test on the same."""
    adapter: Adapter = load_adapter("onnx-reference")
    rows = [row for row in legal_rows("f32") if row.operation in adapter.claims.operations][:200]
    ours = cpu(lambda: sum(1 for _ in run_rows(rows, adapter)), 3)
    theirs, tests = _onnx()
    return Measured(ours / len(rows), cpu(lambda: theirs(tests), 3) / len(tests), "a Reshape node test of ONNX")


def start_up_beside_onnx() -> Measured:
    """One case from nothing on ONNX's reference evaluator, beside the ONNX backend test with its Reshape tests."""
    case = next(iter(plan().suite.cases))
    with tempfile.TemporaryDirectory() as folder:
        words = command("run", "onnx-reference", "--isolation", "none", "-k", case)
        ours = min(once(words)[0] for _ in range(3))
        script = Path(folder) / "theirs.py"
        script.write_text(f"{_ONNX}\nrun(suite())\n", encoding="utf-8")
        theirs = min(once([sys.executable, str(script)])[0] for _ in range(3))
    return Measured(ours, theirs, "the ONNX backend test, Reshape only")


def _array_api(examples: int) -> float:
    """CPU seconds of test_reshape of array-api-tests on NumPy, with a number of examples."""
    spec = find_spec("array_api_tests")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parents[1]
    test = f"{folder}/array_api_tests/test_manipulation_functions.py::test_reshape"
    quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c", str(folder / "pytest.ini")]
    words = [sys.executable, "-m", "pytest", test, *quiet, "--max-examples", str(examples)]
    return min(once(words, folder=folder, ARRAY_API_TESTS_MODULE="numpy")[0] for _ in range(3))


def row_beside_array_api_tests() -> Measured:
    """One row on NumPy, beside one example of test_reshape of array-api-tests on NumPy."""
    few, many = 20, 420
    theirs = (_array_api(many) - _array_api(few)) / (many - few)
    return Measured(run_of_a_row().ours, theirs, "an example of test_reshape")


def start_up_beside_array_api_tests() -> Measured:
    """One case from nothing on NumPy, beside test_reshape of array-api-tests with one example."""
    ours = min(once(command("run", "reference", "-k", next(iter(plan().suite.cases))))[0] for _ in range(3))
    return Measured(ours, _array_api(1), "array-api-tests, test_reshape, one example")
