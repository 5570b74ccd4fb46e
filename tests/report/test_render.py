"""Each page holds the style of what is on it, and a policy that names that style."""

import re

import pytest

from conformance.report.render import FOLDER
from tests.builders import Right, Wrong, plan_as_bundled, report_run

CLASS = re.compile(r"\.([a-zA-Z][\w-]*)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report of a backend that conforms, and that of one that does not."""
    folder = tmp_path_factory.mktemp("pages")
    plan = plan_as_bundled(folder)
    for name, adapter in (("right", Right()), ("wrong", Wrong())):
        report_run(plan, adapter, folder / name)
    return {name: (folder / name / "report.html").read_text(encoding="utf-8") for name in ("right", "wrong")}


def style_of(page: str) -> str:
    _, style, _ = re.split(r"</?style>", page)
    return style


def test_a_page_has_each_rule_whose_classes_are_on_it(pages: dict[str, str]) -> None:
    whole = (FOLDER / "style.css").read_text(encoding="utf-8")
    style = style_of(pages["wrong"])
    on_page = set(" ".join(map("".join, re.findall(r'class=(?:"([^"]*)"|([\w-]+))', pages["wrong"]))).split())
    used = {name for name in CLASS.findall(whole) if name in on_page}
    assert {"pic", "fail", "wide"} <= used
    for name in used:
        assert len(re.findall(rf"\.{name}(?![\w-])", style)) >= 1, name


def test_pictures_are_drawn_only_where_there_are_failures(pages: dict[str, str]) -> None:
    assert {name: "class=pic" in page for name, page in pages.items()} == {"right": False, "wrong": True}
