"""The picture in README is of the head of a report."""

import struct
from pathlib import Path

import pytest

from tests.builders import ROOT
from tools.picture import find_chromium, main, photograph


@pytest.mark.slow
def test_the_head_of_a_report_is_photographed(small_site: Path, tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="no Playwright: pip install playwright")
    if find_chromium() is None:
        pytest.skip("no Chromium: apt-get install chromium, or name one in CHROMIUM")
    photograph(small_site / "wrong-1" / "report.html", tmp_path / "report.png")
    sizes = [
        struct.unpack(">II", path.read_bytes()[16:24]) for path in (tmp_path / "report.png", ROOT / "docs/report.png")
    ]
    assert sizes[0][0] == sizes[1][0] > 800, "the picture in docs/ is as wide as one made now"
    assert sizes[0][1] > 300


def test_a_report_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["none.html"]) == 2
    assert "none.html: is no report" in capsys.readouterr().err
