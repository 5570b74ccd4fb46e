"""Waivers: known failures that a person accepts, with a reason, a link, an owner and an end date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..load.schema import read_file, without_secrets
from ..load.strict_yaml import Map, quote, require
from ..model import FAIL, NOT_RUN, WAIVED, Identity, Malformed, Place, Problem, Result, Verdict
from ..plan.rows import Row

_LONGEST = timedelta(days=732)
"""How far ahead a waiver may end."""


@dataclass(frozen=True)
class Waiver:
    """One entry of a waiver file."""

    number: int
    entry: Mapping[str, Any]
    place: Place

    def matches(self, row: Row) -> bool:
        return matches(self.entry, row)


def matches(entry: Mapping[str, Any], row: Row) -> bool:
    """True if a waiver, as it is written, is for a row."""
    names = (("case", row.case.id), ("rule", row.case.rule), ("row", row.id))
    return all(_matches(name, entry[key]) for key, name in names if key in entry)


def _matches(name: str, pattern: str) -> bool:
    """True if a pattern fits a name, its `[` taken as it stands in the ids of rows, or as `fnmatch` takes it."""
    return fnmatchcase(name, pattern.replace("[", "[[]")) or fnmatchcase(name, pattern)


def why_useless(entry: Mapping[str, Any]) -> str | None:
    """Say why a waiver says nothing of what is waived; None if it names a case, a rule or a row."""
    patterns = [entry[key] for key in ("case", "rule", "row") if key in entry]
    if not patterns:
        return "names no case, rule or row; say what it is for"
    return "is for everything; name what fails" if all(set(pattern) <= set("*?") for pattern in patterns) else None


def load_for(path: Path, identity: Identity) -> tuple[Waiver, ...]:
    """Load the waivers of a file that are for this backend and version; Malformed if the file cannot be used."""
    problems: list[Problem] = []
    waivers = [waiver for waiver in load_all(path) if _is_for(waiver.entry, identity, waiver.place, problems)]
    _require(problems, path)
    return tuple(waivers)


def load_all(path: Path) -> list[Waiver]:
    """Load every waiver of a file, for any backend; Malformed if the file cannot be used."""
    content, problems = read_file(path, "waivers")
    require([problem._replace(place=Place(str(path), problem.place.line)) for problem in problems])
    waivers = []
    for number, entry in enumerate(content["waivers"], 1):
        place = Place(str(path), entry.line)
        if problem := why_useless(entry):
            problems.append(Problem(place, f"the waiver {problem}"))
        problems += _bad_date(entry, place)
        waivers.append(Waiver(number, dict(entry), place))
    _require(problems, path)
    return waivers


def _require(problems: list[Problem], path: Path) -> None:
    """Raise Malformed if there is a problem; one that quotes nothing if the file is a link to another folder."""
    require(without_secrets(problems, [path], str(path)))


def _bad_date(entry: Map, entry_place: Place) -> list[Problem]:
    place = entry_place._replace(line=entry.lines["expires"])
    try:
        if date.fromisoformat(entry["expires"]).isoformat() != entry["expires"]:  # 3.11 reads 20270630 too
            raise ValueError
    except ValueError:
        return [Problem(place, f"expires {quote(entry['expires'])} is no date; write it as '2027-06-30'")]
    if date.fromisoformat(entry["expires"]) > datetime.now(timezone.utc).date() + _LONGEST:
        return [
            Problem(place, f"expires {entry['expires']!r} is more than two years ahead; a waiver is looked at again")
        ]
    return []


def _is_for(entry: Mapping[str, Any], identity: Identity, place: Place, problems: list[Problem]) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    if "backend" in entry and not fnmatchcase(identity.name, entry["backend"]):
        return False
    try:
        versions = SpecifierSet(entry.get("versions", ""))
        return not entry.get("versions") or versions.contains(Version(identity.version), prereleases=True)
    except InvalidSpecifier:
        problems.append(Problem(place, f"versions {quote(entry['versions'])} is no range; write it as '>=3.6,<3.7'"))
    except InvalidVersion:
        problems.append(
            Problem(place, f"the backend's version {identity.version!r} cannot be compared; drop `versions`")
        )
    return False


def apply_waivers(result: Result, row: Row, waivers: Iterable[Waiver], today: date) -> Result:
    """Return the result; its failures are waived if a waiver that has not expired is for the row."""
    if FAIL not in result.verdicts.values():
        return result
    for waiver in waivers:
        if date.fromisoformat(waiver.entry["expires"]) >= today and waiver.matches(row):
            verdicts: dict[str, Verdict] = {d: WAIVED if v == FAIL else v for d, v in result.verdicts.items()}
            return result._replace(verdicts=verdicts, waiver=waiver.number)
    return result


def records_of(waivers: Iterable[Waiver]) -> list[dict[str, Any]]:
    """Return the records of waivers in the header of the evidence."""
    return [{"number": waiver.number, "place": str(waiver.place), **waiver.entry} for waiver in waivers]


def find_overdue(
    header: Mapping[str, Any], results: Mapping[str, Result], rows: Iterable[Row], whole: bool
) -> tuple[str, ...]:
    """Find waivers of a run that have expired, or that nothing needs any more, which only a whole run shows."""
    rows = tuple(rows)
    used = {result.waiver for result in results.values()}
    ran = header["started"][:10]
    problems = []
    for waiver in header.get("waivers", ()):
        what = next(waiver[key] for key in ("case", "rule", "row") if key in waiver)
        if waiver["expires"] < ran:
            problems.append(
                f"{waiver['place']}: the waiver of {what} expired on {waiver['expires']}; mend the backend or renew it"
            )
        elif whole and waiver["number"] not in used and not _covers_no_call(waiver, results, rows):
            problems.append(
                f"{waiver['place']}: the waiver of {what} is stale, nothing that it is for fails; delete it"
            )
    return tuple(problems)


def _covers_no_call(entry: Mapping[str, Any], results: Mapping[str, Result], rows: tuple[Row, ...]) -> bool:
    """True if a waiver is only for rows that were not run, such as large ones."""
    covered = [results.get(row.id) for row in rows if matches(entry, row)]
    return bool(covered) and all(result is None or set(result.verdicts.values()) == {NOT_RUN} for result in covered)


__all__ = [
    "Malformed", "Waiver", "apply_waivers", "find_overdue", "load_all", "load_for", "matches", "records_of",
    "why_useless",
]  # fmt: skip
