"""A library does here what its published evidence says: a change of the suite that misses a known fault is noticed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.evidence.folder import find_published_results, find_results, name_of_folder
from conformance.evidence.results import read, read_content
from conformance.system.exit_codes import CANNOT_START
from conformance.verdict.conclude import conclude_evidence
from conformance.verdict.drawn_rows import draw_called_rows
from tests.builders import REPORTS, bundled_plan

BACKENDS = (
    "numpy",
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("onednn", "onnxruntime", "openvino", "torch")),
)


only_in_a_clone = pytest.mark.skipif(not (REPORTS / "register.json").is_file(), reason="only a clone has reports/")


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
def test_the_quick_rows_come_to_what_is_published(name: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "conformance", "run", name, "--quick", "--drawn-rows", "0", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == CANNOT_START:
        pytest.skip(done.stderr.strip())
    here = read(tmp_path / "results.jsonl")
    backend = here.header["backend"]
    path = find_published_results(REPORTS / name_of_folder(backend["name"], backend["version"]))
    known = read(path) if path else None
    if known is None or known.header["backend"] != backend:
        pytest.skip(f"no results of this {name} on such a processor are published")
    rows = {result.row: (result.verdicts, result.diagnosis) for result in known.results}
    assert {result.row: (result.verdicts, result.diagnosis) for result in here.results if result.row in rows} == {
        result.row: rows[result.row] for result in here.results if result.row in rows
    }


@pytest.mark.slow
@only_in_a_clone
def test_failures_that_count_for_no_document_have_a_cause() -> None:
    evidence = read(next(iter(find_results(next(REPORTS.glob("openvino-2*"))))))
    of_f64 = {each.row for each in evidence.results if each.is_failure and "-f64]" in each.row}
    causes = conclude_evidence(bundled_plan(), evidence).causes
    assert {causes[row].fault.id for row in of_f64} == {"openvino-narrows-wide-types"}


@pytest.mark.slow
@pytest.mark.exhaustive
@only_in_a_clone
def test_the_drawn_rows_of_a_run_are_known_to_later_suites() -> None:
    """Also of a library that claims few ranks: it is not asked what shows nothing more, which each suite decides.

    CI compares the drawn rows of a backend that claims everything with those that are locked.
    """
    evidence = read(next(iter(find_results(next(REPORTS.glob("warp-*"))))))
    assert len(draw_called_rows(bundled_plan(), evidence)) == evidence.drawn.called


@only_in_a_clone
def test_no_published_certificate_is_refused() -> None:
    """A page that is older than the list of faults, for example, would void its certificate."""
    entries = json.loads((REPORTS / "register.json").read_text(encoding="utf-8"))
    assert {entry["folder"]: entry["why"] for entry in entries if entry["level"] is None} == {}


@pytest.mark.slow
@only_in_a_clone
def test_nothing_published_names_a_folder_of_a_machine() -> None:
    """A library's message may, such as the stack of an error of Rust."""
    files = [path for pattern in ("*/*.html", "*/*.xz", "*/*.json") for path in REPORTS.glob(pattern)]
    assert [path for path in files if re.search(rb"/(tmp|root|home)/", read_content(path))] == []
