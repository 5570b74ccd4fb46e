"""Files that real libraries write: what oneDNN Graph dumps, and what torch.export saves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.adapter import CannotStart, load_adapter
from tests.builders import ROOT, Cli

DUMP = """
from conformance.adapter import load_adapter
from conformance.model import Declared, Graph
from tests.adapters.backends import node
adapter = load_adapter("onednn")
for nodes in ([node((3, 2, 2)), node((6, -1))], [node((-1, -1))], [node((5,))]):
    try:
        adapter.compile(Graph(Declared("f32", (4, 3)), tuple(nodes)))
    except Exception:
        pass
"""
SAVE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        h = torch.relu(x)
        batch = x.shape[0]
        return h.view(batch, -1), h.reshape(batch * 3, 8), torch.flatten(h, 1), h.reshape(-1, 8).transpose(0, 1)
class Branches(torch.nn.Module):
    def forward(self, x):
        long = lambda x: x.relu().view(x.shape[0], 24)
        y = torch.cond(x.sum() > 0, long, lambda x: x.relu().reshape(x.shape[0], -1), (x,))
        return y, x.view(torch.int32)
batch = torch.export.Dim("batch", min=1, max=64)
x = torch.randn(2, 3, 8)
program = torch.export.export(Model(), (x,), dynamic_shapes={"x": {0: batch}})
torch.export.save(program, "model.pt2")
torch.export.save(program.run_decompositions(), "core.pt2")
torch.export.save(torch.export.export(Model(), (x,)), "fixed.pt2")
torch.export.save(torch.export.export(Branches(), (x,), dynamic_shapes={"x": {0: batch}}), "branches.pt2")
"""


def run(folder: Path, code: str, **variables: str) -> None:
    """Run Python code from a file, since torch reads it, in another process."""
    (folder / "code.py").write_text(code, encoding="utf-8")
    env = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "code.py"], cwd=folder, env=env, check=True, timeout=300, capture_output=True)


@pytest.mark.slow
def test_graphs_that_onednn_dumps_are_read(tmp_path: Path, cli: Cli) -> None:
    try:
        load_adapter("onednn")
    except CannotStart as cannot:
        pytest.skip(str(cannot))
    run(tmp_path, DUMP, ONEDNN_GRAPH_DUMP="graph,subgraph")
    dumps = sorted(tmp_path.glob("graph-*.json"))
    if not dumps:
        pytest.skip("this build of oneDNN dumps no graphs")
    whole = [path for path in dumps if path.stem.count("-") == 1]
    files = json.loads(cli("check-graph", *whole, "--json").expect(1).out)["files"]
    kinds = {path.name: [node["kind"] for node in file["nodes"]] for path, file in zip(whole, files, strict=True)}
    others = [each for each in kinds.values() if each != ["legal"]]  # the adapter also asks for the types, by graphs
    assert others == [["legal", "legal"], ["illegal"], ["illegal"]]
    for path in dumps:
        again = json.loads(cli("check-graph", path, "--json").out)["files"][0]
        assert not again["unreadable"]
        assert path.name not in kinds or [node["kind"] for node in again["nodes"]] == kinds[path.name]
        if path.name.endswith("-partitioning.json"):
            assert [node["kind"] for node in again["nodes"]] == kinds[path.name.replace("-partitioning", "")]


@pytest.mark.slow
def test_torch_saves_programs_in_which_each_symbol_is_followed(tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("torch")
    run(tmp_path, SAVE)
    for name, number in (("model.pt2", 3), ("core.pt2", 4), ("fixed.pt2", 3), ("branches.pt2", 2)):
        path = tmp_path / name
        (file,) = json.loads(cli("check-graph", path, "--json").expect(0).out)["files"]
        assert ([node["kind"] for node in file["nodes"]], [*file["inputs"]]) == (["legal"] * number, ["x"])
    said = cli("check-graph", tmp_path / "core.pt2", "--input", "x=1..4,3,8").expect(0).out
    assert "f32[1..4, 3, 8] by [3..12, 8]  legal for every length tried" in said
    said = cli("check-graph", tmp_path / "branches.pt2", "--input", "x=1..4,3,8").expect(0).text
    assert "true_graph_0.nodes[2] view f32[1..4, 3, 8] by [1..4, 24] legal for every length tried" in said
