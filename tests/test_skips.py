"""The line at the end of a session about tests that were skipped for want of libraries."""

from tests.conftest import describe_skips


def test_libraries_are_counted_and_said_how_to_get() -> None:
    line = describe_skips(
        [
            "Skipped: torch: cannot be imported: No module named 'torch'; pip install torch==2.13.0",
            "Skipped: torch-raw: cannot be imported: No module named 'torch'; pip install torch==2.13.0",
            "Skipped: could not import 'onnx': No module named 'onnx'",
            "Skipped: onednn: cannot be loaded: libdnnl.so.3: no such file; set ONEDNN_LIBRARY, or pip install onednn",
            "Skipped: no zsh here",
        ]
    )
    assert line is not None
    assert line.startswith("4 tests skipped without a library (libdnnl 1, onnx 1, torch 2): ")
    assert "pip install onednn onnx torch==2.13.0; " in line


def test_without_such_a_skip_nothing_is_said() -> None:
    assert describe_skips(["Skipped: no zsh here"]) is None
