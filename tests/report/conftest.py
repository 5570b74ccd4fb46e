"""The pages of a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cli.main import main


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the whole suite on a backend that fails much, and a page that compares it eight times."""
    out = tmp_path_factory.mktemp("whole")
    main(["run", "conformance.adapters.broken:AcceptsEverything", "--isolation", "none", "--out", str(out)])
    main(["compare", *[str(out)] * 8, "--out", str(out / "compare.html")])
    return out
