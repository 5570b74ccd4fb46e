"""The pages of a whole run."""

import shutil
from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.evidence.folder import PAGE, RESULTS
from conformance.evidence.results import read
from conformance.plan.rows import Plan
from conformance.report import report_page
from conformance.report.judged_run import conclude_run

from ..builders import Wrong, bundled_plan, make_once, report_run, write_comparison


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of all cases on a backend that fails much, and a page that compares it eight times."""

    def make(out: Path) -> None:
        command = ["run", "conformance.adapters.planted:AcceptsEverything", "--drawn-rows", "0"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("conformance.report.write", lambda *_: ())
            main([*command, "--isolation", "none", "--out", str(out)])
        run = conclude_run(bundled_plan(), read(out / RESULTS))
        (out / PAGE).write_text(report_page.render(run), encoding="utf-8")
        write_comparison([run] * 8, out)

    return make_once(tmp_path_factory, "whole", make)


@pytest.fixture(scope="session")
def wrong(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the four cases that fails, and its reports."""
    report_run(plan, Wrong(), folder := tmp_path_factory.mktemp("wrong"))
    return folder


@pytest.fixture
def folder(wrong: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(wrong, tmp_path, dirs_exist_ok=True)
