"""The suite under pytest, in other repositories, with backends that misbehave, and with other plugins."""

import json
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from conformance.adapter import load_adapter
from conformance.evidence.results import read
from conformance.run.row import run_rows

from ..builders import FULL_DISK, plan_of_cases, some_slow
from .done import FILE, HERE, NO_REPORTS, ROW, STATIC, SUITE, Done

NAME = ROW.partition("[")[0]


def test_a_planted_backend_that_escapes(few: Path) -> None:
    text = "from conformance.runner import planted_backends\nplanted_backends._run_planted_backend = lambda *_: 0\n"
    (few / "conftest.py").write_text(text, encoding="utf-8")
    words = "1 passed", "AcceptsEverything", "no verdict of this run is reliable"
    Done(few, *SUITE, ROW).expect(5, *words, never="  yes  ")


def test_a_failure_tells_all_and_how_to_repeat_it(few: Path, backend: str) -> None:
    words = (FILE, "-x", "-p", "no:cacheprovider", "--document", "static-graph-v0.9")
    done = Done(few, *SUITE, *HERE, *words, adapter=f"{backend}:Refuses")
    done.expect(1, "rule  ", "case  ", "call  ", "want  ", "got  ", "verdict  ", "diagnosis  ", never="Traceback")
    done.says("rejects a legal call", "line", "--maxfail 1", "\\x1b[31m way", "--document static-graph-v0.9 ")
    assert "plugin.py" not in done.text
    again = next(line for line in done.text.splitlines() if line.startswith("repeat")).split("'")[1]
    Done(few, *SUITE, *HERE, again, adapter=f"{backend}:Refuses").says("1 failed")


@pytest.mark.parametrize(("name", "where"), [("Errs", HERE), ("Exits", ())])
def test_an_error_of_the_adapter_is_no_refusal(few: Path, backend: str, name: str, where: tuple[str, ...]) -> None:
    Done(few, *SUITE, *where, ROW, adapter=f"{backend}:{name}").expect(1, "adapter error", "1 failed")


def test_a_backend_without_claims(few: Path, backend: str) -> None:
    part = "--document", "static-oneapi", "--type", "f32"
    done = Done(few, *SUITE, *HERE, "-q", "-rs", *part, adapter=f"{backend}:Abstains")
    done.expect(4, "skipped", "not claimed: StaticReshape", "incomplete")


def test_last_failed_runs_the_failures(few: Path, backend: str) -> None:
    Done(few, *SUITE, *HERE, NAME, "-x", "-q", adapter=f"{backend}:Refuses").expect(1)
    Done(few, *SUITE, *HERE, NAME, "--lf", "-q", adapter=f"{backend}:Refuses").says("1 failed", "deselected")
    done = Done(few, *SUITE, *HERE, NAME, "--stepwise", "-q", adapter=f"{backend}:Refuses")
    done.expect(2, "not run (the arguments name some cases, --stepwise)")


AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            report.outcome = 'rerun' if report.failed else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


@pytest.mark.parametrize("refused", ["1", "2"])
def test_the_bad_one_of_several_runs_counts(few: Path, backend: str, refused: str) -> None:
    (few / "conftest.py").write_text(AGAIN, encoding="utf-8")
    done = Done(few, *SUITE, *HERE, ROW, "-q", adapter=f"{backend}:Wavers", REFUSED=refused)
    done.expect(1, "1 passed", "1 rerun", "  no  ")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
@pytest.mark.parametrize("where", some_slow(("the folder", "an option"), ("an option",)))
def test_a_name_that_the_locale_cannot_decode(here: Path, where: str) -> None:
    pytest.importorskip("xdist")
    (here / "\u00e9").mkdir()
    words = ("--conformance-out", "\u00e9/out") if where == "an option" else ()
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = Done(here if words else here / "\u00e9", "-n", "2", "--type", "f32", *words, **ascii_only)
    done.expect(4, "is no text in this locale: set PYTHONUTF8=1, or run without -n", never="Traceback")


UNWRITTEN: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    # what is not written: (a conftest.py, the exit code, words of the output, what is never said)
    "a folder": (
        "open('made', 'w').close()\n", 4, ("made/out: Not a directory",),
        "the whole target conforms"),
    "a report": (
        "from conformance.report import junit\njunit.render = None\n", 0,
        ("junit.xml is not written: the suite failed with TypeError: 'NoneType' object is not callable",
         "results: made/out/results.jsonl"), "Traceback"),
    "the evidence at the end": (
        "import os\ndef pytest_sessionfinish():\n    os.makedirs('made/out/results.jsonl/x')\n", 5,
        ("was changed while the run wrote it", "not shown: what was asked for as evidence was not written"),
        "the whole target conforms"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNWRITTEN)
def test_what_cannot_be_written_is_told(few: Path, what: str) -> None:
    """A report costs no verdict."""
    conftest, code, words, never = UNWRITTEN[what]
    (few / "conftest.py").write_text(conftest, encoding="utf-8")
    part = (*STATIC, "-k", "StaticReshape")  # -k leaves nothing out
    Done(few, *SUITE, "-q", *part, "--conformance-out=made/out").expect(code, *words, never=never)
    assert (few / "made" / "out" / "report.html").is_file() == (what == "a report")


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of a file")
def test_a_full_disk(few: Path) -> None:
    """It is one line that names the file, even if warnings are errors."""
    (few / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    (few / "conftest.py").write_text(FULL_DISK, encoding="utf-8")
    done = Done(few, *SUITE, "-q", *STATIC, "-p", "no:cacheprovider", "--conformance-out=out")
    done.expect(4, "/out/results.jsonl.part: File too large\nnot shown: ", never="Traceback")
    assert (few / "out" / "results.jsonl.part").is_file()


CUT_SHORT: dict[str, tuple[str, str, int, str]] = {
    # what happens after the last row: (what does it, the exception, the exit code, the last line)
    "no process for drawn rows": ("DrawnRun.run", "CannotStart('no device')", 4, "not shown: "),
    "no more files": ("planted_backends.run_all", "OSError(24, 'Too many open files')", 5, "our own planted fault"),
    "an interrupt": ("DrawnRun.run", "KeyboardInterrupt", 4, "not shown: "),
}


@pytest.mark.parametrize("what", CUT_SHORT)
def test_a_session_that_is_cut_short_after_its_rows(few: Path, what: str) -> None:
    """Their results stay."""
    where, error, code, last = CUT_SHORT[what]
    text = f"""from conformance.adapter import CannotStart
from conformance.pytest_plugin import conclusion
def fail(*_):
    raise {error}
conclusion.{where} = fail
"""
    (few / "conftest.py").write_text(NO_REPORTS + text, encoding="utf-8")
    done = Done(few, *SUITE, *HERE, "-q", "--drawn-rows", "9", "--conformance-out", "out")
    done.expect(code, "note: what a session calls after its rows was cut short: ", f"\n{last}", never="Traceback")
    evidence = read(few / "out" / "results.jsonl")
    assert {verdict for result in evidence.results for verdict in result.verdicts.values()} <= {"pass", "observed"}


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limits")
def test_what_ends_a_session_is_told(few: Path) -> None:
    text = "from resource import *\nmost = getrlimit(RLIMIT_NOFILE)[1]\n"
    text += "def pytest_runtest_teardown():\n    setrlimit(RLIMIT_NOFILE, (most - 1, most))\n"
    (few / "conftest.py").write_text(text, encoding="utf-8")
    done = Done(few, *SUITE, *STATIC, "-q", "--conformance-isolation", "row")
    done.expect(2, "Terminated: somebody changed the limits of this process", never="Traceback")


LISTENERS = {
    "nobody": "",
    "the protocol": "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_protocol(item):\n    yield\n",
    "the report": "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item):\n    SEEN.append(item)\n"
    "    yield\n\ndef pytest_unconfigure():\n    print(f'{len(SEEN)} seen')\n",
    "the setup": "def pytest_runtest_setup(item):\n    SEEN.append(item)\n\n"
    "def pytest_unconfigure():\n    print(f'{len(SEEN)} seen')\n",
}


@pytest.mark.parametrize("listens", LISTENERS)
def test_hooks_that_listen_change_no_verdict(few: Path, backend: str, listens: str) -> None:
    (few / "conftest.py").write_text(f"{NO_REPORTS}import pytest\nSEEN = []\n{LISTENERS[listens]}", encoding="utf-8")
    (few / "test_theirs.py").write_text("def test_theirs():\n    pass\n", encoding="utf-8")
    rows = [row for row in plan_of_cases(few).rows if (row.type, row.operation) == ("f32", "StaticReshape")]
    words = (".", FILE, "-q", *STATIC, "--tb=no", "--conformance-out=out")
    done = Done(few, *SUITE, *HERE, *words, adapter=f"{backend}:Refuses")
    wanted = {result.row: dict(result.verdicts) for result in run_rows(rows, load_adapter(f"{backend}:Refuses"))}
    got = {result.row: dict(result.verdicts) for result in read(few / "out" / "results.jsonl").results}
    assert {row: got[row] for row in wanted} == wanted
    bad = sum(not {"fail", "error"}.isdisjoint(verdicts.values()) for verdicts in wanted.values())
    skipped = sum(row.case.id == "without-special-zero" for row in rows)  # it does not claim these
    done.says(f"{bad} failed, {len(rows) - bad - skipped + 1} passed, {skipped} skipped")
    if listens == "the setup":
        done.says(f"{len(rows) + 1} seen")
    elif listens == "the report":
        done.says(f"{3 * (len(rows) + 1)} seen")


def test_warnings_of_a_call_are_in_the_summary(few: Path) -> None:
    (few / "conftest.py").write_text(
        "import warnings\nfrom conformance.adapters.reference import Reference as N\n\n"
        "before = N.compile\n\n"
        "def compile(self, graph):\n    warnings.warn('have a care')\n    print('babble')\n"
        "    return before(self, graph)\n\nN.compile = compile\n",
        encoding="utf-8",
    )
    done = Done(few, *SUITE, NAME, "-q", "-W", "error")
    rows = [row for row in plan_of_cases(few).rows if row.pytest_id.startswith(f"{NAME}[")]
    done.says("have a care", f"{FILE}: {len(rows)} warnings", f"{len(rows)} passed")
    assert not {"babble", "lying"} & set(done.text.replace(":", " ").split())
    Done(few, *SUITE, NAME, "-q", "-s").says("babble")


@pytest.mark.parametrize(
    ("name", "where", "words"),
    [("Dies", (), ("alone in a fresh process)", "1 failed, 2 passed")), ("Leaves", HERE, ("3 passed",))],
)
def test_rows_and_tests_keep_their_folder(
    few: Path, backend: str, name: str, where: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """Each begins where the session began: the test of the repository, which runs before and after the row, too."""
    again = "def pytest_collection_modifyitems(items):\n    items += items[:1]\n"
    (few / "conftest.py").write_text(again, encoding="utf-8")
    text = "import os\ndef test_theirs():\n    assert os.getcwd() == FOLDER\n    os.chdir('/')\n"
    (few / "test_theirs.py").write_text(text.replace("FOLDER", repr(str(few.resolve()))), encoding="utf-8")
    Done(few, *SUITE, *where, "-q", "test_theirs.py", ROW, adapter=f"../{Path(backend).name}:{name}").says(*words)


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_a_fork_of_the_backend_goes_on_with_no_session(few: Path, backend: str) -> None:
    done = Done(few, *SUITE, *HERE, ROW, adapter=f"{backend}:Forks").expect(4, "1 passed")
    assert done.text.count("  conforms to  ") == 1


@pytest.mark.parametrize("jobs", [pytest.param("1"), pytest.param("2", marks=pytest.mark.slow)])
def test_a_conftest_that_leaves_the_folder(few: Path, backend: str, jobs: str) -> None:
    """Paths begin where pytest was called, and a test of the repository where its conftest has left pytest."""
    (few / "theirs").mkdir()
    (few / "conftest.py").write_text(f"{NO_REPORTS}import os\nos.chdir('theirs')\n", encoding="utf-8")
    text = "import os\ndef test_theirs():\n    assert os.path.basename(os.getcwd()) == 'theirs'\n"
    (few / "test_theirs.py").write_text(text, encoding="utf-8")
    after = "def pytest_collection_modifyitems(items):\n    items += items[:1]\n"
    (few / "theirs" / "after.py").write_text(after, encoding="utf-8")
    words = *SUITE, "-q", "-p", "theirs.after", "test_theirs.py", ROW, "--conformance-jobs", jobs
    done = Done(few, *words, "--conformance-out", "out", adapter=f"../{Path(backend).name}:Refuses")
    done.says("1 failed, 2 passed", "rejects a legal call")
    assert (few / "out" / "results.jsonl").is_file()


FAKE = """import json
import types
import allure
PHASES, PARAMETERS = {}, {}
def pytest_addoption(parser):
    parser.addoption('--fake', dest='DEST')
def pytest_runtest_logstart(nodeid):
    allure.dynamic = types.SimpleNamespace(parameter=PARAMETERS.setdefault(nodeid, {}).__setitem__)
def pytest_runtest_logreport(report):
    PHASES.setdefault(report.nodeid, []).append(report.when)
def pytest_unconfigure():
    with open('seen.json', 'w') as file:
        json.dump([PHASES, PARAMETERS], file)
"""


@pytest.mark.skipif(find_spec("allure_pytest") is not None, reason="allure-pytest is installed")
@pytest.mark.parametrize("destination", ["htmlpath", "allure_report_dir"])
def test_each_row_has_reports_and_allure_parameters(few: Path, destination: str) -> None:
    """A fake has their interface: the options of the two plugins, the reports they wait for, and `allure.dynamic`."""
    (few / "allure.py").write_text("", encoding="utf-8")
    (few / "conftest.py").write_text(FAKE.replace("DEST", destination), encoding="utf-8")
    Done(few, "-q", *SUITE, "--type", "f32", "--operation", "Reshape-1", "--fake", "here").expect(0, " passed")
    phases, parameters = json.loads((few / "seen.json").read_text(encoding="utf-8"))
    assert len(phases) > 50
    assert {tuple(of_row) for of_row in phases.values()} == {("setup", "call", "teardown")}
    if destination == "allure_report_dir":
        ids = Counter((name.partition("[")[0], *sorted(of_row.items())) for name, of_row in parameters.items())
        assert set(ids.values()) == {1}
        assert all(of_row.keys() == {"operation", "type", "shape"} for of_row in parameters.values())


@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["Differs", "DiffersInClaims"])
def test_workers_that_differ(few: Path, backend: str, name: str) -> None:
    words = () if name == "DiffersInClaims" else ("runs differs gw", "and this process differs main")
    done = Done(few, *SUITE, ROW, "-n", "1", *STATIC, "--conformance-out=out", adapter=f"{backend}:{name}")
    done.expect(4, "ERROR: gw", "give all workers", *words, never="conforms")
    assert not (few / "out").exists()


@pytest.mark.slow
def test_a_failure_in_an_unlisted_type_counts_nowhere(few: Path, backend: str) -> None:
    case = "{id: double, rule: types-listed, src: 'f64[2, 3]', shape: [6], special_zero: false, expect: unspecified}"
    text = f"about: x.\ncases:\n  - {case}\n"
    (few / "cases" / "more.yaml").write_text(text, encoding="utf-8")
    words = ("-q", "-rs", "--operation", "StaticReshape", "--conformance-out=out")
    done = Done(few, *SUITE, *words, adapter=f"{backend}:ExitsOnDoubles")
    done.expect(0, "not counted, as no document lists f64: crash", "the whole target conforms")
    assert 'failures="0"' in (few / "out" / "junit.xml").read_text(encoding="utf-8")
