"""Small model files for the tests, and the command on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.main import main

UNKNOWN = [-(2**63)]
"""The dims that oneDNN Graph writes where a length is not known."""


def tensor(id_: int, dims: list[int], type_: str = "f32") -> dict[str, Any]:
    return {"id": id_, "dtype": type_, "shape": dims, "layout_type": "strided"}


def static_reshape(
    name: str, src: dict[str, Any], shape: list[int] | None, dst: dict[str, Any], special_zero: int | None = 1
) -> dict[str, Any]:
    attributes = {}
    if special_zero is not None:
        attributes["special_zero"] = {"type": "bool", "value": special_zero}
    if shape is not None:
        attributes["shape"] = {"type": "s64[]", "value": shape}
    return {"id": 1, "name": name, "kind": "StaticReshape", "attrs": attributes, "inputs": [src], "outputs": [dst]}


def relu(name: str, src: dict[str, Any], dst: dict[str, Any]) -> dict[str, Any]:
    return {"id": 2, "name": name, "kind": "ReLU", "attrs": {}, "inputs": [src], "outputs": [dst]}


def write_graph(folder: Path, *nodes: dict[str, Any], ports: tuple[int, ...] = (0,)) -> Path:
    """Write a graph of oneDNN Graph, a node on each line from line 3."""
    listed = ",\n".join(map(json.dumps, nodes))
    path = folder / "graph.json"
    path.write_text(f'{{"version": "3.5.0", "input_ports": {list(ports)},\n"graph": [\n{listed}\n]}}\n')
    return path


def check(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run `conformance check-graph` and return its exit code, what it printed, and its messages."""
    code = main(["check-graph", *map(str, words)])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    return code, printed.out, printed.err
