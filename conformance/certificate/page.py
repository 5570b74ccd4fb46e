"""The page and the badge of a certificate. Both follow from the records and the evidence beside them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from ..evidence.command import list_suite_options
from ..evidence.folder import CERTIFICATE, PUBLISHED, name_of_folder
from ..model.verdicts import SEVERITIES, Label
from ..report.badge import MAX_DOCUMENTS_NAMED, describe_run, draw_badge
from ..report.judged_run import JudgedRun
from ..report.render import format_foot, menu_of, render_page
from ..report.report_page import order_files
from ..report.summary import name_facet
from ..report.table_sections import collect_rules
from ..system.groups import group_pairs
from ..system.text import join_neighbours, name_first
from .signature import SIGNERS, is_signed, signature_of
from .statement import CHALLENGE, COMMITMENT, EXTENSION, LEVELS, Record, RecordFile, suite_of, time_of

PAGE, BADGE = CERTIFICATE, "certificate.svg"
RESULTS_IN_WORDS: Mapping[str, str] = {
    "PASSED": "conforms", "WARNED": "conforms, with waived failures", "FAILED": "not shown to conform",
}  # fmt: skip
"""What a result of a statement says."""
_PLAIN_NAME = re.compile(r"(?!.*\bby\b)[\w&'-]+( [\w&'-]+){0,3}", re.IGNORECASE)
"""Up to four words without marks between them."""
_COLOURS = {"PASSED": "pass", "WARNED": "warn", "FAILED": "fail"}


def group_tests(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Group names of tests: the types of each document."""
    return group_pairs((document, type_) for document, _, type_ in (name.partition("/") for name in names))


def describe_result(predicate: Record) -> tuple[str, str]:
    """Say to what a statement says conformity, and return the result with that look: a part looks as a warning does."""
    result = predicate["result"]
    shown = group_tests((*predicate["passedTests"], *predicate["warnedTests"]))
    failed = group_tests(predicate["failedTests"])
    if result != "FAILED" or not shown or not failed:
        return RESULTS_IN_WORDS[result], result
    waived, part = ", with waived failures," * bool(predicate["warnedTests"]), " in part" * bool(failed.keys() & shown)
    others = len(failed.keys() - shown)
    rest = f"; not to {others} other{'s' * (others > 1)}" if others else ""
    return f"conforms{waived}{part} to {name_first(tuple(shown), MAX_DOCUMENTS_NAMED)}{rest}", "WARNED"


def scope_of(predicate: Record) -> tuple[str, ...]:
    """Return each document with the types for which a statement says conformity, waived failures or not."""
    return _scope_of((*predicate["passedTests"], *predicate["warnedTests"]))


def _scope_of(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{document} ({', '.join(types)})" for document, types in group_tests(tests).items())


def describe_scope(predicate: Record) -> str:
    """Say what was certified, when, how and under which suite."""
    own = predicate[EXTENSION]
    run = describe_run(own["level"], own["started"], own["version"], suite_of(predicate))
    scope = ", ".join(scope_of(predicate))
    if not scope:
        return f"says of no document that it conforms ({run})"
    failed = ", and not shown to conform" if predicate["result"] == "FAILED" else ""
    return f"was certified, as it says, for {scope} ({run}){failed}"


def name_tester(own: Record) -> str:
    return _quote_name(own["tester"]) or "a tester who gave no name"


def _quote_name(name: str | None) -> str | None:
    """Put a name into quotes that may read as a part of our sentence: `Mine, and run again by Lab`."""
    return name if name is None or _PLAIN_NAME.fullmatch(name) else '"{}"'.format(name.replace('"', "'"))


def describe_people(statement: RecordFile, audit: RecordFile | None) -> str:
    """Say who tested and who ran it again, and whether these are the same, by the names that they give.

    An audit with a signature that nobody checked, or that is not there, shows nothing: pass None.
    """
    own = statement.own
    tested = f"Tested by {_quote_name(own['tester']) or 'somebody who gave no name'}"
    if audit is None:
        return f"{tested}; nobody else is shown to have run it again."
    audited = audit.own
    other = f" When it was run again, {audited['details']}." if audited.get("details") else ""
    if own["tester"] and own["tester"] == audited["issuer"]:
        return f"Tester and issuer are the same, {_quote_name(own['tester'])}: nobody else ran it again.{other}"
    part = "" if audited["rows"] >= audited["called"] else " in part"
    issuer = _quote_name(audited["issuer"]) or "somebody who gave no name, and may be the same"
    return f"{tested}, and run again{part} by {issuer}.{other}"


def verify_command(folder: str, header: Record, trust: Sequence[str]) -> str:
    return shlex.join(["conformance", "verify", folder, "--certificate", *trust, *list_suite_options(header)])


def render_pages(
    statement: RecordFile, audit: RecordFile | None, run: JudgedRun, results: str
) -> Iterator[tuple[str, str]]:
    """Yield page and badge with their names; `results` is the name of the evidence beside them.

    Their level is what `verify` prints with the arguments on the page. Whose signatures there are, only that shows.
    """
    predicate, own = statement.predicate, statement.own
    records = [statement.path, *([audit.path] if audit else [])]
    records += [statement.path.with_name(CHALLENGE)] if own["challenge"] else []
    signed = all(map(is_signed, records))
    shown = audit if signed else None
    level = str((shown or statement).own["level"])
    site = name_of_folder(own["backend"]["name"], own["backend"]["version"]) if results == PUBLISHED else None
    files = [results, *([COMMITMENT] if own["challenge"] else [])]
    for path in records:
        files += [path.name, *([signature_of(path).name] if is_signed(path) else [])]
    trust = ["--allowed", SIGNERS] if signed else []
    if own["level"] == "challenged" and not signed:  # so that it is in no site, see `check_for_site`
        trust = ["--challenge", f"../{CHALLENGE}"]  # the one in this folder is the tester's
    failed = {f"{each.document}/{each.type}" for each in run.standings if each.name == "does not conform"}
    yield PAGE, render_page(
        "certificate.html",
        format_foot(suite_of(predicate), f"run on {own['started'][:10]}", version=own["version"]),
        menu=menu_of("../") if site else None, here="Certificates",
        style="certificate.css",
        statement=statement.record, own=own, predicate=predicate, scope=scope_of(predicate),
        result=name_result(predicate, run.label), said=_join_equal(own["summary"][1:], run.plan.suite.spec.documents),
        not_claimed=[name_facet(each) for each in join_neighbours(own["notClaimed"])],
        broken=_scope_of(name for name in predicate["failedTests"] if name in failed),
        lacking=_scope_of(name for name in predicate["failedTests"] if name not in failed),
        configuration={file["name"]: file["digest"]["sha256"] for file in predicate["configuration"]},
        started=time_of(own["started"]), until=time_of(own["validUntil"]), level=level, levels=LEVELS,
        audit=audit and audit.own, digest=statement.sha256, signed=signed, results=results,
        copied=files, site=site, people=describe_people(statement, shown),
        tested=order_files(run.evidence),
        rules=[(entry.rule.id, len(entry.broken)) for entry in collect_rules(run) if entry.broken],
        signers=SIGNERS, verify=verify_command(site or ".", run.evidence.header, trust),
    )  # fmt: skip
    yield BADGE, _draw_badge(statement, level, run)


def _join_equal(sentences: Iterable[str], documents: Container[str]) -> Iterator[str]:
    """Say once what several sentences say, each of another document."""
    pairs = []
    for sentence in sentences:
        document = next((word for word in sentence.replace(";", " ").split() if word in documents), "")
        pairs.append((sentence.replace(document, "\0", 1), document))
    for rest, names in group_pairs(pairs).items():
        yield rest.replace("\0", ", likewise ".join(names))


def name_result(predicate: Record, label: Label) -> tuple[str, str]:
    """Say what a certificate shows, as the report does, unless it is about some documents only; and with which look."""
    word, look = describe_result(predicate)
    if look == "FAILED":
        return f"{'does not conform' if label in SEVERITIES else word}: {label}", look
    return label if look == "PASSED" else word, look


def _draw_badge(statement: RecordFile, level: str, run: JudgedRun) -> str:
    """Draw a badge. Its visible words promise no more than the statement: with a success they name level and limits."""
    predicate, own = statement.predicate, statement.own
    word, look = describe_result(predicate)
    shown = look != "FAILED"
    tests = predicate["passedTests"] + predicate["warnedTests"] if shown else predicate["failedTests"]
    scope, parts = group_tests(tests), [word]
    if scope:
        types = ", ".join(dict.fromkeys(type_ for types in scope.values() for type_ in types))
        parts[0] += f"{':' if shown else ' to'} {name_first(tuple(scope), MAX_DOCUMENTS_NAMED)} for {types}"
    documents = len(run.verdict_by_document)
    limits = ["with limits"] * bool(own["notClaimed"] or len({*scope.values()}) > 1 or len(scope) < documents)
    if not shown:
        visible = name_result(predicate, run.label)[0].partition(":")[0]
    elif predicate["warnedTests"]:
        visible = f"waived, {level}"
    elif len(scope) < documents:
        visible = f"{len(scope)} of {documents} texts, {level}"
    else:
        visible = f"{'limited' if limits else 'conforms'}, {level}"
    parts += [*limits, describe_run(level, own["started"], own["version"], suite_of(predicate))]
    return draw_badge(run.name, visible, _COLOURS[look], "; ".join(parts))
