"""TFLite models: flatbuffers that are written here by hand."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .files import check

Captured = pytest.CaptureFixture[str]


def append(buffer: bytearray, value: Any) -> int:
    """Append a table (a mapping from field numbers), a list or bytes to a flatbuffer; return where it lies."""
    buffer += bytes(-len(buffer) % 4)
    if isinstance(value, bytes):
        at = len(buffer)
        buffer += struct.pack("<I", len(value)) + value + b"\0"
        return at
    if isinstance(value, Mapping):
        fields = [value.get(number) for number in range(max(value, default=-1) + 1)]
        offsets = [0 if each is None else 4 + 4 * k for k, each in enumerate(fields)]
        vtable = len(buffer)
        buffer += struct.pack(f"<HH{len(fields)}H", 4 + 2 * len(fields), 4 + 4 * len(fields), *offsets)
        buffer += bytes(-len(buffer) % 4)
        at = len(buffer)
        buffer += struct.pack("<i", at - vtable)
    else:
        fields, at = list(value), len(buffer)
        buffer += struct.pack("<I", len(fields))
    first = len(buffer)
    buffer += b"".join(struct.pack("<i", each if isinstance(each, int) else 0) for each in fields)
    for k, each in enumerate(fields):
        if each is not None and not isinstance(each, int):
            place = append(buffer, each)
            struct.pack_into("<I", buffer, first + 4 * k, place - first - 4 * k)
    return at


def tensor(name: str, dims: Sequence[int], type_: int = 0, buffer: int = 0, signature: Sequence[int] = ()) -> Any:
    return {0: list(dims), 1: type_, 2: buffer, 3: name.encode(), **({7: list(signature)} if signature else {})}


def model(operators: Sequence[Any], shape: Sequence[int] = (1, 12), batch: int = 1) -> bytes:
    """`x` → `relu` → `flat`, with the constant `shape`."""
    tensors = [
        tensor("x", [1, 3, 4], signature=[batch, 3, 4]), tensor("relu", [1, 3, 4], signature=[batch, 3, 4]),
        tensor("shape", [len(shape)], 2, 1), tensor("flat", [1, 12], signature=[batch, 12]),
    ]  # fmt: skip
    graph = {0: tensors, 1: [0], 2: [3], 3: list(operators)}
    codes = [{0: 22, 3: 22}, {0: 19, 3: 19}]
    buffers = [{}, {0: struct.pack(f"<{len(shape)}i", *shape)}]
    buffer = bytearray(b"\0\0\0\0TFL3")
    struct.pack_into("<I", buffer, 0, append(buffer, {0: 3, 1: codes, 2: [graph], 4: buffers}))
    return bytes(buffer)


def reshape(*inputs: int, options: Sequence[int] | None = None) -> dict[int, Any]:
    return {0: 0, 1: list(inputs), 2: [3], **({3: 17, 4: {0: list(options)}} if options is not None else {})}


RELU = {0: 1, 1: [0], 2: [1]}


def write(folder: Path, content: bytes) -> Path:
    (folder / "model.tflite").write_bytes(content)
    return folder / "model.tflite"


def test_a_reshape_takes_its_shape_from_a_constant(tmp_path: Path, capsys: Captured) -> None:
    code, out, _ = check(capsys, write(tmp_path, model([RELU, reshape(1, 2)])))
    assert code == 0
    assert "flat  RESHAPE, operator 1 of subgraph 0  legal  f32[1, 3, 4] by [1, 12], special_zero false" in out


def test_a_reshape_takes_its_shape_from_its_options(tmp_path: Path, capsys: Captured) -> None:
    code, out, _ = check(capsys, write(tmp_path, model([reshape(0, options=[7])])))
    assert (code, "illegal: same-volume" in out) == (1, True)


def test_a_signature_leaves_the_batch_open_and_an_input_binds_it(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, model([reshape(0, 2)], batch=-1))
    code, out, _ = check(capsys, path)
    assert (code, "legal at most for src[0] = 1" in out) == (4, True)
    code, out, _ = check(capsys, path, "--input", "x=1..8,3,4")
    assert (code, "illegal for x[0] = 2..8: same-volume" in out) == (1, True)
    assert check(capsys, write(tmp_path, model([reshape(0, 2)], (-1, 12), -1)))[0] == 0


def test_damaged_bytes_end_without_a_traceback(tmp_path: Path, capsys: Captured) -> None:
    whole = model([RELU, reshape(1, 2)])
    for length in range(0, len(whole), 41):
        assert check(capsys, write(tmp_path, whole[:length]))[0] in (0, 2, 4)
    for at in range(8, len(whole), 29):
        for value in (0xFF, 0x7F, 0):
            changed = whole[:at] + bytes([value]) + whole[at + 1 :]
            assert check(capsys, write(tmp_path, changed))[0] in (0, 1, 2, 4)


def test_a_list_that_is_longer_than_the_file_names_its_byte(tmp_path: Path, capsys: Captured) -> None:
    content = b"\x0c\0\0\0TFL3" + b"\x08\0\x08\0" + struct.pack("<i", 4) + b"\0" * 8
    code, _, err = check(capsys, write(tmp_path, content))
    assert (code, "model.tflite: " in err) == (0, False)  # a model without anything
    content = model([RELU]).replace(struct.pack("<I3i", 3, 1, 3, 4), struct.pack("<I3i", 1 << 30, 1, 3, 4))
    code, _, err = check(capsys, write(tmp_path, content))
    assert (code, "the model is damaged: a list of 1,073,741,824 elements does not fit the file" in err) == (2, True)
    code, _, err = check(capsys, write(tmp_path, b"not a model"))
    assert (code, "byte 4: this is no TFLite model" in err) == (2, True)
