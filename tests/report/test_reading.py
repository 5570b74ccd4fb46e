"""A reader of a report in a browser: the way to the first failure, links, search, commands and paper."""

from pathlib import Path
from typing import Any

import pytest

from .test_browser import KEYSTROKE, Open, chromium, opened, opening, pages, shown_cases

__all__ = ["chromium", "opened", "opening", "pages"]
pytestmark = pytest.mark.slow


def test_the_first_failure_is_at_most_twenty_stops_away(opened: Open) -> None:
    page = opened("report")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("Boolean(document.activeElement.closest('details.entry'))"):
            break
    assert page.evaluate("Boolean(document.activeElement.closest('details.entry'))")


def test_the_first_stop_skips_to_the_failures(opened: Open) -> None:
    page = opened("report")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("Boolean(document.activeElement.closest('details.entry'))")


@pytest.mark.parametrize("name", ["case-turns", "failure-turns"])
@pytest.mark.parametrize("script", [True, False])
def test_a_link_opens_its_card(opened: Open, name: str, script: bool) -> None:
    page = opened("report", f"#{name}", java_script_enabled=script)
    assert page.locator(f"#{name} table").first.is_visible()
    assert page.locator(f"#{name}").bounding_box()["y"] < 900


def test_search_finds_id_title_and_rule_and_not_every_text(opened: Open) -> None:
    page = opened("report")
    page.fill("[name=text]", "zero beside infer")
    page.wait_for_selector("#case-turns", state="hidden")
    assert shown_cases(page) == ["case-zero-beside-infer"]
    page.fill("[name=text]", "same-volume")
    page.wait_for_selector("#case-turns", state="visible")
    assert sorted(shown_cases(page)) == ["case-flattens", "case-turns"]
    page.fill("[name=text]", "special_zero")
    page.wait_for_selector("#case-turns", state="hidden")
    assert shown_cases(page) == []


def test_a_button_copies_the_command(opened: Open) -> None:
    page = opened("report")
    button = page.locator("details.entry[open] button.copy").first
    button.click()
    page.wait_for_timeout(200)
    assert button.inner_text() in ("Copied", "Selected")
    assert button.get_attribute("aria-label") == "Copy the command"
    assert opened("report", java_script_enabled=False).locator("button.copy").count() == 0


def test_forced_colours_keep_the_differing_elements_apart(opened: Open) -> None:
    page = opened("report", forced_colors="active")
    border = "e => getComputedStyle(e).borderTopWidth"
    assert page.eval_on_selector(".tag", border) == "2px"
    assert page.eval_on_selector(".bar", border) == "1px"


WORDS = ("c", "copies", "r", "rank", "zzz", "infer", "i", "")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["report.html", "compare.html"])
def test_a_keystroke_is_answered_at_once_on_a_slow_processor(opening: Open, whole: Path, name: str) -> None:
    page = opening(whole / name)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_timeout(2000)

    def milliseconds(word: str) -> float:
        """The time until the page is laid out, or that of its thread: other work on the machine adds to both."""
        page.evaluate(KEYSTROKE, "zero")
        before = thread_time(session)
        took = float(page.evaluate(KEYSTROKE, word))
        return min(took, 1000 * (thread_time(session) - before))

    slowest = max(min(milliseconds(word) for _ in range(8)) for word in WORDS)
    assert 4 * slowest < 100, "milliseconds, at a quarter of the speed"


def thread_time(session: Any) -> float:
    """Seconds of processor time of the thread that runs the page."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ThreadTime"])
