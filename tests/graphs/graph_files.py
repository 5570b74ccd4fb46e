"""Dumps of oneDNN Graph, and what `conformance check-graph` says of a file."""

import json
from pathlib import Path
from typing import Any

from tests.builders import Cli

UNKNOWN = [-(2**63)]


def tensor(id_: int, *shape: int, dtype: str = "f32") -> dict[str, Any]:
    return {"id": id_, "dtype": dtype, "shape": list(shape), "layout_type": "strided"}


def static(src: dict[str, Any], shape: list[int], dst: dict[str, Any], zero: int = 0, **more: Any) -> dict[str, Any]:
    """An operation as the library dumps it."""
    attributes = {"shape": {"type": "s64[]", "value": shape}, "special_zero": {"type": "bool", "value": zero}}
    entry = {"id": 1, "name": "it", "kind": "StaticReshape", "attrs": attributes, "inputs": [src], "outputs": [dst]}
    return entry | more


def dump(folder: Path, *operations: dict[str, Any]) -> str:
    path = folder / "graph.json"
    path.write_text(json.dumps({"version": "3.6.0", "graph": operations}), encoding="utf-8")
    return str(path)


def kinds(cli: Cli, code: int, *words: str) -> list[str]:
    """The kinds of the reshapes of a file."""
    data = cli("check-graph", *words, "--json").expect(code).data
    assert data["exit_code"] == code
    return [node["kind"] for node in data["files"][0]["nodes"]]
