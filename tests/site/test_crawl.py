"""A whole site, link by link."""

import re
from pathlib import Path

import pytest

from conformance.load.spec import load_spec
from tests.site.test_documents import PageLinks, list_broken_links, list_reached_files

MENU = ["Reshape conformance", "Results", "Documents", "Playground", "Compare", "Certificates", "Docs", "Source"]


@pytest.fixture(scope="module")
def pages(small_site: Path) -> dict[str, str]:
    return {str(path.relative_to(small_site)): path.read_text(encoding="utf-8") for path in small_site.rglob("*.html")}


@pytest.mark.slow
def test_no_link_is_dead_and_every_file_is_reached(small_site: Path) -> None:
    assert list_broken_links(small_site) == []
    files = {path for path in small_site.rglob("*") if path.is_file()}
    assert files - list_reached_files(small_site / "index.html") == set()


@pytest.mark.slow
def test_every_page_has_menu_foot_description_and_icon(pages: dict[str, str]) -> None:
    assert len(pages) > 40
    for name, text in pages.items():
        menu = re.search(r'(?s)<nav class=site aria-label="This site">(.*?)</nav>', text)
        assert menu is not None, name
        assert re.findall(r">([^<>]+)</a>", menu[1]) == MENU, name
        assert re.search(r"<footer class=foot>reshape-conformance [\d.]+, licence Apache-2.0; suite d{12}", text), name
        assert re.search(r'<meta name="description" content="[^"]{20,}"', text), name
        assert '<link rel="icon" href="data:image/svg+xml,' in text, name
        assert len(re.findall(r"<h1[ >]", text)) == 1, name
        assert '<link rel=stylesheet href="' in text, name


def test_a_document_has_one_name_on_all_pages(pages: dict[str, str]) -> None:
    """Its own title and its edition, not the name of its operation."""
    spec = load_spec(None)
    others = {f"{each.operation}, {each.edition}" for each in spec.documents.values()}
    others -= {f"{each.title}, {each.edition}" for each in spec.documents.values()}
    assert len(others) == 4
    assert [name for name, text in pages.items() if any(other in text for other in others)] == []
    assert [name for name, text in pages.items() if "docs/" not in name and "published text" in text] == []


@pytest.mark.parametrize("name", ["rules.html", "compare.html", "unspecified.html"])
def test_a_page_has_the_name_of_the_link_to_it(pages: dict[str, str], name: str) -> None:
    (heading,) = re.findall("<h1>(.*?)</h1>", pages[name])
    assert f'<li><a href="{name}">{heading}</a></li>' in pages["index.html"]


def test_the_first_publication_leads_from_docs_to_results(small_site: Path) -> None:
    pytest.importorskip("markdown_it", reason="no markdown-it-py: pip install markdown-it-py")
    linked = set(PageLinks(small_site / "docs" / "reports.html").links)
    assert linked >= {"../index.html", "../compare.html", "../rules.html", "../unspecified.html"}


def test_a_page_of_no_site_has_no_menu_and_needs_no_other_file(small_site: Path) -> None:
    text = (small_site.parent / "right-1" / "report.html").read_text(encoding="utf-8")
    assert "class=site" not in text
    assert "assets/" not in text
    assert "<footer class=foot>" in text
