"""Each page holds the rules of style for what is on it, and no others."""

import base64
import hashlib
import re

import pytest

from conformance.report.render import FOLDER
from tests.builders import Right, Wrong, finish_run, plan_as_bundled

CLASS = re.compile(r"\.([a-zA-Z][\w-]*)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report of a backend that conforms, and that of one that does not."""
    folder = tmp_path_factory.mktemp("pages")
    plan = plan_as_bundled(folder)
    for name, adapter in (("right", Right()), ("wrong", Wrong())):
        finish_run(plan, adapter, folder / name)
    return {name: (folder / name / "report.html").read_text(encoding="utf-8") for name in ("right", "wrong")}


def split(page: str) -> tuple[str, set[str]]:
    """The style of a page, and the words of all else on it."""
    before, style, after = re.split(r"</?style>", page)
    return style, set(re.findall(r"[\w-]+", before + after))


@pytest.mark.parametrize("name", ["right", "wrong"])
def test_a_page_has_no_rule_for_a_class_that_is_not_on_it(pages: dict[str, str], name: str) -> None:
    style, words = split(pages[name])
    rules = [re.sub(r":not\([^)]*\)", "", selectors) for selectors in re.findall(r"([^{}]+)\{[^{}]*\}", style)]
    unused = [
        selectors for selectors in rules
        if "(" not in selectors and not any(words.issuperset(CLASS.findall(each)) for each in selectors.split(","))
    ]  # fmt: skip
    assert unused == []


def test_a_page_has_each_rule_whose_classes_are_on_it(pages: dict[str, str]) -> None:
    whole = (FOLDER / "style.css").read_text(encoding="utf-8")
    style, _ = split(pages["wrong"])
    on_page = set(" ".join(map("".join, re.findall(r'class=(?:"([^"]*)"|([\w-]+))', pages["wrong"]))).split())
    used = {name for name in CLASS.findall(whole) if name in on_page}
    assert {"pic", "v", "fail", "wide"} <= used
    for name in used:
        assert len(re.findall(rf"\.{name}(?![\w-])", style)) >= 1, name


def test_pictures_are_drawn_only_where_there_are_failures(pages: dict[str, str]) -> None:
    """The policy names the style that is there."""
    assert {name: ".pic" in split(page)[0] for name, page in pages.items()} == {"right": False, "wrong": True}
    assert {name: "class=pic" in page for name, page in pages.items()} == {"right": False, "wrong": True}
    for page in pages.values():
        digest = base64.b64encode(hashlib.sha256(split(page)[0].encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in page
