"""OpenVINO IR: the form that openvino 2026.4 writes, in small; constants from the .bin file; files that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from .files import check

Captured = pytest.CaptureFixture[str]


def port(number: int, dims: list[int], precision: str = "FP32", names: str = "") -> str:
    inside = "".join(f"<dim>{length}</dim>" for length in dims)
    return f'<port id="{number}" precision="{precision}" names="{names}">{inside}</port>'


def model(src: list[int], dst: list[int], data: str = 'special_zero="true"', size: int = 16) -> str:
    """A parameter `x`, a constant of two entries and a reshape on line 7."""
    return f"""<?xml version="1.0"?>
<net name="small" version="11"><layers>
<layer id="0" name="input" type="Parameter" version="opset1"><data shape="?" element_type="f32"/>
<output>{port(0, src, names="x")}</output></layer>
<layer id="1" name="lengths" type="Const" version="opset1"><data element_type="i64" shape="2" offset="8" size="{size}"/>
<output>{port(0, [2], "I64")}</output></layer>
<layer id="2" name="flatten" type="Reshape" version="opset1"><data {data}/>
<input>{port(0, src)}{port(1, [2], "I64")}</input><output>{port(2, dst)}</output></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/></edges></net>"""


def write(folder: Path, text: str, entries: tuple[int, ...] | None = (0, 12)) -> Path:
    path = folder / "model.xml"
    path.write_text(text)
    if entries is not None:
        (folder / "model.bin").write_bytes(bytes(8) + struct.pack(f"<{len(entries)}q", *entries))
    return path


def test_a_reshape_takes_its_shape_from_the_bin_file(tmp_path: Path, capsys: Captured) -> None:
    code, out, _ = check(capsys, write(tmp_path, model([-1, 3, 4], [-1, 12])))
    assert code == 0
    assert "flatten  Reshape, line 7  legal  f32[?, 3, 4] by [0, 12], special_zero true, declared [?, 12]" in out


def test_a_baked_in_batch_is_found_by_either_name_of_the_input(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, model([-1, 3, 4], [1, 12]), (1, 12))
    code, out, _ = check(capsys, path)
    assert (code, "legal at most for src[0] = 1" in out) == (4, True)
    for name in ("x", "input"):
        code, out, _ = check(capsys, path, "--input", f"{name}=1..8,3,4")
        assert (code, f"illegal for {name}[0] = 2..8: same-volume" in out) == (1, True)


def test_only_the_page_of_reshape_judges_it_unless_another_is_asked_for(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, model([0, 4], [0, 4], 'special_zero="false"'), (0, -1))
    assert "infer-undetermined" in check(capsys, path)[1]
    assert "illegal: zero-meets-infer" in check(capsys, path, "--document", "static-2021")[1]


def test_a_reshape_without_special_zero_is_illegal(tmp_path: Path, capsys: Captured) -> None:
    code, out, _ = check(capsys, write(tmp_path, model([2, 6], [2, 6], "")))
    assert (code, "illegal: attributes-required" in out) == (1, True)


def test_a_reshape_in_the_body_of_a_loop_is_found(tmp_path: Path, capsys: Captured) -> None:
    inner = model([2, 6], [3, 6]).split("?>")[1]
    body = inner.replace('<net name="small" version="11">', "<body>").replace("</net>", "</body>")
    text = f"""<net name="outer" version="11"><layers>
<layer id="9" name="again" type="Loop" version="opset5">{body}</layer></layers><edges/></net>"""
    code, out, _ = check(capsys, write(tmp_path, text, (3, 6)))
    assert (code, "illegal: same-volume" in out) == (1, True)


@pytest.mark.parametrize(
    ("entries", "message"),
    [(None, "model.bin: No such file"), ((0,), "model.bin: byte 8: the file ends before the 16 bytes of a shape do")],
)
def test_a_bin_file_that_is_missing_or_cut_is_named(
    tmp_path: Path, capsys: Captured, entries: tuple[int, ...] | None, message: str
) -> None:
    code, _, err = check(capsys, write(tmp_path, model([2, 6], [2, 6]), entries))
    assert (code, message in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 0: this is no XML"),
        ("<net>\n<layers>", "line 2, column 8: this is no XML"),
        ("<html/>", "line 1: this is no OpenVINO IR"),
        ('<!DOCTYPE net [<!ENTITY a "aa">]>\n<net>&a;</net>', "line 1: it declares a document type"),
        ('<!DOCTYPE net SYSTEM "file:///etc/passwd">\n<net/>', "line 1: it declares a document type"),
        (model([2, 6], [2, 6], 'special_zero="maybe"'), "line 7: special_zero is 'maybe', neither true nor false"),
        (model([2, 6], [2, 6]).replace("<dim>6</dim>", "<dim>six</dim>"), "the length 'six' is not a whole number"),
        (model([2, 6], [2, 6]).replace('offset="8"', 'offset="-8"'), "line 5: offset of a constant is '-8'"),
        (model([2, 6], [2, 6]).replace('from-layer="0"', 'from-layer="2"').replace(
            'from-port="0" to-layer="2" to-port="0"', 'from-port="2" to-layer="2" to-port="0"'), "'flatten'"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_ir_ends_with_2_and_its_line(
    tmp_path: Path, capsys: Captured, text: str, message: str
) -> None:
    code, _, err = check(capsys, write(tmp_path, text))
    assert (code, message in err) == (2, True), err


def test_a_constant_of_a_gigabyte_is_not_read(tmp_path: Path, capsys: Captured) -> None:
    code, out, _ = check(capsys, write(tmp_path, model([2, 6], [2, 6], size=1 << 30)))
    assert (code, "missing: shape[0], shape[1]" in out) == (4, True)


def test_deep_elements_end_without_a_traceback(tmp_path: Path, capsys: Captured) -> None:
    assert check(capsys, write(tmp_path, "<net><layers>" + "<layer><body>" * 20_000))[0] == 2
    deep = "<net><layers/>" + "<a>" * 20_000 + "</a>" * 20_000 + "</net>"
    assert check(capsys, write(tmp_path, deep))[0] == 0
