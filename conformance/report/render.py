"""Pages from templates: one file each, with one style, at most one script, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..model.verdicts import COLOURS, LABELS, MARKS
from ..system.terminal import count_noun
from ..system.text import name_first, shorten
from ..verdict.sentences import describe_failures
from ..verdict.standing import count_tests
from .rows import format_counts
from .wording import format_time, visible

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"
BEGIN_OF_PAGE = '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
"""The beginning of every page that this suite writes."""
_STYLE, _STYLE_DIGEST = "<!--style-->", "<!--style digest-->"
"""Their places: the style follows from the page. No value can hold these texts, because they would be escaped."""
_CLASSES = re.compile(r"class=(?:([\w-]+)|\"([^\"]*)\")")
_SCRIPTS = re.compile(r"(?s)<script>.*?</script>")
_END_OF_SCRIPT = re.compile("<([/!])")
_RULES = re.compile(r"([^{}]+)\{[^{}]*\}")


def render_page(
    template: str, files: Sequence[str] = (), foot: str = "", style: str = "style.css", code: str = "", **values: object
) -> str:
    """Render a page from a template, with the scripts and styles named inside. Any text in `values` only shows.

    `code`: JavaScript that comes before these scripts; nothing in its texts can end the element.
    `foot`: a line for the foot of each printed page; it keeps only letters, digits and what a date or a digest needs.
    """
    from markupsafe import Markup

    own = [name for name in files if name.endswith(".css")]
    css = "".join(map(_read_style, [style, *own])) + (_printed_foot(foot) if foot else "")
    script = _END_OF_SCRIPT.sub(r"<\\\1", code) + "".join(_read(name) for name in files if name not in own)
    scripts = {"script": Markup(script), "script_digest": _digest(script)}
    page = _environment().get_template(template).render(
        style=Markup(_STYLE), style_digest=Markup(_STYLE_DIGEST), **scripts, **values
    )  # fmt: skip
    css = _prune_style(css, page)
    return page.replace(_STYLE, css, 1).replace(_STYLE_DIGEST, _digest(css), 1)


def _printed_foot(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9 :,.+-]", "", text)
    return f'@page {{ @bottom-left {{ content: "{plain}"; font: 8pt system-ui,sans-serif; color: #57606a; }} }}\n'


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    def show(value: object) -> object:
        """Keep markup of the templates; write out characters that act instead of showing."""
        return value if isinstance(value, Markup) else visible(value)

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=show,
        loader=FunctionLoader(_read),
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.globals |= {"marks": MARKS, "colours": COLOURS, "labels": LABELS}
    environment.filters |= {"count_noun": count_noun, "shorten": shorten, "visible": visible, "counts": format_counts}
    environment.filters["name_first"] = name_first
    environment.filters["as_time"] = format_time
    environment.filters["failures"] = describe_failures
    environment.filters["tests"] = count_tests
    return environment


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _read_style(name: str) -> str:
    """A style without the spaces that only its readers need, as it is in each certificate that was issued."""
    text = _read(name)
    return re.sub(r"\s*([{};,>])\s*|(:)\s+", r"\1\2", text).replace(";}", "}") + "\n"


def _prune_style(css: str, page: str) -> str:
    """A style without the rules for classes that neither the elements of a page nor its scripts name."""
    names = {name for one, many in _CLASSES.findall(page) for name in (one or many).split()}
    names.update(re.findall(r"[\w-]+", "".join(_SCRIPTS.findall(page))))
    return _RULES.sub(lambda rule: rule[0] if any(map(names.issuperset, _classes_of(rule[1]))) else "", css)


@cache
def _classes_of(selectors: str) -> Sequence[Set[str]]:
    """The classes that each selector of a rule needs on a page; none for one with parentheses, which always stays."""
    plain = (re.sub(r":not\([^)]*\)", "", selector) for selector in selectors.split(","))
    return [frozenset(() if "(" in each else re.findall(r"\.([a-zA-Z][\w-]*)", each)) for each in plain]


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
