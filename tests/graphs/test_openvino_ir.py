"""OpenVINO IR: constants come from model.bin and no other file, and nothing in the XML can cost memory."""

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Cli, spoil
from tests.graphs.graph_files import kinds

NET = """<?xml version="1.0"?>
<net name="m" version="11">
 <layers>
  <layer id="0" name="x" type="Parameter" version="opset1">
   <data shape="?,3,4" element_type="f32"/>
   <output><port id="0" precision="FP32" names="x"><dim>{batch}</dim><dim>3</dim><dim>4</dim></port></output>
  </layer>
  <layer id="1" name="shape" type="Const" version="opset1">
   <data element_type="i64" shape="2" offset="{offset}" size="{size}"/>
   <output><port id="0" precision="I64"><dim>2</dim></port></output>
  </layer>
  <layer id="2" name="flatten" type="Reshape" version="opset1">
   <data special_zero="{zero}"/>
   <input>
    <port id="0" precision="FP32"><dim>{batch}</dim><dim>3</dim><dim>4</dim></port>
    <port id="1" precision="I64"><dim>2</dim></port>
   </input>
   <output><port id="2" precision="FP32"><dim>-1</dim><dim>-1</dim></port></output>
  </layer>
 </layers>
 <edges>
  <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
  <edge from-layer="{maker}" from-port="0" to-layer="2" to-port="1"/>
 </edges>
</net>
"""


USUAL = {"batch": 1, "zero": "true", "offset": 8, "size": 16, "maker": 1}


def ir(folder: Path, *shape: int, changed: tuple[str, str] = ("", ""), **more: Any) -> str:
    """A file with such a constant behind 8 bytes; `changed` is a text of the file, and what is there instead."""
    path = folder / "model.xml"
    path.write_text(NET.format(**{**USUAL, **more}), encoding="utf-8")
    spoil(path, *changed)
    (folder / "model.bin").write_bytes(bytes(8) + struct.pack(f"<{len(shape)}q", *shape))
    return str(path)


PORT = 'id="0" precision="FP32"><dim>'
ZERO = '<data special_zero="true"/>'
SAID: list[tuple[tuple[int, ...], dict[str, Any], str, int, str]] = [
    # (entries of shape, more arguments of `ir`, --input, the exit code, what is said)
    ((1, 12), {}, "x=1..4,3,4", 1, "line 12 flatten f32[1..4, 3, 4] by [1, 12] special_zero illegal for x[0] = 2..4"),
    ((0, -1), {"batch": -1}, "", 0, "legal for every length from 1"),
    ((0, -1), {"batch": -1}, "x=1..4,3,4", 0, "legal for every length tried"),
    ((0, 12), {"zero": "false"}, "", 1, "by [0, 12] illegal"),
    ((0, 12), {"zero": "TRUE"}, "", 0, "by [0, 12] special_zero legal"),
    ((0, 12), {"zero": "True"}, "", 0, "by [0, 12] special_zero legal"),
    ((1, 12), {"zero": "maybe"}, "", 4, "not decided: special_zero is 'maybe', and true or false is wanted"),
    ((1, 12), {"changed": (ZERO, "<data/>")}, "", 1, "by [1, 12] illegal: attributes-required"),
    ((1, 12), {"changed": (ZERO, "")}, "", 1, "by [1, 12] illegal: attributes-required"),
    ((1, 12), {"changed": ('i64" shape="2"', 'i64" shape="1,2"')}, "", 1, "illegal: shape-has-one-dimension"),
    ((1,), {"changed": ('i64" shape="2"', 'i64" shape=""'), "size": 8}, "", 1, "illegal: shape-has-one-dimension"),
    ((1, 12), {"changed": ('precision="I64"', 'precision="FP32"')}, "", 1, "special_zero illegal: shape-is-integer"),
    ((0, 12), {"changed": (f"{PORT}1", f"{PORT}-1")}, "", 0, "legal"),  # dims that may be equal contradict nothing
    ((0, 12), {"batch": -1, "changed": (f"{PORT}-1", f"{PORT}1")}, "", 0, "legal"),
    ((), {"changed": ('i64" shape="2"', 'i64" shape="0"'), "size": 1}, "", 1, "by [] special_zero illegal: same-vol"),
    *(((1, 12), place, "", 4, "not decided") for place in ({"offset": 9}, {"offset": 1 << 62}, {"size": 24})),
]


@pytest.mark.parametrize(("shape", "more", "given", "code", "said"), SAID)
def test_a_reshape_is_read_with_its_constant(
    tmp_path: Path, cli: Cli, shape: tuple[int, ...], more: dict[str, Any], given: str, code: int, said: str
) -> None:
    words = ["--input", given] if given else []
    cli("check-graph", ir(tmp_path, *shape, **more), *words).expect(code, text=said)


def test_a_port_without_dims_is_of_any_rank(tmp_path: Path, cli: Cli) -> None:
    path = Path(ir(tmp_path, 3, 4, zero="false"))
    text = path.read_text("utf-8").replace("<dim>1</dim><dim>3</dim><dim>4</dim>", "")
    path.write_text(text.replace("?,3,4", "..."), encoding="utf-8")
    assert "inputs: x[…]\n" in cli("check-graph", str(path)).expect(4).out
    assert kinds(cli, 0, str(path), "--input", "x=2,6") == ["legal"]
    assert kinds(cli, 1, str(path), "--input", "x=2,3") == ["illegal"]
    path.write_text(text.replace("?,3,4", ""), encoding="utf-8")
    assert "f32[] by [3, 4]  illegal: same-volume" in cli("check-graph", str(path)).expect(1).out


@pytest.mark.parametrize(("offset", "size"), [(9, 16), (1 << 62, 16), (8, 24)])
def test_a_shape_that_is_not_in_the_file_is_not_decided(tmp_path: Path, cli: Cli, offset: int, size: int) -> None:
    path = ir(tmp_path, 1, 12, offset=offset, size=size)
    assert kinds(cli, 4, path) == ["not decided"]


def test_without_the_bin_file_a_shape_is_not_decided(tmp_path: Path, cli: Cli) -> None:
    path = ir(tmp_path, 1, 12)
    (tmp_path / "model.bin").unlink()
    assert "shape is in model.bin, which cannot be read" in cli("check-graph", path).expect(4).out


def test_a_bin_file_that_is_a_link_to_another_folder_is_not_read(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "inner").mkdir()
    path = ir(tmp_path / "inner", 1, 12)
    (tmp_path / "inner/model.bin").rename(tmp_path / "secret")
    (tmp_path / "inner/model.bin").symlink_to(tmp_path / "secret")
    assert "a link to another folder" in cli("check-graph", path).expect(4).out


def test_dims_in_a_body_are_unknown_if_an_outer_length_changes(tmp_path: Path, cli: Cli) -> None:
    outer = NET.format(**USUAL)
    inner = outer.partition("<layers>")[2].partition("</net>")[0]
    layer = (
        '<layer id="3" name="loop" type="Loop" version="opset5"><input><port id="0" precision="FP32"/></input>'
        f"<body><layers>{inner}</body></layer>"
    )
    text = outer.replace(" </layers>", f"{layer}</layers>").replace(
        " <edges>", ' <edges><edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>'
    )
    path = ir(tmp_path, 1, 12)
    Path(path).write_text(text, encoding="utf-8")
    assert kinds(cli, 0, path) == ["legal", "legal"]
    assert kinds(cli, 1, path, "--input", "x=2,3,4") == ["illegal", "not decided"]


def test_a_shape_that_is_computed_from_known_dims_is_followed(tmp_path: Path, cli: Cli) -> None:
    """A constant [1] and the second half of ShapeOf of src, multiplied by a constant, put together."""
    path = Path(ir(tmp_path, 1, 12))
    two = "<dim>1</dim>"
    layers = f"""
  <layer id="10" name="dims" type="ShapeOf" version="opset3"><data output_type="i64"/>
   <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>4</dim></port></input>
   <output><port id="1" precision="I64"><dim>3</dim></port></output></layer>
  <layer id="11" name="axis" type="Const"><data element_type="i64" shape="" offset="24" size="8"/>
   <output><port id="0"/></output></layer>
  <layer id="12" name="lengths" type="Const"><data element_type="i64" shape="3" offset="32" size="24"/>
   <output><port id="0"/></output></layer>
  <layer id="13" name="split" type="VariadicSplit"><input><port id="0"/><port id="1"/><port id="2"/></input>
   <output><port id="3">{two}</port><port id="4">{two}</port><port id="5">{two}</port></output></layer>
  <layer id="14" name="product" type="Multiply"><input><port id="0"/><port id="1"/></input>
   <output><port id="2">{two}</port></output></layer>
  <layer id="15" name="together" type="Concat"><data axis="0"/><input><port id="0"/><port id="1"/></input>
   <output><port id="2"><dim>2</dim></port></output></layer>"""
    edges = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'
        for a, b, c, d in [
            (0, 0, 10, 0), (10, 1, 13, 0), (11, 0, 13, 1), (12, 0, 13, 2), (13, 4, 14, 0), (13, 5, 14, 1),
            (13, 3, 15, 0), (14, 2, 15, 1), (15, 2, 2, 1),
        ]
    )  # fmt: skip
    text = path.read_text("utf-8").replace('<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>', edges)
    path.write_text(text.replace(" </layers>", f"{layers}\n </layers>"), encoding="utf-8")
    (tmp_path / "model.bin").write_bytes(struct.pack("<8q", 0, 1, 12, 0, 1, -1, 1, 0))
    assert "by [1, 12] special_zero  legal" in cli("check-graph", str(path)).expect(0).out
    cli("check-graph", str(path), "--input", "x=2,3,4").expect(0, out="by [2, 12] special_zero  legal")


BATCH = {
    "Gather": [("Gather", "", "dims zeros zero")],
    "Gather of an entry": [("Gather", "", "dims zero zero"), ("Unsqueeze", "", "made zero")],
    "StridedSlice": [("StridedSlice", 'begin_mask="1" end_mask="0"', "dims twos ones ones")],
    "StridedSlice of an entry": [
        ("StridedSlice", 'end_mask="1" shrink_axis_mask="1"', "dims zeros zeros ones"),
        ("Convert", 'destination_type="i64"', "made"),
        ("Unsqueeze", "", "made zeros"),
    ],
    "Slice": [("Slice", "", "dims zeros ones ones zeros")],
}
"""How converters take the batch out of the dims: operations, attributes and inputs; `made` is the output before."""


@pytest.mark.parametrize("how", BATCH)
@pytest.mark.parametrize(
    ("rest", "given", "code", "said"),
    [
        (12, "", 0, "f32[?, 3, 4] by [src[0], 12] special_zero legal for every length from 1"),
        (6, "", 1, "by [src[0], 6] special_zero illegal: same-volume"),
        (12, "x=2..3,3,4", 0, "f32[2..3, 3, 4] by [2..3, 12] special_zero legal for every length tried"),
        (-1, "x=2,3,5", 0, "f32[2, 3, 5] by [2, -1] special_zero legal"),
    ],
)
def test_the_batch_is_followed_into_shape(
    how: str, rest: int, given: str, code: int, said: str, tmp_path: Path, cli: Cli
) -> None:
    places = {"x": (0, 0), "dims": (10, "out"), "rest": (11, "out"), "zero": (12, "out")}
    places |= {name: (13 + k, "out") for k, name in enumerate(("zeros", "ones", "twos"))}
    vector = {"rest": rest, "zero": 0, "zeros": 0, "ones": 1, "twos": 1}
    layers: list[tuple[str, str, str]] = [("ShapeOf", 'output_type="i64"', "x")]
    layers += [
        ("Const", f'element_type="i64" shape="{"" if name == "zero" else 1}" offset="{8 * k}" size="8"', "")
        for k, name in enumerate(vector)
    ]
    layers += [*BATCH[how], ("Concat", 'axis="0"', "made rest")]
    text, edges = "", ""
    for number, (kind, attributes, inputs) in enumerate(layers, 10):
        ports = "".join(f'<port id="{k}"/>' for k, _ in enumerate(inputs.split()))
        text += f'<layer id="{number}" name="{number}" type="{kind}"><data {attributes}/><input>{ports}</input>'
        text += '<output><port id="out"/></output></layer>'
        for k, name in enumerate(inputs.split()):
            maker, port = places.get(name, (number - 1, "out"))
            edges += f'<edge from-layer="{maker}" from-port="{port}" to-layer="{number}" to-port="{k}"/>'
    edges += f'<edge from-layer="{9 + len(layers)}" from-port="out" to-layer="2" to-port="1"/>'
    path = Path(ir(tmp_path, batch=-1, changed=("</layers>", f"{text}</layers>")))
    spoil(path, '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>', edges)
    (tmp_path / "model.bin").write_bytes(struct.pack("<5q", *vector.values()))
    cli("check-graph", path, *(["--input", given] if given else [])).expect(code, text=said)


def test_floats_are_divided_as_floats(tmp_path: Path, cli: Cli) -> None:
    """[2, 3] / [2, 2] * [1, 8] is [1, 12]; of whole numbers it would be [1, 8]."""
    path, two = Path(ir(tmp_path, 1, 12)), "<dim>2</dim>"
    layers = "".join(
        f"""<layer id="{k}" name="c{k}" type="Const"><data element_type="i64" shape="2" offset="{16 * k}" size="16"/>
             <output><port id="0">{two}</port></output></layer>
            <layer id="f{k}" name="f{k}" type="Convert"><data destination_type="f32"/>
             <input><port id="0"/></input><output><port id="1">{two}</port></output></layer>"""
        for k in (3, 4, 5)
    ) + "".join(
        f"""<layer id="{number}" name="{kind}" type="{kind}"><data destination_type="i64"/>
             <input><port id="0"/>{more}</input><output><port id="2">{two}</port></output></layer>"""
        for number, kind, more in (
            (6, "Divide", '<port id="1"/>'),
            (7, "Multiply", '<port id="1"/>'),
            (8, "Convert", ""),
        )
    )
    edges = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'
        for a, b, c, d in [
            (3, 0, "f3", 0), (4, 0, "f4", 0), (5, 0, "f5", 0), ("f3", 1, 6, 0), ("f4", 1, 6, 1), (6, 2, 7, 0),
            ("f5", 1, 7, 1), (7, 2, 8, 0), (8, 2, 2, 1),
        ]
    )  # fmt: skip
    text = path.read_text("utf-8").replace('<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>', edges)
    path.write_text(text.replace(" </layers>", f"{layers}\n </layers>"), encoding="utf-8")
    (tmp_path / "model.bin").write_bytes(bytes(48) + struct.pack("<6q", 2, 3, 2, 2, 1, 8))
    cli("check-graph", str(path)).expect(0, out="by [1, 12] special_zero  legal")


BAD = {
    "entities": ('<!DOCTYPE a [<!ENTITY b "c">]><net/>', "line 1: a DOCTYPE, which can hold entities, is not read"),
    "cut short": ("<net><layers>", "byte 13: not XML: no element found"),
    "nothing": ("", "line 1, byte 0: not XML: no element found"),
    "another root": ("<html/>", "the root is <html>"),
    "nested deep": ("<net>" * 1000, "line 1: nested too deep"),
    "a length of text": (NET.replace("<dim>3</dim>", "<dim>three</dim>"), "line 6: 'three': a whole number is wanted"),
    "an edge from nowhere": (NET.replace("{maker}", "99"), "line 12: '99'"),
    "two layers with one id": (NET.replace('id="1" name', 'id="0" name'), "line 8: '0': the layer at line 4 has this"),
    "an edge between other dims": (
        NET.replace('FP32"><dim>{batch}</dim><dim>3', 'FP32"><dim>{batch}</dim><dim>5'),
        "line 15: a port has the dims [1, 5, 4], and the edge from line 6 brings [1, 3, 4]",
    ),
    "an edge between other ranks": (
        NET.replace('FP32"><dim>{batch}</dim><dim>3', 'FP32"><dim>3'),
        "line 15: a port has the dims [3, 4], and the edge from line 6 brings [1, 3, 4]",
    ),
    "an encoding that nobody has": ('<?xml version="1.0" encoding="x-none"?><net/>', "not XML: unknown encoding"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_reported_with_its_line(tmp_path: Path, cli: Cli, what: str) -> None:
    text, why = BAD[what]
    path = tmp_path / "bad.xml"
    path.write_text(text.format(**USUAL), encoding="utf-8")
    cli("check-graph", str(path)).expect(2, out=("unreadable", why))


def test_a_circle_is_reported(tmp_path: Path, cli: Cli) -> None:
    path = Path(ir(tmp_path, 1, 12, maker=2))
    text = path.read_text("utf-8").replace('from-layer="2" from-port="0"', 'from-layer="2" from-port="2"')
    path.write_text(text.replace("<dim>-1</dim><dim>-1</dim>", "<dim>-1</dim>"), encoding="utf-8")
    assert "the graph is a circle" in cli("check-graph", str(path)).expect(2).out
