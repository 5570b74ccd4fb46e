"""The scripts of docs/upstream.md print what the page says, with the libraries that are installed."""

import re
import subprocess
import sys

import pytest

from tests.builders import ROOT

PAGE = ROOT / "docs" / "upstream.md"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PAGE.is_file(), reason="docs/ stays in the clone")]


@pytest.mark.parametrize("library", ["openvino", "onnxruntime"])
def test_a_script_prints_what_the_page_says(library: str) -> None:
    pytest.importorskip(library)
    pairs = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    ((script, printed),) = [pair for pair in pairs if f"import {library}" in pair[0]]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == printed
