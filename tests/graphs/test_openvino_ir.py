"""OpenVINO IR: constants come from model.bin and no other file, and nothing in the XML can cost memory."""

import struct
from pathlib import Path

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


def ir(
    folder: Path, *shape: int, batch: int = 1, zero: str = "true", offset: int = 8, size: int = 16, maker: int = 1
) -> str:
    path = folder / "model.xml"
    text = NET.format(batch=batch, zero=zero, offset=offset, size=size, maker=maker)
    path.write_text(text, encoding="utf-8")
    (folder / "model.bin").write_bytes(bytes(8) + struct.pack(f"<{len(shape)}q", *shape))
    return str(path)


def test_a_baked_in_batch_is_illegal_for_another_batch(tmp_path: Path, cli: Cli) -> None:
    said = cli("check-graph", ir(tmp_path, 1, 12), "--input", "x=1..4,3,4").expect(1).out
    assert "line 12  flatten  f32[1..4, 3, 4] by [1, 12] special_zero" in said
    assert "illegal for x[0] = 2..4: same-volume" in said


def test_a_copied_batch_is_legal_for_every_length(tmp_path: Path, cli: Cli) -> None:
    path = ir(tmp_path, 0, -1, batch=-1)
    assert "legal for every length from 1" in cli("check-graph", path).expect(0).out
    assert kinds(cli, 0, path, "--input", "x=1..4,3,4") == ["legal"]


def test_special_zero_is_read(tmp_path: Path, cli: Cli) -> None:
    assert kinds(cli, 1, ir(tmp_path, 0, 12, zero="false")) == ["illegal"]
    assert kinds(cli, 0, ir(tmp_path, 0, 12, zero="TRUE")) == kinds(cli, 0, ir(tmp_path, 0, 12, zero="True"))
    why = "not decided: special_zero is 'maybe', and true or false is wanted\n"
    assert why in cli("check-graph", ir(tmp_path, 1, 12, zero="maybe")).expect(4).out


def test_a_reshape_without_special_zero_is_illegal(tmp_path: Path, cli: Cli) -> None:
    path = Path(ir(tmp_path, 1, 12))
    text = path.read_text("utf-8")
    for data in ("<data/>", ""):
        path.write_text(text.replace('<data special_zero="true"/>', data), encoding="utf-8")
        assert "by [1, 12]  illegal: attributes-required\n" in cli("check-graph", str(path)).expect(1).out


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ('i64" shape="2"', 'i64" shape="1,2"', "shape-has-one-dimension"),
        ('i64" shape="2" offset="8" size="16"', 'i64" shape="" offset="8" size="8"', "shape-has-one-dimension"),
        ('precision="I64"', 'precision="FP32"', "shape-is-integer"),
    ],
)
def test_a_shape_of_another_rank_or_type_is_illegal(tmp_path: Path, cli: Cli, old: str, new: str, rule: str) -> None:
    path = Path(ir(tmp_path, 1, 12))
    spoil(path, old, new)
    assert f"special_zero  illegal: {rule}\n" in cli("check-graph", str(path)).expect(1).out


@pytest.mark.parametrize("batch", [-1, 1])
def test_dims_that_may_be_equal_contradict_nothing(tmp_path: Path, cli: Cli, batch: int) -> None:
    path = Path(ir(tmp_path, 0, 12, batch=batch))
    port = '<port id="0" precision="FP32"><dim>'
    spoil(path, f"{port}{batch}", f"{port}{-batch}")
    assert kinds(cli, 0, str(path)) == ["legal"]


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
    inner = NET.partition("<layers>")[2].partition("</net>")[0].format(batch=1, zero="true", offset=8, size=16, maker=1)
    outer = NET.format(batch=1, zero="true", offset=8, size=16, maker=1)
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
    cli("check-graph", str(path), "--input", "x=2,3,4").expect(4, out="shape is computed from an input")


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
    values = {"batch": 1, "zero": "true", "offset": 8, "size": 16, "maker": 1}
    path.write_text(text.format(**values) if "{batch}" in text else text, encoding="utf-8")
    cli("check-graph", str(path)).expect(2, out=("unreadable", why))


def test_a_circle_is_reported(tmp_path: Path, cli: Cli) -> None:
    path = Path(ir(tmp_path, 1, 12, maker=2))
    text = path.read_text("utf-8").replace('from-layer="2" from-port="0"', 'from-layer="2" from-port="2"')
    path.write_text(text.replace("<dim>-1</dim><dim>-1</dim>", "<dim>-1</dim>"), encoding="utf-8")
    assert "the graph is a circle" in cli("check-graph", str(path)).expect(2).out
