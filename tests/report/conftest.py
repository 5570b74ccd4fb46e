"""The pages of a whole run."""

from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.evidence.folder import RESULTS
from conformance.evidence.results import read
from conformance.report.finished_run import FinishedRun
from conformance.site import compare_page
from conformance.verdict.conclude import conclude_evidence

from ..builders import bundled_plan


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the whole suite on a backend that fails much, and a page that compares it eight times."""
    out = tmp_path_factory.mktemp("whole")
    main(["run", "conformance.adapters.broken:AcceptsEverything", "--isolation", "none", "--out", str(out)])
    plan, evidence = bundled_plan(), read(out / RESULTS)
    run = FinishedRun(plan, evidence, conclude_evidence(plan, evidence))
    (out / "compare.html").write_text(compare_page.render([run] * 8), encoding="utf-8")
    return out
