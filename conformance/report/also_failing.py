"""Facts of a published page that come from the pages beside it: the others that fail a case, and
what changed since the version before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

PLACE = '<p class=others data-case="{}">{}</p>'
"""The element of a failure card that holds these words; empty until the page of all cases is written."""
SINCE = "<p class=since>{}</p>"
"""The element of the head that says what changed; empty if no version before is published."""
COMPARED = "../compare.html"
_PLACES = re.compile(PLACE.format('([^"]+)', "(.*?)"))
_WORDS = re.compile(
    rf'<a href="{re.escape(COMPARED)}#case-([a-z0-9-]+)">'
    r"Other backends that fail here: [\d,]+ of [\d,]+ judged</a>"
)
_SINCE = re.compile(SINCE.format("(.*?)"))
_CHANGES = re.compile(r'<a href="since-([\w.+-]+)\.html">Since \1: [\d,]+ tests better, [\d,]+ worse</a>')


def fill_since(page: str, before: str = "", better: int = 0, worse: int = 0) -> str:
    """Write what changed since the version in the folder `before`, with a link; nothing if there is none."""
    text = (
        f'<a href="since-{before}.html">Since {before}: {better:,} tests better, {worse:,} worse</a>' if before else ""
    )
    return _SINCE.sub(SINCE.format(text), page, count=1)


def fill_others(page: str, others: Collection[Mapping[str, bool]]) -> str:
    """Write into each failure card how many of the others fail its case, with a link to the page of all cases.

    `others`: for each other backend, the cases in which it was judged, and whether it fails them.
    """

    def words(case: str) -> str:
        fails = [cases[case] for cases in others if case in cases]
        text = f"Other backends that fail here: {sum(fails):,} of {len(fails):,} judged"
        return f'<a href="{COMPARED}#case-{case}">{text}</a>' if others else ""

    return _PLACES.sub(lambda place: PLACE.format(place[1], words(place[1])), page)


def clear_others(page: str) -> str:
    """Undo `fill_since` and `fill_others`, so that the rest can be compared with what the evidence gives."""

    def without(place: re.Match[str]) -> str:
        ours = _WORDS.fullmatch(place[2])
        return PLACE.format(place[1], "") if ours and ours[1] == place[1] else place[0]

    page = _SINCE.sub(lambda place: SINCE.format("" if _CHANGES.fullmatch(place[1]) else place[1]), page, count=1)
    return _PLACES.sub(without, page)
