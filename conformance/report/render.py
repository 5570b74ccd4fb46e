"""Pages from templates, with a policy that allows their own styles and scripts and nothing else.

A page of a run is complete in one file, which people pass on. The pages of a site share files: each page would repeat
20 KB of them, a tenth of the site.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__
from ..model.verdicts import APPEARANCES, COLOURS, LABELS, MARKS
from ..system.terminal import count_noun
from ..system.text import shorten
from ..verdict.sentences import describe_failures
from ..verdict.standing import count_tests
from .row_results import format_counts
from .wording import format_time, visible

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"
BEGIN_OF_PAGE = '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
"""The beginning of every page that this suite writes."""
BEGIN_OF_ASSET = "/* reshape-conformance: a part of the pages of this site */\n"
ASSETS = "assets"
"""The folder of a site with the files that its pages share."""
_SITE = {
    "Results": "index.html", "Documents": "spec/index.html", "Playground": "playground.html", "Compare": "compare.html",
    "Certificates": "register.html", "Docs": "docs/index.html", "Source": "docs/index.html#source",
}  # fmt: skip
"""What the menu of each published page leads to. A site has all of these, except results if no run is published."""
_END_OF_SCRIPT = re.compile("<([/!])")


def render_page(
    template: str, foot: str, files: Sequence[str] = (), *, menu: Menu | None = None, here: str = "",
    style: str = "style.css", code: str = "", **values: object,
) -> str:  # fmt: skip
    """Render a page from a template, with the scripts and styles named inside. Any text in `values` only shows.

    `foot`: what `format_foot` returns; printed on each sheet too.
    `menu`: what `menu_of` returns, or None for a page without a site around it; `here`: the entry of this page.
    `code`: JavaScript that comes before these scripts; nothing in its texts can end the element.
    """
    from markupsafe import Markup

    styles = ["frame.css", style, *(name for name in files if name.endswith(".css"))]
    scripts = [name for name in files if name not in styles]
    printed_foot = re.sub(r"[^A-Za-z0-9 :;,.+-]", "", foot)
    css = f'@page {{ @bottom-left {{ content: "{printed_foot}"; font: 8pt system-ui,sans-serif; color: #57606a; }} }}\n'
    script = _END_OF_SCRIPT.sub(r"<\\\1", code)
    if menu is None:
        css, script = "".join(map(_read_style, styles)) + css, script + "".join(map(_read, scripts))
        styles, scripts = [], []
    else:
        styles, scripts = ([f"{menu.root}{ASSETS}/{name}" for name in names] for names in (styles, scripts))
    return _make_environment().get_template(template).render(
        style=Markup(css), style_digest=_digest(css), script=Markup(script), script_digest=_digest(script),
        style_files=styles, script_files=scripts, foot=foot, menu=menu, here=here, **values,
    )  # fmt: skip


def list_assets() -> Mapping[str, str]:
    """Return the files that the pages of a site share, by name."""
    names = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".css", ".js"))
    return {name: BEGIN_OF_ASSET + (_read_style(name) if name.endswith(".css") else _read(name)) for name in names}


class Menu(NamedTuple):
    root: str
    """The way to the folder of the site."""
    pages: Mapping[str, str]


def menu_of(root: str, runs: bool = True) -> Menu:
    """Return the menu of a page of a site. `root`: the way to the folder of the site; `runs`: results are published."""
    names = {name: page for name, page in _SITE.items() if runs or name not in ("Results", "Compare")}
    first = names.get("Results", names["Docs"])
    return Menu(root, {name: f"{root}{page}" for name, page in {"Reshape conformance": first, **names}.items()})


def format_foot(digest: str, *facts: str, version: str = __version__, of: str = "suite") -> str:
    """Write the suite by version and digest, its licence, and further facts, such as a date."""
    return "; ".join([f"reshape-conformance {version}, licence Apache-2.0", f"{of} {digest[:12]}", *facts])


class Site(NamedTuple):
    """The facts that each page of a site shows beside its own contents."""

    suite: str
    """The digest."""
    newest: str
    """The day of the newest run; empty if no run is published."""

    def frame(self, root: str, here: str) -> dict[str, Any]:
        """Return foot and menu of a page, as `render_page` takes them. `root`: the way to the folder of the site."""
        newest = (f"newest run on {self.newest}",) if self.newest else ()
        foot, menu = format_foot(self.suite, *newest), menu_of(root, bool(self.newest))
        return {"foot": foot, "menu": menu, "here": here}


@cache
def _make_environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    def show(value: object) -> object:
        """Keep markup of the templates; write out characters that act instead of showing."""
        return value if isinstance(value, Markup) else visible(value)

    def keep_lines(text: str) -> Markup:
        """Keep the lines of a text for an element that shows them, with no more marked up than must be."""
        return Markup("\n".join(escape(visible(line), quote=False) for line in text.splitlines()))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=show,
        loader=FunctionLoader(_read),
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.globals |= {"marks": MARKS, "colours": COLOURS, "labels": LABELS, "verdicts": APPEARANCES}
    environment.filters |= {
        "count_noun": count_noun, "shorten": shorten, "visible": visible, "counts": format_counts,
        "preformatted": keep_lines, "as_time": format_time, "failures": describe_failures, "tests": count_tests,
    }  # fmt: skip
    return environment


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _read_style(name: str) -> str:
    """Return a style without the spaces that only its readers need, as it is in each certificate that was issued."""
    text = _read(name)
    return re.sub(r"\s*([{};,>])\s*|(:)\s+", r"\1\2", text).replace(";}", "}") + "\n"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
