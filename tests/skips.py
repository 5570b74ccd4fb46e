"""One line at the end of a session: how many tests were skipped for want of libraries, and how to get these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_NAME = re.compile(r"(?:No module named|[Cc]ould not import) '(\w+)|(libdnnl)")
_COMMAND = re.compile(r"pip install (.+)$")


def describe_skips(reasons: Iterable[str]) -> str | None:
    """Count the tests whose reason names a missing library, and say what to install; None if there are none."""
    counts: Counter[str] = Counter()
    packages: set[str] = set()
    for reason in reasons:
        if name := _NAME.search(reason):
            counts[name[1] or name[2]] += 1
            packages.update(command[1].split() if (command := _COMMAND.search(reason)) else [name[1] or name[2]])
    if not counts:
        return None
    names = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    words = " ".join(sorted(packages, key=str.casefold))
    return (
        f"{counts.total()} tests skipped without a library ({names}): pip install {words}; "
        "`conformance lab test NAME` makes an environment for each"
    )
