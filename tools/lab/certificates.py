"""Certificates of our own: their keys, and the commands that certify a backend, run it again and list it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from conformance.certificate.signature import ISSUER, SIGNERS, TESTER, sign
from conformance.certificate.statement import (
    AUDIT,
    EXTENSION,
    STATEMENT,
    STATEMENT_FORM,
    choose_suite,
    read_record,
    statement_of,
    write_record,
)
from conformance.evidence.folder import find_published_results
from conformance.plan.rows import Plan
from conformance.report.judged_run import conclude_run
from conformance.site.publish import list_published_folders
from conformance.system.files import replace_text
from conformance.verdict.rejudge import read_and_judge

from .environments import CannotMake, words_by
from .read import Environment

HOME = Path("build", "certificates")
"""The folder of the private keys, in the clone, which git ignores."""
_ROLES = {"tester": TESTER, "issuer": ISSUER}


def make_keys(clone: Path, reports: Path) -> None:
    """Make a key for each role unless it is there, and add the public keys to the signers of a publication.

    Signers of before stay, so that what they signed can still be verified.
    """
    home = clone / HOME
    home.mkdir(parents=True, exist_ok=True)
    signers = reports / SIGNERS
    lines = signers.read_text(encoding="utf-8").splitlines() if signers.is_file() else []
    for role, namespace in _ROLES.items():
        key = home / role
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", role, "-f", str(key)]
        try:
            if not key.exists():
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError):
            raise CannotMake(f"{key}: cannot be made with ssh-keygen, which signs; install OpenSSH") from None
        public = key.with_suffix(".pub").read_text(encoding="utf-8").strip()
        lines.append(f'reshape-conformance-{role} namespaces="{namespace}" {public}')
    replace_text(signers, "".join(f"{line}\n" for line in dict.fromkeys(lines)))


def sign_again(clone: Path, reports: Path, plan: Plan) -> Iterator[tuple[str, str]]:
    """Write and sign each published statement again, if the suite concludes otherwise by now; no backend is called.

    Yield the folders, each with what was done.
    """
    for folder in list_published_folders(reports):
        results = find_published_results(folder)
        if results is None or not (folder / STATEMENT).exists():
            continue
        if (folder / AUDIT).exists():
            yield folder.name, "was run again by an issuer, who has to sign again; certify again"
            continue
        old = read_record(folder / STATEMENT, STATEMENT_FORM)
        run = conclude_run(plan, read_and_judge(results, plan))
        suite, digest = choose_suite(plan.suite, run.evidence), run.evidence.sha256
        record = statement_of(run, suite, digest, 365, old.own["challenge"])
        record["predicate"][EXTENSION]["validUntil"] = old.own["validUntil"]
        if record == old.record:
            yield folder.name, "unchanged"
            continue
        sign(write_record(folder / STATEMENT, record), clone / HOME / "tester", TESTER)
        yield folder.name, "signed again"


def certify_words(environment: Environment, backend: str, out: Path, clone: Path) -> list[str]:
    """Return the words of `conformance certify` for a backend of an environment."""
    words = ["-m", "conformance", "certify", environment.specifier_of(backend)]
    words += ["--timeout", str(environment.timeout), *words_by(environment)]
    words += ["--key", str(clone / HOME / "tester"), "--out", str(out)]
    return [*words, *["--large"] * bool(environment.target.get("large"))]


def audit_words(environment: Environment, backend: str, out: Path, clone: Path, reports: Path) -> list[str]:
    """Return the words of `conformance audit` for it."""
    keys = ["--allowed", str(reports / SIGNERS), "--key", str(clone / HOME / "issuer")]
    words = ["-m", "conformance", "audit", str(out), environment.specifier_of(backend), *keys]
    return [*words, *words_by(environment, "--issuer")]
