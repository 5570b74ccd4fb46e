"""The documentation as pages of the site: each link of the Markdown files leads to a page or a file."""

import re
from pathlib import Path

import pytest

from conformance.load.faults import load_faults
from conformance.site import markdown_pages
from tests.builders import ROOT, Cli
from tests.site.test_documents import PageLinks

pytest.importorskip("markdown_it", reason="no markdown-it-py: pip install markdown-it-py")
pytestmark = pytest.mark.skipif(not (ROOT / "docs" / "architecture.md").is_file(), reason="only a clone has docs/")
SOURCES = markdown_pages.list_sources() if (ROOT / "docs").is_dir() else []


def test_every_markdown_file_is_a_page_that_all_pages_lead_to(bundled_site: Path) -> None:
    files = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("[!.]*/README.md")}
    pages = {path.name for path in (bundled_site / "docs").glob("*.html")}
    assert len(files) == len(pages) > 15
    for page in pages:
        assert pages <= set(PageLinks(bundled_site / "docs" / page).links)


def test_the_menu_says_who_starts_where(bundled_site: Path) -> None:
    menu = (bundled_site / "docs" / "ci.html").read_text(encoding="utf-8").split("<main", 1)[0]
    groups = re.split(r"<p>You (.*?)</p>", menu)
    own = dict(zip(groups[1::2], groups[2::2], strict=True))
    assert 'href="ci.html" aria-current=page' in own["run it in CI"]
    assert "adapters.html" in own["have a backend"]
    assert "changelog.html" in groups[0]


@pytest.mark.parametrize("source", SOURCES)
def test_a_link_of_a_text_is_a_link_of_its_page(bundled_site: Path, source: str) -> None:
    """Only a link to a report that this site lacks becomes its text."""
    text = re.sub(r"(?ms)^```.*?^```|`[^`\n]+`", "`code`", (ROOT / source).read_text(encoding="utf-8"))
    written = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.search(r"reports/|\.html|\.png", link)]
    page = PageLinks(bundled_site / "docs" / markdown_pages.page_of(source))
    menu = page.links.index(markdown_pages.page_of(SOURCES[-1])) + 1
    shown = page.links[menu:]
    assert len([link for link in shown if link != "#source"]) >= len(written)
    for link in written:
        anchor = link.partition("#")[2]
        assert link in shown if ":" in link else any(each.partition("#")[2] == anchor for each in shown), link


@pytest.mark.parametrize("source", SOURCES)
def test_every_table_and_block_of_code_is_one_on_the_page(bundled_site: Path, source: str) -> None:
    text = (ROOT / source).read_text(encoding="utf-8")
    html = (bundled_site / "docs" / markdown_pages.page_of(source)).read_text(encoding="utf-8")
    fenced = re.findall(r"(?ms)^```\w*\n.*?^```$", text)
    for block in fenced:
        text = text.replace(block, "")
    assert html.count("<table") == len(re.findall(r"(?m)^\|[-:| ]+\|$", text))
    assert html.count("<pre>") >= len(fenced)
    assert not re.search(r"(?m)^\s*(<p>)?(\| |```|- )", re.sub(r"(?s)<pre>.*?</pre>", "", html))


def test_a_fault_leads_to_a_heading_of_what_we_would_report(bundled_site: Path) -> None:
    links = {fault.link.partition("#") for fault in load_faults() if fault.link and not fault.link.startswith("https:")}
    assert links
    for source, _, anchor in links:
        assert anchor in PageLinks(bundled_site / "docs" / markdown_pages.page_of(f"docs/{source}")).anchors


def test_a_file_without_text_is_a_page_with_its_name(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("docs/architecture.md", "README.md", "NOTES.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (site := tmp_path / "site").mkdir()
    monkeypatch.setattr(markdown_pages, "_ROOT", tmp_path)
    cli("publish", site).expect(0)
    assert "<title>NOTES.md</title>" in (site / "docs" / "notes.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("missing", ["markdown-it-py is not installed", "was installed without its docs"])
def test_a_site_without_docs_says_why(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    if missing.startswith("markdown"):
        monkeypatch.setitem(__import__("sys").modules, "markdown_it", None)
    else:
        monkeypatch.setattr(markdown_pages, "_ROOT", tmp_path)
    cli("publish", tmp_path).expect(0)
    (page,) = (tmp_path / "docs").glob("*")
    assert missing in page.read_text(encoding="utf-8")
    assert "#docs" not in PageLinks(page).links, "one page needs no menu"
    assert "source" in PageLinks(page).anchors
