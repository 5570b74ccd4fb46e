"""A vendor, an issuer and a stranger with their keys, and a certificate that went the whole way."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.certificate import check as certificate
from conformance.certificate import statement as records
from conformance.certificate.check import Trust
from conformance.certificate.page import render_pages
from conformance.certificate.signature import ISSUER, SIGNERS, TESTER, sign
from conformance.certificate.statement import (
    AUDIT,
    CHALLENGE,
    COMMITMENT,
    EXTENSION,
    STATEMENT,
    RecordFile,
    digest_of_file,
    write_record,
)
from conformance.cli.main import main
from conformance.evidence.folder import REPORTS, RESULTS
from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.plan.rows import Plan, plan_of
from conformance.report.judged_run import conclude_run
from conformance.report.verify import FolderContent, Verification, verify_content
from tests import builders
from tests.builders import Records, spare_planted, spoil

BACKEND = """
from adapters.reference import Reference
from conformance.model import Claims

class Mine(Reference):
    identity = Reference.identity._replace(name="mine")
    claims = Claims(operations=("StaticReshape",), not_claimed=("type:f16", "type:bf16", "chain", "in-place"))
"""
Json = dict[str, Any]


class Lab(NamedTuple):
    """A folder of keys, and the certificate of a vendor that an issuer challenged and ran again."""

    home: Path

    @property
    def plan(self) -> Plan:
        return plan_of(load_suite(self.suite))

    @property
    def suite(self) -> Path:
        return self.home / "suite"

    def command(self, *words: object) -> int:
        return main([*map(str, words), "--suite", str(self.suite)])

    def words(self, *words: object) -> tuple[object, ...]:
        """The words of a command, with the suite and the keys that may sign."""
        return (*words, "--allowed", self.home / SIGNERS, "--suite", self.suite)

    @property
    def backend(self) -> str:
        return f"{self.home / 'mine.py'}:Mine"

    @property
    def folder(self) -> Path:
        return self.home / "certificate"

    def contents(self) -> dict[Path, bytes]:
        """Return the files of the certificate, to see later that they stay as they are."""
        return {path: path.read_bytes() for path in self.folder.iterdir()}

    @property
    def challenge(self) -> Path:
        return self.home / CHALLENGE

    def key(self, name: str) -> Path:
        return self.home / name

    def as_site(self) -> Path:
        """Return the folder as a site, in which no private key may lie."""
        for name in ("vendor", "issuer", "stranger"):
            self.key(name).unlink()
        return self.home

    def trust(self, **more: Any) -> Trust:
        return replace(Trust(self.home / SIGNERS, challenge=self.challenge), **more)

    def change(self, act: Callable[[Json], object], key: str | None = "vendor") -> None:
        """Change the statement as somebody with the vendor's key can: sign it again, and make its page again."""
        self.change_record(STATEMENT, act)
        self.finish(key)

    def finish(self, key: str | None = "vendor") -> None:
        """Drop the audit, sign the statement, and make its page and badge again."""
        (self.folder / AUDIT).unlink(missing_ok=True)
        statement = as_it_is(self.folder / STATEMENT)
        if key:
            sign(statement, self.key(key), TESTER)
        self.write_pages()

    def write_pages(self) -> None:
        """Make page and badge of the records as they are."""
        path, run = self.folder / AUDIT, conclude_run(self.plan, read(self.folder / RESULTS)).with_drawn
        statement, audit = as_it_is(self.folder / STATEMENT), as_it_is(path) if path.is_file() else None
        for name, text in render_pages(statement, audit, run, RESULTS):
            (self.folder / name).write_text(text)

    def audit(self, by: str | None = None) -> None:
        """Let the issuer say that every row was run again."""
        statement, evidence = as_it_is(self.folder / STATEMENT), read(self.folder / RESULTS)
        called = certificate.count_called(evidence)
        write_record(self.folder / AUDIT, records.audit_of(statement, evidence, called, called, by))
        self.sign(AUDIT, "issuer")
        self.write_pages()

    def sign(self, name: str, key: str, role: str = ISSUER) -> None:
        """Sign a file of the folder as it is."""
        sign(as_it_is(self.folder / name), self.key(key), role)

    def unsign(self, *names: str) -> None:
        """Remove signatures, and make the pages again."""
        for name in names:
            (self.folder / f"{name}.sig").unlink()
        self.write_pages()

    def forge(self, act: Callable[[Records], object]) -> None:
        """Change the evidence, and make everything again from it, but no reports."""
        builders.rewrite(self.folder / RESULTS, act)
        self.remove_reports()
        self.make_statement()

    def remove_reports(self) -> None:
        """Leave out what need not be there, and takes long to write and to verify."""
        for name in REPORTS:
            (self.folder / name).unlink(missing_ok=True)

    def make_statement(self) -> None:
        """Make the statement that follows from the evidence as it is now, as a forger can."""
        old = json.loads((self.folder / STATEMENT).read_text())["predicate"][EXTENSION]
        run, results = conclude_run(self.plan, read(self.folder / RESULTS)), digest_of_file(self.folder / RESULTS)
        new = records.statement_of(run, self.plan.suite.digest, results, 365, old["challenge"])
        write_record(self.folder / STATEMENT, new)
        self.finish()

    def change_challenge(self, **values: str) -> None:
        """Change the challenge as an issuer can who errs: sign it, and state its digest."""
        self.change_record(CHALLENGE, lambda record: record.update(values))
        shutil.copy(self.folder / CHALLENGE, self.challenge)
        self.sign(CHALLENGE, "issuer")
        self.change(put_own("challenge", digest_of_file(self.challenge)))

    def forget_the_challenge(self) -> None:
        """Make the certificate the self-tested one of the run before the challenge."""
        for name in (COMMITMENT, CHALLENGE, f"{CHALLENGE}.sig"):
            (self.folder / name).unlink()
        shutil.copy(self.home / "committed.jsonl", self.folder / RESULTS)
        self.remove_reports()
        self.change_record(STATEMENT, put_own("challenge", None))
        self.make_statement()

    def allow_the_vendor_everything(self) -> None:
        spoil(self.home / SIGNERS, f'namespaces="{TESTER}" ', "")

    def change_record(self, name: str, act: Callable[[Json], object]) -> None:
        path = self.folder / name
        content = json.loads(path.read_text())
        act(content)
        path.write_text(json.dumps(content, separators=(",", ":")) + "\n")


def as_it_is(path: Path) -> RecordFile:
    """Read a record as a forger reads it, who checks nothing."""
    content = path.read_bytes()
    return RecordFile(path, content, json.loads(content.decode(errors="replace")))


def make_key(home: Path, name: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", home / name], check=True)
    return (home / f"{name}.pub").read_text().strip()


def day(number: int) -> datetime:
    """Return the day so many days from today."""
    return datetime.now(timezone.utc) + timedelta(days=number)


def resume(records: Records) -> None:
    """Make the first row one of an earlier run."""
    records[1]["resumed"] = True
    records[-1]["resumed"] = 1


def put_own(key: str, value: Any) -> Callable[[Json], None]:
    """Return an act that changes one of our own fields of a statement or audit."""

    def act(record: Json) -> None:
        record["predicate"][EXTENSION][key] = value

    return act


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(builders.make_once(tmp_path_factory, "lab", make_lab))


def make_lab(home: Path) -> None:
    lab = Lab(home)
    (home / "mine.py").write_text(BACKEND)
    vendor, issuer, _ = (make_key(home, name) for name in ("vendor", "issuer", "stranger"))
    (home / SIGNERS).write_text(
        f'vendor@example.com namespaces="{TESTER}" {vendor}\nlab@example.com namespaces="{ISSUER}" {issuer}\n'
    )
    builders.write_suite(lab.suite)
    trust = ("--allowed", home / SIGNERS, "--challenge", lab.challenge)
    issuer_key, out = ("--key", lab.key("issuer")), ("--out", lab.folder)
    more = ("--key", lab.key("vendor"), "--tester", "Mine Ltd", "--challenge", lab.challenge)
    with few_calls():
        assert lab.command("certify", lab.backend, "--commit", *out) == 0
        shutil.copy(lab.folder / RESULTS, home / "committed.jsonl")
        assert lab.command("challenge", lab.folder / COMMITMENT, *issuer_key, "--out", lab.challenge) == 0
        assert lab.command("certify", lab.backend, *more, *out) == 0
        assert lab.command("audit", lab.folder, lab.backend, *trust, *issuer_key) == 0


@pytest.fixture
def lab(original: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A copy of the lab, in which the same evidence is verified once."""
    with few_calls() as patch:
        patch.setattr(certificate, "verify_content", verify_once)
        yield Lab(Path(shutil.copytree(original.home, tmp_path / "lab", copy_function=shutil.copy)))


@contextmanager
def few_calls() -> Iterator[pytest.MonkeyPatch]:
    """Let runs draw few calls, and run no planted backends: these are the matter of other tests."""
    with pytest.MonkeyPatch.context() as patch:
        spare_planted(patch)
        for module in ("cli.request", "draw.rows"):
            patch.setattr(f"conformance.{module}.count_drawn_rows", lambda *_: 5)
        patch.setattr("conformance.draw.nonce.CALLS_PER_RULE", 1)
        patch.setattr("conformance.draw.nonce.MAX_DRAWS", 2000)
        yield patch


_VERIFIED: dict[str, Verification] = {}


def verify_once(content: FolderContent, plan: Plan) -> Verification:
    """Verify a folder; of folders with the same evidence and reports, one for each suite."""
    reports = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in content.reports.values())
    key = plan.suite.digest + content.sha256 + hashlib.sha256(reports).hexdigest()
    if key not in _VERIFIED:
        _VERIFIED[key] = verify_content(content, plan)
    return _VERIFIED[key]
