"""The folder and the limits with which rows are called again."""

from typing import Any

import pytest

from conformance.evidence.command import list_same_run, list_suite_options, read_process_limits
from conformance.evidence.results import Target
from conformance.isolate.process.launch import DEFAULT_LIMITS, DEVICE_MEMORY


@pytest.mark.parametrize(
    ("header", "backend", "limits"),
    [
        ({"limits": {}}, "numpy", {}),
        ({"limits": {"timeout": 60.0}}, "numpy", {"seconds": 60.0}),
        ({"limits": {"timeout": 1e9}}, "numpy", {"seconds": 600.0}),
        ({"limits": {"memory": 30_000}}, "numpy", {"memory": 30_000 << 20}),
        ({"limits": {"memory": 1 << 60}}, "numpy", {"memory": DEVICE_MEMORY}),
        *(({}, backend, {"memory": DEVICE_MEMORY}) for backend in ("torch@cuda", "./mine.py:Mine@cuda:1", "cupy")),
        *(({}, backend, {}) for backend in ("torch@cpu:0", "numpy", "cmd:python mine.py:Mine@cuda")),
    ],
)
def test_rows_are_called_again_under_the_limits_of_their_run(header: Any, backend: str, limits: Any) -> None:
    assert read_process_limits(header, backend) == DEFAULT_LIMITS._replace(**limits)


@pytest.mark.parametrize(("folders", "suite"), [({}, []), ({"suite": "mine"}, ["mine"])])
def test_a_command_names_the_suite_of_its_run(folders: dict[str, str], suite: list[str]) -> None:
    assert list_suite_options({"folders": folders})[1:] == suite


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        (Target(), {}, ["--drawn-rows", "7"]),
        (Target(types=("f32", "f16"), large=True), {},
         ["--type", "f32", "--type", "f16", "--large", "--drawn-rows", "7"]),
        (Target(shard="1/3"), {}, ["--shard", "1/3", "--drawn-rows", "7"]),
        (Target(require=("chain", "bf16")), {}, ["--require", "chain", "--require", "bf16", "--drawn-rows", "7"]),
        (Target(select="infer", last_failed="out"), {}, ["--last-failed", "out", "-k", "infer"]),
        (Target(select="--quick"), {}, ["--quick"]),
        (Target(), {"folders": {"claims": "my claims.yaml"}}, ["--claims", "my claims.yaml", "--drawn-rows", "7"]),
        (Target(), {"waivers": [{"place": f"{place}:3"} for place in ("w.yaml", "w.yaml", "C:v.yaml")]},
         ["--waivers", "w.yaml", "--waivers", "C:v.yaml", "--drawn-rows", "7"]),
    ],
)  # fmt: skip
def test_a_run_is_made_again_with_the_same_part_of_the_suite(
    target: Target, more: dict[str, Any], words: list[str]
) -> None:
    header = {"backend": {"adapter": "numpy"}, "target": target.to_json(), "drawn": {"seed": 0, "rows": 7}, **more}
    assert list_same_run(header) == ["conformance", "run", "numpy", *words]
