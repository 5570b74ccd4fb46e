"""The pages in a real browser: filters, links, keyboard, colours, print, and without any script.

Wants a Chromium and Playwright (`pip install playwright`), and for the check of accessibility axe-core: a file that
AXE_CORE names, or node_modules/axe-core/axe.min.js. What is missing is said, and its tests are skipped.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.plan.rows import Plan
from conformance.report import diff_report
from conformance.report.diff import compare_runs
from tools.picture import find_chromium

from ..builders import Right, Wrong, plan_as_bundled, report_run, rest_exhaustive, write_comparison
from .verified import call_only

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = {
    "landing": "index.html", "rules": "rules.html", "cases": "compare.html", "unspecified": "unspecified.html",
    "brief": "wrong-1/report.html", "brief-well": "right-1/report.html", "since": "right-1/since-right-0.9.html",
    "certificate": "right-1/certificate.html", "register": "register.html", "documents": "spec/index.html",
    "all-cases": "spec/cases.html", "rulebook": "spec/static-graph-v0.9.html", "differences": "spec/differences.html",
    "playground": "playground.html", "docs": "docs/index.html",
}  # fmt: skip
"""A page of each kind in a site."""
PAGES = ("report", "well", "part", "many", "diff", *PUBLISHED)
CASES = "[data-head=Case]"
"""The table of cases in the chosen backends."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, small_site: Path) -> dict[str, Path]:
    """A page of each sort."""
    folder = tmp_path_factory.mktemp("pages")
    plan: Plan = plan_as_bundled(folder)
    right, wrong = report_run(plan, Right(), folder / "right"), report_run(plan, Wrong(), folder / "wrong")
    write_comparison([right, wrong], folder)
    write_comparison([right, wrong] * 20, folder / "many")
    report_run(plan, Right(), folder / "part", call_only("flattens["))
    found = compare_runs(right.evidence, wrong.evidence, plan)
    (folder / "diff.html").write_text(diff_report.render_html(found), encoding="utf-8")
    return {
        "report": folder / "wrong" / "report.html",
        "well": folder / "right" / "report.html",
        "part": folder / "part" / "report.html",
        "two": folder / "compare.html",
        "many": folder / "many" / "index.html",
        "diff": folder / "diff.html",
        **{name: small_site / file for name, file in PUBLISHED.items()},
    }


Open = Callable[..., Any]


@pytest.fixture
def opening(chromium: Any) -> Iterator[Open]:
    """Opens a file; whatever a page complains of, or asks of the network, fails the test."""
    contexts, complaints = [], []

    def open_(path: Path, fragment: str = "", size: tuple[int, int] = (1200, 900), **options: Any) -> Any:
        context = chromium.new_context(viewport=dict(zip(("width", "height"), size, strict=True)), **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request", lambda request: complaints.append(request.url) if not request.url.startswith("file:") else None
        )
        page.goto(f"{path.as_uri()}{fragment}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture
def opened(opening: Open, pages: dict[str, Path]) -> Open:
    """Opens a page by the name of its sort."""
    return lambda name, *fragment, **options: opening(pages[name], *fragment, **options)


def shown_cases(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "details.case[data-block]", "all => all.filter(e => e.offsetParent !== null).map(e => e.id)"
    )
    return found


def test_filters_leave_what_fits_and_make_a_link(opened: Open, pages: dict[str, Path]) -> None:
    page = opened("report")
    assert len(shown_cases(page)) == 4
    page.select_option("[name=verdict]", "pass")
    assert shown_cases(page) == ["case-flattens"]
    assert "1 of 4 cases shown" in page.inner_text("output")
    assert page.evaluate("location.hash") == "#filter:verdict=pass"
    page.click("text=Show all")
    page.wait_for_url("**/*#cases")  # to wait for a function is to evaluate text, which the page forbids
    assert len(shown_cases(page)) == 4


@pytest.mark.parametrize(
    ("filters", "cases"),
    [
        ("verdict=fail&rule=same-volume", ["turns"]),
        ("diagnosis=answered%20an%20illegal%20call", ["zero-beside-infer"]),
        ("operation=Reshape-1&type=f32", ["flattens", "turns", "zero-beside-infer", "copies-past-rank"]),
        ("document=static-oneapi&verdict=pass", ["flattens"]),
        ("text=turns", ["turns"]),
        ("text=no%20such%20thing", []),
        ("nonsense=1", ["flattens", "turns", "zero-beside-infer", "copies-past-rank"]),
    ],
)
def test_a_link_to_a_filtered_view_shows_it(opened: Open, filters: str, cases: list[str]) -> None:
    page = opened("report", f"#filter:{filters}")
    assert sorted(shown_cases(page)) == sorted(f"case-{case}" for case in cases)


def test_a_link_to_a_case_opens_it_even_where_a_filter_hides_it(opened: Open) -> None:
    page = opened("report", "#case-turns")
    assert page.locator("#case-turns").get_attribute("open") is not None
    page.select_option("[name=verdict]", "pass")
    page.evaluate("location.hash = '#case-zero-beside-infer'")
    page.wait_for_selector("#case-zero-beside-infer[open]")
    assert page.locator("#case-zero-beside-infer").bounding_box()["y"] < 900


def test_a_filter_hides_cases_that_were_not_run(opened: Open) -> None:
    page = opened("part", "#case-turns")
    assert page.locator("#case-turns").is_visible()
    page.select_option("[name=verdict]", "pass")
    assert not page.locator("#case-turns").is_visible()
    assert shown_cases(page) == ["case-flattens"]
    page.evaluate("location.hash = '#case-zero-beside-infer'")
    page.wait_for_selector("#case-zero-beside-infer", state="visible")


def test_three_clicks_lead_to_clause_reason_and_command(opened: Open) -> None:
    page = opened("report")
    page.click("header .kinds a >> nth=0")
    block = page.locator("details.entry[open]").first
    assert block.is_visible()
    text = block.inner_text()
    assert "conformance run" in text
    assert "line" in text or "our ruling" in text
    assert "want" in text.lower()


def test_filters_on_the_comparison_leave_what_one_alone_fails(opened: Open) -> None:
    page = opened("two")
    page.select_option("[name=show]", "one-fails")
    shown = "all => all.filter(e => e.offsetParent !== null).map(e => e.textContent)"
    cases = page.eval_on_selector_all("[data-s] [id^=case-]", shown)
    assert any(text.startswith("turns") for text in cases)
    assert not any(text.startswith("flattens") for text in cases)
    assert page.evaluate("location.hash") == "#filter:show=one-fails"


def test_chosen_backends_are_side_by_side_differences_first(opened: Open) -> None:
    page = opened("cases")
    page.select_option("[name=b0]", "wrong 1")
    assert not page.locator(CASES).is_visible(), "one backend is compared with nothing"
    page.select_option("[name=b1]", "right 1")
    rows = page.eval_on_selector_all(f"{CASES} tr", "all => all.map(e => [...e.cells].map(c => c.textContent))")
    assert rows[0] == ["Case", "wrong 1", "right 1"]
    assert rows[1] == ["All 4 cases", "≠ wrong answer 3 ✓ pass 1 ", "✓ pass 3 ◆ observed 1 "]
    assert rows[2][0].startswith("turns")
    assert [cell[:6] for cell in rows[2][1:]] == ["≠ wron", "✓ pass"]
    assert len(rows) == 6
    assert not page.locator(".pairs").first.is_visible()
    assert not page.locator(".all-backends").first.is_visible(), "its numbers are of all backends"
    page.select_option("[name=show]", "disagreements")
    shown = page.eval_on_selector_all(f"{CASES} tbody tr", "all => all.filter(e => !e.hidden).length")
    assert 0 < shown < 4
    again = opened("cases", page.evaluate("location.hash"))
    assert again.locator(f"{CASES} tbody tr").first.is_visible(), "a choice can be sent as a link"
    again.evaluate("location.hash = '#case-flattens'")
    again.wait_for_selector("#case-flattens", state="visible")


def test_a_chosen_cell_leads_to_the_case_in_the_report(opened: Open) -> None:
    chosen = "#filter:b0=wrong 1&b1=right 1"
    rules = opened("rules", chosen).eval_on_selector_all("[data-head=Rule] thead tr", "all => all[0].textContent")
    assert rules == "Rulewrong 1right 1"
    page = opened("cases", chosen)
    links = page.eval_on_selector_all(f"{CASES} tbody td", "all => all.map(e => e.firstChild.getAttribute('href'))")
    assert len(links) == 8
    assert {"wrong-1/report.html#case-turns", "right-1/report.html#rule-same-volume"} <= set(links)
    page.click(f"{CASES} td a")
    page.wait_for_url("**/report.html#case-*")
    assert page.locator(":target").is_visible()


def test_published_pages_filter_and_lead_to_one_another(opened: Open) -> None:
    page = opened("cases", "#filter:show=disagreements")
    assert "of 4 lines shown" in page.inner_text("output")
    page.click("div:has(> #case-turns) a[href^='wrong-1/report.html']")
    page.wait_for_url("**/wrong-1/report.html#case-turns")
    assert page.locator("details.entry:has(#case-turns) table").first.is_visible()
    page.fill("[name=text]", "no such thing")
    assert page.inner_text("output").startswith("0 of ")
    assert "failures shown" in page.inner_text("output")
    page.click("text=Show all")
    page.wait_for_url("**/*#failures")
    form, card = (page.locator(each).bounding_box()["y"] for each in ("#filters", ".entry >> nth=0"))
    assert form < card, "what a filter hides comes after it"
    page.click("details.entry:has(#case-turns) a[href='../spec/cases.html#case-turns']")
    page.wait_for_url("**/spec/cases.html#case-turns")
    assert page.locator("#case-turns").is_visible()
    page = opened("cases", "#filter:text=infer-zero")
    assert page.inner_text("output") == "1 of 4 lines shown", "as the search of the landing page, which leads here"
    page = opened("brief", "#filter:text=infer-zero")
    assert re.match(r"[1-9]\d* of ", page.inner_text("output"))
    rules = opened("rules", "#filter:rule=same-volume")
    assert rules.inner_text("output").startswith("1 of ")


def test_the_list_of_certificates_shows_only_what_conforms(opened: Open) -> None:
    page = opened("register")
    page.check("text=Only what conforms")
    assert page.locator("tbody tr").is_visible()
    page.evaluate("document.querySelectorAll('tbody .PASSED').forEach(mark => mark.className = 'FAILED')")
    assert not page.locator("tbody tr").is_visible()


def test_the_landing_of_forty_backends_has_six_screens(opened: Open) -> None:
    page = opened("many", size=(1440, 900))
    assert 1000 < page.evaluate("document.documentElement.scrollHeight") < 6000


def test_everything_is_reached_and_worked_by_keyboard(opened: Open) -> None:
    page = opened("report")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.tagName"))
    assert {"verdict", "rule", "text", "SUMMARY", "A"} <= reached
    page.focus("#case-turns summary")
    page.keyboard.press("Enter")
    assert page.locator("#case-turns").get_attribute("open") is not None


@pytest.mark.parametrize("name", rest_exhaustive(PAGES, {*PAGES} - {"many", "well", "diff"}))
def test_axe_finds_nothing_to_complain_of(opened: Open, name: str) -> None:
    axe = Path(os.environ.get("AXE_CORE") or ROOT / "node_modules" / "axe-core" / "axe.min.js")
    if not axe.is_file():
        pytest.skip("no axe-core: npm install axe-core, or name its axe.min.js in AXE_CORE")
    page = opened(name, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    page.add_script_tag(path=str(axe))
    colours = ", runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}"
    for scheme, only in (("light", ""), ("dark", colours)):  # the rest is the same in the dark
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], preload: false{only}}})")
        assert [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found["violations"]] == [], scheme


def test_dark_is_dark_and_light_is_light(opened: Open) -> None:
    colours = [
        opened("report", color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours[0] == "rgb(255, 255, 255)"
    assert colours[1] == "rgb(13, 17, 23)"


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_all_is_there(opened: Open, name: str) -> None:
    page = opened(name, java_script_enabled=False)
    assert not page.locator("#filters").first.is_visible()
    if name == "report":
        page.click("#case-turns summary")
        assert page.locator("#case-turns table").is_visible()


def test_print_has_open_failures_and_says_what_it_leaves_out(opened: Open, tmp_path: Path) -> None:
    page = opened("report")
    assert not page.locator(".print").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".print").is_visible()
    assert page.locator("#failure-turns table").first.is_visible()
    for left_out in ("#filters", "#rules", "#cases", ".entry:not([open])"):
        assert not page.locator(left_out).first.is_visible(), left_out
    page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000


def test_a_link_to_a_failure_shows_backend_and_outline(opened: Open) -> None:
    page = opened("report", "#failure-turns")
    card = page.locator("#failure-turns")
    assert "wrong 1" in card.locator("summary").first.inner_text()
    assert card.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    assert card.evaluate("e => parseFloat(getComputedStyle(e).outlineOffset)") < 0, "a group clips what is outside"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_in_a_narrow_window_or_on_paper(opened: Open, name: str) -> None:
    page = opened(name)
    width = 360 if name == "certificate" else 320
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name in PUBLISHED:
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.locator(".site a").first.bounding_box()["x"] >= 10, "no menu touches the edge of a phone"
    page.set_viewport_size({"width": round(186 / 25.4 * 96), "height": 900})  # A4 upright, within its margins
    page.emulate_media(media="print")
    beyond = """across => [...document.querySelectorAll('main *')].filter(e => e.checkVisibility() &&
        Boolean(e.closest('.across')) === across && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML)"""
    assert page.evaluate(beyond, False) == []
    page.set_viewport_size({"width": round((279.4 - 24) / 25.4 * 96), "height": 900})  # Letter, turned
    assert page.evaluate(beyond, True) == []


@pytest.mark.parametrize(
    ("cell", "name"), [("#rules~* td.n", "failing tests that break it:\xa0"), (".got td:nth-child(3)", "tests:\xa0")]
)
def test_a_phone_names_what_a_number_counts(opened: Open, cell: str, name: str) -> None:
    page = opened("brief")
    page.set_viewport_size({"width": 390, "height": 800})
    named = page.eval_on_selector_all(cell, "all => all.map(e => getComputedStyle(e, '::before').content)")
    assert set(named) == {f'"{name}"'}


KEYSTROKE = """word => { const field = document.querySelector('[name=text]'), began = performance.now();
    field.value = word; field.dispatchEvent(new Event('input'));
    document.body.offsetHeight; return performance.now() - began; }"""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_report_of_ten_thousand_rows_paints_at_once(opening: Open, whole: Path) -> None:
    page = opening(whole / "report.html")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 3000, "milliseconds; the budget is 1000 on a quiet machine"
