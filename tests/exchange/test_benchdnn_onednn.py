"""`conformance export benchdnn` writes the same as oneDNN itself dumps for these rows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.backends import load_or_skip
from tests.builders import ROOT, Cli


def read(path: Path) -> Any:
    """A graph without the version of the library that dumped it."""
    return {**json.loads(path.read_text(encoding="utf-8")), "version": None}


@pytest.mark.slow
def test_every_exported_graph_is_what_the_library_dumps(cli: Cli, tmp_path: Path) -> None:
    load_or_skip("onednn")
    exported, dumped = tmp_path / "exported", tmp_path / "dumped"
    cli("export", "benchdnn", "--out", exported).expect(0)
    dumped.mkdir()
    environment = os.environ | {"ONEDNN_GRAPH_DUMP": "graph", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.exchange.dump_graphs"]
    subprocess.run(command, cwd=dumped, env=environment, check=True, timeout=900, stdout=subprocess.DEVNULL)
    pairs = [(path, dumped / "kept" / path.name) for path in sorted(exported.iterdir())]
    if not any(dump.exists() for _, dump in pairs):
        pytest.skip(
            "this build of oneDNN dumps no graphs (ONEDNN_ENABLE_GRAPH_DUMP is off); that of the wheel onednn does"
        )
    assert [path.name for path, dump in pairs if not dump.exists()] == []
    assert [path.name for path, dump in pairs if read(path) != read(dump)] == []
