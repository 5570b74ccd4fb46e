"""The site of the documentation: it has every page, its links hold, and it loads nothing from elsewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from tests.builders import ROOT
from tests.site.test_documents import PageLinks

pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="only a clone has the site's settings")
OWN = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md")
FOLDERS = ("adapters", "cases", "examples", "reports", "spec")


def pages() -> list[str]:
    """The Markdown files that readers are sent to."""
    docs = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")]
    return sorted([*OWN, *docs, *(f"{folder}/README.md" for folder in FOLDERS)])


def page_of(name: str) -> str:
    return re.sub(r"README\.html$", "index.html", re.sub(r"\.md$", ".html", name))


def entries(menu: Any) -> Iterator[str]:
    for value in menu if isinstance(menu, list) else menu.values():
        if isinstance(value, str):
            yield value
        else:
            yield from entries(value)


def test_every_page_is_in_the_menu_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(entries(settings["nav"])) == pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None:
        pytest.skip("there is no mkdocs here; the extra [docs] installs it")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_every_link_leads_to_a_file_and_an_anchor(site: Path) -> None:
    found = {site / page_of(name): PageLinks(site / page_of(name)) for name in pages()}
    broken = []
    for page, links in found.items():
        for link in [*links.links, *links.loaded]:
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if "://" in link:
                continue
            if not target.is_file() or (anchor and target in found and anchor not in found[target].anchors):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []
    assert sum(len(links.links) for links in found.values()) > 100


@pytest.mark.slow
def test_the_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for name in pages():
        assert [link for link in PageLinks(site / page_of(name)).loaded if "//" in link] == [], name


@pytest.mark.slow
@pytest.mark.parametrize("name", pages())
def test_every_table_list_and_block_of_code_is_one_on_the_page(site: Path, name: str) -> None:
    """GitHub reads a table or a list after a line of text; mkdocs needs an empty line before it."""
    text = (ROOT / name).read_text(encoding="utf-8")
    html = (site / page_of(name)).read_text(encoding="utf-8").partition('role="main"')[2].partition("<footer")[0]
    fenced = re.findall(r"^```\w*\n.*?^```$", text, re.MULTILINE | re.DOTALL)
    for block in fenced:
        text = text.replace(block, "")
    assert html.count("<table") == len(re.findall(r"^\|[-:| ]+\|$", text, re.MULTILINE))
    assert html.count("<pre>") >= len(fenced)
    assert not re.search(r"^\s*(<p>)?(\| |```|- )", re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL), re.MULTILINE)
