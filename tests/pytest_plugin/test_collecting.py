"""What `pytest --adapter` collects: the rows that are named, and nothing of a stranger's repository unasked."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.plan.rows import plan_of
from tests.builders import CASES, plan_of_cases, some_slow, write_cases
from tests.pytest_plugin.done import FEW, FILE, HERE, ROOT, ROW, STATIC, Done, DoneAnew, DoneInCopy

BUNDLED = "cases/zero.yaml"


def one_row() -> str:
    return next(row.node_id for row in plan_of(load_suite()).rows if row.case.file == BUNDLED)


# ── choosing ──────────────────────────────────────────────────────────────────────────────────────
def test_one_row_is_named_from_any_directory_and_shows_too_little_to_conform(here: Path) -> None:
    name = one_row()
    done = Done(here, name, "-v")
    done.expect(4, "1 passed", name, "incomplete", "the arguments name some cases", never="conforms to")


def test_node_ids_are_the_same_everywhere(here: Path) -> None:
    (here / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    below = here / "below"
    below.mkdir()
    lists = [
        [line for line in Done(cwd, BUNDLED, "--collect-only", "-q").text.splitlines() if "::" in line]
        for cwd in (here, below)
    ]
    assert lists[0] == lists[1] == [row.node_id for row in plan_of(load_suite()).rows if row.case.file == BUNDLED]


def test_an_unknown_case_and_an_unknown_backend_are_one_line_each(few: Path) -> None:
    unknown = Done(few, *FEW, f"{FILE}::meets-infr")
    unknown.says(f"ERROR: {FILE}: unknown case 'meets-infr'")
    missing = Done(few, *FEW, adapter="nowhere.at.all:Backend")
    missing.says("ERROR: nowhere.at.all:Backend: cannot be imported")
    for done in (unknown, missing):
        assert done.code == 4
        assert "Traceback" not in done.text


@pytest.mark.parametrize("option", ["--document=static-oneapi", "--conformance-out=out", "--large"])
def test_an_option_of_ours_without_an_adapter_is_an_error(here: Path, option: str) -> None:
    DoneInCopy(here, option, adapter=None).expect(4, f"ERROR: {option.partition('=')[0]} needs --adapter BACKEND")


def test_two_adapters_are_an_error_and_one_named_twice_is_not(few: Path) -> None:
    Done(few, *FEW, ROW, "--adapter", "numpy").expect(4, "ERROR: --adapter names reference and numpy; a session")
    Done(few, *FEW, ROW, "--adapter", "reference").expect(4, "1 passed")


@pytest.mark.parametrize(
    ("option", "name", "meant"),
    [
        ("--operation", "StaticReshap", "operation 'StaticReshap'; did you mean 'StaticReshape'"),
        ("--document", "static-2o22", "document 'static-2o22'; did you mean 'static-oneapi'"),
        ("--type", "f23", "type 'f23'"),
    ],
)
def test_an_operation_a_document_or_a_type_that_there_is_not_is_one_line(
    few: Path, option: str, name: str, meant: str
) -> None:
    Done(few, *FEW, ROW, option, name).expect(4, f"ERROR: unknown {meant}", never="Traceback")


@pytest.mark.parametrize("arguments", [["-k", "no-such-word"], ["-m", "nothing"], ["--deselect", "cases"]])
def test_what_selects_nothing_shows_nothing(few: Path, arguments: list[str]) -> None:
    Done(few, *FEW, FILE, "-q", *arguments).expect(5, "incomplete", never="conforms to")


def test_a_filter_in_the_environment_is_seen(few: Path) -> None:
    Done(few, *FEW, "-q", "--conformance-out=out", PYTEST_ADDOPTS="-k copies").expect(4, "incomplete", "-k 'copies'")
    assert read(few / "out" / "results.jsonl").header["target"]["select"] == "copies"


def test_a_rule_chooses_its_rows_by_name(few: Path) -> None:
    rule = "zero-meets-infer"
    rows = {row.node_id for row in plan_of_cases(few).rows if row.case.rule == rule and row.type == "f32"}
    assert any(rule not in row for row in rows)
    listed = Done(few, *FEW, "--collect-only", "-q", "--type", "f32", "-k", rule).text.splitlines()
    assert rows <= set(listed)
    assert ROW not in listed


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
    """A folder of vectors that stand beside the bundled ones."""
    folder = here / "private"
    folder.mkdir()
    (folder / "ours.yaml").write_text(PRIVATE, encoding="utf-8")
    return folder


def test_private_vectors_run_beside_the_bundled_ones_and_a_failure_names_their_folder(
    here: Path, private: Path, backend: str
) -> None:
    options = ["--conformance-cases", "private", *STATIC]
    listed = Done(here, *options, "--collect-only", "-q")
    listed.says("private/ours.yaml::our-batch-of-one[StaticReshape-f32]", one_row())
    options += ["-q", "-p", "no:cacheprovider", *HERE]
    done = Done(here, *options, "private/ours.yaml", adapter=f"{backend}:Refuses")
    done.says("failed", f"--conformance-cases {private}", "incomplete", "the arguments name some cases")
    assert one_row() not in done.text
    again = next(line for line in done.text.splitlines() if line.startswith("      pytest ")).split("'")[1]
    (below := here / "below").mkdir()
    repeated = Done(below, "--conformance-cases", str(private), again, "-q")
    repeated.says("1 passed")


def listed(done: Done) -> set[str]:
    """What was collected."""
    return {line for line in done.text.splitlines() if "::" in line}


def test_the_word_cases_means_all_of_them_unless_there_is_such_a_folder(here: Path) -> None:
    options = "--collect-only", "-q", *STATIC
    rows = plan_of(load_suite()).rows
    everything = {row.node_id for row in rows if (row.type, row.operation) == ("f32", "StaticReshape")}
    assert one_row() in everything
    everything -= {row.node_id for row in rows if "large" in row.facets}
    for word in ("cases", "./cases/"):
        assert listed(Done(here, word, *options)) == everything
    (here / "cases").mkdir()
    (here / "cases" / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    (here / "test_others.py").write_text("def test_others(): pass\n", encoding="utf-8")
    assert listed(Done(here, "cases", *options)) == {*everything, "cases/test_theirs.py::test_theirs"}


PATHS = ("private", "./private/", "{here}/private", "private/ours.yaml", "other/../private/ours.yaml")
WRONG_PATHS = ("other/ours.yaml", "private/others.yaml")


@pytest.mark.parametrize(
    "path",
    some_slow((*PATHS, "{here}/private/ours.yaml", *WRONG_PATHS), ("./private/", PATHS[-1], "other/ours.yaml")),
)
def test_a_folder_of_vectors_or_a_file_in_it_is_named_by_any_path(here: Path, private: Path, path: str) -> None:
    (here / "other").mkdir()
    (here / "other" / "ours.yaml").write_text(PRIVATE, encoding="utf-8")
    done = Done(here, path.format(here=here), "--conformance-cases", "private", "--type", "f32", "--collect-only", "-q")
    if path in WRONG_PATHS:
        done.expect(4)
    else:
        rows = plan_of(load_suite(None, private)).rows
        ours = {row.node_id for row in rows if row.case.id == "our-batch-of-one" and row.type == "f32"}
        assert listed(done) == ours != set()


@pytest.mark.skipif(not (ROOT / "examples").is_dir(), reason="only a clone has the examples")
@pytest.mark.parametrize("which", ["few", pytest.param("all", marks=pytest.mark.slow)])
def test_a_dialect_is_judged_by_its_own_document(here: Path, which: str) -> None:
    dialect = ROOT / "examples" / "dialect"
    folder = dialect / "cases"
    if which == "few":
        own = (folder / "acme.yaml").read_text(encoding="utf-8").replace("extends: bundled\n", "")
        folder = write_cases(here, CASES, own)
    folders = ["--conformance-spec", str(dialect / "spec"), "--conformance-cases", str(folder)]
    part = "--type", "f32", "--document", "acme-2026"
    done = Done(here, *folders, *part, *HERE, "-q", adapter=f"{dialect / 'acme.py'}:Acme")
    done.expect(0, "conforms to acme-2026", "the whole target conforms")


def test_a_folder_that_is_none_and_vectors_that_are_wrong_are_one_line_each(here: Path, private: Path) -> None:
    missing = Done(here, "--conformance-spec", "nowhere")
    missing.says("ERROR: --conformance-spec", "nowhere", "does not exist")
    (private / "ours.yaml").write_text(PRIVATE.replace("same-volume", "same-volum"), encoding="utf-8")
    wrong = Done(here, "--conformance-cases", "private")
    wrong.says(f"ERROR: {private / 'ours.yaml'}:5: unknown rule 'same-volum'")
    for done in (missing, wrong):
        assert done.code == 4
        assert "Traceback" not in done.text


def test_what_was_only_to_be_listed_is_not_run(few: Path, backend: str) -> None:
    done = Done(few, *FEW, *HERE, FILE, "--collect-only", "-q", adapter=f"{backend}:Refuses")
    done.expect(0, ROW, never="conform to")
    assert "failed" not in done.text.splitlines()[-1]


# ── strangers ─────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_the_suite_runs_alone_unless_an_argument_names_tests(few: Path, workers: str) -> None:
    if workers != "0" and find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    (few / "pytest.ini").write_text("[pytest]\ntestpaths = theirs\n", encoding="utf-8")
    (few / "theirs").mkdir()
    (few / "theirs" / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    part = *STATIC, "-k", "test_theirs or zero-meets-infer"
    options = ("--conformance-cases", str(few / "cases"), *part, "-v", *(["-n", workers] if workers != "0" else []))
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


IMPORTS = "import conformance\nassert conformance.theirs\n"


@pytest.mark.parametrize(
    ("adapter", "conftest"),
    [
        ("reference", IMPORTS),
        *(
            pytest.param(adapter, text, marks=pytest.mark.slow)
            for adapter, text in (("reference", ""), ("numpy", ""), ("numpy", IMPORTS))
        ),
    ],
)
def test_a_package_of_the_repository_with_our_name_does_not_stop_the_suite(
    few: Path, adapter: str, conftest: str
) -> None:
    name_package(few)
    (few / "conftest.py").write_text(conftest, encoding="utf-8")
    done = DoneAnew(few, *FEW, FILE, "-q", *STATIC, adapter=adapter)
    done.says(" passed", f"reshape conformance of {adapter}", "as far as 20 cases of another suite go")
    assert "ERROR" not in done.text
    assert done.code == (0 if adapter == "reference" else 1)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
def test_nor_does_it_stop_the_workers_of_xdist_and_those_of_jobs(few: Path, backend: str) -> None:
    name_package(few)
    for words in (["-n", "2"], ["--conformance-jobs", "2"]):
        done = DoneAnew(few, *FEW, FILE, "-q", "--type", "f32", *words, adapter=f"{backend}:Prints")
        done.expect(0, " passed", "conformance of reference", "as far as 20 cases of another suite go", never=" failed")


def test_tests_that_import_a_package_with_our_name_need_a_session_of_their_own(few: Path) -> None:
    place = name_package(few)
    (few / "test_theirs.py").write_text("from conformance import theirs\ndef test_theirs(): pass\n", encoding="utf-8")
    wrong = f"ERROR: {place} and the suite have the same name: run the tests test_theirs.py in a session of their own"
    DoneAnew(few, *FEW, "test_theirs.py", FILE).expect(4, wrong, never="Traceback")
    Done(few, "test_theirs.py", adapter=None).expect(0, "1 passed")


def test_a_strangers_tests_run_beside_ours(few: Path) -> None:
    (few / "conformance").mkdir()
    (few / "conformance" / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    done = Done(few, *FEW, ".", ROW)
    done.says("2 passed")


def test_a_file_of_theirs_that_cannot_be_read_stops_the_session_before_ours(few: Path, backend: str) -> None:
    (few / "test_theirs.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    done = Done(few, *FEW, *HERE, ".", ROW, adapter=f"{backend}:Refuses")
    done.expect(2, "1 error during collection", "not run", never="refused a legal call")


@pytest.mark.parametrize(
    "body",
    [
        "    items[:] = []\n",
        "    import pytest\n    [item.add_marker(pytest.mark.skip(reason='later')) for item in items]\n",
        "    import pytest\n    [item.add_marker(pytest.mark.xfail(run=False)) for item in items]\n",
    ],
)
def test_what_a_conftest_removes_was_not_run(few: Path, body: str) -> None:
    (few / "conftest.py").write_text(f"def pytest_collection_modifyitems(items):\n{body}", encoding="utf-8")
    done = Done(few, *FEW, FILE, "-q", *STATIC)
    done.says("incomplete")
    assert done.code in (4, 5)
    assert "conforms to" not in done.text


def test_an_expected_failure_is_a_failure(few: Path, backend: str) -> None:
    (few / "conftest.py").write_text(
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    [item.add_marker(pytest.mark.xfail) for item in items]\n",
        encoding="utf-8",
    )
    done = Done(few, *FEW, *HERE, FILE, "-q", *STATIC, adapter=f"{backend}:Refuses")
    done.says("xfailed", "does not conform")
    assert " failed" not in done.text.splitlines()[-1]
    assert done.code == 1
