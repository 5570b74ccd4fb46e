"""TFLite: the flat file is read with every offset checked."""

import contextlib
import struct
from pathlib import Path
from typing import Any

import pytest

from conformance.graphs.nodes import UnreadableModel
from conformance.graphs.tflite import read_tflite
from tests.builders import Cli
from tests.graphs.graph_files import kinds


def append(out: bytearray, value: Any) -> int:
    """Append a table (a dict of fields), a list or bytes; return where it begins."""
    while len(out) % 4:
        out.append(0)
    if isinstance(value, dict):
        slots = max(value, default=-1) + 1
        table = (len(out) + 4 + 2 * slots + 3) // 4 * 4
        places = {field: 4 + 4 * k for k, field in enumerate(value)}
        header = [4 + 2 * slots, 4 + 4 * len(value), *(places.get(field, 0) for field in range(slots))]
        head = len(out)
        out += struct.pack(f"<{len(header)}H", *header)
        out += bytes(table - len(out)) + struct.pack("<i", table - head) + bytes(4 * len(value))
        for field, part in value.items():
            fill(out, table + places[field], part)
        return table
    start = len(out)
    out += struct.pack("<I", len(value))
    if isinstance(value, bytes):
        out += value
        return start
    out += bytes(4 * len(value))
    for k, part in enumerate(value):
        fill(out, start + 4 + 4 * k, part)
    return start


def fill(out: bytearray, at: int, part: Any) -> None:
    """Write a number, or the distance to a value that is appended."""
    number = part if isinstance(part, int) else append(out, part) - at
    out[at : at + 4] = struct.pack("<i", number)


def one_operator(src: list[int], entries: int, dst: list[int], rank: int = 1, type_: int = 2) -> dict[int, Any]:
    """A graph with an operator of the first kind, on x and the shape s."""
    tensors = [
        {0: [abs(n) for n in src], 1: 0, 3: b"x", 7: src},
        {0: [*[1] * (rank - 1), entries][:rank], 1: type_, 2: 1, 3: b"s"},
        {0: dst, 1: 0, 3: b"y", 7: dst},
    ]
    return {0: tensors, 1: [0], 2: [2], 3: [{0: 0, 1: [0, 1], 2: [2]}]}


def save(folder: Path, shape: bytes, *graphs: dict[int, Any], signatures: list[bytes] | None = None) -> str:
    """A model of operators that are RESHAPE, or IF; `signatures` are the keys of the first graphs."""
    keys = [{2: key, 4: k} for k, key in enumerate(signatures or ())]
    model = {0: 3, 1: [{0: 22, 3: 22}, {0: 118, 3: 118}], 2: [*graphs], 4: [{}, {0: shape}], 7: keys}
    out = bytearray(b"\0\0\0\0TFL3")
    fill(out, 0, model)
    path = folder / "model.tflite"
    path.write_bytes(out)
    return str(path)


def tflite(
    folder: Path, src: list[int], shape: list[int], dst: list[int], rank: int = 1, type_: int = 2, code: str = "i"
) -> str:
    """A model of one reshape with a constant shape."""
    return save(folder, struct.pack(f"<{len(shape)}{code}", *shape), one_operator(src, len(shape), dst, rank, type_))


def test_a_baked_in_batch_is_found(tmp_path: Path, cli: Cli) -> None:
    path = tflite(tmp_path, [-1, 3, 4], [1, 12], [1, 12])
    assert (
        "f32[?, 3, 4] by [1, 12]  conditional: legal if and only if src[0] = 1"
        in cli("check-graph", path).expect(4).out
    )
    said = cli("check-graph", path, "--input", "x=1..4,3,4").expect(1).out
    assert "subgraphs[0].operators[0]  y" in said
    assert "illegal for x[0] = 2..4: same-volume" in said


def test_dims_inside_are_unknown_if_an_outer_length_changes(tmp_path: Path, cli: Cli) -> None:
    graph = one_operator([1, 3, 4], 2, [1, 12])
    path = save(tmp_path, struct.pack("<2i", 1, 12), {**graph, 3: [{0: 1, 1: [0], 2: [2]}]}, graph)
    cli("check-graph", path, "--input", "x=1,3,4").expect(0, out="subgraphs[1].operators[0]  y  f32[1, 3, 4] by [1, ")
    said = "not decided for every length tried: the dims of src are not inferred for this length"
    cli("check-graph", path, "--input", "x=2..4,3,4").expect(4, out=said)


def test_each_signature_has_inputs_of_its_own(tmp_path: Path, cli: Cli) -> None:
    """The second graph was not decided where the first had other lengths, and its own could not be given."""
    graphs = one_operator([-1, 3, 4], 2, [-1, 12]), one_operator([-1, 12], 2, [-1, 12])
    path = save(tmp_path, struct.pack("<2i", 1, 12), *graphs, signatures=[b"prefill", b"decode"])
    words = ("check-graph", path, "--input")
    said = cli(*words, "prefill:x=1..2,3,4", "--input", "decode:x=1,12").expect(1).text
    assert "inputs: prefill:x[?, 3, 4], decode:x[?, 12]" in said
    assert "illegal for prefill:x[0] = 2: same-volume; legal for prefill:x[0] = 1" in said
    assert "f32[1, 12] by [1, 12] legal for every length tried" in said
    cli(*words, "decode:x=2,12", "--input", "prefill:x=1,3,4").expect(1, text="f32[2, 12] by [1, 12] illegal: same")
    cli(*words, "x=1,3,4").expect(2, err="the inputs of")
    one = save(tmp_path, struct.pack("<2i", 1, 12), graphs[0], signatures=[b"serving_default"])
    cli("check-graph", one).expect(4, out="inputs: x[?, 3, 4]\n")


@pytest.mark.parametrize(
    ("takes", "options", "rank", "type_", "said"),
    [
        ([0], [0], 1, 2, "f32[1] by []  unspecified: rank-zero"),
        ([0, 1], [0], 0, 2, "f32[1] by []  unspecified: rank-zero"),
        ([0, 1], [1, 1], 0, 2, "f32[1] by [1, 1]  legal"),
        ([0, 1], [1, 1], 1, 15, "f32[1] by [1, 1]  legal"),
        ([0, 1], [7], 1, 2, "f32[1] by [1]  legal"),
    ],
)
def test_the_shape_of_the_options_counts_without_a_vector(
    tmp_path: Path, cli: Cli, takes: list[int], options: list[int], rank: int, type_: int, said: str
) -> None:
    """In old files the options [0] mean rank 0. TFLite reads a shape tensor only if it is a vector of s32."""
    graph = one_operator([1], 1, [], rank, type_)
    graph[3] = [{0: 0, 1: takes, 2: [2], 3: 17, 4: {0: options}}]
    cli("check-graph", save(tmp_path, struct.pack("<i", 1), graph)).expect(0, out=said)


def test_declared_dims_are_compared(tmp_path: Path, cli: Cli) -> None:
    assert kinds(cli, 0, tflite(tmp_path, [2, 6], [3, -1], [3, -1])) == ["legal"]
    assert kinds(cli, 1, tflite(tmp_path, [2, 6], [3, -1], [3, 5])) == ["illegal"]


def test_a_shape_of_another_rank_or_type_is_illegal(tmp_path: Path, cli: Cli) -> None:
    for rank in (0, 2):
        said = cli("check-graph", tflite(tmp_path, [12], [12], [12], rank)).expect(1).out
        assert "illegal: shape-has-one-dimension\n" in said
    said = cli("check-graph", tflite(tmp_path, [12], [12], [12], type_=0, code="f")).expect(1).out
    assert "illegal: shape-is-integer\n" in said
    assert kinds(cli, 4, tflite(tmp_path, [12], [], [12], 0)) == ["not decided"]


def test_a_shape_without_entries_needs_no_content(tmp_path: Path, cli: Cli) -> None:
    """A buffer without bytes is also that of a shape that is computed."""
    said = cli("check-graph", tflite(tmp_path, [2, 6], [], [])).expect(1).out
    assert "f32[2, 6] by []  illegal: same-volume" in said


@pytest.mark.parametrize(("type_", "code"), [(2, "i"), (4, "q"), (7, "h"), (9, "b"), (3, "B")])
def test_a_shape_of_any_integer_type_is_read(tmp_path: Path, cli: Cli, type_: int, code: str) -> None:
    path = tflite(tmp_path, [2, 6], [3, 4], [3, 4], type_=type_, code=code)
    assert "f32[2, 6] by [3, 4]  legal\n" in cli("check-graph", path).expect(0).out


def test_what_is_no_model_is_reported(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "bad.tflite"
    for content, why in ((b"", "byte 4"), (b"PK\3\4" * 9, "byte 4"), (b"\xff\xff\xff\x7fTFL3", "byte 2,147,483,647")):
        path.write_bytes(content)
        assert why in cli("check-graph", str(path)).expect(2).out


def test_an_operator_of_a_graph_without_tensors_is_reported(tmp_path: Path, cli: Cli) -> None:
    path, out = tmp_path / "bad.tflite", bytearray(b"\0\0\0\0TFL3")
    fill(out, 0, {0: 3, 1: [{0: 22, 3: 22}], 2: [{3: [{0: 0, 1: [0], 2: [0]}]}]})
    path.write_bytes(out)
    cli("check-graph", path).expect(2, out="subgraphs[0].operators[0]: there is no tensor 0; the graph has 0")


@pytest.mark.slow
def test_a_model_that_is_cut_or_changed_is_reported(tmp_path: Path) -> None:
    path = Path(tflite(tmp_path, [1, 12], [1, 12], [1, 12]))
    whole = path.read_bytes()
    for at in range(8, len(whole)):
        path.write_bytes(whole[:at])
        with pytest.raises(UnreadableModel, match="past the end of the file"):
            read_tflite(path, lambda _: None)
        for byte in (b"\x00", b"\x7f", b"\xff"):
            path.write_bytes(whole[:at] + byte + whole[at + 1 :])
            with contextlib.suppress(UnreadableModel):
                read_tflite(path, lambda _: None).nodes({})
