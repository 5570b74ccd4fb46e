"""Waivers: known failures that a person answers for, with a reason, a link, an owner and an end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .load import validated
from .model import Identity, Malformed, Place, Problem, Result, Verdict
from .plan import Row
from .strict_yaml import require


@dataclass(frozen=True)
class Waiver:
    """One entry of a waiver file."""

    number: int
    entry: Mapping[str, Any]
    place: Place

    def matches(self, row: Row) -> bool:
        entry = self.entry
        return all(
            fnmatchcase(name, entry[key])
            for key, name in (("case", row.case.id), ("rule", row.case.rule), ("row", row.id))
            if key in entry
        )


def load(path: Path, identity: Identity) -> tuple[Waiver, ...]:
    """The waivers of a file that are for this backend and this version of it; Malformed where it cannot be used."""
    content, problems = validated(path, "waivers")
    require(problems)
    waivers = []
    for number, entry in enumerate(content["waivers"], 1):
        place = Place(str(path), entry.line)
        if not any(key in entry for key in ("case", "rule", "row")):
            problems.append(Problem(place, "the waiver names no case, rule or row; say what it is for"))
        problems += _bad_date(entry, place)
        if _for(entry, identity, place, problems):
            waivers.append(Waiver(number, dict(entry), place))
    require(problems)
    return tuple(waivers)


def _bad_date(entry: Mapping[str, Any], place: Place) -> list[Problem]:
    try:
        date.fromisoformat(entry["expires"])
    except ValueError:
        return [Problem(place, f"expires {entry['expires']!r} is no date; write it as '2027-06-30'")]
    return []


def _for(entry: Mapping[str, Any], identity: Identity, place: Place, problems: list[Problem]) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    if "backend" in entry and not fnmatchcase(identity.name, entry["backend"]):
        return False
    try:
        versions = SpecifierSet(entry.get("versions", ""))
        return not entry.get("versions") or versions.contains(identity.version, prereleases=True)
    except InvalidSpecifier:
        problems.append(Problem(place, f"versions {entry['versions']!r} is no range; write it as '>=3.6,<3.7'"))
    except InvalidVersion:
        problems.append(
            Problem(place, f"the backend's version {identity.version!r} cannot be compared; drop `versions`")
        )
    return False


def waived(result: Result, row: Row, waivers: Iterable[Waiver], today: date) -> Result:
    """The result, its failures waived where a waiver that has not expired is for the row."""
    if "fail" not in result.verdicts.values():
        return result
    for waiver in waivers:
        if date.fromisoformat(waiver.entry["expires"]) >= today and waiver.matches(row):
            verdicts: dict[str, Verdict] = {d: "waived" if v == "fail" else v for d, v in result.verdicts.items()}
            return result._replace(verdicts=verdicts, outcome={**result.outcome, "waiver": waiver.number})
    return result


def recorded(waivers: Iterable[Waiver]) -> list[dict[str, Any]]:
    """Waivers as the header of the evidence holds them."""
    return [{"number": waiver.number, "place": str(waiver.place), **waiver.entry} for waiver in waivers]


def overdue(header: Mapping[str, Any], results: Iterable[Result]) -> tuple[str, ...]:
    """What is wrong with the waivers of a whole run: expired, or no longer needed."""
    used = {result.outcome.get("waiver") for result in results}
    ran = header["started"][:10]
    said = []
    for waiver in header.get("waivers", ()):
        what = next(waiver[key] for key in ("case", "rule", "row") if key in waiver)
        if waiver["expires"] < ran:
            said.append(
                f"{waiver['place']}: the waiver of {what} expired on {waiver['expires']}; mend the backend or renew it"
            )
        elif waiver["number"] not in used:
            said.append(f"{waiver['place']}: the waiver of {what} is stale, nothing that it is for fails; delete it")
    return tuple(said)


__all__ = ["Malformed", "Waiver", "load", "overdue", "recorded", "waived"]
