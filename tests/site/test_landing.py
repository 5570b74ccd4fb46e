"""Runs in few words: the head of a report, and the table of backends on the page of all."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import read
from conformance.model import Array, EarlierSuite, Identity, KnownFault
from conformance.model.verdicts import SEVERITIES, Severity
from conformance.plan.rows import Plan
from conformance.report import report_page
from conformance.report.judged_run import JudgedRun, conclude_run
from conformance.report.summary import describe_documents
from conformance.site.compare_page import name_runs
from conformance.site.landing import _name_worst, answer_question, collect_libraries, collect_numbers
from conformance.verdict.cause import Cause
from conformance.verdict.failure_kinds import FailureKind

from ..builders import (
    CASES,
    Command,
    OnlyStatic,
    RejectsAll,
    Right,
    Wrong,
    WrongBefore,
    compare,
    finish_run,
    plan_as_bundled,
    write_comparison,
)
from ..report.page import Page
from ..report.test_browser import Open, chromium, opening

__all__ = ["chromium", "opening"]


class RightLater(Right):
    """The newest version: its number is larger, and its text is not."""

    version = "1.10"


@pytest.fixture(scope="module")
def runs(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> list[JudgedRun]:
    folder = tmp_path_factory.mktemp("runs")
    backends = (Wrong(), WrongBefore(), RightLater(), Right())
    return [finish_run(plan, each, folder / f"{number}") for number, each in enumerate(backends)]


def test_what_conforms_comes_first_and_versions_together(runs: list[JudgedRun]) -> None:
    libraries = collect_libraries(runs, name_runs(runs), [""] * len(runs), {})
    assert [library.name for library in libraries] == ["right", "wrong"]
    assert [line.name for line in libraries[0].lines] == ["right 1.10", "right 1", "right 0.9"]
    assert [line.latest for line in libraries[0].lines] == [True, False, False]
    assert [line.before for line in libraries[0].lines] == ["1", "0.9", ""]
    numbers = collect_numbers(runs, libraries)
    assert (numbers.backends, numbers.first, numbers.last) == (4, "2026-01-02", "2026-01-02")
    assert [library.lines[0].documents[0].label for library in libraries] == ["conforms", "wrong answer"]
    assert answer_question(libraries) == [
        "1 of 2 libraries conforms to StaticReshape, oneAPI Specification, with the library's own special_zero: right"
    ]


def test_a_result_of_an_earlier_suite_says_so(runs: list[JudgedRun], plan: Plan) -> None:
    """It lacks the tests of cases that came since, and another result of the same library may have them."""
    earlier = {plan.suite.digest: EarlierSuite(frozenset({"a-case-of-today"}))}
    later = replace(plan, suite=replace(plan.suite, digest="e" * 64, earlier=earlier))
    old, new = (replace(run, plan=later) for run in runs[2:])
    header = {**new.evidence.header, "suite": {**new.evidence.header["suite"], "digest": "e" * 64}}
    both = [old, replace(new, evidence=replace(new.evidence, header=header))]
    (library,) = collect_libraries(both, name_runs(both), [""] * len(both), {})
    assert [line.is_earlier for line in library.lines] == [True, False]
    assert "run with an earlier suite" in compare(both)["index.html"]
    assert "which has all its rows and 1 case more" in report_page.render(old)


class Copies(Right):
    """Copies a length for each 0, whatever special_zero says, without its adapter."""

    name = "copies"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        return src.reshape(tuple(src.shape[at] if each == 0 else each for at, each in enumerate(shape)))


class CopiesByAdapter(Copies):
    name, answers_special_zero = "copies-by-adapter", True


class Heeds(Copies):
    name = "heeds"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        return super().reshape(src, shape, True) if special_zero else src.reshape(shape)


BOTH_ZEROS = """
  - {id: copies-of-empty, rule: zero-copies, src: "T[0, 5]", shape: [0, 0], special_zero: true, expect: "T[0, 5]"}
  - {id: literal-of-empty, rule: zero-literal, src: "T[0, 5]", shape: [7, 0], special_zero: false, expect: "T[7, 0]"}
"""


def test_who_answers_special_zero(tmp_path: Path) -> None:
    """`Right` copies nothing, so it has none."""
    backends = (Heeds(), Copies(), CopiesByAdapter(), Right())
    plan = plan_as_bundled(tmp_path / "suite", CASES + BOTH_ZEROS)
    runs = [finish_run(plan, each, tmp_path / each.name) for each in backends]
    libraries = collect_libraries(runs, name_runs(runs), [""] * len(runs), {})
    lines = {library.name: library.lines[0] for library in libraries}
    who = {"heeds": "own", "copies": "a 0 copies", "copies-by-adapter": "by the adapter", "right": "none"}
    assert {name: line.special_zero for name, line in lines.items()} == who
    assert [name for name, line in lines.items() if "own" in line.has] == ["heeds"]
    page = compare(runs)["index.html"]
    assert {f"“{words}”" for words in who.values()} - set(re.findall("“[^”]+”", page)) == {"“own”"}
    assert ". ".join(answer_question(libraries)) == (
        "heeds 1, with the library's own special_zero, does not conform to StaticReshape, oneAPI Specification. "
        "copies-by-adapter 1, if the adapter adds special_zero, does not conform. "
        "copies 1, with a 0 that copies whatever special_zero says, does not conform. "
        "right 1, without special_zero, does not conform"
    )


def test_backends_of_one_library_are_together(runs: list[JudgedRun]) -> None:
    """Evidence of two bundled adapters of one library, one on a device too: the newest of each, then the older ones."""

    def made_by(run: JudgedRun, name: str, adapter: str | None = None) -> JudgedRun:
        backend = {**run.evidence.header["backend"], "name": name, "adapter": adapter or name}
        return replace(run, evidence=replace(run.evidence, header={**run.evidence.header, "backend": backend}))

    on_device = made_by(runs[0], "torch-cuda", "torch@cuda:1")
    made = [made_by(runs[1], "torch"), on_device, made_by(runs[0], "torch-compile"), made_by(runs[3], "torch")]
    (library,) = collect_libraries(made, name_runs(made), [""] * len(made), {})
    assert library.name == "torch"
    assert [line.name for line in library.lines] == ["torch 1", "torch-cuda 1", "torch-compile 1", "torch 0.9"], (
        "the best of the newest first"
    )
    in_two_modules = [made_by(runs[0], "keras-jax"), made_by(runs[1], "keras-tensorflow")]
    libraries = collect_libraries(in_two_modules, name_runs(in_two_modules), ["", ""], {})
    assert [library.name for library in libraries] == ["keras"]


def test_a_cell_counts_the_tests_that_fail(runs: list[JudgedRun]) -> None:
    line = collect_libraries(runs, name_runs(runs), [""] * len(runs), {})[1].lines[0]
    standings = [each for each in runs[0].standings if each.document == "static-oneapi"]
    cell = next(each for each in line.documents if each.document.id == "static-oneapi")
    assert cell.failed == sum(each.counts.get("fail", 0) for each in standings) > 0
    assert cell.tests == sum(each.tests for each in standings)


def test_a_line_names_the_commonest_cause_of_the_worst_severity() -> None:
    def kind(title: str, known: bool, severity: Severity = "wrong answer") -> FailureKind:
        fault = KnownFault("it", title, "", (), (), None, (), ())
        return FailureKind(Cause(fault, False) if known else None, severity, "", title)

    unexplained, rare, common = kind("unknown", False), kind("rare", True), kind("common", True)
    rejects = kind("rejected a legal call", False, "rejects a legal call")
    assert _name_worst({(1, unexplained): 9, (1, rare): 1, (1, common): 2, (2, rejects): 50}) == "Common; 3 more"
    assert _name_worst({(0, unexplained): 9, (1, rare): 1}) == "Rare; 1 more"
    assert _name_worst({(1, unexplained): 9}) == "Unknown"
    assert _name_worst({(2, rejects): 50}) == "", "the label says it"


class InfersByAdapter(Right):
    answers_special_zero = True
    identity = Identity("infers-by-adapter", "1", (("-1", "answered by the adapter"),))


def test_all_that_an_adapter_answers_is_named(plan: Plan, tmp_path: Path) -> None:
    run = finish_run(plan, InfersByAdapter(), tmp_path)
    text = Page(report_page.render(run)).text
    assert "special_zero, -1" in text
    assert "-1 (answered by the adapter)" in text
    assert all("special_zero and -1 answered by the adapter" in limits for limits in run.conclusion.limits.values())


def test_cells_lead_to_the_document_and_the_case_in_the_report(runs: list[JudgedRun], plan: Plan) -> None:
    pages = [f"{number}/report.html" for number in range(len(runs))]
    page = compare(runs)["index.html"]
    for link in pages:
        for document in plan.suite.spec.documents:
            assert f'href="{link}#document-{document}"' in page
    assert 'href="0/report.html"' in page
    assert set(re.findall(r'<a href="([^"#]+/report.html)', page)) == set(pages)


@pytest.fixture
def opened(opening: Open, tmp_path: Path) -> Open:
    """Opens the page of some runs."""

    def open_(runs: list[JudgedRun]) -> Any:
        write_comparison(runs, tmp_path)
        return opening(tmp_path / "index.html")

    return open_


@pytest.fixture
def page(opened: Open, runs: list[JudgedRun]) -> Any:
    return opened(runs)


def list_visible_rows(page: Any) -> list[str]:
    visible = "all => all.filter(e => e.offsetParent !== null).map(e => e.cells[0].querySelector('bdi').textContent)"
    rows: list[str] = page.eval_on_selector_all(".big tbody tr", visible)
    return rows


@pytest.mark.slow
def test_needs_choose_and_heads_sort(page: Any) -> None:
    assert list_visible_rows(page) == ["right 1.10", "wrong 1"]
    assert page.inner_text("output") == "1 conform, of 2 that fit"
    assert page.get_attribute("label:has([name=right])", "data-n") == "1", "a choice says how many fit it"
    page.check("[name=right]")
    assert list_visible_rows(page) == ["right 1.10"]
    assert page.eval_on_selector_all(".big tr+tr", "all => all.filter(e => e.offsetParent).length") == 0, "indented"
    assert page.inner_text(".big tbody button") == "+ 1 more"
    page.click("text=+ 1 more")
    assert list_visible_rows(page) == ["right 1.10", "right 1"], "0.9 has wrong answers"
    address = page.url
    assert "right=on" in address
    page.goto("about:blank")
    page.goto(address)
    assert list_visible_rows(page) == ["right 1.10"], "the address has the choice"
    page.uncheck("[name=right]")
    page.click("th[data-sort] button >> nth=4")
    assert page.get_attribute("th[data-sort] >> nth=4", "aria-sort") == "descending"
    assert "sorted by failing, in" in page.inner_text("output")
    assert list_visible_rows(page)[0] == "wrong 1"


class OnlyConstant(Right):
    name, operations, not_claimed = "only-constant", ("StaticReshape", "Reshape-1"), ("runtime-shape",)


@pytest.mark.slow
def test_shapes_at_run_time_are_judged_where_they_occur(opened: Open, plan: Plan, tmp_path: Path) -> None:
    backends = (Right(), OnlyStatic(), OnlyConstant())
    page = opened([finish_run(plan, each, tmp_path / each.name) for each in backends])
    page.check("[name=runtime]")
    assert page.inner_text("#judged").startswith("DynamicReshape")
    assert "document=3" in page.url, "the address has the document that judges"
    assert list_visible_rows(page) == ["right 1"]
    enabled = page.eval_on_selector_all("[name=document] option:enabled", "all => all.map(e => e.text)")
    assert [each.partition(",")[0] for each in enabled] == ["DynamicReshape", "Reshape"]
    page.uncheck("[name=runtime]")
    assert page.inner_text("output") == "1 conform, of 1 that fit", "the others do not claim DynamicReshape-1"
    assert page.get_attribute("label:has([name=lives])", "data-n") == "1"
    page.select_option("[name=document]", "4")
    assert list_visible_rows(page) == ["right 1", "only-constant 1"]
    page.check("[name=runtime]")
    assert list_visible_rows(page) == ["right 1"], "a shape that is a constant is not enough"
    page.goto("about:blank")
    page.goto(f"{(tmp_path / 'index.html').as_uri()}#document=0&runtime=on")
    assert page.inner_text("#judged").startswith("DynamicReshape")


@pytest.mark.slow
def test_a_need_for_each_of_the_three_worst_severities(opened: Open, plan: Plan, tmp_path: Path) -> None:
    page = opened([finish_run(plan, each, tmp_path / each.name) for each in (Right(), Wrong(), RejectsAll())])
    fitting = [page.get_attribute(f"label:has([name={need}])", "data-n") for need in ("lives", "right", "accepts")]
    assert fitting == ["3", "2", "2"]
    page.check("[name=accepts]")
    assert list_visible_rows(page) == ["right 1", "wrong 1"]


@pytest.mark.slow
def test_search_finds_libraries_rules_and_cases(page: Any) -> None:
    page.fill("[name=text]", "wrong")
    assert list_visible_rows(page) == ["wrong 1"]
    page.fill("[name=text]", "zero infer")
    assert list_visible_rows(page) == ["right 1.10", "wrong 1"], "no library has that name"
    no_library = "No library here has this name. The table shows all that fit."
    assert page.inner_text(".found").split("\n") == [
        no_library, "1 rule: zero-meets-infer", "1 case: zero-beside-infer"
    ]  # fmt: skip
    page.fill("[name=text]", "pytorch")
    assert page.inner_text(".found") == no_library.replace("library here", "library, rule or case here")
    page.fill("[name=text]", "right")
    assert page.inner_text(".found") == "", "a library has that name"
    page.check("[name=right]")
    page.fill("[name=text]", "wrong")
    assert page.inner_text(".found") == "No library of this name fits what you need."
    page.fill("[name=text]", "same volume")
    assert page.get_attribute(".found a", "href") == "rules.html#rule-same-volume"


@pytest.mark.slow
def test_search_finds_a_library_by_its_other_name(opened: Open, plan: Plan, tmp_path: Path) -> None:
    backend: dict[str, Any] = {"name": "torch", "version": "1", "adapter": "torch", "detail": {}, "digest": None}
    torch = finish_run(plan, Right(), tmp_path / "torch", backend=backend)
    page = opened([torch, finish_run(plan, Wrong(), tmp_path / "wrong")])
    page.fill("[name=text]", "pytorch")
    assert list_visible_rows(page) == ["torch 1"]


@pytest.mark.slow
def test_all_of_a_line_is_of_the_chosen_document(page: Any, runs: list[JudgedRun]) -> None:
    of_wrong = collect_libraries(runs, name_runs(runs), [""] * len(runs), {})[1].lines[0]
    for at in (1, 0):
        page.select_option("[name=document]", str(at))
        cells = page.eval_on_selector("tr:has-text('wrong 1')", "row => Array.from(row.cells, cell => cell.innerText)")
        document = of_wrong.documents[at]
        assert cells[0].split("\n")[1:] == [words for words, places in of_wrong.worst.items() if at in places]
        assert cells[1].endswith(document.label)
        assert cells[2:7] == [*(str(number) if number else "·" for number in document.numbers), document.percent]
        assert document.document.edition in page.inner_text("#judged")


@pytest.mark.slow
def test_a_phone_shows_the_numbers_that_are_not_0(page: Any, runs: list[JudgedRun]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    wrong = collect_libraries(runs, name_runs(runs), [""] * len(runs), {})[1].lines[0].documents[0]
    shown = """row => [...row.cells].filter(e => e.dataset.d && e.offsetParent)
        .map(e => [getComputedStyle(e, '::before').content.slice(1, -3), e.textContent.trim()])"""
    numbers = [(words.capitalize(), str(n)) for words, n in zip(SEVERITIES, wrong.numbers, strict=True) if n]
    expected = [*numbers, ("Failing, in %", wrong.percent), ("special_zero", "own")]
    assert page.eval_on_selector("tr:has-text('wrong 1')", shown) == [list(each) for each in expected]
    assert page.eval_on_selector("tr:has-text('right 1.10')", shown) == [["special_zero", "own"]]


@pytest.mark.slow
def test_heads_on_paper_are_words_and_no_buttons(page: Any) -> None:
    """Chromium repeats heads on the next sheet only if there is no button in them."""
    page.emulate_media(media="print")
    heads = page.locator(".big thead th")
    assert [each.split() for each in heads.all_inner_texts()][2:6] == [each.capitalize().split() for each in SEVERITIES]
    assert page.locator(".big thead button:visible").count() == 0


@pytest.mark.slow
def test_heads_stay_in_view(page: Any) -> None:
    assert page.inner_text(".big tbody button") == "+ 2 more, worst: wrong answer", "it is worse than the line"
    page.emulate_media(media="print")
    assert page.locator(".big tbody button").first.is_visible(), "paper says what it leaves out"
    page.emulate_media(media="screen")
    page.click("text=+ 2 more")
    page.set_viewport_size({"width": 700, "height": 260})
    page.evaluate("document.querySelector('.big').scrollTo(200, 100)")
    box, head, name = (
        page.locator(each).bounding_box()
        for each in (".big >> nth=0", "th[data-sort] >> nth=0", ".big tbody th >> nth=0")
    )
    assert abs(head["y"] - box["y"]) < 2
    assert abs(name["x"] - box["x"]) < 2


def test_the_head_says_who_ran_it_when_and_on_what(command: Command) -> None:
    command.run("reference", "--tester", "A. Name, Example Ltd").expect(0)
    evidence = read(command.out / "results.jsonl")
    text = " ".join(Page(report_page.render(conclude_run(command.plan, evidence))).text.split())
    assert "Tested by A. Name, Example Ltd (not signed)".replace(" ", "") in text.replace(" ", "")
    assert evidence.header["started"][:10] in text
    assert evidence.header["environment"]["processor"] in text
    assert evidence.footer["digest"][:12] in text


CALLS = {
    "accepts an illegal call": "shape: [-6], special_zero: false, expect: reject",
    "conforms": "shape: [6], special_zero: false, expect: T[6]",
}


@pytest.mark.slow
@pytest.mark.parametrize("label", CALLS)
def test_a_label_says_what_a_library_does(tmp_path: Path, label: str) -> None:
    call = CALLS[label].replace("T[6]", '"T[6]"')
    plan = plan_as_bundled(tmp_path, f'about: One.\ncases:\n  - {{id: one, rule: lower-bound, src: "T[6]", {call}}}\n')
    labels = {each.document.id: each.label for each in describe_documents(finish_run(plan, Wrong(), tmp_path / "out"))}
    assert labels["static-oneapi"] == label
