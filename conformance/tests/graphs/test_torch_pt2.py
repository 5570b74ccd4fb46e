"""Programs of torch.export: written here by hand after the format, in both layouts of the zip file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from .files import check

Captured = pytest.CaptureFixture[str]
_OLD, _NEW = "serialized_exported_program.json", "model/models/model.json"


def size(length: int | str) -> dict[str, Any]:
    return {"as_int": length} if isinstance(length, int) else {"as_expr": {"expr_str": length, "hint": {"as_int": 2}}}


def tensor(*dims: int | str) -> dict[str, Any]:
    return {"dtype": 7, "sizes": [size(length) for length in dims]}


def node(kind: str, src: str, dst: str, shape: dict[str, Any] | None = None) -> dict[str, Any]:
    inputs = [{"name": "self", "arg": {"as_tensor": {"name": src}}}]
    inputs += [{"name": "size", "arg": shape}] if shape else []
    outputs = [{"as_tensor": {"name": dst}}]
    return {"target": f"torch.ops.aten.{kind}.default", "inputs": inputs, "outputs": outputs}


def program(*nodes: dict[str, Any], **tensors: dict[str, Any]) -> dict[str, Any]:
    graph = {
        "nodes": list(nodes),
        "tensor_values": tensors,
        "sym_int_values": {"sym_size_int": {"as_expr": {"expr_str": "s0"}}},
    }
    specs = [{"parameter": {"arg": {"name": "w"}}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]
    return {"graph_module": {"graph": graph, "signature": {"input_specs": specs}}}


def write(folder: Path, content: dict[str, Any], member: str = _NEW) -> Path:
    path = folder / "model.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, json.dumps(content))
    return path


@pytest.mark.parametrize("member", [_OLD, _NEW])
def test_a_view_with_a_named_length_is_legal_for_every_length(tmp_path: Path, capsys: Captured, member: str) -> None:
    shape = {"as_sym_ints": [{"as_name": "sym_size_int"}, {"as_int": -1}]}
    nodes = node("relu", "x", "r"), node("view", "r", "v", shape)
    content = program(*nodes, x=tensor("s0", 3, 4), r=tensor("s0", 3, 4), v=tensor("s0", 12))
    code, out, _ = check(capsys, write(tmp_path, content, member))
    assert code == 0
    assert "v  aten.view.default, node 1  legal  f32[s0, 3, 4] by [s0, -1], special_zero false" in out
    code, out, _ = check(capsys, write(tmp_path, content, member), "--input", "x=1..8,3,4")
    assert (code, "legal for every length tried  f32[1, 3, 4] by [1, -1]" in out) == (0, True)


def test_a_baked_in_batch_is_found_behind_other_operations(tmp_path: Path, capsys: Captured) -> None:
    nodes = node("relu", "x", "r"), node("reshape", "r", "v", {"as_ints": [1, 12]})
    content = program(*nodes, x=tensor("s0", 3, 4), r=tensor("s0", 3, 4), v=tensor(1, 12))
    code, out, _ = check(capsys, write(tmp_path, content))
    assert (code, "missing: s0; legal at most for s0 = 1" in out) == (4, True)
    code, out, _ = check(capsys, write(tmp_path, content), "--input", "x=1..8,?,?")
    assert (code, "illegal for x[0] = 2..8: same-volume" in out) == (1, True)


def test_lengths_that_are_computed_from_names_are_bound(tmp_path: Path, capsys: Captured) -> None:
    content = program(node("view", "p", "v", {"as_ints": [-1, 5]}), x=tensor("s0"), p=tensor("(s0//2) + 1", 2))
    path = write(tmp_path, content)
    assert check(capsys, path)[0] == 4
    code, out, _ = check(capsys, path, "--input", "x=7..9")
    assert (code, "illegal for x[0] = 7: same-volume" in out) == (1, True)


def test_lengths_in_the_words_of_sympy_are_read(tmp_path: Path, capsys: Captured) -> None:
    batch = "Symbol('s77', positive=True, integer=True)"
    content = program(
        node("view", "p", "v", {"as_ints": [-1, 64]}), x=tensor(batch), p=tensor(f"Mul(Integer(64), {batch})", 2)
    )
    code, out, _ = check(capsys, write(tmp_path, content))
    assert (code, "f32[64*s77, 2] by [-1, 64], special_zero false → [2*s77, 64]" in out) == (0, True)
    code, out, _ = check(capsys, write(tmp_path, content), "--input", "x=5")
    assert (code, "f32[320, 2] by [-1, 64], special_zero false → [10, 64]" in out) == (0, True)


def test_only_inputs_of_the_user_can_be_bound(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, program(node("view", "w", "v", {"as_ints": [-1]}), x=tensor("s0"), w=tensor(2, 3)))
    code, _, err = check(capsys, path, "--input", "w=2,3")
    assert (code, "there is no such input; the inputs are x" in err) == (2, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "'graph_module' is missing"),
        ({"graph_module": {"graph": []}}, "has not the form"),
        (program({"target": "torch.ops.aten.view.default", "inputs": [], "outputs": []}), "has not the form"),
        (program(node("view", "x", "v", {"as_none": True}), x=tensor(1)), "size is {\"as_none\": true}, no list"),
        (program(node("relu", "v", "x"), node("relu", "x", "v"), x=tensor(1), v=tensor(1)), "one another's outputs"),
    ],
)  # fmt: skip
def test_a_graph_of_another_form_ends_with_2(
    tmp_path: Path, capsys: Captured, content: dict[str, Any], message: str
) -> None:
    code, _, err = check(capsys, write(tmp_path, content))
    assert (code, message in err) == (2, True), err


def test_a_zip_file_that_is_damaged_or_another_one_ends_with_2(tmp_path: Path, capsys: Captured) -> None:
    whole = write(tmp_path, program(x=tensor(1))).read_bytes()
    flipped = bytearray(whole)
    flipped[80] ^= 0xFF
    for content in (b"", b"PK", whole[:60], whole[:-30], bytes(flipped)):
        (tmp_path / "bad.pt2").write_bytes(content)
        assert check(capsys, tmp_path / "bad.pt2")[0] == 2
    code, _, err = check(capsys, write(tmp_path, {}, "weights.json"))
    assert (code, "has no member that ends with" in err) == (2, True)


def test_a_member_that_unpacks_to_more_than_a_graph_can_have_is_not_unpacked(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_NEW, bytes(130 << 20))
    assert path.stat().st_size < 1 << 20
    code, _, err = check(capsys, path)
    assert (code, "it has more than 134,217,728 bytes" in err) == (2, True)
