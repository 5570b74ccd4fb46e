"""The numbers of tests that the reports of a run show, read from what they show."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from conformance.evidence.results import Evidence
from conformance.model.verdicts import FAILED_OR_WAIVED
from conformance.plan.rows import Plan
from conformance.verdict.standing import is_asked_for

COUNTED = ("pass", "fail", "observed", "error", "waived", "not run")
"""The verdicts that a test can have."""
BAD = ("fail", "error")
_MARKS = {"✓": "pass", "✗": "fail", "◆": "observed", "▲": "error", "◐": "waived", "□": "not run"}
_TALLY = re.compile(rf"<b class=\w+>([{''.join(_MARKS)}○]) ([\d,]+)(?: ([a-z ]+))?</b>")


class ShownNumbers(NamedTuple):
    """The failing tests and all tests, by place and document, and the tests by verdict."""

    failing: dict[str, int]
    tests: dict[str, int]
    verdicts: dict[str, Counter[str]]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def count_by_hand(plan: Plan, evidence: Evidence) -> dict[str, Counter[str]]:
    """Count the tests of each document from the rows of the evidence, one by one."""
    claims, target = evidence.claims, evidence.target
    results = {result.row: result.verdicts for result in evidence.results}
    counts: dict[str, Counter[str]] = {}
    for row in plan.rows:
        for document in row.documents:
            verdict = results.get(row.id, {}).get(document, "not run")
            claimed = not any(claims.excludes(facet) for facet in row.facets)
            listed = claims.has_type(row.type) and row.type in row.signature.types
            if listed and is_asked_for(row, document, target, claims) and (claimed or verdict in FAILED_OR_WAIVED):
                counts.setdefault(document, Counter())[verdict] += 1
    return counts


def failing(counts: Mapping[Any, int]) -> int:
    return sum(counts.get(verdict, 0) for verdict in BAD)


def read_page(html: str) -> ShownNumbers:
    """Read the head, the cards of documents with the same numbers, their bars, and the kinds of failures."""
    shown = ShownNumbers({}, {}, {})
    head, cards = html[: html.index('<nav aria-label="Parts of this report">')].split('<ul class="docs"')
    if found := re.search(r"<strong>([\d,]+) of ([\d,]+) tests? fails?\.", head):
        shown.failing["head"], shown.tests["head"] = map(number, found.groups())
    elif found := re.search(r"<strong>(?:All|[\d,]+ of) ([\d,]+) tests? of the claimed scope pass or ", head):
        shown.failing["head"], shown.tests["head"] = 0, number(found[1])
    shown.verdicts["bar of the head"] = _read_bar(head)
    for card in cards.split("<li ")[1:]:
        for name in re.findall(r'<b id="document-([^"]+)"', card) if "<rect" in card else ():
            if found := re.search(r"([\d,]+) of ([\d,]+) tests? fail", card):
                shown.failing[name], shown.tests[name] = map(number, found.groups())
            else:
                shown.verdicts[name] = _read_tally(card)
                shown.failing[name], shown.tests[name] = 0, shown.verdicts[name].total()
            shown.verdicts[f"bar of {name}"] = _read_bar(card)
    titles = re.findall(r'<h3 id="wrong-\d+">(.*?)</h3>', html)
    kinds = [re.search(r"</bdi>: ([\d,]+) tests?\b", title) for title in titles]
    shown.failing["kinds"] = sum(number(kind[1]) for kind in kinds if kind)
    (scope,) = re.findall(r"([\d,]+) tests? = ([^.<]*)\.", html.partition('<h2 id="scope">')[2])
    shown.tests["scope"], shown.verdicts["scope"] = number(scope[0]), _read_sum(scope[1])
    return shown


def _read_tally(markup: str) -> Counter[str]:
    return Counter({word or _MARKS[mark]: number(text) for mark, text, word in _TALLY.findall(markup)})


def _read_sum(text: str) -> Counter[str]:
    terms = (term.split(" ", 1) for term in text.split(" + ") if " " in term)
    return Counter({verdict: number(text) for text, verdict in terms})


def _read_bar(markup: str) -> Counter[str]:
    """Read the widths of the first bar by the colours of verdicts; those of two verdicts are added."""
    bar = re.search(r"(?s)<svg class=bar.*?</svg>", markup)
    widths: Counter[str] = Counter()
    for colour, width in re.findall(r"<rect class=(\w+) x=\d+ width=(\d+)", bar[0] if bar else ""):
        widths[colour] += int(width)
    return widths


def read_summary(text: str) -> ShownNumbers:
    """Read summary.md: the exit code, the kinds, the table and the sum of all."""
    shown = ShownNumbers({}, {}, {})
    (total,) = re.findall(r"^([\d,]+) tests? = ([^.]*)\.", text, re.MULTILINE)
    shown.tests["sum"], shown.verdicts["sum"] = number(total[0]), _read_sum(total[1])
    kinds = re.findall(r"^## ✗ .*: ([\d,]+) tests?\b", text, re.MULTILINE)
    if "more failures in report.html" not in text:
        shown.failing["kinds"] = sum(map(number, kinds))
    counts = text[text.index("\n## Counts\n") :]
    lines = [
        line.split(" | ") for line in counts.splitlines() if re.match(r"\| \S+ \| ", line) and " | ---" not in line
    ]
    cells = [line for line in lines if line[0] != "| document"]
    shown.tests["table"] = sum(number(line[3]) for line in cells)
    shown.verdicts["table"] = sum((_read_sum(line[4]) for line in cells), Counter())
    return shown


def read_terminal(text: str) -> ShownNumbers:
    """Read the numbers and the last line of `conformance run`."""
    shown = ShownNumbers({}, {}, {})
    lines = text.splitlines()
    place = next(k for k, line in enumerate(lines) if "each a row judged in a document" in line)
    shown.tests["facts"] = number(lines[place].split()[0])
    shown.verdicts["facts"] = _read_sum(lines[place - 1].strip().replace(" · ", " + "))
    if found := re.search(r"^exit 1: ([\d,]+) of ([\d,]+) tests? fail", text, re.MULTILINE):
        shown.failing["exit"], shown.tests["exit"] = map(number, found.groups())
    return shown


def read_json(data: Mapping[str, object]) -> ShownNumbers:
    """Read the output of --json."""
    shown = ShownNumbers({}, {}, {})
    shown.tests["all"] = data["tests"]  # type: ignore[assignment]
    shown.verdicts["all"] = +Counter(data["verdicts"])  # type: ignore[call-overload]
    standings: list[dict[str, object]] = data["standings"]  # type: ignore[assignment]
    shown.tests["standings"] = sum(each["tests"] for each in standings)  # type: ignore[misc]
    shown.verdicts["standings"] = sum((Counter(each["counts"]) for each in standings), Counter())  # type: ignore[call-overload]
    return shown


def read_first_failures(html: str, summary: str, terminal: str) -> dict[str, str]:
    """Read the row of the first failure in each report; of a drawn row, for which no report has a -k, its case."""
    card = html.partition("<details class=entry ")[2].partition("</details>")[0]
    terminal = terminal.partition("\nfailures")[2]
    rows = {
        "page": re.search(r"conformance run [^<]* -k (?:&#39;)?([^&\s]+)", card),
        "summary.md": re.search(r"^## ✗ .*\n(?:.*\n)*?- `([^`]+)`", summary, re.MULTILINE),
        "terminal": re.search(
            r" -k '?([^'\s]+)", terminal.partition("\n  and ")[0].partition("conformance explain")[0]
        ),
    }
    drawn = re.search(r'id="failure-(drawn-[\d-]+)"', card)
    return {place: found[1] for place, found in rows.items() if found} if not drawn else {"page": drawn[1]}


def read_badge(text: str) -> ShownNumbers:
    """Read the denominator of badge.svg."""
    found = re.search(r"of ([\d,]+) tests?", text)
    return ShownNumbers({}, {"badge": number(found[1])} if found else {}, {})
