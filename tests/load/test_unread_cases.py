"""Bundled cases are read when they are first asked for, and read exactly."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from conformance.load import cases as loading
from conformance.load.cases import load_cases, split_entries
from conformance.load.folders import find_cases_folder
from conformance.load.spec import load_spec
from conformance.model import Case, Malformed
from tests.builders import spoil

SPEC = load_spec()
FILES = sorted(find_cases_folder().glob("*.yaml"))


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    read, plain = [], loading._read_entry

    def read_entry(entry: Any, *more: Any) -> Any:
        read.append(entry.id)
        return plain(entry, *more)

    monkeypatch.setattr(loading, "_read_entry", read_entry)
    return read


@pytest.fixture(scope="module")
def whole() -> dict[str, Case]:
    """The bundled cases, read at once with their files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_find_unread", lambda *_: {})
        return dict(load_cases(find_cases_folder(), SPEC))


@pytest.mark.slow
def test_a_case_read_alone_equals_the_case_read_with_its_file(
    whole: dict[str, Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = count_reads(monkeypatch)
    alone = load_cases(find_cases_folder(), SPEC)
    assert list(alone) == list(whole)
    for name, case in whole.items():
        assert alone[name] == case
        assert alone[name].place == case.place
    assert read == list(whole)


def test_one_case_is_read_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    read = count_reads(monkeypatch)
    cases = load_cases(find_cases_folder(), SPEC)
    assert len(cases) > 1000
    assert "there-and-back" in cases
    assert not read
    assert cases["there-and-back"] is cases["there-and-back"]
    assert read == ["there-and-back"]


def test_the_cases_about_a_rule_are_those_that_say_so(whole: dict[str, Case], monkeypatch: pytest.MonkeyPatch) -> None:
    read = count_reads(monkeypatch)
    cases = load_cases(find_cases_folder(), SPEC)
    about = list(cases.about(["one-infer", "same-content"]))
    assert sorted(read) == sorted(case.id for case in about)
    assert about == [
        case for case in whole.values() if case.rule in ("one-infer", "same-content") and not case.generated
    ]


def test_a_bundled_file_with_an_id_twice_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(Path(shutil.copy(find_cases_folder() / "chain.yaml", tmp_path)), "id: flat-and-back", "id: there-and-back")
    monkeypatch.setattr(loading, "find_cases_folder", lambda: tmp_path)
    with pytest.raises(Malformed, match="the id 'there-and-back' is taken by"):
        load_cases(tmp_path, SPEC)


@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [
        ("mine/b.yaml", "zero-litteral", "unknown rule 'zero-litteral'"),
        ("mine/b.yaml", "zero-literal", r"b\.yaml:[0-9]+: the id '.*' is taken by .*a\.yaml:"),
        ("::error::/b.yaml", "zero-literal", "could be taken for output"),
    ],
    ids=["a changed file", "a copy beside a file", "a folder with a name like a command of CI"],
)
def test_a_problem_with_copies_of_a_file_is_reported(tmp_path: Path, name: str, rule: str, said: str) -> None:
    copy = tmp_path / name
    copy.parent.mkdir()
    for path in (copy.with_name("a.yaml"), copy):
        shutil.copy(find_cases_folder() / "zero.yaml", path)
    spoil(copy, "rule: zero-literal", f"rule: {rule}", 1)
    with pytest.raises(Malformed, match=said):
        load_cases(copy.parent, SPEC)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_bundled_file_can_be_split(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    entries = split_entries(text)
    assert "".join(entry.text for entry in entries) == text[text.index("  - id: ") :]
    lines = text.split("\n")
    assert all(lines[entry.line - 1] == f"  - id: {entry.id}" for entry in entries)


CASE = "cases:\n  - id: a\n    rule: b\n    src: T[2]\n"
UNSPLIT = {
    "a case in braces": f"{CASE}  - {{id: c, rule: b}}\n",
    "no case": "cases: []\n",
    "an id in quotes": 'cases:\n  - id: "a"\n    rule: b\n',
    "a rule in quotes": 'cases:\n  - id: a\n    rule: "b"\n',
    "a key behind the cases": f"{CASE}about: More.\n",
    "a key behind a comment": f"{CASE}# A comment.\nabout: More.\n",
    "another document": f"{CASE}---\n",
    "the end of a document": f"{CASE}...\n",
    "a text in front that looks like a case": f"about: |\n{CASE[7:]}{CASE}",
}


@pytest.mark.parametrize("what", UNSPLIT)
def test_a_file_of_another_form_is_not_split(what: str) -> None:
    assert len(split_entries(f"{CASE}# A comment.\n")) == 1
    assert split_entries(UNSPLIT[what]) == []
