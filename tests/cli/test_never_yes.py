"""No run says yes by accident."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.evidence.results import read
from conformance.model import Claims, Outcome, Rejected, Result, Tensor
from conformance.verdict.sentences import note_adapter_errors

from .. import builders, miniatures
from ..builders import Command, mini, table_of
from .run_output import never_conforms, sentences, words

RAISED = "the adapter raised %s in one row"


@pytest.mark.parametrize("name", ["ClaimsNothing", "LeavesOutEveryType"])
def test_a_claim_of_nothing_is_incomplete(command: Command, name: str) -> None:
    said = command.run(mini(name), "--json").expect(4)
    never_conforms(said)
    assert "nothing was shown" in said.data["why"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of a file")
def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    limited = (
        f"{builders.FULL_DISK}from conformance.cli.main import main\n"
        "raise SystemExit(main('run reference --suite . --drawn-rows 0 --out out'.split()))"
    )
    builders.write_cases(tmp_path)
    done = subprocess.run([sys.executable, "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"conformance: {tmp_path}/out/results.jsonl.part: File too large\n")


def test_all_left_out_and_unsupported_shows_nothing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniatures.Refuses, "claims", Claims(miniatures.ALL, ("type:f32", "type:f16")))
    said = command.run(mini("Refuses"), "--json").expect(1)
    never_conforms(said)
    assert {s["type"]: s["standing"] for s in said.data["standings"]} == {
        "bf16": "does not conform", "f16": "not claimed", "f32": "not claimed",
    }  # fmt: skip


def test_a_document_for_which_nothing_passed_reads_nothing_shown(tmp_path: Path, command: Command) -> None:
    lines = builders.CASES.splitlines(keepends=True)
    builders.write_cases(command.folder, "".join([*lines[:2], *(line for line in lines if "{id: scalar" in line)]))
    with pytest.MonkeyPatch.context() as patch:
        builders.spare_planted(patch)
        said = command.run("reference", "--json").expect(4)
    never_conforms(said)
    assert words(said) == {"nothing shown"}
    assert "static-oneapi: nothing shown" in sentences(said)["static-oneapi"]


def test_a_rule_without_a_pass_is_named(command: Command) -> None:
    rule, call = "row-major-order, src: ", '"T[2, 3]", shape: [3, 2], special_zero: true, expect: "T[3, 2]"'
    unspecified = '"T[]", shape: [1], special_zero: true, expect: unspecified'
    builders.spoil(command.cases / "few0.yaml", rule + call, rule + unspecified)
    said = command.run("reference", "--json").expect(4)
    never_conforms(said)
    assert "no pass for the rule row-major-order" in said.data["why"]


def test_a_rule_that_obliges_nobody_needs_no_pass(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject_many_dims(bent: object, answer: object, src: Tensor, shapes: object) -> object:
        if len(src.dims) > 12:
            raise Rejected("run", "too many dimensions")
        return answer

    monkeypatch.setattr(miniatures.Bent, "bent", reject_many_dims)
    many = f'rank-limit, src: "T[{", ".join("1" * 13)}]", shape: [1], special_zero: false, expect: "T[1]"'
    with (command.cases / "few0.yaml").open("a", encoding="utf-8") as file:
        file.write(f"  - {{id: many-dims, rule: {many}}}\n")
    assert command.run(mini("Bent"), "--json").expect(0).data["verdicts"]["observed"] > 0


@pytest.mark.parametrize("instead", ["unsupported", "refused", "error", "other type"])
def test_a_left_out_call_with_no_answer_or_another_type(
    command: Command, monkeypatch: pytest.MonkeyPatch, instead: str
) -> None:
    """It is not claimed."""
    monkeypatch.setattr(miniatures.LeavesOut, "instead", instead)
    said = command.run(mini("LeavesOut"), "--json").expect(0)
    assert sum(each["not_counted"].get("not claimed", 0) for each in said.data["standings"]) == 24
    for sentence in sentences(said).values():
        assert "not claimed: layout:reversed" in sentence
    assert not any("every row of it is right" in note for note in said.data["notes"])


@pytest.mark.parametrize(("instead", "words"), [("wrong", "all zero"), ("crash", "crash where nothing is claimed")])
def test_a_wrong_answer_and_a_crash_fail_in_what_is_left_out(
    command: Command, monkeypatch: pytest.MonkeyPatch, instead: str, words: str
) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "instead", instead)
    said = command.run(mini("LeavesOut"), "--json").expect(1)
    assert said.data["verdicts"]["fail"] >= 8
    assert "does not conform to static-oneapi" in sentences(said)["static-oneapi"]
    assert words in {result.diagnosis for result in read(command.out / "results.jsonl").results}
    if instead == "crash":
        assert {blame for each in said.data["standings"] for blame, tests in each["blames"].items() if tests} == {
            "breaks only our ruling"
        }


def test_errors_of_the_adapter_are_counted_by_exception(command: Command) -> None:
    """They count against nobody."""
    said = command.run(mini("Errs"), "--json").expect(1)
    number = said.data["verdicts"]["error"]
    assert not any(number for standing in said.data["standings"] for number in standing["blames"].values())
    assert number
    (note,) = [note for note in said.data["notes"] if "KeyError" in note]
    assert re.fullmatch(r"the adapter raised KeyError in [0-9]+ rows; .* `rejections`", note)


@pytest.mark.parametrize(
    ("message", "notes"),
    [
        ("KeyError: 'lost'", [f"{RAISED % 'KeyError'}; if the library rejects calls so, add it to `rejections`"]),
        ("TypeError: no", [RAISED % "TypeError"]),  # the loader refuses it among `rejections`
        ("ProtocolError: run: the line is no JSON", []),
    ],
)
def test_a_note_advises_only_what_the_loader_takes(message: str, notes: list[str]) -> None:
    result = Result("r", {"static-oneapi": "error"}, (Outcome("error", message=message),))
    assert [*note_adapter_errors([result])] == notes


def test_errors_of_the_adapter_do_not_say_that_a_backend_fails(command: Command) -> None:
    said = command.run(mini("Errs")).expect(1, text="meet an error of the adapter; nothing is known of the backend")
    verified = command("verify", command.out, "--suite", command.folder, "--conforms").expect(1)
    for each in (said, verified):
        assert table_of(each.out)["static-oneapi"][:3] == ["incomplete"] * 3
        assert re.search("incomplete: [0-9]+ of [0-9]+ tests meet an error", each.text)
        assert "no" not in {word for cells in table_of(each.out).values() for word in cells}


def test_an_error_of_the_adapter_in_one_case_is_no_conformity(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule has a pass all the same."""
    monkeypatch.setattr(miniatures.LeavesOut, "claims", Claims(miniatures.ALL))
    monkeypatch.setattr(miniatures.LeavesOut, "instead", "error")
    said = command.run(mini("LeavesOut"), "--json").expect(1)
    never_conforms(said)
    assert words(said) == {"incomplete"}


def test_errors_of_the_adapter_are_counted_beside_failures(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    raises = miniatures.Errs.instead
    monkeypatch.setattr(miniatures.Errs, "instead", lambda self, src: src if src and src.dims else raises(self, src))
    words = "tests fail: [0-9]+ of them accept an illegal call, [0-9]+ meet an error of the adapter"
    assert re.search(words, command.run(mini("Errs")).expect(1).text)


def test_what_is_left_out_and_works_is_said(command: Command) -> None:
    said = command.run(mini("LeavesOut"), "--json").expect(0)
    assert "not claimed, and every row of it is right: layout:reversed" in said.data["notes"]
    assert said.data["standings"][0]["not_counted"] == {"pass": 1}, "nor does it count among what is required"


def test_what_is_claimed_and_unsupported_fails(command: Command) -> None:
    command.run(mini("UnableBeyond")).expect(1, text="unsupported · breaks only our ruling: layout-is-no-content")


def test_the_sentence_names_every_limit(command: Command) -> None:
    said = command.run(mini("Mapped"), "--json").expect(0)
    assert sentences(said)["static-oneapi"] == (
        "conforms to static-oneapi as far as 20 cases of another suite go as run in the suite's own process; "
        "not claimed: chain; "
        "not run: drawn rows and tensors of more than 2^31 elements; special_zero answered by the adapter"
    )
    said = command.run(mini("LeavesOutOneType"), "--json")
    assert sentences(said)["static-oneapi"] == (
        "conforms to static-oneapi for bf16 and f32 as far as 20 cases of another suite go as run in the suite's own "
        "process; not claimed: type:f16; not run: drawn rows and tensors of more than 2^31 elements"
    )


def test_a_family_that_is_left_out_is_named_once(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "claims", Claims(miniatures.ALL, ("layout", "chain")))
    said = sentences(command.run(mini("LeavesOut"), "--json"))
    assert "; not claimed: layout, chain; not run" in said["static-oneapi"]
