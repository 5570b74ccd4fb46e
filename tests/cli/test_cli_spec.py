"""`conformance check`, `list` and `explain`: exit codes, messages and JSON."""

from pathlib import Path

import pytest

from conformance.cli import check
from conformance.cli.arguments import locate
from conformance.draw import combinations
from conformance.model import Place, Problem

from ..builders import DOCUMENTS, ROOT, Cli, copy_bundled_spec, spare_meetings, spoil, write_suite
from .spec_commands import MEANING, answer


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A copy of the specification that a test may spoil."""
    return copy_bundled_spec(tmp_path)


@pytest.fixture
def without_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `check` find nothing wrong with the cases, which takes most of its time."""
    monkeypatch.setattr(check, "_check_cases", lambda spec, *_: check._CheckResults(spec, 0, (), None, []))


@pytest.mark.slow
@pytest.mark.usefixtures("without_cases")
def test_check_holds_the_specification_against_the_documents(cli: Cli) -> None:
    sources = ROOT.parent / "shared" / "seeds"
    if not sources.is_dir():
        pytest.skip(f"the five documents are not at {sources}")
    out = cli("check", "--sources", sources).expect(0, lines=0).out
    assert out.count("100 %") == 5
    assert all(each["uncovered"] == 0 for each in answer(cli, "check", "--sources", str(sources))["coverage"].values())


@pytest.mark.slow
@pytest.mark.usefixtures("without_cases")
def test_check_reports_documents_that_are_not_there(cli: Cli, tmp_path: Path) -> None:
    cli("check", "--sources", tmp_path).expect(1, out=["sources.yaml:", "5 problems"])


@pytest.mark.slow
def test_check_shows_how_far_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spare_meetings(monkeypatch)
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    said = cli("check", "--suite", write_suite(tmp_path)).expect(1).err
    assert "conformance: comparing what is expected 1 of " in said
    assert "conformance: calling the reference 1 of " in said


@pytest.mark.slow
def test_check_says_that_all_is_whole_and_what_to_type_next(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    found = check._check(None, None, lock=False)
    monkeypatch.setattr(check, "_check", lambda *_: found)  # it takes some seconds, and the text and JSON are of one
    out = cli("check").expect(0, lines=0).out
    assert all(text in out for text in ("not compared with the documents", f"{found.cases:,}"))
    assert "the specification is whole" in out
    assert out.splitlines()[-1].startswith("next: conformance ")
    data = answer(cli, "check")
    assert data["ok"] is True
    assert data["problems"] == []
    assert data["coverage"] is None
    assert data["summary"]["documents"] == 5
    assert sum(data["summary"]["rules"].values()) == len(answer(cli, "list", "rules")["rules"])
    meetings = data["summary"]["meetings"]
    assert [meetings[name]["missing"] for name in ("legal", "illegal")] == [0, 0]
    assert [meetings[name]["met"] > least for name, least in (("legal", 190_000), ("illegal", 12_000))] == [True] * 2
    assert meetings["legal"]["rows"] + meetings["illegal"]["rows"] == len(combinations._read_lines())
    assert sum(data["summary"]["findings"].values()) == len(answer(cli, "list", "findings")["findings"])


SPOILED = {
    "in the file's form": ("rules", "    must: ", "    musst: ", "musst"),
    "in YAML": ("rules", "  - id: one-infer", "  - id: [one-infer", "not YAML"),
    "in a contract": ("rules", "sum(d == -1 for d in shape) <= 1", "shape.__class__", "not allowed in a contract"),
    "of another file": ("sources", "operation: StaticReshape", "operation: StaticReshap", "StaticReshap"),
}
"""One of each sort; tests/load and tests/meaning have the others."""


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new", "said"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_file_is_named_with_its_line(cli: Cli, spec: Path, file: str, old: str, new: str, said: str) -> None:
    spoil(spec / f"{file}.yaml", old, new, 1)
    out = cli("check", "--suite", spec.parent).expect(1, lines=0, out=said).out
    assert str(spec) in out.splitlines()[0], "the path can be opened from here"
    problem = cli("check", "--suite", spec.parent, "--json").expect(1).data["problems"][0]
    assert Path(problem["path"]).is_file()
    assert problem["line"] >= 1
    code, out, err = cli(*MEANING, "--suite", spec.parent)
    assert (code, out) == (2, "")
    assert err.startswith(f"conformance: {spec}")


@pytest.mark.parametrize("file", ["spec/rules.yaml", "cases/zero.yaml"])
def test_a_problem_names_a_path_that_opens(spec: Path, file: str) -> None:
    path = Path(locate(Problem(Place(file, 3), "wrong"), spec.parent).place.path)
    assert path.is_file()
    assert path.is_relative_to(spec.parent) == (file == "spec/rules.yaml"), "the cases are the bundled ones"


def test_many_problems_are_shown_in_part(cli: Cli, spec: Path) -> None:
    """A wrong rule is a problem of each case."""
    unknown = "".join(f"    wrong{number}: x\n" for number in range(130))
    spoil(spec / "rules.yaml", "    must: ", f"{unknown}    must: ", 1)
    shown = cli("check", "--suite", spec.parent).expect(1, out="and 30 more; --json has all").out
    assert shown.count("unknown key") == 100
    assert len(cli("check", "--suite", spec.parent, "--json").expect(1).data["problems"]) == 130


def test_a_missing_file_gets_a_message(cli: Cli, spec: Path) -> None:
    (spec / "findings.yaml").unlink()
    cli("check", "--suite", spec.parent).expect(1, out="findings.yaml: cannot be read")


@pytest.mark.slow
def test_check_names_the_line_of_a_bad_case(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare_meetings(monkeypatch)
    text = """\
about: A 0 in shape copies a dimension.
cases:
  - id: copies-by-index
    rule: zero-copies
    src: T[2, 3, 4]
    shape: [3, 2, 0]
    special_zero: true
    expect: T[3, 2, 5]
"""
    suite, file = write_suite(tmp_path, text), tmp_path / "cases" / "few0.yaml"
    cli("check", "--suite", suite).expect(1, out=f"{file}:3: copies-by-index: expects [3, 2, 5]")
    write_suite(tmp_path, text.replace("zero-copies", "zero-copeis"))
    assert f"{file}:4: " in cli("check", "--suite", suite)[1]
    file.unlink()
    cli("check", "--suite", suite).expect(1, out="holds no *.yaml")


def test_check_says_what_does_not_meet(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare_meetings(monkeypatch)
    problem = Problem(Place("cases/combinations.txt", 1), "two values never meet")
    monkeypatch.setattr(check, "check_meetings", lambda _: [problem])
    cli("check", "--suite", write_suite(tmp_path)).expect(1, out="cases/combinations.txt:1: two values never meet")


ADDED = """\
  - {id: added-two, rule: dst-has-shape-rank, src: "T[24]", shape: [1, 2, 1, 3, 1, 4, 1], special_zero: false,
     expect: "T[1, 2, 1, 3, 1, 4, 1]"}
  - {id: added-one, rule: same-volume, src: "T[24]", shape: [1, 2, 1, 3, 1, 5, 1], special_zero: false, expect: reject}
"""


@pytest.mark.slow
def test_check_writes_the_ids_of_new_cases_only_with_lock(cli: Cli, tmp_path: Path) -> None:
    """Only the cases that the folder adds are checked, and locked there."""
    suite = write_suite(tmp_path, f"extends: bundled\nabout: Added.\ncases:\n{ADDED}")
    lock = suite / "cases" / "ids.lock"
    said = cli("check", "--suite", suite).expect(1, out="add --lock to lock it")
    assert said.out.endswith(f"next: conformance check --suite {suite} --lock\n")
    cli("check", "--suite", suite, "--lock", "--sources", suite).expect(1, out="no text")  # it holds no document
    assert not lock.exists()
    cli("check", "--suite", suite, "--lock").expect(0)
    assert lock.read_text(encoding="utf-8").split() == ["added-one", "added-two"]
    whole = cli("check", "--suite", suite).expect(0, out=f"; conformance check --suite {suite} --sources DIR does").out
    assert f"next: conformance meaning --suite {suite} --src" in whole


@pytest.mark.slow
def test_a_run_refuses_an_added_case_with_a_wrong_expectation(cli: Cli, tmp_path: Path) -> None:
    wrong = ADDED.replace('expect: "T[1, 2, 1, 3, 1, 4, 1]"', 'expect: "T[1, 2, 1, 3, 1, 4, 2]"')
    suite = write_suite(tmp_path, f"extends: bundled\nabout: Added.\ncases:\n{wrong}")
    says = "few0.yaml:4: added-two: expects [1, 2, 1, 3, 1, 4, 2], but in static-oneapi the answer is"
    cli("run", "reference", "--suite", suite, "-k", "added-two").expect(2, err=says, lines=5)
    assert "add --lock" not in cli("check", "--suite", suite, "--lock").expect(1).out
    lacking = ADDED.replace("expect: reject", "expect: reject, shape_step: 0")
    write_suite(tmp_path, f"extends: bundled\nabout: Added.\ncases:\n{lacking}")
    says = "added-one: `shape_step: 0` puts all"
    cli("run", "reference", "--suite", suite, "-k", "added-one").expect(2, err=says, lines=1)
    huge = ADDED.replace("5, 1]", "999999999999999999999]")
    write_suite(tmp_path, f"extends: bundled\nabout: Added.\ncases:\n{huge}")
    cli("run", "reference", "--suite", suite).expect(2, err="added-one: no operation can express the call", lines=1)
    write_suite(tmp_path, f"\ufeffextends: bundled\nabout: Added.\ncases:\n{ADDED}")  # as some editors begin a file
    cli("run", "reference", "--suite", suite, "-k", "added-two").expect(4, text="added-two")


@pytest.mark.parametrize("what", ["rules", "documents", "operations", "findings"])
def test_list_shows_every_entry_once_and_explain_knows_each(cli: Cli, what: str) -> None:
    entries = answer(cli, "list", what)[what]
    names = [next(iter(each.values())) for each in entries]
    out = cli("list", what).expect(0).out
    assert [line.split()[0] for line in out.splitlines()[1 : len(names) + 1]] == names
    assert len(set(names)) == len(names)
    for name in names:
        assert cli("explain", name).expect(0, lines=0).out.startswith(name)


def test_list_filters(cli: Cli) -> None:
    every = answer(cli, "list", "rules")["rules"]
    musts = answer(cli, "list", "rules", "must", "static-oneapi")["rules"]
    assert {each["level"] for each in musts} == {"must"}
    assert "zero-meets-infer" not in {each["rule"] for each in musts}
    assert "zero-meets-infer" in {each["rule"] for each in every}
    defects = answer(cli, "list", "findings", "defect")["findings"]
    assert {each["kind"] for each in defects} == {"defect"}


def test_a_case_has_links_and_rows(cli: Cli) -> None:
    name = "known-volume-equal-only-in-32-bits"
    cli("explain", name).expect(0, out="found as    https://github.com/numpy/numpy/issues/7455")
    listed = answer(cli, "list", "cases", "same-volume")
    case = next(case for case in listed["cases"] if case["case"] == name)
    assert case["rows"] == [*answer(cli, "explain", name)[0]["rows"]]
    cli("explain", case["rows"][0]).expect(0, out=f"run BACKEND -k '{case['rows'][0]}'\n")
    assert len(listed["suite"]) == 64


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lower-bound", ("all(d >= -1 for d in shape)", "our ruling", "line 28", *DOCUMENTS)),
        ("memory-layout", "reshape-spec-v0.7  allowed  It says nothing about memory;"),
        ("reshape-spec-v0.7", "view-or-copy   It says nothing about memory;"),
        ("static-oneapi", "in force    yes: the page was still this text at commit 1856518"),
    ],
)
def test_explain_says_where_it_is_and_whom_it_binds(cli: Cli, name: str, said: str | tuple[str, ...]) -> None:
    cli("explain", name).expect(0, out=said)


def test_explain_a_finding_shows_its_example_in_each_document(cli: Cli) -> None:
    example = next(each for each in answer(cli, "list", "findings")["findings"] if each["example"])
    cli("explain", example["finding"]).expect(0, out=["reading 1", "follows", "conformance meaning --src"])
    assert set(example["example"]["meanings"]) == set(DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_explain_a_document_names_its_repository(cli: Cli, document: str) -> None:
    (data,) = answer(cli, "explain", document)
    origin = data["origin"]
    shown = [data["edition"], origin["repository"], origin["path"], origin["added"], origin["last_changed"]]
    out = cli("explain", document).expect(0, out=[*shown, *origin["releases"]]).out
    assert ("in force" in out.partition("rules it states")[0]) == (origin["in_force"] is not None)


def test_the_command_below_a_list_can_be_copied(cli: Cli, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, f"extends: bundled\nabout: Added.\ncases:\n{ADDED}")
    cli("list", "cases", "lower-bound", "--suite", suite).expect(0, out=f" --suite {suite}\n")
    assert "explain" not in cli("list", "factors").expect(0).out


def test_list_backends_shows_what_no_backend_tries(cli: Cli) -> None:
    listed = {each["backend"]: each for each in cli("list", "backends", "--json").expect(0).data["backends"]}
    text = cli("list", "backends").expect(0).out
    assert listed["tensorflow"]["not_tried"]
    assert listed["tensorflow-array"]["not_tried"] == []  # stated once for each library
    assert all("; ".join(each["not_tried"]) in text for each in listed.values())
