"""The annotated specification: each rule of a document in the order of its lines, and links that lead somewhere."""

import re
from pathlib import Path

import pytest

from conformance.load.spec import load_spec
from conformance.site.documents import CASES, DIFFERENCES, INDEX
from tests import builders
from tests.builders import DOCUMENTS, Cli
from tests.report.page import Page


class PageLinks(Page):
    """The anchors of a page in a file, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.read_text(encoding="utf-8"))
        self.anchors = {*self.values("id"), *self.values("name")}
        leading = [(tag, value) for tag, name, value in self.attributes if name in ("src", "href")]
        self.links = [value for tag, value in leading if tag == "a"]
        self.loaded = [value for tag, value in leading if tag != "a"]


def list_reached_files(start: Path) -> set[Path]:
    """List the files that links lead to, from a page on."""
    reached, todo = {start}, [start]
    while todo:
        path = todo.pop()
        page = PageLinks(path) if path.suffix == ".html" else None
        for link in (*page.links, *page.loaded) if page else ():
            to = (path.parent / link.partition("#")[0]).resolve()
            if ":" not in link and to.is_file() and to not in reached:
                reached.add(to)
                todo.append(to)
    return reached


def list_broken_links(folder: Path) -> list[str]:
    """List the links in the pages of a folder that lead to no page or to no place on it."""
    pages = {path: PageLinks(path) for path in folder.rglob("*.html")}
    assert sum(len(page.links) for page in pages.values()) > 50
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            target, _, place = link.partition("#")
            to = (path.parent / target).resolve() if target else path
            named = place and "=" not in place  # `#src=2,3&…` fills in a form
            found = place in pages[to].anchors if named and to in pages else to.is_file()
            broken += [] if re.match("https?:|data:", link) or found else [f"{path.name}: {link}"]
    return broken


@pytest.fixture
def site(bundled_site: Path) -> Path:
    return bundled_site / "spec"


@pytest.mark.slow
def test_every_document_has_a_page_with_links(site: Path) -> None:
    names = {INDEX, DIFFERENCES, CASES, *(f"{name}.html" for name in DOCUMENTS)}
    assert {path.name for path in site.iterdir()} == names
    for path in site.iterdir():
        assert "script" not in PageLinks(path).tags
    assert list_broken_links(site.parent) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_rules_are_in_the_order_of_the_lines_that_state_them(site: Path, document: str) -> None:
    text = (site / f"{document}.html").read_text().partition('<section id="findings">')[0]
    sections = re.split(r'<section id="rule-', text)[1:]
    lines = [int(found[1]) for section in sections if (found := re.search(r"line (\d+): “", section))]
    assert len(lines) > 8
    assert lines == sorted(lines)
    names = {section.partition('"')[0] for section in sections}
    assert names >= {rule.id for rule in load_spec().rules.values() if document in rule.documents}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_page_of_a_document_says_where_it_is_published(site: Path, document: str) -> None:
    edition, origin = load_spec().documents[document].edition, load_spec().documents[document].origin
    assert origin is not None
    text = (site / f"{document}.html").read_text()
    heading = re.search(r"<h1>(.*?)</h1>", text)
    assert heading is not None
    assert heading[1].endswith(f", {edition}")
    assert all(fact in text for fact in (origin.repository, origin.path, origin.added, *origin.releases))
    assert ("in force" in text.partition("<details")[0]) == (origin.in_force is not None)
    assert edition in (site / INDEX).read_text()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_page_says_what_is_not_tested_and_draws_each_call_once(site: Path, document: str) -> None:
    text = (site / f"{document}.html").read_text()
    untested = text.partition("<section id=untested>")[2]
    assert all(prose.reason in untested for prose in load_spec().documents[document].prose)
    free = {rule.id for rule in load_spec().rules.values() if rule.level == "may" and document in rule.documents}
    assert set(re.findall(r">([\w-]+)</a>: a freedom", untested)) == free
    pictures = re.findall(r'<svg class=pic [^>]*aria-label="([^"]*)"', text)
    assert len(pictures) == len(set(pictures)) > 3
    assert all(re.search(r"shape .*(-1|\b0\b)", label) for label in pictures), "literal lengths need no picture"
    examples = re.findall(r"For example <code>src (\w+)\[.*?</code>: (?:unspecified by .*, but )?(\w+)\[", text)
    assert "f32" in dict(examples)
    assert all(src == dst for src, dst in examples)


def test_the_page_of_differences_begins_with_one(site: Path) -> None:
    first = re.search(r"<tbody>\s*<tr[^>]*>(.*?)</tr>", (site / DIFFERENCES).read_text(), re.DOTALL)
    assert first is not None
    words = re.findall(r"<td[^>]*>(?:<(?:a|span)[^>]*>)?([^<]*)", first[1])
    assert len(words) == len(DOCUMENTS)
    assert len(set(words)) > 1


def test_differences_come_first_and_no_cell_is_empty(site: Path) -> None:
    page = (site / DIFFERENCES).read_text()
    differing, _, agreed = page.partition("<details class=")
    ids = re.findall('<tr id="?rule-([a-z-]+)', differing)
    assert [each.startswith("zero-") for each in ids[:4]] == [True, True, True, False], "rules about a 0 are together"
    assert not re.search(r"<td[^>]*>\s*</td>", page)
    line = re.search(r"<tr id=\"?rule-zero-empties.*?</tr>", differing, re.DOTALL)
    assert line is not None
    assert re.search(r"data-d=\"?static-oneapi\"?><span class=\"?sub\"?>no such rule", line[0])
    both = ids + re.findall('<tr id="?rule-([a-z-]+)', agreed)
    assert sorted(both) == sorted(load_spec().rules)
    for _, cells in re.findall(r"<tr id=\"?rule-([a-z-]+)(.*?)</tr>", agreed, re.DOTALL):
        assert len(set(re.findall(r"<td[^>]*><[^>]*>([^<]*)", cells))) == 1


def test_a_case_names_the_published_backends_that_fail_it(tmp_path: Path, cli: Cli) -> None:
    suite = builders.write_suite(tmp_path)
    run = ("run", "planted:first-infer-wins", "--drawn-rows", 0, "--suite", suite, "--out", tmp_path / "run")
    cli(*run).expect(1)
    reports = tmp_path / "reports"
    cli("publish", reports, tmp_path / "run", "--suite", suite)
    folder = next(reports.glob("*/results.jsonl.xz")).parent
    page = (reports / "spec" / CASES).read_text()
    assert re.search(r'fails on <a href="../compare.html#case-two-infers">1 backend</a>', page)
    assert 'id="case-two-infers"' in (folder / "report.html").read_text()
    assert page.count("fails on") == 1, "the others pass"


def test_a_page_counts_the_cases_that_fail_in_its_document(tmp_path: Path, cli: Cli) -> None:
    """The call is illegal in two documents, and unspecified in those that bind the rule of the case."""
    suite = builders.write_suite(tmp_path, builders.FOUR_CASES.replace("zero-meets-infer", "infer-undetermined"))
    run = ("run", "planted:zero-meets-infer", "--drawn-rows", 0, "--suite", suite, "--out", tmp_path / "run")
    cli(*run).expect(1, out="zero-beside-infer")
    cli("publish", tmp_path / "reports", tmp_path / "run", "--suite", suite)
    text = (tmp_path / "reports" / "spec" / "static-oneapi.html").read_text()
    assert re.findall(r'#cases-of-infer-undetermined">1 case</a> tries it; backends fail (\w+)', text) == ["none"]
