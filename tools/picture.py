"""`python -m tools.picture [REPORT]`: photograph the head of a report for README, as docs/report.png.

Without REPORT it runs the suite on NumPy first, which takes some minutes. It needs Playwright and Pillow
(`pip install playwright pillow`) and a Chromium, which CHROMIUM may name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
PICTURE = _ROOT / "docs" / "report.png"
_OUT = _ROOT / "build" / "picture"
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""The first has no windows, and takes a third of the time of the others."""
_WIDTH, _MARGIN = 1000, 20
"""In pixels."""


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def photograph(report: Path, picture: Path) -> None:
    """Write a picture of the head of a report."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _WIDTH, "height": 800}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        box = page.locator("header").bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
        top = max(0, box["y"] - _MARGIN)
        height = box["y"] + box["height"] + _MARGIN - top
        page.screenshot(path=picture, full_page=True, clip={"x": 0, "y": top, "width": _WIDTH, "height": height})
        browser.close()


def main(arguments: Sequence[str]) -> int:
    if arguments:
        report = Path(arguments[0])
    else:
        report = _OUT / "report.html"
        subprocess.run([sys.executable, "-m", "conformance", "run", "numpy", "--out", str(_OUT)], check=False)
    if not report.is_file():
        print(f"{report}: is no report; name the report.html of a run", file=sys.stderr)
        return 2
    photograph(report, PICTURE)
    from PIL import Image

    with Image.open(PICTURE) as picture:
        picture.quantize(16, dither=Image.Dither.NONE).save(PICTURE, optimize=True)  # a fifth of the size
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
