"""Graphs with the dims and strides of three inputs of benchdnn: of complex_fusion, pattern/f32 and pattern/int8."""

import json
from pathlib import Path
from typing import Any

from tests.builders import Cli
from tests.graphs.graph_files import UNKNOWN, dump, kinds, static, tensor


def other(kind: str, src: dict[str, Any], dst: dict[str, Any]) -> dict[str, Any]:
    """An operation that is no reshape."""
    return {"id": 9, "name": "other", "kind": kind, "inputs": [src], "outputs": [dst]}


def grouped_query_attention(folder: Path) -> str:
    """Queries of 16 heads are split into two groups of 8, which share a head of the keys, and are joined again."""
    query, key = tensor(0, 32, 16, 384, 64), tensor(2, 32, 2, 384, 64)
    groups, answers = tensor(1, 32, 2, 8, 384, 64), tensor(20, 32, 2, 8, 384, 64)
    return dump(
        folder,
        static(query, [32, 2, 8, 384, 64], groups),
        static(key, [32, 2, 1, 384, 64], tensor(3, 32, 2, 1, 384, 64)),
        static(tensor(11, 32, 1, 1, 384), [32, 1, 1, 1, 384], tensor(12, 32, 1, 1, 1, 384)),
        other("MatMul", groups, answers),
        static(answers, [32, 16, 384, 64], tensor(23, 32, 16, 384, 64)),
    )


def shuffle(folder: Path) -> str:
    """The last dimension is split, the parts are transposed, and the second reshape takes them with their strides."""
    split, turned = tensor(1, 1, 256, 75, 25, 3), tensor(2, 1, 256, 75, 3, 25)
    turned["stride"] = [1440000, 5625, 75, 1, 3]
    return dump(
        folder,
        static(tensor(0, 1, 256, 75, 75), [1, 256, 75, 25, 3], split),
        other("StaticTranspose", split, turned),
        static(turned, [1, 256, 75, 75], tensor(3, 1, 256, 75, 75)),
    )


def depthwise_weights(folder: Path) -> str:
    """Two reshapes in a row join two dimensions of weights and insert one of length 1; strides are not known."""
    joined = tensor(4, 7, 7, 24) | {"stride": UNKNOWN}
    return dump(
        folder,
        static(tensor(3, 7, 7, 3, 8), [7, 7, 24], joined),
        static(joined, [7, 7, 1, 24], tensor(7, 7, 7, 1, 24) | {"stride": UNKNOWN}),
    )


def test_heads_are_split_and_joined_for_one_batch_only(tmp_path: Path, cli: Cli) -> None:
    path = grouped_query_attention(tmp_path)
    assert kinds(cli, 0, path) == ["legal"] * 4
    said = cli("check-graph", path, "--input", "0=30..33,16,384,64").expect(1).out
    assert "illegal for 0[0] = 30..31, 33: same-volume; legal for 0[0] = 32" in said


def test_a_shuffle_is_legal_behind_a_transpose(tmp_path: Path, cli: Cli) -> None:
    assert kinds(cli, 0, shuffle(tmp_path)) == ["legal"] * 2


def test_reshapes_of_weights_need_no_strides(tmp_path: Path, cli: Cli) -> None:
    path = depthwise_weights(tmp_path)
    nodes = json.loads(cli("check-graph", path, "--json").expect(0).out)["files"][0]["nodes"]
    answers = [node["trials"][0]["documents"]["static-oneapi"]["dst"] for node in nodes]
    assert answers == [[7, 7, 24], [7, 7, 1, 24]]
    assert kinds(cli, 1, path, "--input", "3=7,7,3,4") == ["illegal", "not decided"]
