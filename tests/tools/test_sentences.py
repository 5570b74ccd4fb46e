"""Sentences about libraries: each rests on published rows, and the check says which do not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.evidence.folder import PAGE, PUBLISHED, find_published_results
from conformance.evidence.results import pack
from conformance.load.cases import load_suite
from conformance.model import Result
from conformance.model.verdicts import count_verdicts
from conformance.plan.rows import plan_of
from conformance.site.publish import list_published_folders
from tests.builders import REPORTS, Cli, Command, CommandOutput, read_published
from tools.lab import sentences
from tools.lab.__main__ import main
from tools.lab.sentences import load_sentences

CLONE = Path(__file__).parents[2]
TEXT = """\
# Faults

It answers `[-2]` for four
elements.

| library | what its reshape does |
|---|---|
| NumPy | answers two times; rejects a third |
"""
SENTENCES = """\
sentences:
  - file: docs/faults.md
    says: It answers [-2] for four elements.
    shown:
      - {{in: [raw], {rows}, did: "{did}"}}
  - file: docs/faults.md
    says: answers two times
    shown: [{{in: [raw], some: "minus-two or two-infers", did: answered}}]
  - file: docs/faults.md
    says: rejects a third
    shown: [{{in: [raw], rows: two-infers, did: rejected}}]
"""


_PACKED: list[bytes] = []


@pytest.fixture
def raw(command: Command) -> Command:
    """A clone with the results of numpy.reshape on the few cases, made once in a process."""
    if not _PACKED:
        command.run("numpy")
        _PACKED.append(pack((command.out / "results.jsonl").read_bytes()))
    results = command.folder / "reports" / "raw" / "results.jsonl.xz"
    results.parent.mkdir(parents=True)
    results.write_bytes(_PACKED[0])
    (command.folder / "lab.yaml").touch()
    return command


def check(raw: Command, rows: str = "rows: minus-two", did: str = "answered [4]", text: str = TEXT) -> CommandOutput:
    reports = raw.folder / "reports"
    (raw.folder / "docs").mkdir(exist_ok=True)
    (raw.folder / "docs" / "faults.md").write_text(text, encoding="utf-8")
    (reports / "sentences.yaml").write_text(SENTENCES.format(rows=rows, did=did), encoding="utf-8")
    return Cli(raw.capsys, main)("check", "--lab", raw.folder / "lab.yaml", "--out", reports, "--suite", raw.folder)


@pytest.mark.parametrize(
    ("rows", "did"),
    [
        ("rows: minus-two", "answered [4]"),
        ("rows: minus-two", "answered"),
        ("rows: minus-two", "fail"),
        ("rows: two-infers", "rejected"),
        ("rows: three-by-two", "pass"),
        ("rows: minus-two", "diagnosis: answered an illegal call"),
        ("some: minus-two or two-infers", "rejected"),
    ],
)
def test_a_sentence_holds_if_its_rows_did_what_it_says(rows: str, did: str, raw: Command) -> None:
    assert check(raw, rows, did).expect(0).out == "3 sentences, 0 problems\n"


@pytest.mark.parametrize(
    ("rows", "did", "message"),
    [
        ("rows: minus-two", "crash", "raw: 'crash' is shown by 0 of "),
        ("rows: minus-two", "answered [-2]", "minus-two[StaticReshape-f32] did not: answered [4]"),
        ("rows: minus-two or two-infers", "rejected", "'rejected' is shown by "),
        ("rows: flattens or minus-two", "no fail", "minus-two[StaticReshape-f32] did not: answered [4]"),
        ("rows: no-such-case", "crash", "raw: no row of 'no-such-case' was called"),
        ("some: three-by-two", "rejected", "three-by-two[StaticReshape-f32] did not: answered [3, 2]"),
        ("rows: (", "crash", "'('"),
    ],
)
def test_a_sentence_that_its_rows_do_not_show_is_named(rows: str, did: str, message: str, raw: Command) -> None:
    check(raw, rows, did).expect(1, out=[message, "sentences.yaml:2: ", "3 sentences, 1 problem\n"])


def test_a_part_of_the_table_without_rows_is_found(raw: Command) -> None:
    more = TEXT.replace("for four\n", "for five\n").replace("answers two times;", "is fast; answers two times;")
    said = check(raw, text=more)
    said.expect(1, out="sentences.yaml:2: docs/faults.md does not say 'It answers [-2] for four elements.'")
    found = re.findall(r"^docs/faults.md:(\d+): no rows are named for '(.*)';", said.out, re.MULTILINE)
    assert found == [("8", "is fast")]


def test_results_that_cannot_be_read_are_said_once(raw: Command) -> None:
    (raw.folder / "reports" / "raw" / "results.jsonl.xz").write_bytes(pack(b""))
    said = check(raw).expect(1, out="3 sentences, 1 problem\n")
    assert "is empty" in said.out


def test_the_bundled_sentences_are_in_their_files(raw: Command) -> None:
    """Whether the rows show them is checked where results of this suite are published."""
    said = Cli(raw.capsys, main)("check", "--lab", CLONE / "lab.yaml", "--out", raw.folder, "--suite", raw.folder)
    assert [line for line in said.out.splitlines() if ".md" in line] == []
    assert len(load_sentences(CLONE / "reports" / "sentences.yaml")) > 50


# ── what is published here ────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.skipif(not REPORTS.is_dir(), reason="published evidence is only in a clone")
def test_what_is_published_is_whole_and_shows_what_is_told(monkeypatch: pytest.MonkeyPatch, every: bool) -> None:
    """Also in evidence of an earlier suite, which `lab check` refuses, for the rows that it has.

    One test, because the evidence takes most of its time to read. CI looks at a tenth of those about one run.
    """
    own, results = load_sentences(REPORTS / sentences.FILE), dict[str, dict[str, Result]]()
    if not every:
        own = tuple(each for each in own if len({name for rows in each.shown for name in rows.folders}) == 1)[::10]
    named = {name for sentence in own for rows in sentence.shown for name in rows.folders}
    for folder in list_published_folders(REPORTS):
        assert (folder / PAGE).is_file(), folder
        if not every and folder.name not in named:
            continue
        evidence = read_published(find_published_results(folder) or folder / PUBLISHED)
        verdicts = count_verdicts(verdict for result in evidence.results for verdict in result.verdicts.values())
        assert sum(verdicts.values()) == sum(evidence.footer["verdicts"].values()), folder
        assert evidence.header["target"]["select"] is None, folder
        results[folder.name] = {each.row: each for each in evidence.results}
    monkeypatch.setattr(
        sentences, "_results", lambda folder, _: results.get(folder.name, f"{folder}: holds no results")
    )
    plan = plan_of(load_suite())
    plan = replace(plan, rows=tuple(row for row in plan.rows if all(row.id in each for each in results.values())))
    problems = map(str, sentences.check(own, CLONE, REPORTS, plan))
    assert [problem for problem in problems if every or "no rows are named" not in problem] == []
