"""Waivers: known failures that a person accepts, with a reason, a link, an owner and an end date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..adapter import read_bundled_backends
from ..draw.nonce import with_every_row
from ..load.schema import read_file, without_secrets
from ..load.strict_yaml import YamlMap, raise_problems
from ..model import FAIL, NOT_RUN, WAIVED, Identity, Place, Problem, Result, Verdict
from ..plan.rows import Plan, Row
from ..run.row import make_result_without_call
from ..system.json_forms import is_date
from ..system.text import describe_unknown, find_near, quote
from .blame import Blamer
from .standing import Blames

_MAX_AHEAD = timedelta(days=732)
"""How far ahead a waiver may end."""


Waiver = Mapping[str, Any]
"""One entry of a waiver file, with its number and place, as the header of evidence holds it."""
KEYS = ("case", "rule", "row", "breaks")
"""The keys that say what is waived."""


def find_forbidding(header: Mapping[str, Any], row: Row) -> Waiver | None:
    """Find the waiver that keeps a run from calling a row; None if it calls it."""
    forbidding = (waiver for waiver in header.get("waivers", ()) if "run" in waiver and matches(waiver, row))
    return next((waiver for waiver in forbidding if not has_expired(waiver, header)), None)


def has_expired(waiver: Waiver, header: Mapping[str, Any]) -> bool:
    """Ask whether a waiver of a run had expired when the run began."""
    return bool(waiver["expires"] < header["started"][:10])


def matches(waiver: Waiver, row: Row) -> bool:
    """Ask whether a waiver names a row. What the row breaks does not matter here."""
    names = (("case", row.case.id), ("rule", row.case.rule), ("row", row.id))
    return all(_matches(name, waiver[key]) for key, name in names if key in waiver)


def covers_failure(waiver: Waiver, row: Row, result: Result, blamer: Blamer) -> bool:
    """Ask whether a waiver is for a row and, if it names a broken rule, for one that the result breaks."""
    if not matches(waiver, row):
        return False
    return "breaks" not in waiver or any(
        _matches(rule, waiver["breaks"]) for rule in blamer.find_broken_rules(row, result)
    )


def _matches(name: str, pattern: str) -> bool:
    """Ask whether a pattern fits a name. A `[` may be meant as in ids of rows, or as in `fnmatch`."""
    return fnmatchcase(name, pattern.replace("[", "[[]")) or fnmatchcase(name, pattern)


def why_useless(entry: Waiver) -> str | None:
    """Say why a waiver is too vague; None if it names a case, a rule, a row or a broken rule."""
    patterns = [entry[key] for key in KEYS if key in entry]
    if not patterns:
        return "names no case, rule, row or broken rule; say what it is for"
    return "is for everything; name what fails" if not any(map(str.isalnum, "".join(patterns))) else None


def choose_for(waivers: Iterable[Waiver], identity: Identity) -> tuple[Waiver, ...]:
    """Return the waivers for this backend and version; Malformed if its version cannot be compared."""
    chosen, problems = list[Waiver](), list[Problem]()
    for waiver in waivers:
        try:
            chosen += [waiver] if _is_for(waiver, identity) else []
        except ValueError:  # noqa: PERF203 - an InvalidVersion; all of them are told at once
            path, _, line = waiver["place"].rpartition(":")
            what = f"the backend's version {identity.version!r} cannot be compared; drop `versions`"
            problems.append(Problem(Place(path, int(line)), what))
    _raise_problems(problems, [Path(problem.place.path) for problem in problems])
    return tuple(chosen)


def _is_for(waiver: Waiver, identity: Identity) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    if not fnmatchcase(identity.name, waiver.get("backend", "*")):
        return False
    versions = waiver.get("versions")
    return not versions or SpecifierSet(versions).contains(Version(identity.version), prereleases=True)


def note_near_names(waivers: Iterable[Waiver], identity: Identity) -> Iterator[str]:
    """Note waivers for a backend with almost the name of this one: it may be misspelt, or another backend."""
    for waiver in waivers:
        name = waiver.get("backend", identity.name)
        is_known = any(fnmatchcase(known, name) for known in (identity.name, *read_bundled_backends()))
        if not is_known and find_near(name, [identity.name], cutoff=0.8):
            yield f"{waiver['place']}: the waiver is for the backend {quote(name)}, and this is {identity.name!r}"


def load_all(paths: Sequence[Path], plan: Plan) -> list[Waiver]:
    """Load every waiver of files, for any backend; Malformed, with every problem, if one cannot be used."""
    problems: list[Problem] = []
    entries: list[tuple[Path, Any]] = []
    for path in paths:
        content, found = read_file(path, "waivers")
        problems += [problem._replace(place=Place(str(path), problem.place.line)) for problem in found]
        listed = content.get("waivers") if isinstance(content, YamlMap) else None
        entries += [(path, entry) for entry in (listed if isinstance(listed, list) else [])]
    waivers = list[Waiver]()
    for number, (path, entry) in enumerate(entries, 1):
        if isinstance(entry, YamlMap) and all(isinstance(value, str) for key, value in entry.items() if key != "run"):
            place = Place(str(path), entry.line)
            problems += _problems_of(entry, place, plan)
            waivers.append({"number": number, "place": str(place), **entry})
    _raise_problems(sorted(dict.fromkeys(problems)), paths)
    return waivers


def _problems_of(entry: YamlMap, place: Place, plan: Plan) -> Iterator[Problem]:
    """Find what is wrong with a waiver that has texts for its keys."""
    if problem := why_useless(entry):
        yield Problem(place, f"the waiver {problem}")
    if "run" in entry and "breaks" in entry:
        what = "only a call shows what it breaks; with `run: false`, name a case, rule or row instead"
        yield Problem(place._replace(line=entry.lines["breaks"]), what)
    known, name = read_bundled_backends(), entry.get("backend", "*")
    if not any(fnmatchcase(backend, name) for backend in known) and find_near(name, known, cutoff=0.8):
        yield Problem(place._replace(line=entry.lines["backend"]), describe_unknown("backend", name, known))
    if "expires" in entry:
        yield from _check_day(entry, place)
    if "versions" in entry:
        yield from _check_versions(entry, place)
    rules = plan.suite.spec.rules
    for key, names in (("case", plan.suite.cases), ("rule", rules), ("breaks", rules)):
        if key in entry and not any(_matches(name, entry[key]) for name in names):
            what, list_ = ("case", "cases") if key == "case" else ("rule", "rules")
            what = describe_unknown(what, entry[key], names, f"conformance list {list_}")
            yield Problem(place._replace(line=entry.lines[key]), what)
    if "row" in entry:
        rows = [row.id for row in with_every_row(plan).rows]
        if not any(_matches(row, entry["row"]) for row in rows):
            what = describe_unknown("row", entry["row"], rows, "conformance list cases")
            if entry["row"].startswith("drawn-"):
                what = f"{quote(entry['row'])}: only `breaks` waives drawn rows; name the rule that they break"
            yield Problem(place._replace(line=entry.lines["row"]), what)


def _raise_problems(problems: list[Problem], paths: Sequence[Path]) -> None:
    """Raise Malformed if there is a problem; one that quotes nothing of a file that is a link to another folder."""
    for path in paths:
        problems = without_secrets(problems, [path], str(path))
    raise_problems(problems)


def _check_day(entry: YamlMap, place: Place) -> Iterator[Problem]:
    expires, place = entry["expires"], place._replace(line=entry.lines["expires"])
    if not is_date(expires):
        yield Problem(place, f"expires {quote(expires)} is no date; write it as '2027-06-30'")
    elif date.fromisoformat(expires) > datetime.now(timezone.utc).date() + _MAX_AHEAD:
        yield Problem(place, f"expires {expires!r} is more than two years ahead; a waiver is looked at again")


def _check_versions(entry: YamlMap, place: Place) -> Iterator[Problem]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(entry["versions"])
    except InvalidSpecifier:
        what = f"versions {quote(entry['versions'])} is no range; write it as '>=3.6,<3.7'"
        yield Problem(place._replace(line=entry.lines["versions"]), what)


def waive_call(row: Row, header: Mapping[str, Any]) -> Result | None:
    """Return the result of a row that a waiver keeps from being called; None if the row is called."""
    waiver = find_forbidding(header, row)
    if waiver is None:
        return None
    detail = f"{waiver['place']}: `run: false`"
    return make_result_without_call(row, WAIVED)._replace(waiver=waiver["number"], diagnosis=NOT_RUN, detail=detail)


def apply_waivers(result: Result, row: Row, header: Mapping[str, Any], blamer: Blamer) -> Result:
    """Return the result; its failures are waived if a waiver that has not expired covers it."""
    if FAIL not in result.verdicts.values():
        return result
    for waiver in header["waivers"]:
        if not has_expired(waiver, header) and covers_failure(waiver, row, result, blamer):
            verdicts: dict[str, Verdict] = {d: WAIVED if v == FAIL else v for d, v in result.verdicts.items()}
            return result._replace(verdicts=verdicts, waiver=waiver["number"])
    return result


def find_overdue(
    header: Mapping[str, Any], results: Mapping[str, Result], rows: Iterable[Row], whole: bool, drawn: bool
) -> tuple[str, ...]:
    """Find waivers of a run that have expired, or that nothing needs any more, which only a whole run shows.

    `drawn`: whether it also called all drawn rows, to which a waiver without a case or a row may apply.
    """
    rows = tuple(rows)
    used = {result.waiver for result in results.values()}
    problems = []
    for waiver in header.get("waivers", ()):
        what = next(waiver[key] for key in KEYS if key in waiver)
        is_shown = whole and (drawn or {"case", "row"} & waiver.keys())
        if has_expired(waiver, header):
            problems.append(
                f"{waiver['place']}: the waiver of {what} expired on {waiver['expires']}; mend the backend or renew it"
            )
        elif is_shown and waiver["number"] not in used and not _covers_no_call(waiver, results, rows):
            problems.append(
                f"{waiver['place']}: the waiver of {what} is stale, nothing that it is for fails; delete it"
            )
    return tuple(problems)


def note_needed_rules(
    header: Mapping[str, Any], results: Mapping[str, Result], rows: Sequence[Row], blames: Blames, blamer: Blamer
) -> Iterator[str]:
    """Note waivers that are for no failure, because those that are shown under the rule only need it."""
    used = {result.waiver for result in results.values()}
    for waiver in header["waivers"]:
        if "breaks" not in waiver or waiver["number"] in used or has_expired(waiver, header):
            continue
        for row in rows:
            rules = (blamed.premise.rule for blamed in blames.get(row.id, {}).values())
            if matches(waiver, row) and any(_matches(rule, waiver["breaks"]) for rule in rules):
                broken = ", ".join(sorted(blamer.find_broken_rules(row, results[row.id]))) or "no rule in each document"
                yield (
                    f"{waiver['place']}: `breaks: {waiver['breaks']}` waives nothing: {row.id} only needs that rule, "
                    f"and breaks {broken}; name what it breaks, or its case or rule"
                )
                break


def _covers_no_call(waiver: Waiver, results: Mapping[str, Result], rows: tuple[Row, ...]) -> bool:
    """Ask whether a waiver is only for rows that were not run, such as large ones."""
    covered = [results.get(row.id) for row in rows if matches(waiver, row)]
    return bool(covered) and all(result is None or result.is_not_run for result in covered)
