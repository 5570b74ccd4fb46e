"""The collection of `pytest --adapter`: the rows that are named, and tests of the repository only if named."""

import shutil
from pathlib import Path

import pytest

from conformance.load.cases import load_suite
from conformance.plan.rows import plan_of
from tests.builders import CASES, Cli, bundled_plan, plan_of_cases, rest_exhaustive, write_suite
from tests.pytest_plugin.done import FILE, HERE, ROOT, ROW, STATIC, SUITE, Done, DoneInCopy, DoneInNewPython

BUNDLED = "cases/zero.yaml"


def one_row() -> str:
    return next(row.pytest_id for row in bundled_plan().rows if row.case.file == BUNDLED)


def node_ids(done: Done) -> list[str]:
    """The rows and tests that a session with `--collect-only -q` lists."""
    return [line for line in done.text.splitlines() if "::" in line]


@pytest.mark.slow
def test_node_ids_are_the_same_everywhere(here: Path) -> None:
    (here / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (below := here / "below").mkdir()
    ids = [node_ids(Done(cwd, BUNDLED, "--collect-only", "-q")) for cwd in (here, below)]
    assert ids[0] == ids[1] == [row.pytest_id for row in bundled_plan().rows if row.case.file == BUNDLED]


@pytest.mark.parametrize(
    ("words", "adapter", "error"),
    [
        ([f"{FILE}::meets-infr"], "reference", f"{FILE}: unknown case 'meets-infr'"),
        ([], "nowhere.at.all:Backend", "nowhere.at.all:Backend: cannot be imported"),
        ([ROW, "--operation", "StaticReshap"], "reference", "unknown operation 'StaticReshap'; did you mean 'StaticRe"),
        ([ROW, "--document", "static-2o22"], "reference", "unknown document 'static-2o22'; did you mean 'static-oneap"),
        ([ROW, "--type", "f23"], "reference", "unknown type 'f23'"),
        ([ROW, "--adapter", "numpy"], "reference", "--adapter names reference and numpy; a session"),
        (["--conformance-suite", "nowhere"], "reference", "{here}/nowhere: is not a folder; "),
        ([FILE, "-q", "-k", "a and"], "reference", "Wrong expression passed to '-k'"),
    ],
    ids=["case", "backend", "operation", "document", "type", "two adapters", "suite", "filter"],
)  # fmt: skip
def test_an_unknown_name(few: Path, words: list[str], adapter: str, error: str) -> None:
    Done(few, *SUITE, *words, adapter=adapter).expect(4, f"ERROR: {error.format(here=few)}", never="Traceback")


def test_an_adapter_that_is_named_twice(few: Path) -> None:
    Done(few, *SUITE, ROW, "--adapter", "reference").expect(4, "1 passed")


@pytest.mark.parametrize("option", ["--document=static-oneapi", "--conformance-out=out", "--large"])
def test_our_option_without_an_adapter(here: Path, option: str) -> None:
    DoneInCopy(here, option, adapter=None).expect(4, f"ERROR: {option.partition('=')[0]} needs --adapter BACKEND")


@pytest.mark.parametrize("arguments", [["-k", "no-such-word"], ["-m", "nothing"], ["--deselect", "cases"]])
def test_a_filter_that_selects_nothing(few: Path, arguments: list[str]) -> None:
    Done(few, *SUITE, FILE, "-q", *arguments).expect(5, "incomplete", never="  yes  ")


@pytest.mark.slow
def test_a_filter_in_the_environment_is_seen(few: Path, cli: Cli) -> None:
    """Its evidence holds the other rows as not run: the -k of pytest is not that of the command."""
    done = Done(few, *SUITE, *STATIC, "-q", "--conformance-out=out", PYTEST_ADDOPTS="-k ZERO")
    done.expect(4, "incomplete", "-k 'ZERO'")
    cli("verify", few / "out", "--suite", few).expect(0, out="not shown to conform: incomplete")


def test_a_rule_chooses_its_rows_by_name(few: Path) -> None:
    rule = "zero-meets-infer"
    rows = {row.pytest_id for row in plan_of_cases(few).rows if row.case.rule == rule and row.type == "f32"}
    assert any(rule not in row for row in rows)
    chosen = node_ids(Done(few, *SUITE, "--collect-only", "-q", "--type", "f32", "-k", rule))
    assert rows <= set(chosen)
    assert ROW not in chosen


PRIVATE = """\
extends: bundled
about: What we promise our customers.
cases:
  - id: our-batch-of-one
    rule: same-volume
    src: T[1, 6]
    shape: [2, 3]
    special_zero: false
    expect: T[2, 3]
"""


@pytest.fixture
def private(here: Path) -> Path:
    """A folder with cases that extend the bundled ones."""
    return write_suite(here / "private", PRIVATE)


@pytest.mark.slow
def test_private_cases_beside_the_bundled_ones(here: Path, private: Path, backend: str) -> None:
    options = ["--conformance-suite", "private", *STATIC]
    collected = Done(here, *options, "--collect-only", "-q")
    collected.says("cases/few0.yaml::our-batch-of-one[StaticReshape-f32]", one_row())
    failing = [*options, "-q", "-p", "no:cacheprovider", *HERE, "private/cases/few0.yaml"]
    done = Done(here, *failing, adapter=f"{backend}:Refuses")
    done.says("failed", f"--conformance-suite={private}", "incomplete", "the arguments name some cases")
    assert one_row() not in done.text
    again = next(line for line in done.text.splitlines() if line.startswith("      pytest ")).split("'")[1]
    (below := here / "below").mkdir()
    Done(below, "--conformance-suite", str(private), again, "-q").says("1 passed")


def test_the_argument_cases(here: Path) -> None:
    """It means all rows, and the tests in a folder of that name if there is one."""
    options = "--collect-only", "-q", *STATIC
    rows = bundled_plan().rows
    everything = {row.pytest_id for row in rows if (row.type, row.operation) == ("f32", "StaticReshape")}
    assert one_row() in everything
    everything -= {row.pytest_id for row in rows if "large" in row.facets}
    for word in ("cases", "./cases/"):
        assert set(node_ids(Done(here, word, *options))) == everything
    (here / "cases").mkdir()
    (here / "cases" / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    (here / "test_others.py").write_text("def test_others(): pass\n", encoding="utf-8")
    assert set(node_ids(Done(here, "cases", *options))) == {*everything, "cases/test_theirs.py::test_theirs"}


OURS = "private/cases/few0.yaml"
PATHS = ("private/cases", "./private/cases/", "{here}/private/cases", OURS, f"other/../{OURS}", f"{{here}}/{OURS}")
WRONG_PATHS = ("other/few0.yaml", "private/cases/others.yaml")
OFTEN = ("./private/cases/", f"other/../{OURS}", "other/few0.yaml", FILE)


@pytest.mark.parametrize("path", rest_exhaustive((*PATHS, FILE, *WRONG_PATHS), OFTEN))
def test_paths_of_private_cases(here: Path, private: Path, path: str) -> None:
    (here / "other").mkdir()
    (here / "other" / "few0.yaml").write_text(PRIVATE, encoding="utf-8")
    done = Done(here, path.format(here=here), "--conformance-suite", "private", "--type", "f32", "--collect-only", "-q")
    if path in WRONG_PATHS:
        done.expect(4)
    else:
        rows = plan_of(load_suite(private)).rows
        ours = {row.pytest_id for row in rows if row.case.id == "our-batch-of-one" and row.type == "f32"}
        assert set(node_ids(done)) == ours != set()


@pytest.mark.skipif(not (ROOT / "examples").is_dir(), reason="only a clone has the examples")
def test_a_dialect_is_judged_by_its_own_document(here: Path) -> None:
    dialect = ROOT / "examples" / "dialect"
    own = (dialect / "cases" / "acme.yaml").read_text(encoding="utf-8").replace("extends: bundled\n", "")
    suite = write_suite(here, CASES, own)
    shutil.copytree(dialect / "spec", suite / "spec")
    part = "--type", "f32", "--document", "acme-2026"
    done = Done(here, "--conformance-suite", str(suite), *part, *HERE, "-q", adapter=f"{dialect / 'acme.py'}:Acme")
    done.expect(0, "acme-2026    yes", "the whole target conforms")


def test_a_private_case_with_an_unknown_rule(here: Path, private: Path) -> None:
    write_suite(private, PRIVATE.replace("same-volume", "same-volum"))
    wrong = f"ERROR: {private}/cases/few0.yaml:5: unknown rule 'same-volum'"
    Done(here, "--conformance-suite", "private").expect(4, wrong, never="Traceback")


def test_collect_only_runs_nothing(few: Path, backend: str) -> None:
    (few / "badge.svg").write_text("of an earlier run", encoding="utf-8")
    words = FILE, "--collect-only", "-q", "--conformance-out=."
    done = Done(few, *SUITE, *HERE, *words, adapter=f"{backend}:Refuses")
    done.expect(0, ROW, never="conform to")
    assert (few / "badge.svg").is_file()
    assert "failed" not in done.text.splitlines()[-1]


def test_the_suite_runs_alone_unless_an_argument_names_tests(few: Path) -> None:
    (few / "pytest.ini").write_text("[pytest]\ntestpaths = theirs\n", encoding="utf-8")
    (few / "theirs").mkdir()
    (few / "theirs" / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    part = *STATIC, "-k", "test_theirs or zero-meets-infer"
    options = ("--conformance-suite", str(few), *part, "-v")
    alone, below = Done(few, *options), Done(few / "theirs", *options)
    named = Done(few, *options, "theirs")
    for done in (alone, below, named):
        done.expect(4, "cases/few0.yaml", "incomplete")
    assert "theirs/test_theirs.py" not in alone.text + below.text
    named.says("theirs/test_theirs.py::test_theirs")


def name_package(folder: Path, code: str = "") -> Path:
    """Give a repository a package with our name; return its file."""
    package = folder / "conformance"
    package.mkdir()
    (package / "__init__.py").write_text(f"theirs = True\n{code}", encoding="utf-8")
    return package / "__init__.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "conftest"), [("reference", "import conformance\nassert conformance.theirs\n"), ("numpy", "")]
)
def test_a_package_with_our_name(few: Path, adapter: str, conftest: str) -> None:
    name_package(few)
    (few / "conftest.py").write_text(conftest, encoding="utf-8")
    done = DoneInNewPython(few, *SUITE, FILE, "-q", *STATIC, adapter=adapter)
    done.says(" passed", f"reshape conformance of {adapter}", "as far as 20 cases of another suite go")
    assert "ERROR" not in done.text
    assert done.code == (0 if adapter == "reference" else 1)


@pytest.mark.slow
def test_tests_that_import_a_package_with_our_name(few: Path) -> None:
    place = name_package(few)
    (few / "test_theirs.py").write_text("from conformance import theirs\ndef test_theirs(): pass\n", encoding="utf-8")
    wrong = f"ERROR: {place} and the suite have the same name: run the tests test_theirs.py in another session"
    DoneInNewPython(few, *SUITE, "test_theirs.py", FILE).expect(4, wrong, never="Traceback")
    Done(few, "test_theirs.py", adapter=None).expect(0, "1 passed")


def test_a_strangers_tests_run_beside_ours(few: Path) -> None:
    (few / "conformance").mkdir()
    (few / "conformance" / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    Done(few, *SUITE, ".", ROW).says("2 passed")


def test_their_file_that_cannot_be_imported(few: Path, backend: str) -> None:
    (few / "test_theirs.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    done = Done(few, *SUITE, *HERE, ".", ROW, adapter=f"{backend}:Refuses")
    done.expect(2, "1 error during collection", "not run", never="a legal call")


@pytest.mark.parametrize(
    "body",
    [
        "    items[:] = []\n",
        "    import pytest\n    [item.add_marker(pytest.mark.skip(reason='later')) for item in items]\n",
        "    import pytest\n    [item.add_marker(pytest.mark.xfail(run=False)) for item in items]\n",
    ],
)
def test_rows_that_a_conftest_removes(few: Path, body: str) -> None:
    (few / "conftest.py").write_text(f"def pytest_collection_modifyitems(items):\n{body}", encoding="utf-8")
    done = Done(few, *SUITE, FILE, "-q", *STATIC)
    done.expect(done.code, "incomplete", never="  yes  ")
    assert done.code in (4, 5)


def test_an_expected_failure_is_a_failure(few: Path, backend: str) -> None:
    marks = "    import pytest\n    [item.add_marker(pytest.mark.xfail) for item in items]\n"
    (few / "conftest.py").write_text(f"def pytest_collection_modifyitems(items):\n{marks}", encoding="utf-8")
    done = Done(few, *SUITE, *HERE, FILE, "-q", *STATIC, adapter=f"{backend}:Refuses")
    done.expect(1, "xfailed", "static-oneapi      no  ")
    assert " failed" not in done.text.splitlines()[-1]
