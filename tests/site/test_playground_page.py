"""The playground in a real browser: typing, links, wrong texts, the keyboard, and no script at all."""

from typing import Any

import pytest

from ..report.test_browser import Open, chromium, opened, opening, pages

__all__ = ["chromium", "opened", "opening", "pages"]
pytestmark = pytest.mark.slow


def fill(page: Any, src: str, shape: str, zero: str = "false") -> None:
    page.fill("[name=src]", src)
    page.fill("[name=shape]", shape)
    page.select_option("[name=special_zero]", zero)


def test_an_answer_is_there_at_once_and_sent_as_a_link(opened: Open) -> None:
    page = opened("playground")
    assert page.inner_text("output") == (
        "src [3, 4, 5], shape [0, -1], special_zero true: legal in all 5 documents, dst [3, 20]"
    )
    fill(page, "[4294967296, 4294967296]", "-1 4294967296 2")
    documents = "static-oneapi, static-graph-v0.9, static-spec-v0.9, reshape-spec-v0.7"
    assert page.inner_text("output").endswith(
        f"legal in {documents}, dst [2147483648, 4294967296, 2]; not expressible in dynamic-spec-v0.9"
    )
    page.wait_for_url("**/playground.html#src=4294967296,4294967296&shape=-1,4294967296,2&special_zero=false")
    again = opened("playground", page.evaluate("location.hash"))
    assert again.inner_text("output") == page.inner_text("output")
    assert again.inner_text("#answers") == page.inner_text("#answers")
    again.evaluate("location.hash = '#src=&shape=1&special_zero=true'")
    again.wait_for_selector("text=rank-zero")
    assert again.inner_text("output").startswith("src [], shape [1], special_zero true: unspecified in all 5 documents")
    again.go_back()
    again.wait_for_selector("text=not expressible in dynamic-spec-v0.9")


def test_a_clause_has_its_line_and_a_link_to_it(opened: Open) -> None:
    page = opened("playground", "#src=2,3&shape=0,-1&special_zero=false")
    assert page.locator("#answers .answer").first.inner_text().startswith("✗ illegal: a backend must reject it")
    assert "static-oneapi: stated, line 12 “The volume of \\src is”" in page.inner_text("#answers")
    assert page.locator(".answer svg").first.get_attribute("aria-label") == (
        "src [2, 3]; shape [0, -1] (entry 1 is -1, inferred); dst illegal"
    )
    page.click("a[href='spec/static-graph-v0.9.html#rule-zero-meets-infer']")
    page.wait_for_url("**/spec/static-graph-v0.9.html#rule-zero-meets-infer")
    assert page.locator(":target").is_visible()


NEAREST = (
    "Backends fail 1 of the 2 calls of this sort that were run. The nearest of these is "
    "src [2, 3], shape [3, 2], special_zero false, the case turns. 2 of 3 backends fail it:"
)
NOT_RUN = "This call is not among those that were run. "


@pytest.mark.parametrize(
    ("call", "says", "severity"),
    [
        (("2,3", "3,2"), "This call was run, as the case turns. 2 of 3 backends fail it:", "wrong answer"),
        (
            ("2,3", "6"),
            f"This call was run, as the case flattens. None of 3 backends fails it. {NEAREST}",
            "wrong answer",
        ),
        (("4,3", "6,2"), f"{NOT_RUN}{NEAREST}", "wrong answer"),
        (("4", "-1"), f"{NOT_RUN}No call of this sort was run.", ""),
        (("0,7", "0,-1"), "shape [0, -1], special_zero false, the case zero-beside-infer", "accepts an illegal call"),
    ],
)
def test_the_nearest_call_that_was_run_is_named(opened: Open, call: tuple[str, str], says: str, severity: str) -> None:
    page = opened("playground")
    fill(page, *call)
    found = page.locator(
        "section:has(h3)", has_text="static-graph-v0.9" if severity == "accepts an illegal call" else "In all 5"
    )
    text = " ".join(found.inner_text().split())
    assert says in text
    assert found.locator("dt, dd").all_inner_texts() == ([severity, "right 0.9, wrong 1"] if severity else [])
    if severity:
        link = found.locator("dd a").last
        href = link.get_attribute("href")
        assert href.startswith("wrong-1/report.html#case-")
        link.click()
        page.wait_for_url(f"**/{href}")
        assert page.locator(":target").is_visible()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("src", "2,,3", "An entry is empty."),
        ("src", "2,-1", "No tensor has a length below 0, such as -1; only shape takes -1."),
        ("shape", "[2", "“[” is not closed."),
        ("shape", "9223372036854775808", "“9223372036854775808” does not fit 64 bits."),
        ("shape", "n,3", "“n” is no number. For lengths with names, run “conformance meaning”."),
        ("shape", "2.5", "“2.5” is not a whole number."),
    ],
)
def test_a_wrong_text_is_answered_beside_its_field(opened: Open, name: str, text: str, says: str) -> None:
    page = opened("playground", "#src=6&shape=6&special_zero=true")
    page.fill(f"[name={name}]", text)
    field = page.locator(f"[name={name}]")
    assert field.get_attribute("aria-invalid") == "true"
    beside = page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert beside.inner_text() == says
    assert beside.get_attribute("aria-live") == "polite"
    assert not page.locator("#answers").is_visible()
    assert page.inner_text("output") == "No answer: see the message beside the field."
    page.wait_for_timeout(400)
    assert page.evaluate("location.hash") == "#src=6&shape=6&special_zero=true", "a link always leads to an answer"
    page.fill(f"[name={name}]", "6")
    assert field.get_attribute("aria-invalid") is None
    assert beside.inner_text() == ""
    assert "legal in all 5 documents, dst [6]" in page.inner_text("output")


def test_a_link_with_another_flag_asks_to_choose(opened: Open) -> None:
    page = opened("playground", "#src=6&shape=6&special_zero=maybe")
    assert page.inner_text("#special_zero-wrong") == "Choose true or false."
    page.select_option("[name=special_zero]", "true")
    assert page.inner_text("#special_zero-wrong") == ""
    assert "legal" in page.inner_text("output")


def test_the_keyboard_reaches_and_changes_everything(opened: Open) -> None:
    page = opened("playground")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.name || document.activeElement.tagName"))
        if reached[-1] == "src":
            page.keyboard.press("Control+a")
            page.keyboard.type("7,2")
            page.keyboard.press("Enter")
        if reached[-1] == "special_zero":
            page.keyboard.press("ArrowDown")
    assert [name for name in reached if name in ("src", "shape", "special_zero", "SUMMARY")][:3] == [
        "src", "shape", "special_zero",
    ]  # fmt: skip
    assert reached.count("SUMMARY") >= 2
    assert page.inner_text("output").startswith("src [7, 2], shape [0, -1], special_zero false: illegal in")


def test_a_call_of_a_finding_is_one_click_away(opened: Open) -> None:
    page = opened("playground")
    page.click("summary:has-text('show a finding')")
    page.click("a[href='playground.html#src=0,3&shape=0,-1&special_zero=false']")
    page.wait_for_selector("text=zero-meets-infer")
    assert page.input_value("[name=src]") == "0,3"


def test_sixty_four_dims_fit_a_narrow_window(opened: Open) -> None:
    page = opened("playground", f"#src={','.join(['9223372036854775807'] * 64)}&shape=-1&special_zero=true")
    page.set_viewport_size({"width": 360, "height": 800})
    assert str((2**63 - 1) ** 64) in page.inner_text("output")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert "rank-limit" in page.inner_text("#answers")


def test_without_scripts_the_page_says_what_it_needs(opened: Open) -> None:
    page = opened("playground", java_script_enabled=False)
    assert page.locator("noscript").inner_text().startswith("This page needs JavaScript.")
    assert not page.locator("#call").is_visible()
