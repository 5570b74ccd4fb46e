"""README and its companions as pages of the site, for whoever publishes from a clone of the repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from itertools import count, pairwise
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any, NamedTuple

from ..report.render import Site, render_page
from ..system.files import read_bytes, replace_bytes, replace_pages
from ..system.groups import group_pairs

if TYPE_CHECKING:
    from markdown_it.token import Token

FOLDER, INDEX, REPORTS = "docs", "index.html", "reports"
_ROOT = Path(__file__).resolve().parents[2]
_START = "README.md"
_TEXTS = ("docs/*.md", "[!.]*/README.md", "*.md")
_READER = re.compile(r"(?m)^\| (.+?) \| (.*\]\(.*) \|$")
"""A row of README that says who starts at which pages."""
_LINK = re.compile(r"\]\(([^)#\s]+\.md)")
_NO_CLONE = "the suite that wrote this site was installed without its docs; publish from a clone of the repository"
_NO_MARKDOWN = "markdown-it-py is not installed; `pip install 'reshape-conformance[site]'`, and publish again"


class MarkdownPage(NamedTuple):
    file: str
    title: str
    first: str
    """Its first paragraph."""
    html: str
    reader: str
    """Who starts there, as README says; empty for README and for pages that are for nobody in particular."""


def write_markdown_pages(folder: Path, site: Site) -> None:
    """Write the pages and the files that they link to; if there is no way to make them, the first page says why."""
    from markupsafe import Markup

    pages, why_none = [], _NO_CLONE
    if (_ROOT / FOLDER / "architecture.md").is_file():
        try:
            pages, why_none = _render(list_sources(), folder.parent), ""
        except ImportError:
            why_none = _NO_MARKDOWN
    pages = pages or [MarkdownPage(INDEX, "Docs", "", "", "")]
    menu_of_docs = group_pairs((page.reader, page) for page in pages)
    source, frame = _find_source(), site.frame("../", "Docs")
    texts = {
        page.file: render_page(
            "markdown.html", **frame, page=page, menu_of_docs=menu_of_docs, index=INDEX, html=Markup(page.html),
            why_none=why_none, source=source,
        )
        for page in pages
    }  # fmt: skip
    replace_pages(folder, texts)


def list_sources() -> list[str]:
    """List the Markdown files: README, where each of its readers starts, and the others."""
    files = [str(path.relative_to(_ROOT).as_posix()) for pattern in _TEXTS for path in sorted(_ROOT.glob(pattern))]
    return [each for each in dict.fromkeys((_START, *_list_readers(), *files)) if each in files]


def _list_readers() -> dict[str, str]:
    """List the files that README names for a reader, each with the first of its readers."""
    readers: dict[str, str] = {}
    for reader, links in _READER.findall((_ROOT / _START).read_text(encoding="utf-8")):
        for file in _LINK.findall(links):
            readers.setdefault(file, reader)
    return readers


def page_of(source: str) -> str:
    path = PurePosixPath(source)
    if source == _START:
        return INDEX
    return f"{(path.parent.name if path.name == _START else path.stem).lower()}.html"


def _render(sources: Sequence[str], site: Path) -> list[MarkdownPage]:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    readers, pages = _list_readers(), []
    for source in sources:
        tokens = parser.parse((_ROOT / source).read_text(encoding="utf-8"))
        anchors: dict[str, int] = {}
        for head, inline in pairwise(tokens):
            if head.type == "heading_open":
                anchor = re.sub(r"[^\w\- ]", "", _text_of(inline).lower()).replace(" ", "-")  # as GitHub does
                anchors[anchor] = again = anchors.get(anchor, -1) + 1
                head.attrSet("id", f"{anchor}-{again}" if again else anchor)
            if inline.type == "inline":
                _lead_links(inline, source, sources, site)
        title = next((_text_of(token) for token in tokens if token.type == "inline"), source)
        first = next((_text_of(inline) for head, inline in pairwise(tokens) if head.type == "paragraph_open"), "")
        numbers = count(1)
        html = re.sub(
            "<table>",
            lambda _: f'<div class=wide tabindex=0 role=region aria-label="Table {next(numbers)}"><table>',  # noqa: B023
            parser.renderer.render(tokens, parser.options, {}),
        )
        html = html.replace("</table>", "</table></div>").replace("<th></th>", "<td></td>")
        pages.append(MarkdownPage(page_of(source), title, first, html, readers.get(source, "")))
    return pages


def _text_of(inline: Token) -> str:
    return "".join(" " if each.type == "softbreak" else each.content for each in inline.children or ())


def _lead_links(inline: Token, source: str, sources: Sequence[str], site: Path) -> None:
    """Let links and pictures lead to pages and files of the site; a link to what is not there becomes its text."""
    dropped = False
    for token in inline.children or ():
        if token.type == "link_close" and dropped:
            token.tag, dropped = "span", False
        name = "src" if token.type == "image" else "href"
        path, _, anchor = str(token.attrs.get(name, "")).partition("#")
        if not path or ":" in path:
            continue
        target = normpath(PurePosixPath(source).parent / path)
        to = _find_target(target, sources, site)
        if to is None:
            token.tag, dropped = "span", True
            del token.attrs[name]
        else:
            token.attrSet(name, f"{to}#{anchor}" if anchor else to)


def _find_target(target: str, sources: Sequence[str], site: Path) -> str | None:
    """Return the link from a page to what is `target` in the repository; a file is copied beside the pages."""
    if target in sources:
        return page_of(target)
    if target.startswith(f"{REPORTS}/"):
        published = target.removeprefix(f"{REPORTS}/")
        return f"../{published}" if (site / published).is_file() else None
    if not (_ROOT / target).is_file():
        return None
    replace_bytes(site / FOLDER / "files" / target, read_bytes(_ROOT / target))
    return f"files/{target}"


def _find_source() -> str | None:
    """Return the address of the repository, if pyproject.toml names one."""
    with suppress(PackageNotFoundError):
        urls: list[Any] = metadata("reshape-conformance").get_all("Project-URL") or []
        for name, _, url in (each.partition(", ") for each in urls):
            if name in ("Source", "Repository"):
                return str(url)
    return None
