"""Causes: a fault is named only for failures that fit its condition and its diagnoses, and a guess says so."""

from collections.abc import Callable, Mapping

import pytest

from conformance.evidence.results import read
from conformance.model import FAIL, PASS, Expression, KnownFault, Outcome, Place, Result
from conformance.verdict.cause import Cause, find_causes
from conformance.verdict.conclude import conclude_evidence
from conformance.verdict.standing import Blames

from ..builders import Command, bundled_plan, mini

BACKEND = "planted:zero-flag-ignored"
"""It takes a 0 as a length even where it should copy. Its version is 1."""
COPIES = "special_zero and any(n == 0 and i < len(src) and src[i] != 0 for i, n in enumerate(shape))"
REFUSED = "rejected a legal call"


def fault(
    when: str | None = COPIES, shows: str = REFUSED, version: str = "1",
    rules: tuple[str, ...] = (), facets: tuple[str, ...] = (), backend: str = BACKEND,
) -> KnownFault:  # fmt: skip
    condition = Expression(when, Place("faults.yaml", 7)) if when else None
    backends = ((backend, (version,)),)
    return KnownFault("it", "Takes 0 literally", "Write lengths.", backends, (shows,), condition, rules, facets)


Find = Callable[..., Mapping[str, Cause]]


@pytest.fixture
def run_and_find(command: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Find]:
    """Run a backend; return the function that finds the causes of its failures among some known faults."""

    def run(backend: str, type_: str = "f32") -> Find:
        command.run(backend, "--type", type_)
        evidence, plan = read(command.out / "results.jsonl"), command.plan

        def find(*faults: KnownFault) -> Mapping[str, Cause]:
            monkeypatch.setattr("conformance.verdict.cause.load_faults", lambda: faults)
            return conclude_evidence(plan, evidence).causes

        return find

    return run


@pytest.fixture
def find(run_and_find: Callable[..., Find]) -> Find:
    return run_and_find(BACKEND)


def cases(causes: Mapping[str, Cause]) -> set[str]:
    return {row.partition("[")[0] for row in causes}


def test_a_fault_of_this_version_is_the_cause_of_what_fits(find: Find) -> None:
    known = find(fault())
    assert cases(known) == {"copies", "infers-beside-zero", "there-and-back"}, "also in a chain"
    assert not any(cause.is_guess for cause in known.values())
    assert cases(find(fault("special_zero and 0 in shape and -1 in shape"))) == {"infers-beside-zero", "there-and-back"}


@pytest.mark.parametrize(
    ("why", "other"),
    [
        ("the condition does not hold", fault("len(src) > 9")),
        ("the diagnosis is another", fault(shows="crash")),
        ("the calls are legal", fault(None, rules=("same-volume",))),
        ("the rows lack the facet", fault(facets=("declared",))),
    ],
)
def test_a_fault_that_does_not_fit_is_no_cause(find: Find, why: str, other: KnownFault) -> None:
    assert not find(other), why


def test_the_first_fault_that_fits_is_the_cause(find: Find) -> None:
    narrow, wide = fault("-1 in shape")._replace(id="narrow"), fault()
    named = {row.partition("[")[0]: cause.fault.id for row, cause in find(narrow, wide).items()}
    assert named == {"infers-beside-zero": "narrow", "there-and-back": "narrow", "copies": "it"}


def test_another_version_is_guessed_if_nearly_all_calls_fail(find: Find) -> None:
    guessed = find(fault(version="2"))
    assert cases(guessed) == {"copies", "infers-beside-zero", "there-and-back"}
    assert {cause.title for cause in guessed.values()} == {"perhaps: Takes 0 literally"}
    assert not find(fault("len(src) > 0", version="2")), "most calls that it may hit pass"
    assert not find(fault("special_zero and 0 in shape and -1 in shape", version="2")), "two cases fit many a fault"


def test_a_guess_leaves_few_failures_that_look_the_same(run_and_find: Callable[..., Find]) -> None:
    """A condition on a part of them would name a limit that the backend does not have."""
    find_rows = run_and_find(mini("RefusesPairs"))
    assert find_rows(fault("any(i == 0 and n == 2 for i, n in enumerate(src)) and len(src) == 2", version="2"))
    assert not find_rows(fault("product(src) == 6 and len(src) == 2 and not special_zero", version="2"))


@pytest.mark.parametrize(
    ("limit", "guessed"),
    [(6, {"tosa-rejects-ranks-above-6"}), (7, set()), (8, set()), (9, {"paddle-rejects-ranks-above-9"})],
)
def test_a_guess_fits_every_rank(limit: int, guessed: set[str]) -> None:
    rows = [row for row in bundled_plan().rows if row.id.endswith("[StaticReshape-f32]") and len(row.case.steps) == 1]
    ranks = {row: max(map(len, (row.case.steps[0].src, *row.case.steps[0].shapes))) for row in rows}
    legal = {row: rank for row, rank in ranks.items() if rank < 13 and row.meanings(0)[0].meaning.kind == "legal"}
    results = {}
    for row, rank in legal.items():
        outcome, verdict, diagnosis = Outcome("tensor"), PASS, None
        if rank > limit:
            outcome, verdict, diagnosis = Outcome("rejected"), FAIL, REFUSED
        results[row.id] = Result(row.id, dict.fromkeys(row.documents, verdict), (outcome,), 0, diagnosis)
    blames: Blames = {row.id: {} for row, rank in legal.items() if rank > limit}
    causes = find_causes(legal, results, blames, "mine", "1")
    assert {cause.fault.id for cause in causes.values()} == guessed


@pytest.mark.parametrize(("new", "shared", "is_found"), [(2, 0, False), (3, 0, True), (3, 2, False)])
def test_a_guess_is_about_what_no_guess_explains_yet(
    command: Command, run_and_find: Callable[..., Find], new: int, shared: int, is_found: bool
) -> None:
    """Two faults may look the same. What a fault shares with another one says nothing for it."""
    text = (
        '  - {{id: l{0}-{1}, rule: same-content, src: "T[2, {0}]", shape: [-1], special_zero: false, expect: "T[{2}]"}}'
    )
    numbers = {7: new, 5: shared, 1: 2}
    more = "\n".join(text.format(length, at, 2 * length) for length, n in numbers.items() for at in range(n))
    (command.cases / "more.yaml").write_text(f"about: Two rows.\ncases:\n{more}\n", encoding="utf-8")
    pairs = "len(src) == 2 and any(i == 0 and n == 2 for i, n in enumerate(src))"
    small, large = (fault(f"{pairs} and product(src) {limit}", version="2") for limit in ("< 14", "> 6"))
    named = {cause.fault.id for cause in run_and_find(mini("RefusesPairs"))(small, large._replace(id="large")).values()}
    assert named == ({"it", "large"} if is_found else {"it"})


def test_a_fault_of_answers_is_no_guess_if_all_is_rejected(find: Find) -> None:
    answers_too = fault(version="2")._replace(shows=(REFUSED, "wrong dims"))
    assert not find(answers_too)


def test_no_condition_explains_that_all_calls_fail(run_and_find: Callable[..., Find]) -> None:
    assert not run_and_find(mini("Refuses"))(fault("len(src) != 1"))
    illegal = fault("len(src) != 1", "answered an illegal call", rules=("one-infer", "lower-bound", "same-volume"))
    assert not run_and_find("planted:accepts-everything")(illegal._replace(backends=()))


def test_a_summary_says_first_that_all_calls_are_rejected(reporting: Command) -> None:
    said = reporting.run(mini("Refuses"), "--type", "f32")
    headline = "every legal call is rejected, with: no"
    assert said.out.splitlines()[1] == f"  {headline}"
    assert said.out.count(headline) == 1
    assert (reporting.out / "summary.md").read_text("utf-8").split("\n\n")[2].strip("`") == headline
    assert reporting.run(mini("Refuses"), "--type", "f32", "--json").data["notes"][0] == headline
    assert "every legal call" not in reporting.run(BACKEND, "--type", "f32").out


SUBNORMALS = """about: Elements that are 0 once subnormals are flushed.
cases:
  - {id: a, rule: content-is-bits, src: "f16[2]", shape: [2], special_zero: false, bits: "0001 83ff", expect: "f16[2]"}
  - {id: b, rule: content-is-bits, src: "f16[1]", shape: [1], special_zero: false, bits: "3c00", expect: "f16[1]"}
  - {id: c, rule: content-is-bits, src: "f16[2]", shape: [-1], special_zero: false, bits: "83ff 0002", expect: "f16[2]"}
  - {id: d, rule: content-is-bits, src: "f16[1]", shape: [-1], special_zero: false, bits: "8003", expect: "f16[1]"}
"""


def test_the_elements_have_to_explain_that_all_are_zero(command: Command, run_and_find: Callable[..., Find]) -> None:
    flushes = fault("src_type == 'f16'", "subnormals flushed")._replace(shows=("subnormals flushed", "all zero"))
    assert not run_and_find(mini("Zeros"), "f16")(flushes), "default elements are normal numbers"
    (command.cases / "few0.yaml").write_text(SUBNORMALS, encoding="utf-8")
    assert not run_and_find(mini("Zeros"), "f16")(flushes), "one of four is no subnormal"
    (command.cases / "few0.yaml").write_text(SUBNORMALS.replace("3c00", "0002"), encoding="utf-8")
    find = run_and_find(mini("Zeros"), "f16")
    assert cases(find(flushes)) == {*"abcd"}
    assert not find(flushes._replace(shows=(*flushes.shows, "crash"))), "no process ended"


def test_calls_that_are_not_legal_have_causes_by_rule(run_and_find: Callable[..., Find]) -> None:
    find = run_and_find("planted:volume-unchecked")
    known = fault(None, "answered an illegal call", backend="planted:volume-unchecked")
    assert find(known._replace(rules=("same-volume",)))
    assert not find(known._replace(rules=("lower-bound",)))


def test_a_cause_fits_in_each_document_in_which_a_row_fails(
    command: Command, run_and_find: Callable[..., Find]
) -> None:
    """Some documents forbid a -1 beside a literal 0, and the others leave it unspecified."""
    find, known = run_and_find(mini("Crashes")), fault(None, "crash", backend="bent")
    row, rules = "zero-beside-infer[StaticReshape-f32]", ("zero-meets-infer", "infer-undetermined")
    assert row in find(known._replace(rules=rules))
    assert row not in find(known._replace(rules=rules[:1]))
    assert row not in find(known._replace(rules=rules[1:]))


AT_ONCE = """about: Two calls at the same time.
cases:
  - id: at-once
    rule: each-call-alone
    concurrent: 2
    steps:
      - {src: "T[4, 2]", shape: [7], special_zero: false, expect: reject}
      - {src: "T[2, 4]", shape: [7], special_zero: false, expect: reject}
"""


def test_each_call_at_the_same_time_may_end_the_process(command: Command, run_and_find: Callable[..., Find]) -> None:
    (command.cases / "at-once.yaml").write_text(AT_ONCE, encoding="utf-8")
    find = run_and_find(mini("Crashes"))
    known = fault("src == (2, 4)", "crash", rules=("same-volume",), backend="bent")
    assert "at-once" in cases(find(known))


def test_terminal_and_reports_name_the_cause(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.verdict.cause.load_faults", lambda: [fault(version="2")])
    said = reporting.run(BACKEND, "--type", "f32")
    assert "rejects a legal call: perhaps: Takes 0 literally · explains " in said.out
    page, summary = ((reporting.out / name).read_text("utf-8") for name in ("report.html", "summary.md"))
    assert "<bdi>perhaps: Takes 0 literally</bdi>" in page
    assert f"A guess: the failures fit a fault of {BACKEND} 2." in page
    assert "rejects a legal call: perhaps: Takes 0 literally (breaks " in summary
    junit = (reporting.out / "junit.xml").read_text("utf-8")
    assert 'message="rejects a legal call: perhaps: Takes 0 literally (static-' in junit
    (failure, *_) = reporting.run(BACKEND, "--type", "f32", "--json").data["failures"]
    assert failure["cause"] == {"id": "it", "guess": True}
