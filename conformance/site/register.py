"""The register: every certificate below a folder, verified, as a page and as a JSON file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..certificate.check import Certificate, Trust, check_certificate
from ..certificate.page import (
    PAGE,
    RESULTS_IN_WORDS,
    describe_people,
    describe_result,
    group_tests,
    name_result,
    name_tester,
    verify_command,
)
from ..certificate.signature import SIGNERS, is_signed
from ..certificate.statement import STATEMENT, suite_of
from ..evidence.folder import explain_bad_name, find_published_results
from ..evidence.results import InvalidEvidence
from ..plan.rows import Plan
from ..report.render import Site, render_page
from ..report.verify import OtherSuite
from ..system.files import replace_text
from ..system.groups import group_pairs
from ..system.progress import track

REGISTER, DATA = "register.html", "register.json"
_KEYS = (
    "folder", "backend", "product", "version", "system", "level", "scope", "waived", "run", "suite", "tester", "issuer",
    "people", "until", "link", "verify", "why",
)  # fmt: skip
"""The keys of every entry; a refused one has values for `folder` and `why` alone. `tester` and `issuer` name keys,
`people` those who tested and ran it again, as they call themselves."""


def check_certificates(
    site: Path, plan: Plan, trust: Trust, known: Mapping[Path, Certificate | None]
) -> dict[Path, Certificate | str]:
    """Return every certificate below a folder, or why it is refused. Those in `known` were just checked."""
    folders = [path.parent for path in sorted(site.glob(f"*/{STATEMENT}"))]
    return {
        folder: known.get(folder) or _check_or_refuse(folder, plan, trust)
        for folder in track("checking", folders, len(folders))
    }


def _check_or_refuse(folder: Path, plan: Plan, trust: Trust) -> Certificate | str:
    if bad := explain_bad_name(folder):
        return bad
    try:
        return check_for_site(folder, plan, trust).without_lines()
    except (InvalidEvidence, OtherSuite) as refused:
        return str(refused).removeprefix(f"{folder}/").removeprefix(f"{folder}: ")


def write_register(
    folder: Path, certificates: Mapping[Path, Certificate | str], plan: Plan, trust: Trust, site: Site
) -> list[dict[str, Any]]:
    """List the certificates below a folder there, and return the list."""
    seen: dict[str, str] = {}
    entries = [_describe_entry(path, certificate, trust, seen) for path, certificate in certificates.items()]
    replace_text(folder / DATA, "[" + ",\n".join(map(json.dumps, entries)) + "]\n")
    listed = [
        (entry, certificate) for entry, certificate in zip(entries, certificates.values(), strict=True)
        if entry["backend"] and isinstance(certificate, Certificate)
    ]  # fmt: skip
    facts = {entry["folder"]: _list_facts(entry, certificate) for entry, certificate in listed}
    first = next(iter(facts.values()), {})
    common = {head: fact for head, fact in first.items() if all(each[head] == fact for each in facts.values())}
    stated = {entry["folder"] for entry in entries}
    runs = [each for each in sorted(folder.glob("*/")) if find_published_results(each) and not explain_bad_name(each)]
    uncertified = [each.name for each in runs if each.name not in stated]
    people = Counter(entry["people"] for entry in entries if entry["people"])
    page = render_page(
        "register.html", **site.frame("", "Certificates"),
        style="certificate.css", entries=entries, listed=[entry for entry, _ in listed],
        documents=plan.suite.spec.documents, facts=facts,
        results={entry["folder"]: _list_results(certificate) for entry, certificate in listed},
        named={
            entry["folder"]: name_result(each.statement.predicate, each.run.conclusion.label) for entry, each in listed
        },
        common=common, heads=[head for head in first if head not in common], uncertified=uncertified,
        signers=trust.allowed and trust.allowed.name,
        people=sorted(people.items(), key=lambda each: "are the same" not in each[0]),
    )  # fmt: skip
    replace_text(folder / REGISTER, page)
    return entries


def _list_facts(entry: Mapping[str, Any], certificate: Certificate) -> dict[str, str]:
    """Return facts about a certificate, as its own page has them, by the heads of their columns."""
    again = f", run again by {entry['issuer']}" if entry["issuer"] else ""
    return {
        "Level": f"{entry['level']}{again}", "System": entry["system"],
        "Tested by": name_tester(certificate.statement.own), "Tested": entry["run"],
        "Valid until": entry["until"], "Suite": entry["suite"],
    }  # fmt: skip


def _list_results(certificate: Certificate) -> Mapping[str, Sequence[tuple[str, Sequence[str]]]]:
    """Return for each document the words of a certificate, and the types of each."""
    said = {word: group_tests(certificate.statement.predicate[f"{word.lower()}Tests"]) for word in RESULTS_IN_WORDS}
    return group_pairs((document, (word, types)) for word, by in said.items() for document, types in by.items())


def check_for_site(folder: Path, plan: Plan, trust: Trust, pages: bool = True) -> Certificate:
    """Call `check_certificate`; refuse a signed one without keys, or its page and the list would show two levels."""
    if trust.allowed is None and is_signed(folder / STATEMENT):
        raise InvalidEvidence(f"{folder / STATEMENT}: is signed; put the keys that may sign into the site as {SIGNERS}")
    return check_certificate(folder, plan, trust, pages=pages)


def _describe_entry(folder: Path, certificate: Certificate | str, trust: Trust, seen: dict[str, str]) -> dict[str, Any]:
    """Describe a certificate; `why` says why it is refused, or why it does not conform.

    `seen`: the folder of each statement that was described, by its digest.
    """
    entry: dict[str, Any] = dict.fromkeys(_KEYS)
    entry["folder"] = folder.name
    if isinstance(certificate, str):
        return {**entry, "why": certificate}
    if (first := seen.setdefault(certificate.statement.sha256, folder.name)) != folder.name:
        return {**entry, "why": f"is the certificate of {first} again"}
    statement, signer, issuer = certificate.statement, certificate.signer, certificate.issuer
    own, predicate = statement.own, statement.predicate
    why, (word, look) = None, describe_result(predicate)
    if predicate["result"] == "FAILED":
        conclusion = certificate.run.conclusion
        why = f"{conclusion.denial if look == 'FAILED' else word}: {conclusion.why}"
    return {
        **entry, "backend": certificate.run.name, "product": own["backend"]["name"],
        "version": own["backend"]["version"], "system": own["environment"], "level": certificate.level,
        "run": own["started"][:10], "suite": f"{own['version']} ({suite_of(predicate)[:12]})", "why": why,
        "waived": predicate["warnedTests"],
        "scope": predicate["passedTests"] + predicate["warnedTests"],
        "tester": signer.name if signer else own["tester"], "issuer": issuer and issuer.name,
        "people": describe_people(certificate.statement, certificate.audit if issuer else None),
        "verify": verify_command(folder.name, certificate.run.evidence.header, trust.options),
        "until": own["validUntil"][:10], "link": f"{folder.name}/{PAGE}",
    }  # fmt: skip
