"""`conformance export benchdnn`: a graph file for each legal call, as the library would dump it."""

import json
from pathlib import Path
from typing import Any

from tests.builders import Cli, CommandOutput, write_suite

CHAIN = """about: One.
cases:
  - id: there-and-back
    rule: nodes-compose
    src: bf16[2, 3]
    shape: [-1]
    special_zero: false
    chain: [{shape: [0, 1, 1], special_zero: true}]
    expect: bf16[6, 1, 1]
"""
FORK = CHAIN.replace("chain:", "shared_src: true\n    chain:").replace("bf16[6, 1, 1]", "bf16[2, 3]")
FORK = FORK.replace("[0, 1, 1]", "[0, -1]")
TRANSPOSED = """about: One.
cases:
  - {id: turned, rule: layout-is-no-content, src: "f32[3, 4]", shape: [12], special_zero: false,
     layout: transposed, expect: "f32[12]"}
"""


def export(cli: Cli, folder: Path, *texts: str) -> CommandOutput:
    return cli("export", "benchdnn", "--suite", write_suite(folder, *texts), "--out", folder / "out").expect(0)


def graph(folder: Path) -> Any:
    (path,) = (folder / "out").iterdir()
    return json.loads(path.read_text(encoding="utf-8"))


def tensor(id_: int, *shape: int, stride: list[int]) -> dict[str, Any]:
    """A tensor as v3.13.2 dumps it."""
    return {
        "id": id_, "dtype": "bf16", "shape": list(shape), "stride": stride, "layout_type": "strided",
        "property_type": "undef",
    }  # fmt: skip


def attributes(special_zero: int, *shape: int) -> dict[str, Any]:
    return {
        "special_zero": {"type": "bool", "value": special_zero}, "shape": {"type": "s64[]", "value": list(shape)},
    }  # fmt: skip


def test_a_chain_is_written_with_the_dims_of_each_answer(cli: Cli, tmp_path: Path) -> None:
    export(cli, tmp_path, CHAIN)
    src, between, dst = tensor(0, 2, 3, stride=[3, 1]), tensor(1, 6, stride=[1]), tensor(2, 6, 1, 1, stride=[1, 1, 1])
    operation = {"name": "reshape", "kind": "StaticReshape"}
    assert graph(tmp_path) == {
        "version": "3.6.0", "engine_kind": "cpu", "fpmath_mode": "strict", "fpmath_mode_apply_to_int": "false",
        "input_ports": [0], "output_ports": [2],
        "graph": [
            {"id": 0, **operation, "attrs": attributes(0, -1), "inputs": [src], "outputs": [between]},
            {"id": 1, **operation, "attrs": attributes(1, 0, 1, 1), "inputs": [between], "outputs": [dst]},
        ],
    }  # fmt: skip


def test_nodes_that_share_src_are_ports_of_their_own(cli: Cli, tmp_path: Path) -> None:
    export(cli, tmp_path, FORK)
    whole = graph(tmp_path)
    assert (whole["input_ports"], whole["output_ports"]) == ([0, 0], [1, 2])
    assert [operation["inputs"][0]["id"] for operation in whole["graph"]] == [0, 0]


def test_strides_of_src_are_counted_in_elements(cli: Cli, tmp_path: Path) -> None:
    export(cli, tmp_path, TRANSPOSED)
    assert graph(tmp_path)["graph"][0]["inputs"][0]["stride"] == [1, 3]


def test_the_checker_of_models_finds_every_graph_legal(cli: Cli, tmp_path: Path) -> None:
    export(cli, tmp_path)
    files = sorted((tmp_path / "out").glob("*-f32*.json"))
    checked = json.loads(cli("check-graph", *files, "--json").expect(0).out)["files"]
    assert {node["kind"] for file in checked for node in file["nodes"]} == {"legal"}
    assert "keeps-order-f32.json" in {file.name for file in files}


def test_what_the_files_do_not_test_is_said(cli: Cli, tmp_path: Path) -> None:
    said = export(cli, tmp_path, CHAIN)
    assert "wrote 1 graph file" in said.out
    assert "illegal and unspecified calls: benchdnn runs what the library takes" in said.text
