"""A run of a part of the suite, and the words about it."""

from pathlib import Path

import pytest

from conformance.evidence.command import list_row_options
from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.plan.rows import plan_of
from conformance.plan.select import BadExpression, parse_selection, select_rows

from .. import builders
from ..builders import DOCUMENTS, Command, mini
from .run_output import TYPES, never_conforms, sentences


@pytest.mark.parametrize(
    ("chosen", "documents", "types"),
    [
        ("--operation DynamicReshape-1", {"dynamic-spec-v0.9"}, TYPES),
        ("--document static-graph-v0.9", {"static-graph-v0.9"}, TYPES),
        (
            "--document static-graph-v0.9 --document reshape-spec-v0.7",
            {"static-graph-v0.9", "reshape-spec-v0.7"},
            TYPES,
        ),
        ("--type bf16", set(DOCUMENTS), {"bf16"}),
        ("--type bf16 --type f32", set(DOCUMENTS), {"bf16", "f32"}),
        ("--type bf16 --document dynamic-spec-v0.9", {"dynamic-spec-v0.9"}, {"bf16"}),
    ],
)
def test_a_target_narrows_what_is_run_and_what_is_said(
    command: Command, chosen: str, documents: set[str], types: set[str]
) -> None:
    said = command.run("reference", "--json", *chosen.split()).expect(0)
    assert set(sentences(said)) == documents
    assert {(s["document"], s["type"]) for s in said.data["standings"]} == {(d, t) for d in documents for t in types}
    assert said.data["verdicts"]["not run"] == 0, "what is outside the target is no test"
    about = "" if len(types) == 3 else f" for {' and '.join(sorted(types))}"
    assert all(s.startswith(f"conforms to {d}{about} as far as") for d, s in sentences(said).items())


@pytest.mark.parametrize(
    ("backend", "chosen", "why"),
    [
        ("ClaimsOne", "--operation StaticReshape --document reshape-spec-v0.7", "not shown: reshape-spec-v0.7"),
        ("ClaimsOne", "--document static-oneapi --document reshape-spec-v0.7", "not shown: reshape-spec-v0.7"),
        ("ClaimsOne", "--operation StaticReshape --operation Reshape-1", "not shown: Reshape-1"),
        ("LeavesOutOneType", "--type f32 --type f16", "asked for and not shown: f16"),
    ],
)
def test_a_target_that_is_not_claimed_is_incomplete(command: Command, backend: str, chosen: str, why: str) -> None:
    assert why in command.run(mini(backend), *chosen.split()).expect(4).last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "demand", "code"),
    [
        ("Bent", "layout", 0), ("LeavesOut", "chain", 0), ("LeavesOut", "layout", 4), ("Mapped", "chain", 4),
        ("LeavesOutOneType", "f16", 4), ("LeavesOutOneType", "type:f16", 4), ("LeavesOutOneType", "static-oneapi", 4),
        ("ClaimsOne", "Reshape-1", 4), ("ClaimsOne", "reshape-spec-v0.7", 4), ("ClaimsOne", "static-spec-v0.9", 0),
    ],
)  # fmt: skip
def test_a_demand_is_met_or_the_run_is_incomplete(command: Command, backend: str, demand: str, code: int) -> None:
    said = command.run(mini(backend), "--require", demand).expect(code)
    if code:
        assert said.last.endswith(f"incomplete: asked for and not shown: {demand}")


def test_a_demand_that_no_chosen_row_needs_is_known(command: Command) -> None:
    command.run("reference", "-k", "flattens", "--require", "layout:reversed").expect(4, err="")


def test_one_case_can_be_chosen_and_shows_nothing_whole(command: Command) -> None:
    for chosen, count in (("flattens", 18), ("flattens[StaticReshape-f32]", 1), ("few0.yaml and copies and bf16", 6)):
        said = command.run("reference", "--json", "-k", chosen)
        never_conforms(said)
        assert said.code == 4
        ran = [r for r in read(command.out / "results.jsonl").results if "not run" not in r.verdicts.values()]
        assert len(ran) == count
        assert f"-k {chosen!r}" in said.data["why"]
        assert all(f"only the cases of -k {chosen!r}" in sentence for sentence in sentences(said).values())


@pytest.mark.parametrize(
    ("chosen", "meant"),
    [("flatens", "flattens"), ("seven-of-sic[StaticReshape-f32]", "seven-of-six"), ("one-infre", "one-infer")],
)
def test_a_choice_that_matches_nothing_suggests_what_is_near(command: Command, chosen: str, meant: str) -> None:
    assert f"did you mean {meant!r}" in command.run("reference", "-k", chosen).last


def test_a_choice_that_matches_nothing_says_so(command: Command) -> None:
    said = command.run("reference", "-k", "no-such-case").expect(4)
    why = "nothing ran; -k 'no-such-case' is in no row of the target; see `conformance list cases`"
    assert said.last.endswith(why)
    assert not builders.table_of(said.out)
    drawn = command.run("reference", "-k", "drawn-0-39[StaticReshape-f99]").expect(4)
    assert "is a drawn row, which the claims of a backend decide; `conformance run BACKEND -k drawn-0-39`" in drawn.last
    said = command.run("reference", "-k", "flattens[StaticReshape-f32]", "--operation", "Reshape-1").expect(4)
    assert said.last.endswith("is in no row of the target; see `conformance list cases`"), "its name is right"


def test_a_choice_of_large_rows_alone_says_what_to_add(cli: builders.Cli) -> None:
    said = cli("run", "reference", "-k", "facet:large")
    assert said.last == "exit 4: incomplete: nothing ran; the rows of -k 'facet:large' are large; add --large"


def test_the_command_of_a_row_chooses_it() -> None:
    """That of a large one has --large: without it nothing would run."""
    plan = plan_of(load_suite())
    for large, row in {row.case.large: row for row in plan.rows}.items():
        words = list_row_options(row)
        assert words == ["-k", row.id, *(["--large"] if large else [])]
        assert [each.id for each in select_rows(plan, words[1]).rows] == [row.id]


def chosen(expression: str, folder: Path) -> set[str]:
    """The cases of the rows that an expression chooses."""
    plan = builders.plan_of_cases(folder)
    return {row.case.id for row in plan.rows if parse_selection(expression, plan)(row)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "cases"),
    [
        ("FLAT", {"flattens"}), ("one-infer", {"two-infers", "infers"}), (" infers ", {"infers"}),
        ("infers and not two", {"infers", "infers-beside-zero"}), ("not not copies", {"copies"}),
        ("(copies or stays) and not copies", {"stays"}), ("copies or stays and flattens", {"copies"}),
        ("few0.yaml::copies", {"copies"}), ("cases/few0.yaml::copies[StaticReshape-f32]", {"copies"}),
        ("infers[StaticReshape-f32]", {"infers"}), ("stays and STATICRESHAPE", {"stays"}),
        ("'copies' or 'stays'", {"copies", "stays"}), ('"copies" or "stays"', {"copies", "stays"}),
        ("'copies or stays'", set()), ("infer and s64 and f7", set()),
        ("facet:chain", {"there-and-back"}), ("level:capacity", set()),
    ],
)  # fmt: skip
def test_words_choose_rows(tmp_path: Path, expression: str, cases: set[str]) -> None:
    assert chosen(expression, tmp_path) == cases


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "and",
        "a and",
        "or a",
        "not",
        "(a",
        "a)",
        "()",
        "a b",
        "a (b)",
        "not or",
        "level:high",
        "facet:no-such",
        "not " * 5000 + "a",
    ],
)
def test_an_expression_that_cannot_be_read_is_told(expression: str, tmp_path: Path) -> None:
    with pytest.raises(BadExpression):
        chosen(expression, tmp_path)
