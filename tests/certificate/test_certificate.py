"""Certificates: the way from commitment to audit, and what is refused along it."""

import json
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from conformance.certificate import check
from conformance.certificate.check import Trust, check_certificate
from conformance.certificate.page import BADGE, PAGE, describe_result, render_pages
from conformance.certificate.signature import SIGNERS
from conformance.certificate.statement import (
    AUDIT,
    CHALLENGE,
    COMMITMENT,
    EXTENSION,
    STATEMENT,
    add_days,
    commitment_of,
    digest_of_file,
    statement_of,
    time_of,
    write_record,
)
from conformance.cli import audit
from conformance.evidence.folder import RESULTS
from conformance.evidence.results import InvalidEvidence, read
from conformance.evidence.subject import PackageFile, Subject
from conformance.model import EarlierSuite
from conformance.plan.rows import Plan
from conformance.report.judged_run import conclude_run
from conformance.report.verify import OtherSuite
from conformance.run.ended_process import HangPolicy
from conformance.runner.repeat import Repetition
from conformance.site.publish import list_published_folders
from conformance.system import files
from conformance.system.text import join_neighbours
from tests import builders
from tests.builders import REPORTS, Cli, OnlyStatic, Records, finish_run
from tests.certificate.vendor_and_issuer import BACKEND, Json, Lab, as_it_is, day, put_own, resume
from tests.site.test_documents import list_broken_links

pytestmark = [
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH"),
    pytest.mark.usefixtures("only_readme"),
]
PART = {"rows": 50, "level": "challenged"}
ZEROS = "    def copy_elements(self, src, dst, may): return src.array() * 0\n"


# ── the way of a certificate ──────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_later_suite_with_the_same_rows_relies_on_a_certificate(lab: Lab) -> None:
    plan = lab.plan
    later = replace(plan, suite=replace(plan.suite, digest="b" * 64, earlier={plan.suite.digest: EarlierSuite()}))
    with pytest.raises(OtherSuite, match="`conformance report` on the evidence writes the reports of this one"):
        check_certificate(lab.folder, later, lab.trust())
    lab.remove_reports()
    assert check_certificate(lab.folder, later, lab.trust()).level == "re-run"
    lab.change(lambda statement: statement["predicate"][EXTENSION].update(summary=["as the suite before concluded"]))
    said = f"by this suite, {'b' * 12}; it may by the one that judged, {plan.suite.digest[:12]}"
    with pytest.raises(InvalidEvidence, match=said):
        check_certificate(lab.folder, later, lab.trust())


@pytest.mark.slow
def test_no_certificate_is_of_a_suite_with_rows_not_run(lab: Lab) -> None:
    plan = lab.plan
    earlier = {plan.suite.digest: EarlierSuite(frozenset({"a-case-of-today"}))}
    later = replace(plan, suite=replace(plan.suite, digest="c" * 64, earlier=earlier))
    lab.remove_reports()
    checked = check_certificate(lab.folder, later, lab.trust())
    assert checked.level == "re-run"
    assert "not called, because they came to the suite later: 1 case" in checked.run.conclusion.notes

    def name_the_later(statement: Json) -> None:
        (own,) = (file for file in statement["predicate"]["configuration"] if file["name"] == "suite")
        own["digest"]["sha256"] = "c" * 64

    lab.change(name_the_later)
    with pytest.raises(InvalidEvidence, match=r"predicate\.configuration.* does not follow"):
        check_certificate(lab.folder, later, lab.trust())


def count_opened_files(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """Count from now on how often each file is opened for reading."""
    opened: Counter[Path] = Counter()
    before = files.open_regular

    def count(path: Path) -> BinaryIO:
        opened[path] += 1
        return before(path)

    monkeypatch.setattr(files, "open_regular", count)
    return opened


@pytest.mark.slow
def test_each_file_of_a_certificate_is_read_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise somebody could swap it between the check and the use."""
    opened = count_opened_files(monkeypatch)
    check_certificate(lab.folder, lab.plan, lab.trust())
    assert opened[lab.folder / STATEMENT] == 1
    assert {path.name for path in opened} >= {STATEMENT, AUDIT, COMMITMENT, CHALLENGE, RESULTS, PAGE, BADGE}
    assert set(opened.values()) == {1}


@pytest.mark.slow
def test_a_backend_without_a_version_has_a_certificate(lab: Lab, cli: Cli) -> None:
    """`verify` and `challenge` refused what `certify` had written."""
    lab.forget_the_challenge()
    lab.forge(lambda records: records[0]["backend"].update(version=""))
    cli(*lab.words("verify", lab.folder, "--certificate")).expect(0, out="mine: self-tested")
    commitment = lab.home / "of-no-version.json"
    write_record(commitment, commitment_of(read(lab.folder / RESULTS).header, {"lib.so": "0" * 64}))
    cli("challenge", commitment, "--out", lab.home / "to-no-version.json", "--suite", lab.suite).expect(
        0, out="challenge for mine (1 file)"
    )


@pytest.mark.slow
def test_a_later_suite_says_how_many_cases_were_added_since(lab: Lab, cli: Cli) -> None:
    builders.write_cases(lab.suite, builders.CASES, builders.IN_PLACE)
    words = verify(lab)
    said = cli(*words).expect(1, lines=1)
    started = read(lab.folder / RESULTS).header["started"][:10]
    scope = "static-oneapi (f32), static-graph-v0.9 (f32), static-spec-v0.9 (f32)"
    assert f"was certified, as it says, for {scope} (challenged {started}, suite" in said.err
    assert "; 1 case was added since; verify it with that suite, or ask for a new run" in said.err
    data = cli(*words, "--json").expect(1).data
    assert (data["good"], data["cases_added"], data["cases_missing"]) == (False, 1, 0)
    cli("publish", lab.as_site(), "--suite", lab.suite).expect(1)
    (entry,) = json.loads((lab.home / "register.json").read_text())
    assert "1 case was added since" in entry["why"]


@pytest.mark.slow
def test_an_earlier_suite_says_how_many_cases_it_lacks(lab: Lab, cli: Cli) -> None:
    builders.write_cases(lab.suite, builders.CASES.partition("  - id: without-special-zero")[0])
    cli(*verify(lab)).expect(1, err="0 cases were added since, and 1 case of it is not in this suite")


def verify(lab: Lab) -> tuple[object, ...]:
    """The command that verifies the certificate."""
    return lab.words("verify", lab.folder, "--certificate")


def test_each_text_says_level_scope_suite_and_date(lab: Lab, cli: Cli) -> None:
    cli("publish", lab.as_site(), "--suite", lab.suite).expect(0)
    words = verify(lab)
    header = read(lab.folder / RESULTS).header
    version, digest = header["suite"]["version"], header["suite"]["digest"]
    said = cli(*words)
    assert cli("verify", lab.folder / "statement.json", *words[2:]) == said, "a file names its folder"
    texts = {"verify": said.out, "register.html": (lab.home / "register.html").read_text()}
    texts |= {name: (lab.folder / name).read_text() for name in (PAGE, BADGE)}
    for name, text in texts.items():
        for due in ("re-run", "static-oneapi", version, digest[:8], header["started"][:10]):
            assert due in text, name
    assert "Not covered: data that native code reads" in texts[PAGE]
    badge = (lab.folder / "badge.svg").read_text()
    assert f"; self-tested {header['started'][:10]}, suite {version} ({digest[:8]})</title>" in badge


def test_the_page_says_once_what_holds_for_several_documents(lab: Lab) -> None:
    page = (lab.folder / PAGE).read_text()
    assert "<li>conforms to static-oneapi, likewise static-graph-v0.9, likewise static-spec-v0.9 for f32 " in page
    assert len(page.split("conforms to static-")) == 2


@pytest.mark.slow
def test_the_page_of_an_issued_certificate_keeps_its_bytes() -> None:
    """`verify` compares them with what it renders, if the certificate is of this suite."""
    plan = builders.bundled_plan()
    suite = {"name": "suite", "digest": {"sha256": plan.suite.digest}}
    for path in REPORTS.glob(f"a*/{STATEMENT}"):  # each takes some seconds
        if suite in as_it_is(path).record["predicate"]["configuration"]:
            assert check_certificate(path.parent, plan, Trust.of_site(REPORTS)).level


def test_an_audit_of_some_rows_is_no_re_run(lab: Lab) -> None:
    lab.change_record(AUDIT, lambda record: record["predicate"][EXTENSION].update(PART))
    lab.sign(AUDIT, "issuer")
    lab.write_pages()
    assert "50 of " in (lab.folder / PAGE).read_text()
    assert "and run again in part by " in (lab.folder / PAGE).read_text()
    checked = check_certificate(lab.folder, lab.plan, lab.trust())
    assert checked.issuer
    assert checked.issuer.name == "lab@example.com"
    assert (checked.level, checked.audited_rows) == ("challenged", 50)


@pytest.mark.parametrize(("at", "level"), [(None, "challenged"), (0, "challenged"), (15, "re-run"), (30, None)])
def test_a_certificate_is_verified_for_a_day(lab: Lab, cli: Cli, at: int | None, level: str | None) -> None:
    """It is run again in ten days, and expires in twenty."""
    lab.change(put_own("validUntil", add_days(20)))
    lab.audit()
    lab.change_record(AUDIT, lambda record: record["predicate"].update(timeCreated=add_days(10)))
    lab.sign(AUDIT, "issuer")
    words = (*verify(lab), *(() if at is None else ("--at", f"{day(at):%Y-%m-%d}")))
    if level:
        said = cli(*words).expect(0, out=f": {level} ").out
        assert ("count for nothing: it was made later" in said) == (level == "challenged")
    else:
        cli(*words).expect(1, err="expired on ", lines=1)


def test_the_level_with_a_challenge_beside_it_and_a_subject(lab: Lab) -> None:
    """The signed challenge beside the certificate serves those who did not give it; the files under test are named."""
    assert check_certificate(lab.folder, lab.plan, lab.trust(challenge=None)).level == "re-run"
    numpy = next(name for name in read(lab.folder / RESULTS).footer["subject"] if "_multiarray_umath" in name)
    file = Path(np.__file__).parent.parent / numpy
    assert check_certificate(lab.folder, lab.plan, lab.trust(subject=file)).level == "re-run"


def test_the_command_says_what_holds_and_ends_with_0(lab: Lab, cli: Cli) -> None:
    words = verify(lab)
    cli(*words).expect(0, out=(": re-run", "rows run again by lab@example.com", "the certificate is true"))
    data = cli(*words, "--json").expect(0).data
    assert (data["level"], data["signer"], data["issuer"]) == ("re-run", "vendor@example.com", "lab@example.com")
    cli(*words, "--conforms", "static-oneapi").expect(1, out="not shown: static-oneapi/")


@pytest.mark.slow
def test_an_audit_that_no_reader_checked_counts_for_nothing(lab: Lab, cli: Cli) -> None:
    said = "audit.json, and what certificate.html says of it, count for nothing: no signature was checked"
    words = ("verify", lab.folder, "--certificate", "--challenge", lab.challenge, "--suite", lab.suite)
    assert "again by" not in cli(*words).expect(0, out=(": challenged ", said)).out


@pytest.mark.slow
def test_a_name_does_not_pose_as_a_level(lab: Lab, cli: Cli) -> None:
    lab.forget_the_challenge()
    lab.forge(lambda records: records[0]["backend"].update(name="mine: re-run"))
    cli(*verify(lab)).expect(0, out='"mine: re-run 0.1.0": self-tested ')


@pytest.mark.parametrize(("name", "code"), [(PAGE, 0), (RESULTS, 0), ("certificate-final.html", 2)])
def test_a_file_that_is_not_checked_is_refused(lab: Lab, cli: Cli, name: str, code: int) -> None:
    (lab.folder / "certificate-final.html").write_text("<p>We conform.</p>")
    said = "certificate-final.html: is not checked with a certificate" if code else ""
    cli("verify", lab.folder / name, *verify(lab)[2:]).expect(code, err=said)


def test_a_register_says_why_a_certificate_is_refused(lab: Lab, cli: Cli) -> None:
    shutil.copytree(lab.folder, lab.home / "other")
    (lab.home / "other" / PAGE).write_text("<p>We conform.</p>")
    said = cli("publish", lab.as_site(), "--suite", lab.suite).expect(1)
    entries = {entry["folder"]: entry for entry in json.loads((lab.home / "register.json").read_text())}
    assert entries["certificate"]["level"] == "re-run"
    assert entries["other"].keys() == entries["certificate"].keys()
    why = (
        "certificate.html: does not say what statement.json says; remove it, and `conformance publish` writes it again"
    )
    assert entries["other"]["why"] == why
    assert "refused" in said.out
    assert 'href="certificate/certificate.html"' in (lab.home / "register.html").read_text()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("javascript:alert(1)", '"javascript:alert(1)" is no name for a link; rename the folder'),
        ("%2e%2e", '"%2e%2e" is no name for a link'),
        ("other", "is the certificate of certificate again"),
    ],
)
def test_a_register_lists_a_certificate_once_under_a_safe_name(lab: Lab, cli: Cli, name: str, why: str) -> None:
    shutil.copytree(lab.folder, lab.home / name)
    cli("publish", lab.as_site(), "--suite", lab.suite).expect(1)
    entries = {entry["folder"]: entry for entry in json.loads((lab.home / "register.json").read_text())}
    assert why in entries[name]["why"]
    assert (entries[name]["link"], entries["certificate"]["why"]) == (None, None)
    links = re.findall(r'href="(.*?)"', (lab.home / "register.html").read_text().partition("<main")[2])
    assert links == [SIGNERS, "register.json", "certificate/certificate.html"]


def publish(lab: Lab, *words: object) -> int:
    return lab.command("publish", lab.home / "reports", *words)


@pytest.fixture
def site(lab: Lab) -> Path:
    """A folder for published results, with the keys that may sign."""
    (lab.home / "reports").mkdir()
    return Path(shutil.copy(lab.home / SIGNERS, lab.home / "reports")).parent


@pytest.mark.parametrize("name", [COMMITMENT, f"{CHALLENGE}.sig"])
def test_a_link_in_a_certificate_is_not_published(lab: Lab, cli: Cli, site: Path, name: str) -> None:
    """Such as one that leads to a private key, in a file that nothing else of the certificate needs."""
    lab.forget_the_challenge()
    (lab.folder / name).symlink_to(lab.key("vendor"))
    cli("publish", site, lab.folder, "--suite", lab.suite).expect(2, err=f"{name}: is a link, and may lead to a secret")


@pytest.mark.slow
def test_a_statement_is_published_as_it_was_checked(
    lab: Lab, cli: Cli, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read again, after the check."""
    opened = count_opened_files(monkeypatch)
    cli("publish", site, lab.folder, "--suite", lab.suite).expect(0)
    assert [opened[lab.folder / name] for name in (STATEMENT, AUDIT)] == [1, 1]


RECORDS = {each for name in (STATEMENT, AUDIT, CHALLENGE) for each in (name, f"{name}.sig")} | {COMMITMENT}


@pytest.mark.slow
@pytest.mark.parametrize("challenged", [True, False])
def test_a_published_certificate_is_verified_when_packed(
    lab: Lab, cli: Cli, site: Path, challenged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, due = lab.folder, RECORDS
    if not challenged:
        lab.forget_the_challenge()
        said = f"next: conformance verify {out} --certificate --allowed {lab.home / SIGNERS} --suite "
        cli(*lab.words("audit", out, lab.backend, "--key", lab.key("issuer"))).expect(0, text=said)
        due = RECORDS - {COMMITMENT, CHALLENGE, f"{CHALLENGE}.sig"}
    assert publish(lab, out) == 0
    (folder,) = list_published_folders(site)
    assert {path.name for path in folder.iterdir()} == due | {"results.jsonl.xz", "report.html", PAGE, BADGE}
    cli("verify", folder / PAGE, "--suite", lab.suite).expect(2, err="name its folder, with --certificate")
    steps = (folder / PAGE).read_text().partition("<ol>")[2]
    for link in re.findall('href="(.*?)"', steps):
        copy = (lab.home / "customer" / folder.name / link).resolve()
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / link, copy)
    monkeypatch.chdir(lab.home / "customer")
    cli(*shlex.split(re.findall("<code>conformance (.*)</code>", steps)[0])).expect(0, out=": re-run ")
    due_page = (folder / PAGE).read_text()
    (folder / PAGE).write_text("<p>The words of an older suite.</p>")
    assert publish(lab) == 0
    assert (folder / PAGE).read_text() == due_page, "every page is written again"
    assert list_broken_links(site) == []
    assert '<a href="register.html">Certificates</a>' in (site / "index.html").read_text()
    assert '<a href="certificate.html">' in (folder / "report.html").read_text()
    (out / PAGE).write_text("<p>We conform.</p>")
    cli("publish", site, out, "--suite", lab.suite).expect(
        2, err="certificate.html: does not say what statement.json says"
    )
    for path in (out / STATEMENT, out / f"{STATEMENT}.sig"):
        path.unlink()
    assert publish(lab, out) == 0
    assert {path.name for path in folder.iterdir()} == {"results.jsonl.xz", "report.html"}, "the older one is gone"
    assert json.loads((site / "register.json").read_text()) == []
    without = (site / "register.html").read_text().partition("Runs without a certificate")[2]
    assert f'<a href="{folder.name}/report.html">' in without
    assert list_broken_links(site) == []


@pytest.mark.slow
def test_a_run_is_published_by_the_keys_of_the_site(lab: Lab, cli: Cli, site: Path) -> None:
    out, words = lab.folder, ("--suite", lab.suite)
    lab.forget_the_challenge()
    cli("publish", site, out, *words).expect(0, out="self-tested")
    (folder,) = list_published_folders(site)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (site / "revoked").write_text(f"{digest_of_file(out / STATEMENT)}  by mistake\n")
    cli("publish", site, out, *words).expect(2, err="is revoked, says")
    cli("publish", site, *words).expect(1, out="is revoked, says")
    (site / "revoked").unlink()
    (out / f"{STATEMENT}.sig").unlink()
    cli("publish", site, out, *words).expect(2, err="is not signed")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (site / SIGNERS).unlink()
    cli("publish", site, *words).expect(1, text="is signed; put the keys that may sign into the site as signers")
    (site / SIGNERS).mkdir()
    assert "valid until" not in cli("publish", site, *words).expect(1).out, "keys that cannot be read allow nobody"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "on_page", "listed"),
    [
        (Lab.write_pages, "re-run", "re-run"),
        (Lab.finish, "challenged", "challenged"),
        (Lab.forget_the_challenge, "self-tested", "self-tested"),
        (lambda lab: lab.unsign(AUDIT), "challenged", None),
        (lambda lab: lab.unsign(STATEMENT, AUDIT, CHALLENGE), "challenged", None),
    ],
    ids=["all signed", "no audit", "no challenge", "the audit is not signed", "nothing is signed"],
)
def test_a_page_shows_the_level_that_its_command_prints(
    lab: Lab,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Lab], object],
    on_page: str,
    listed: str | None,
) -> None:
    change(lab)
    shutil.copy(lab.home / SIGNERS, lab.folder / SIGNERS)
    cli("publish", lab.as_site(), "--suite", lab.suite)
    (entry,) = json.loads((lab.home / "register.json").read_text())
    assert entry["level"] == listed
    if listed:
        monkeypatch.chdir(lab.home)
        assert cli(*shlex.split(entry["verify"])[1:], "--json").expect(0).data["level"] == listed
    page = (lab.folder / PAGE).read_text()
    assert re.findall("<h2>Level: (.*)</h2>", page) == [on_page]
    assert f"; {on_page} " in (lab.folder / BADGE).read_text()
    assert (", and run again by " in page) == (on_page == "re-run")
    assert ("Not signed: anybody can have written this page." in page) == (listed is None)
    (words,) = re.findall("<code>conformance (verify .*)</code>", page)
    assert not re.findall("FOLDER|SIGNERS|FILE", page)
    assert "--challenge challenge.json" not in words, "that is the tester's"
    monkeypatch.chdir(lab.folder)
    assert cli(*shlex.split(words), "--json").expect(0).data["level"] == on_page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tester", "audit", "says"),
    [
        ("Mine", None, "Tested by Mine; nobody else is shown to have run it again."),
        ("Mine", {"issuer": "Mine"}, "Tester and issuer are the same, Mine: nobody else ran it again."),
        ("Mine", {"issuer": "Lab"}, "Tested by Mine, and run again by Lab."),
        (
            None,
            {"issuer": None},
            "Tested by somebody who gave no name, and run again by somebody who gave no name, and",
        ),
        ("Mine, Inc., run again by Lab", None, 'Tested by "Mine, Inc., run again by Lab"; nobody else is shown to'),
        (
            "Mine run again by Lab",
            {"issuer": 'Lab "L"'},
            """Tested by "Mine run again by Lab", and run again by "Lab 'L'".""",
        ),
    ],
)
def test_a_page_begins_with_who_tested_and_who_ran_it_again(
    lab: Lab, cli: Cli, tester: str | None, audit: Json | None, says: str
) -> None:
    lab.forget_the_challenge()
    lab.forge(lambda records: records[0].update({"tester": tester} if tester else {}))
    if audit:
        lab.audit(audit["issuer"])
    cli("publish", lab.as_site(), "--suite", lab.suite).expect(0)
    for page in (lab.folder / PAGE, lab.home / "register.html"):
        assert unescape(re.findall(r"</h1>\s*<p>(.*?)</p>", page.read_text())[0]).startswith(says)
    cli(*verify(lab)).expect(0, text=says)


def test_a_challenge_to_one_file_says_so(lab: Lab, cli: Cli) -> None:
    path = lab.folder / COMMITMENT
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"files": {"mine.py": record["files"]["mine.py"]}}))
    words = ("challenge", path, "--suite", lab.suite, "--out", lab.home / "new.json")
    cli(*words).expect(0, out="(1 file)")
    cli(*words).expect(2, err="new.json exists; a challenge is given once", lines=1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"suite": "0" * 64}, "is for suite 000000000000, and this one is"),
        ({"files": {}}, "names no file that will be"),
    ],
)
def test_a_commitment_to_something_else_gets_no_challenge(lab: Lab, cli: Cli, change: Json, why: str) -> None:
    lab.change_record(COMMITMENT, lambda record: record.update(change))
    new = lab.home / "new.json"
    cli("challenge", lab.folder / COMMITMENT, "--suite", lab.suite, "--out", new).expect(1, err=why, lines=1)
    assert not new.exists()


def test_ranks_that_are_not_claimed_are_put_into_a_few_words() -> None:
    names = ["form", "rank:1", "rank:2", *(f"rank:{rank}" for rank in range(4, 66)), "length:2^31"]
    assert join_neighbours(names) == ["form", "rank:1", "rank:2", "rank:4 to rank:65", "length:2^31"]


@pytest.mark.slow
def test_the_report_of_a_certified_run_leads_to_its_certificate(
    lab: Lab, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    report = lab.folder / "report.html"
    assert "(not signed)" not in report.read_text()
    assert f'<a href="{PAGE}">' in report.read_text()
    before = report.read_text()
    cli("report", lab.folder, "--suite", lab.suite).expect(0)
    assert report.read_text() == before
    shutil.copy(report, lab.home / "sent.html")
    cli("verify", lab.home / "sent.html", "--suite", lab.suite).expect(0)
    folder = lab.home / "committed for an issuer"
    assert lab.command("certify", lab.backend, "--commit", "--out", folder) == 0
    assert PAGE not in (folder / "report.html").read_text()
    words = shlex.split(capsys.readouterr().out.splitlines()[-1].partition("next: ")[2])
    assert words[2:4] == [lab.backend, "--challenge"]
    assert words[-4:] == ["--out", str(folder), "--suite", str(lab.suite)]


@pytest.mark.slow
def test_a_backend_that_does_not_conform_is_listed_as_such(lab: Lab, cli: Cli) -> None:
    (lab.home / "wrong.py").write_text(BACKEND + ZEROS)
    out = lab.home / "certificates" / "wrong"
    assert lab.command("certify", f"{lab.home / 'wrong.py'}:Mine", "--out", out) == 1
    page, badge = (out / PAGE).read_text(), (out / BADGE).read_text()
    rules = dict(re.findall(r'<a href="report.html#rule-([a-z-]+)">\1</a> ([\d,]+) tests?</span>', page))
    assert rules == {
        "dst-has-shape-rank": "21", "literal-lengths": "21", "nodes-compose": "3", "rank-zero": "2", "same-content": "4"
    }  # fmt: skip
    failed = json.loads((out / STATEMENT).read_text())["predicate"]["failedTests"]
    documents = dict.fromkeys(name.partition("/")[0] for name in failed)
    said = re.search(r"<dt>Does not conform to</dt><dd>(.*?)</dd>", page)
    assert said
    assert re.findall(r"<span>([\w.-]+) \(", said[1]) == [*documents]
    assert "<dt>Not shown</dt>" not in page, "each of them was shown not to conform"
    assert all(f"id=rule-{rule}>" in (out / "report.html").read_text() for rule in rules)
    assert "not shown to conform to static-oneapi, static-graph-v0.9 and 1 more for " in badge
    assert "; with limits; self-tested " in badge
    cli("publish", out.parent, "--suite", lab.suite).expect(0, out="does not conform: ")
    (entry,) = json.loads((out.parent / "register.json").read_text())
    assert entry["level"] == "self-tested"
    assert entry["why"].startswith("does not conform: ")
    register = (out.parent / "register.html").read_text()
    assert '<td data-d="static-oneapi"><b class="FAILED">✗</b> ' in register
    assert entry["why"].removeprefix("does not conform: ") in register
    assert "<p>Tested by somebody who gave no name; " in page
    assert "<dt>Tested by</dt><dd>a tester who gave no name</dd>" in register, "what is equal in all rows is said once"


RESULTS_IN_WORDS = {
    "not shown to conform": {"failedTests": ["a/O/f32", "b/O/f32"]},
    "conforms to a; not to 2 others": {"passedTests": ["a/O/f32"], "failedTests": ["b/O/f32", "c/O/f32"]},
    "conforms in part to a": {"passedTests": ["a/O/f32"], "failedTests": ["a/O/f16"]},
    "conforms, with waived failures, to a; not to 1 other": {"warnedTests": ["a/O/f32"], "failedTests": ["b/O/f32"]},
}


@pytest.mark.parametrize("words", RESULTS_IN_WORDS)
def test_a_certificate_says_to_what_a_backend_conforms(words: str) -> None:
    predicate = {"result": "FAILED", "passedTests": [], "warnedTests": [], **RESULTS_IN_WORDS[words]}
    assert describe_result(predicate) == (words, "FAILED" if words.startswith("not") else "WARNED")


def test_a_badge_shows_level_and_limits_of_a_success(plan: Plan, tmp_path: Path) -> None:
    run = finish_run(plan, OnlyStatic(), tmp_path / "run")
    statement = statement_of(run, plan.suite.digest, "0" * 64, 365, None)
    statement["predicate"]["result"] = "PASSED"  # as if drawn rows were called, too
    pages = dict(render_pages(write_record(tmp_path / STATEMENT, statement), None, run, RESULTS))
    assert re.search(r">(\d of \d texts|limited), self-tested</text>", pages[BADGE])
    assert int(re.search(r'width="(\d+)"', pages[BADGE])[1]) <= 220  # type: ignore[index]
    assert "with limits" in pages[BADGE], "its title says more"
    assert f">{run.label}</span>" in pages[PAGE]
    assert "more than 64 dimensions" in pages[PAGE]
    shown = statement["predicate"]["passedTests"]
    waived = {**statement["predicate"], "result": "WARNED", "passedTests": [], "warnedTests": shown}
    statement = {**statement, "predicate": waived}
    pages = dict(render_pages(write_record(tmp_path / STATEMENT, statement), None, run, RESULTS))
    assert ">waived, self-tested</text>" in pages[BADGE]


def audit_changed(lab: Lab, change: Callable[[Records], object]) -> tuple[object, ...]:
    """Change the evidence and state it again; return the command that audits one row of it."""
    lab.forget_the_challenge()
    lab.forge(change)
    return ("audit", lab.folder, lab.backend, "--rows", 1, "--suite", lab.suite)


@pytest.mark.slow
def test_an_audit_says_where_the_identity_differs(lab: Lab, cli: Cli) -> None:
    """Another machine may have the same files and another device."""
    lab.forget_the_challenge()
    lab.forge(lambda records: records[0]["backend"]["detail"].update(device="cuda:0"))
    lab.forge(lambda records: records[0]["backend"].update(adapter="./mine.py:Mine@cuda:0"))
    said = '"device" was null, not "cuda:0", "called as" was "mine.py:Mine", not "mine.py:Mine@cuda:0"'
    words = lab.words("audit", lab.folder, lab.backend, "--key", lab.key("issuer"))
    cli(*words).expect(0, out="the audit says that the backend describes itself otherwise here: ")
    for text in (cli(*verify(lab)).expect(0, out=": re-run ").out, unescape((lab.folder / PAGE).read_text())):
        assert f"When it was run again, {said}." in " ".join(text.split())


PACKAGE, MODULE, LIBRARY = "vendor-2.0 (9 files)", "vendor/core.so", "libvendor.so"
FILES = {PACKAGE: "0" * 64, MODULE: "1" * 64, LIBRARY: "2" * 64}
OTHER = "9" * 64


WITHOUT_MODULE = {PACKAGE: FILES[PACKAGE], LIBRARY: FILES[LIBRARY]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("certified", "audits"),
    [
        (FILES, [
            ({**FILES, LIBRARY: OTHER}, (), f"{LIBRARY}: is another file here"),
            ({PACKAGE: FILES[PACKAGE], MODULE: FILES[MODULE]}, (), f"{LIBRARY}: was not used here"),
            ({**FILES, "libmore.so": OTHER}, (), "is not in the certificate; audit again without it"),
            (FILES, ("libmine.so (cannot be read)",), "has no digest, which the certificate does not say"),
            (WITHOUT_MODULE, (), ""),
            (FILES, (), ""),
        ]),
        (WITHOUT_MODULE, [
            ({**FILES, PACKAGE: OTHER}, (), f"{PACKAGE}: is another file here"),
            ({**FILES, MODULE: OTHER}, (), f"{MODULE}: was used here, and is not in the certificate"),
            (FILES, (), ""),
        ]),
        ({**FILES, MODULE: OTHER}, [(WITHOUT_MODULE, (), f"{MODULE}: was not used here")]),
        ({}, [({}, (), "the certificate names no file under test")]),
    ],
)  # fmt: skip
def test_an_audit_is_of_the_files_of_the_certificate(
    lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch, certified: dict[str, str],
    audits: list[tuple[dict[str, str], tuple[str, ...], str]],
) -> None:  # fmt: skip
    """A package may load a file on one side only, if all its files are the same on both."""
    words = audit_changed(lab, lambda records: records[-1].update(subject=certified))
    for here, lost, says in audits:
        subject = Subject(here, False, lost, {MODULE: PackageFile(PACKAGE, FILES[MODULE])})
        monkeypatch.setattr(audit, "repeat", lambda *_, used=subject: Repetition("mine.py:Mine", 1, (), used, ""))
        cli(*words).expect(bool(says), err=says)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (False, "code that is in no file: was used here and has no digest"),
        (True, "the certificate stays at level self-tested, because some rows were not called"),
    ],
)
def test_an_audit_refuses_hidden_code_that_is_in_no_file(
    lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch, said: bool, says: str
) -> None:
    words = audit_changed(lab, lambda records: records[-1].update(subject=FILES, unnamed_code=said))
    here = Repetition("mine.py:Mine", 1, (), Subject(FILES, True, (), {}), "")
    monkeypatch.setattr(audit, "repeat", lambda *_: here)
    done = cli(*words).expect(not said)
    assert says in " ".join(f"{done.out} {done.err}".split())


HANGS = """
import time
from adapters.reference import Reference
from conformance.model import Claims

class Mine(Reference):
    identity = Reference.identity._replace(name="mine")
    claims = Claims(operations=("Reshape-1",), not_claimed=("chain", "in-place"))

    def compile(self, graph):
        if graph.nodes[0].shape and graph.nodes[0].shape.values == (-1, -1):
            time.sleep(9)
        return super().compile(graph)
"""


@pytest.mark.slow
def test_certify_calls_every_row_of_a_case_that_hangs(lab: Lab) -> None:
    (lab.home / "mine.py").write_text(HANGS)
    out = lab.home / "hung"
    assert lab.command("certify", lab.backend, "--out", out, "--timeout", "0.3") == 1
    results = read(out / RESULTS).results
    kinds = Counter(result.outcome.kind for result in results if result.row.startswith("two-infers[Reshape-1-"))
    assert kinds["timeout"] > HangPolicy().max_hangs
    assert set(kinds) == {"timeout", "rejected"}, "a shape that arrives with run does not hang"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("challenge", "no/commitment.json"), "is no file"),
        (("challenge", "."), "is no file"),
        (("certify", "./mine.py:Mine", "--challenge", "."), "is no file"),
        (("audit", "no/certificate", "reference"), "does not exist"),
    ],
)
def test_what_is_not_there_is_a_mistake_of_usage(cli: Cli, words: tuple[str, ...], why: str) -> None:
    cli(*words).expect(2, err=why)


def other_adapter(lab: Lab, old: str = "", new: str = "") -> None:
    (lab.home / "mine.py").write_text("# other\n" + BACKEND.replace(old, new))


REFUSED: dict[str, tuple[Callable[[Lab], object], str, int, str]] = {
    # what is wrong: (how it is made, the command, the exit code, what is said)
    "another adapter": (
        other_adapter, "certify --challenge", 1,
        "commitment.json: what is tested differs from it in backend.digest, adapter; restore that"),
    "other claims": (
        lambda lab: other_adapter(lab, '"chain", '), "certify --challenge", 1,
        "from it in backend.digest, adapter, claims.not_claimed; restore that"),
    "a challenge to another commitment": (
        lambda lab: lab.change_record(COMMITMENT, lambda record: record["files"].update({"lib.so": "0" * 64})),
        "certify --challenge", 1, "challenge.json: was given for another commitment than "),
    "a challenge that has expired": (
        lambda lab: lab.change_challenge(expires=add_days(-1)), "certify --challenge", 1, "before the run began"),
    "a later challenge": (
        lambda lab: lab.change_challenge(issued=add_days(2)), "certify --challenge", 1, "after the run began"),
    "the identity of the reference": (
        lambda lab: other_adapter(lab, "    identity", "    other"), "certify", 2, "set `identity`"),
    "a certificate in the folder": (lambda lab: None, "run", 2, "holds a certificate; name another folder"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_command_that_is_refused_leaves_the_certificate(lab: Lab, cli: Cli, what: str) -> None:
    act, words, code, says = REFUSED[what]
    act(lab)
    before, (command, *challenge) = lab.contents(), words.split()
    given = (*challenge, *[lab.challenge] * len(challenge), "--out", lab.folder, "--suite", lab.suite)
    cli(command, lab.backend, *given).expect(code, err=says, lines=1)
    assert lab.contents() == before


@pytest.mark.slow
def test_a_run_of_files_not_committed_to_gives_no_certificate(lab: Lab, cli: Cli) -> None:
    lab.change_record(COMMITMENT, lambda record: record.update(adapter=lab.backend, files={"lib.so": "0" * 64}))
    lab.change_challenge(commitment=digest_of_file(lab.folder / COMMITMENT))
    words = ("certify", lab.backend, "--challenge", lab.challenge, "--out", lab.folder, "--suite", lab.suite)
    cli(*words).expect(1, err="what is tested differs from it in files.lib.so, files.", lines=1)
    assert not (lab.folder / STATEMENT).exists()


def test_clocks_may_differ_by_less_than_a_day(lab: Lab, cli: Cli) -> None:
    started = json.loads((lab.folder / STATEMENT).read_text())["predicate"][EXTENSION]["started"]
    lab.change_challenge(issued=f"{time_of(started) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}")
    cli(*verify(lab)).expect(0)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "says"), [((), "audit.json is signed"), (("--key", "issuer"), "audit.json is of ")])
def test_a_spot_check_keeps_a_stronger_audit(lab: Lab, cli: Cli, key: tuple[str, ...], says: str) -> None:
    key_words = [lab.key(word) if word == "issuer" else word for word in key]
    words = lab.words("audit", lab.folder, lab.backend, "--rows", "3", "--challenge", lab.challenge, *key_words)
    cli(*words).expect(0, out=("3 rows were called again and gave the same answers; nothing is written", says))
    assert cli(*verify(lab), "--json").expect(0).data["level"] == "re-run"


@pytest.mark.slow
def test_an_audit_that_no_issuer_signed_is_replaced(lab: Lab, cli: Cli) -> None:
    lab.change_record(AUDIT, put_own("rows", 99_999))
    words = ("audit", lab.folder, lab.backend, "--challenge", lab.challenge, "--key", lab.key("issuer"))
    cli(*lab.words(*words)).expect(0, out="is now at level re-run")
    assert cli(*verify(lab), "--json").expect(0).data["level"] == "re-run"


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT", "PYTHONHOME"])
def test_code_that_would_judge_too_is_refused(lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "libmine.so")
    said = f"{name} is set"
    cli("certify", lab.backend, "--out", lab.home / "out", "--suite", lab.suite).expect(3, err=said, lines=1)
    cli(*lab.words("audit", lab.folder, lab.backend)).expect(3, err=said)


def test_an_audit_with_another_adapter_is_refused(lab: Lab, cli: Cli) -> None:
    (lab.home / "mine.py").write_text((lab.home / "mine.py").read_text() + "# the same\n")
    cli(*lab.words("audit", lab.folder, lab.backend)).expect(1, err="is another adapter than the one")
    cli(*lab.words("audit", lab.folder, "./no-such.py:X")).expect(3, err="no-such.py: no such file", lines=1)


@pytest.mark.parametrize(
    ("command", "key", "code", "says"),
    [
        ("certify", "mine.py", 2, "ssh-keygen cannot sign with it"),
        ("certify", "", 2, "ssh-keygen is not installed"),
        ("audit", "mine.py", 2, "ssh-keygen cannot sign with it"),
        ("challenge", "mine.py", 2, "ssh-keygen cannot sign with it"),
        (
            "audit",
            "stranger",
            1,
            "stranger: would not be accepted for reshape-conformance-issuer: is not by a key that",
        ),
        ("audit", "vendor", 1, "vendor: signed the statement; an issuer is somebody else"),
    ],
)
def test_a_key_is_tried_before_anything_is_run(
    lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str, key: str, code: int, says: str
) -> None:
    lab.allow_the_vendor_everything()
    words: dict[str, tuple[object, ...]] = {
        "certify": ("certify", "no_such_file.py:Mine"),
        "audit": ("audit", lab.folder, *verify(lab)[3:5], "no_such_file.py:Mine"),
        "challenge": ("challenge", lab.folder / COMMITMENT, "--out", lab.home / "new.json"),
    }
    if not key:
        monkeypatch.setenv("PATH", "")
    key_words = ("--key", lab.key(key or "vendor"), "--suite", lab.suite)
    cli(*words[command], *key_words).expect(code, err=says, lines=1)
    assert not (lab.home / "new.json").exists()


def test_without_ssh_keygen_nothing_is_accepted(lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    cli(*verify(lab)).expect(1, err="ssh-keygen is not installed", lines=1)


def test_resumed_rows_are_said_and_not_audited(lab: Lab, cli: Cli) -> None:
    words = audit_changed(lab, resume)
    cli(*words).expect(1, err="1 row of the evidence is of an earlier run; only a whole run can be audited")
    for text in (
        cli(*verify(lab)).expect(0).out,
        (lab.folder / PAGE).read_text(),
        (lab.folder / STATEMENT).read_text(),
    ):
        assert "rows are from an earlier run that was interrupted" in text


@pytest.mark.slow
def test_an_audit_signs_nothing_if_an_answer_differs(lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (lab.home / "mine.py").read_text()
    (lab.home / "mine.py").write_text(source + ZEROS)
    due = read(lab.folder / RESULTS).header["backend"]["digest"]
    monkeypatch.setattr(audit, "digest_of_adapter", lambda backend: due)
    monkeypatch.setattr(audit, "_refuse_other_files", lambda *_: None)
    (lab.folder / AUDIT).unlink()
    said = "gave other answers here; nothing is signed"
    cli(*lab.words("audit", lab.folder, lab.backend)).expect(1, out=said)
    assert not (lab.folder / AUDIT).exists()


@pytest.mark.parametrize("name", [STATEMENT, RESULTS, PAGE, CHALLENGE, COMMITMENT])
def test_a_folder_in_place_of_a_file_is_one_line(lab: Lab, cli: Cli, name: str) -> None:
    (lab.folder / name).unlink()
    (lab.folder / name).mkdir()
    cli(*verify(lab)).expect(1, lines=1)


@pytest.mark.parametrize("words", [("audit", "numpy"), ("verify", "--certificate")])
def test_a_folder_without_a_certificate_says_which_to_name(cli: Cli, words: tuple[str, ...], tmp_path: Path) -> None:
    said = "statement.json: cannot be read: No such file or directory; `conformance certify` without --commit writes it"
    cli(words[0], tmp_path, words[1]).expect(1, err=said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--certificate", "--claims", "claims.yaml"), "--claims does not go with --certificate"),
        (("--certificate", "--require", "large"), "--require does not go with --certificate"),
        (("--allowed", __file__), "--allowed is about a certificate; add --certificate"),
        (("--subject", __file__), "--subject is about a certificate; add --certificate"),
        (("--at", "2026-11-25"), "--at is about a certificate; add --certificate"),
        (("--certificate", "--at", "25.11.2026"), "--at: '25.11.2026' is no day; write --at 2026-11-25"),
        (("--certificate", "--allowed", "sigers"), "sigers' is no file; check the path"),
        (("--certificate", "--subject", "lib.sp"), "lib.sp' is no file; check the path"),
    ],
)
def test_an_option_that_would_check_nothing_is_refused(lab: Lab, cli: Cli, words: tuple[str, ...], said: str) -> None:
    cli("verify", lab.folder, *words, "--suite", lab.suite).expect(2, err=said)


@pytest.mark.slow
def test_what_the_vendor_waives_shows_nothing_to_others(lab: Lab, cli: Cli) -> None:
    (lab.home / "wrong.py").write_text(BACKEND + ZEROS)
    waivers = lab.home / "waivers.yaml"
    waivers.write_text(
        "waivers:\n  - {case: '*[a-z]*', reason: All., link: 'https://e.example', owner: me, expires: '2027-01-01'}\n"
    )
    out = lab.home / "waived"
    words = (f"{lab.home / 'wrong.py'}:Mine", "--waivers", waivers, "--out", out)
    lab.command("certify", *words)
    cli("verify", out, "--certificate", "--suite", lab.suite).expect(1, out="certificate is true")


def test_a_waiver_that_keeps_drawn_rows_from_calls_is_warned_of(lab: Lab) -> None:
    """`run: false` can be for them and for rows that nobody asked for, which hold no failure."""
    run, results = conclude_run(lab.plan, read(lab.folder / RESULTS)), []
    for waivers in ([], [{"row": "[dm][ro][ar][we]*", "run": False}]):
        waived = replace(run, evidence=replace(run.evidence, header={**run.evidence.header, "waivers": waivers}))
        results.append(statement_of(waived, lab.plan.suite.digest, "0" * 64, 365, None)["predicate"]["result"])
    assert results == ["PASSED", "WARNED"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("footer", "level", "says"),
    [
        ({}, "re-run", ""),
        ({"not_named": ["the files that node read"]}, "challenged", "Used, and not named: the files that node read."),
        ({"subject": {}}, "self-tested", "No file of the library is named: this system, unlike Linux, does not say"),
        ({"subject": {}, "not_named": ["all files"]}, "self-tested", "Used, and not named: all files."),
        ({"unnamed_code": True}, "re-run", "in no file, as a compiler at run time (JIT) makes it. No digest covers"),
    ],
)
def test_the_level_is_no_higher_than_what_is_named(lab: Lab, footer: Json, level: str, says: str) -> None:
    lab.forge(lambda records: records[-1].update(footer))
    lab.audit()
    page = (lab.folder / PAGE).read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "refuse_uncommitted", lambda *_: None)
        assert check_certificate(lab.folder, lab.plan, lab.trust()).level == level
    assert says in " ".join(page.split())
    assert ("unlike Linux" in page) == ("unlike Linux" in says)
    assert f"<h2>Level: {level}</h2>" in page
