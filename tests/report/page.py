"""A page that was written, for tests that look into it."""

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conformance.adapter import FunctionAdapter
from conformance.evidence.results import read
from conformance.model import Array
from conformance.plan.rows import Plan
from conformance.report.judged_run import JudgedRun

from ..builders import Right, finish_run, plan_as_bundled, rewrite

CASES = """about: A few.
cases:
  - {id: flattens, rule: same-volume, src: "T[2, 3]", shape: [6], special_zero: false, expect: "T[6]"}
  - {id: zero-beside-infer, rule: zero-meets-infer, src: "T[0, 3]", shape: [0, -1], special_zero: false, expect: reject}
  - {id: stays-a-scalar, rule: rank-zero, src: "T[]", shape: [], special_zero: true, expect: unspecified}
  - id: without-special-zero
    rule: attributes-required
    src: T[2]
    shape: [2]
    special_zero: true
    attributes: {special_zero: missing}
    expect: reject
"""
HOSTILE = "</script><img src=x onerror=alert(1)>|](http://evil.example) @nobody #1 ``` "
HOSTILE += "\u202e\x1b[31m\x00\ufffe & ]]> 'q' \"q\"\n# h"


class AnswersZero(Right):
    """Answers a literal 0 beside a -1, which two documents forbid and the others leave open."""

    name = "answers"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        return src.reshape(0, 3) if shape == (0, -1) else super().reshape(src, shape, special_zero)


class SpeaksMarkup(FunctionAdapter):
    """Says what acts on a careless reader."""

    name, version = HOSTILE, HOSTILE

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        raise (ValueError if src.ndim else KeyError)(HOSTILE)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_as_bundled(tmp_path_factory.mktemp("suite"), CASES)


@pytest.fixture
def answers(plan: Plan, tmp_path: Path) -> JudgedRun:
    return finish_run(plan, AnswersZero(), tmp_path)


def run_hostile(plan: Plan, folder: Path) -> JudgedRun:
    run = finish_run(plan, SpeaksMarkup(), folder)
    rewrite(folder / "results.jsonl", lambda records: records[-1].update(notes=[HOSTILE]))
    return replace(run, evidence=read(folder / "results.jsonl"))


class Page(HTMLParser):
    """Elements, attributes and the text of each table row of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._inside = tag
        if tag in self.raw:
            self.raw[tag].append("")
        if tag in ("tr", "li", "p", "summary", "article", "h1", "h2", "h3"):
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside][-1] += data
        elif not (data.isspace() and "\n" in data):  # a line of the template ends
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]
