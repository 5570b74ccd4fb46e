"""A solver confirms what the proof for all lengths rests on, and refutes mistakes of the engine that proves."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from conformance.adapters import reference
from conformance.load.spec import load_spec
from conformance.meaning import symbols
from conformance.meaning.contract import Contract, contracts
from conformance.model import Meaning, Spec
from conformance.selfcheck import obligations as of_proof
from tests.builders import Cli

SPEC = load_spec(None)
SOLVERS = {"z3": [], "cvc5": ["--incremental"]}
Decide = Callable[..., Any]


def first_refuted(decide: Decide, most_rank: int) -> str:
    """The first obligation that z3 does not confirm; empty if it confirms all."""
    pytest.importorskip("z3", reason="No module named 'z3'; pip install z3-solver")
    every = of_proof.obligations(SPEC, decide, most_rank)
    return next((refuted for each in every for refuted in each.find_refuted()), "")


# ── what holds ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("most_rank", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_z3_confirms_every_obligation(most_rank: int) -> None:
    assert not first_refuted(reference.decide, most_rank)


@pytest.mark.slow
def test_the_programs_of_solvers_confirm_a_file(cli: Cli, tmp_path: Path) -> None:
    said = cli("export", "smt2", "--out", tmp_path).expect(0).text
    asked = {file.name: file.read_text("utf-8").count("(check-sat)") for file in tmp_path.iterdir()}
    assert f"wrote {sum(asked.values()):,} obligations in 33 files" in said
    found = {name: shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name) for name in SOLVERS}
    programs = {path: SOLVERS[name] for name, path in found.items() if path}
    if not programs:
        pytest.skip("no program z3 or cvc5; pip install z3-solver")
    file = "src-1-shape-2-false.smt2"
    for path, options in programs.items():
        command = [path, *options, str(tmp_path / file)]
        answers = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.split()
        assert answers == ["unsat"] * asked[file], path


# ── what does not ─────────────────────────────────────────────────────────────────────────────────


def first_run_only(function: Callable[..., Any], most: int) -> Iterator[symbols.FunctionPath]:
    return islice(symbols.runs(function, most), 1)


NAME_HOLDS = symbols.Facts.name_holds


def without(wrong: tuple[str, int | None]) -> Callable[..., bool]:
    """`name_holds` that believes that no length has one relation to a number, or to any number."""

    def holds(facts: symbols.Facts, name: str, relation: str, number: Any) -> bool:
        return wrong not in ((relation, number), (relation, None)) and NAME_HOLDS(facts, name, relation, number)

    return holds


MISTAKES = {
    "no-quotient-is-whole": (symbols.Symbol, "is_whole", lambda *_: False),
    "every-quotient-is-whole": (symbols.Symbol, "is_whole", lambda *_: True),
    "no-length-is-1": (symbols.Facts, "name_holds", without(("=", 1))),
    "no-length-divides-a-number": (symbols.Facts, "name_holds", without(("divides", None))),
    "the-other-answer-is-not-tried": (of_proof, "runs", first_run_only),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_engine_is_refuted(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    monkeypatch.setattr(*MISTAKES[mistake])
    asked = "no call is outside of all runs" if mistake.startswith("the-other") else "each answer follows"
    assert f": {asked}" in first_refuted(reference.decide, 2)


def test_a_mistake_of_the_reference_is_refuted() -> None:
    def rejects_ones(src: Any, shape: Any, *flags: bool) -> Any:
        return (None, "none") if 1 in shape else reference.decide(src, shape, *flags)

    refuted = "src-0-shape-1-false.smt2: each answer follows: shape[0] = 1: sat for shape[0] = 1, dst[0] = "
    assert first_refuted(rejects_ones, 1).startswith(refuted)


@pytest.mark.slow
def test_a_mistake_that_both_sides_share_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_contracts(spec: Spec) -> dict[str, Contract]:
        made = contracts(spec)
        for contract in {*made.values()}:
            contract.meaning = lambda *call, meaning=contract.meaning: reverse_dst(meaning(*call))
        return made

    def reverse_dst(meaning: Meaning) -> Meaning:
        return meaning._replace(dst=meaning.dst and meaning.dst[::-1])

    def reversed_decide(*call: Any) -> Any:
        dst, rule = reference.decide(*call)
        return dst and dst[::-1], rule

    monkeypatch.setattr(of_proof, "contracts", reversed_contracts)
    assert "dst has the lengths and the volume" in first_refuted(reversed_decide, 2)


# ── the command ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_command_asks_z3_if_it_is_installed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3", reason="No module named 'z3'; pip install z3-solver")
    assert " confirms 54 obligations proved: " in cli("check", "--prove", "1").expect(0).text
    monkeypatch.setattr(symbols.Facts, "name_holds", without(("divides", None)))
    data = json.loads(cli("check", "--prove", "2", "--json").expect(1).out)
    assert not any(data["proofs"][document]["differences"] for document in SPEC.documents)
    assert data["z3"]["refuted"]


def test_a_text_that_z3_cannot_read_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3", reason="No module named 'z3'; pip install z3-solver")
    monkeypatch.setattr(of_proof, "factors_of", lambda _: ("nobody",))
    refuted = json.loads(cli("check", "--prove", "1", "--json").expect(1).out)["z3"]["refuted"]
    assert {each.partition(" z3 cannot read it: ")[2].partition(": ")[2] for each in refuted} == {
        "unknown constant nobody"
    }
    assert len(refuted) < 8, "a file is given up at its first mistake"


def test_without_z3_the_engine_proves_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    said = cli("check", "--prove", "1").expect(0).text
    assert "no solver checked these steps: pip install 'reshape-conformance[prove]' proved: " in said
