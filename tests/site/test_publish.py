"""Published runs are packed the same each time, whole, of this suite, and current."""

import json
import lzma
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from conformance.certificate.check import Trust
from conformance.evidence.folder import PAGE, PUBLISHED
from conformance.evidence.results import InvalidEvidence, pack, read
from conformance.load.cases import load_suite
from conformance.model import NOT_CALLED, Outcome, Result
from conformance.plan.rows import Plan
from conformance.report import junit
from conformance.report.also_failing import PLACE, clear_others, fill_others
from conformance.report.verify import verify_report
from conformance.run.ended_process import AFTER_HANGS
from conformance.site.publish import count_bytes, find_failing_cases, prepare, write_pages
from tests.builders import (
    ROOT,
    Cli,
    Command,
    CommandOutput,
    OnlyStatic,
    Right,
    Wrong,
    WrongBefore,
    finish_run,
    mini,
    plan_as_bundled,
    rewrite,
    write_document_pages,
)
from tests.site.test_documents import list_broken_links, list_reached_files

REPORTS = ROOT / "reports"
RIGHT = "planted:eight-buffers-in-turn"
"""A planted backend that answers the few cases rightly."""
MAX_BYTES = 16_000_000
pytestmark = pytest.mark.usefixtures("only_readme")


def call_publish(command: Command, *words: object) -> CommandOutput:
    return command("publish", command.folder / "reports", *words, "--suite", command.folder)


def publish_run(command: Command, backend: str) -> Path:
    """The folder of a backend that was run and published."""
    command.run(backend)
    assert call_publish(command, command.out).code == 0
    (folder,) = (command.folder / "reports").glob(f"{backend.replace(':', '-')}-*")
    return folder


def test_a_published_folder_has_name_results_and_link(command: Command) -> None:
    folder = publish_run(command, RIGHT)
    assert folder.name == "planted-eight-buffers-in-turn-1"
    assert lzma.decompress((folder / PUBLISHED).read_bytes()) == (command.out / "results.jsonl").read_bytes()
    command("diff", "--suite", command.folder, folder, command.out).expect(0)
    assert f'href="{folder.name}/{PAGE}"' in (folder.parent / "index.html").read_text(encoding="utf-8")


def test_the_same_data_is_packed_the_same() -> None:
    data = b"one\ntwo\n" * 1000
    assert pack(data) == pack(data)
    assert lzma.decompress(pack(data)) == data


@pytest.mark.slow
def test_a_page_tells_what_fails_other_pages_what_passes(reporting: Command) -> None:
    page = (publish_run(reporting, "planted:zero-flag-ignored") / PAGE).read_text(encoding="utf-8")
    whole = (reporting.out / PAGE).read_text(encoding="utf-8")
    for case in ("stays", "flattens", "copies", "empties"):
        assert f'id="case-{case}"' in whole
    assert 'id="case-copies"' in page
    assert 'id="failure-copies"' in page
    assert 'id="case-stays"' not in page
    assert "Answers to stays" in whole
    assert "Answers to copies" not in page
    assert len(page) < len(whole)


@pytest.mark.slow
def test_the_rules_name_the_rows_that_nobody_executed(command: Command) -> None:
    folder = publish_run(command, RIGHT)
    page = folder.parent / "rules.html"
    assert "no backend here has executed" not in page.read_text(encoding="utf-8")
    shutil.rmtree(folder)
    command.run(mini("ClaimsOne"), "--isolation", "worker")
    call_publish(command, command.out).expect(0)
    text = page.read_text(encoding="utf-8")
    assert re.search(r"<summary>\d+ rows that no backend here has executed</summary>", text)
    assert '<li><a href="compare.html#case-copies">copies</a>: ' in text


@pytest.mark.slow
def test_a_failure_says_how_many_others_fail_there(command: Command) -> None:
    publish_run(command, RIGHT)
    folder = publish_run(command, "planted:zero-flag-ignored")
    page = (folder / PAGE).read_text(encoding="utf-8")
    assert '<a href="../compare.html#case-copies">Other backends that fail here: 0 of 1 judged</a>' in page
    assert 'id="case-copies"' in (folder.parent / "compare.html").read_text(encoding="utf-8")
    assert list_broken_links(folder.parent) == []
    command("verify", "--suite", command.folder, folder).expect(0, out=PAGE)
    (folder / PAGE).write_text(page.replace("here: 0 of 1", "here: all"), encoding="utf-8")
    command("verify", "--suite", command.folder, folder).expect(1, out="Other backends that")


class ClaimsNoType(Right):
    not_claimed = ("type",)


def test_only_others_that_were_judged_are_counted(plan: Plan, tmp_path: Path) -> None:
    runs = [finish_run(plan, each, tmp_path / str(n)) for n, each in enumerate((Right(), Wrong(), ClaimsNoType()))]
    page = fill_others(PLACE.format("turns", ""), [*map(find_failing_cases, runs)])
    assert "Other backends that fail here: 1 of 2 judged" in page
    assert clear_others(page) == PLACE.format("turns", "")


@pytest.mark.slow
def test_two_versions_have_a_page_of_what_changed(tmp_path: Path) -> None:
    plan, reports = plan_as_bundled(tmp_path), tmp_path / "reports"
    older, _ = (finish_run(plan, each, tmp_path / each.version) for each in (WrongBefore(), Right()))
    write_document_pages(plan, reports, (tmp_path / "0.9", tmp_path / "1"))
    page = (reports / "right-1" / "since-right-0.9.html").read_text(encoding="utf-8")
    assert '<a href="../right-0.9/report.html#document-static-oneapi">' in page
    assert '<a href="../right-0.9/report.html#case-turns">' in page, "it fails no longer, so the older page has it"
    assert list_broken_links(reports) == []
    assert 'href="right-1/since-right-0.9.html"' in (reports / "index.html").read_text(encoding="utf-8")
    gone = sum(len(result.failing) for result in older.rows)
    head = f'<p class=since><a href="since-right-0.9.html">Since right-0.9: {gone} tests better, 0 worse</a></p>'
    report = reports / "right-1" / PAGE
    assert head in report.read_text(encoding="utf-8")
    assert not verify_report(report.parent, plan).mismatches
    shutil.rmtree(reports / "right-0.9")
    write_pages(reports, plan, Trust())
    assert "<p class=since></p>" in report.read_text(encoding="utf-8")
    assert list_broken_links(reports) == []
    assert not list(reports.glob("*/since-*")), "a page about what is not published any more"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("reference",), "the suite's own reference, which is no library"),
        (("reference", "-k", "flattens"), "only whole runs are published"),
        ((RIGHT, "--document", "static-oneapi"), "--document or --type; only whole runs are published"),
        ((RIGHT, "--type", "f32"), "only whole runs are published"),
        (("planted:zero-flag-ignored", "--maxfail", "1"), "was not called, as after --maxfail; only whole runs"),
    ],
    ids=str,
)
def test_the_reference_and_a_part_of_a_run_are_not_published(
    command: Command, words: tuple[str, ...], says: str
) -> None:
    command.run(*words)
    call_publish(command, command.out).expect(2, err=says)


@pytest.mark.parametrize("outcomes", [AFTER_HANGS, NOT_CALLED])
def test_rows_after_hangs_are_not_held_against_a_whole_run(
    plan: Plan, tmp_path: Path, outcomes: tuple[Outcome, ...]
) -> None:
    """A run with hangs was refused as one after --maxfail."""
    outcome = Outcome("timeout", message="no answer (deterministic: again alone in a fresh process)")

    def hang(result: Result) -> Result:
        if not result.row.startswith("turns[StaticReshape"):
            return result
        if result.row == "turns[StaticReshape-f32]":
            return Result(result.row, dict.fromkeys(result.verdicts, "fail"), (outcome,), 0, "timeout", "timeout")
        return Result(result.row, dict.fromkeys(result.verdicts, "not run"), outcomes)

    run = finish_run(plan, OnlyStatic(), tmp_path, lambda results: [*map(hang, results)])
    if outcomes == NOT_CALLED:
        assert junit.render(run).count("not run: the run did not call it: run again") == 2
        with pytest.raises(InvalidEvidence, match=r"StaticReshape-bf16.* was not called, as after --maxfail"):
            prepare(tmp_path / "results.jsonl", plan, tmp_path / "reports", Trust())
    else:
        assert junit.render(run).count(f"not run: {AFTER_HANGS[0].describe()}") == 2
        prepare(tmp_path / "results.jsonl", plan, tmp_path / "reports", Trust())


def test_all_runs_are_read_before_one_is_written(command: Command) -> None:
    command.run(RIGHT)
    call_publish(command, command.out, command.folder / "none").expect(2, err="none: cannot be read")
    assert not list(command.folder.glob(f"reports/*/{PUBLISHED}")), "all are read before one is written"


def test_two_runs_for_one_folder_are_refused(command: Command) -> None:
    """The second replaced the first, and nothing said so."""
    command.run(RIGHT)
    other = shutil.copytree(command.out, command.folder / "other")
    rewrite(other / "results.jsonl", lambda records: records[0].update(started="2026-01-02T03:04:05+00:00"))
    said = call_publish(command, command.out, other).expect(2, err="and that of 2026-01-02T03:04:05+00:00 would go")
    assert said.err.splitlines()[-1].endswith("name one of them")
    assert not list(command.folder.glob(f"reports/*/{PUBLISHED}"))


@pytest.mark.slow
def test_a_published_folder_that_was_renamed_keeps_its_name(command: Command) -> None:
    """Its run went to the folder that its version names, and replaced the one there."""
    folder = publish_run(command, RIGHT)
    rewrite(command.out / "results.jsonl", lambda records: records[0].update(started="2026-01-02T03:04:05+00:00"))
    for name in ("before", "zz-before"):
        old = shutil.copytree(folder, folder.parent / name)
        (old / PUBLISHED).write_bytes(pack((command.out / "results.jsonl").read_bytes()))
    results = {path: path.read_bytes() for path in folder.parent.glob(f"*/{PUBLISHED}")}
    call_publish(command).expect(0)
    assert {path: path.read_bytes() for path in folder.parent.glob(f"*/{PUBLISHED}")} == results
    command("verify", folder.parent / "before", "--suite", command.folder).expect(0)


@pytest.mark.slow
def test_other_evidence_beside_a_certificate_is_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.cli.request.count_drawn_rows", lambda *_: 1)
    command("certify", "--suite", command.folder, RIGHT, "--out", command.out).expect(0)
    other = command.out / "other.jsonl"
    other.write_bytes((command.out / "results.jsonl").read_bytes())
    call_publish(command, other).expect(2, err=f"{other}: is not the evidence of the certificate beside it; name the")
    call_publish(command, command.out / "results.jsonl").expect(0)


@pytest.mark.slow
def test_a_folder_with_a_name_that_links_elsewhere_is_named(command: Command) -> None:
    folder = publish_run(command, RIGHT)
    names = ("javascript:alert(1)", "%2e%2e", 'a"b', "-x", ".x", "a b")
    for name in names:
        shutil.copytree(folder, folder.parent / name)
    told = [f"not on the page: {json.dumps(name)} is no name for a link; rename" for name in names]
    call_publish(command).expect(1, text=told)
    links = list_links(folder.parent)
    page = (folder.parent / "index.html").read_text(encoding="utf-8")
    assert links
    assert "Not in the table" in page
    assert "javascript:alert(1)</bdi>" in page
    assert [name for name in names if {f"{name}/{PAGE}", f"{name}/since-{folder.name}.html"} & links] == []
    assert list_broken_links(folder.parent) == []


def list_links(folder: Path) -> set[str]:
    """List where the links of all pages lead."""
    pages = (path.read_text(encoding="utf-8") for path in folder.rglob("*.html"))
    return {unescape(link) for page in pages for link in re.findall(r'(?:href|data-page)="([^"]*)"', page)}


@pytest.mark.slow
def test_pages_of_removed_backends_are_removed(command: Command) -> None:
    folder = publish_run(command, RIGHT)
    shutil.rmtree(folder)
    call_publish(command).expect(0)
    assert {path.name for path in folder.parent.iterdir()} == {
        "assets", "docs", "playground.html", "register.html", "register.json", "spec",
    }  # fmt: skip


def test_a_file_of_somebody_else_beside_the_shared_ones_stays(command: Command) -> None:
    own = command.folder / "reports" / "assets" / "mine.html"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    publish_run(command, RIGHT)
    assert own.read_text() == "mine"


def test_pages_of_removed_documents_are_removed(command: Command) -> None:
    spec = publish_run(command, RIGHT).parent / "spec"
    pages = {path.name for path in spec.iterdir()}
    shutil.copy(spec / "index.html", spec / "static-2020.html")
    call_publish(command).expect(0)
    assert {path.name for path in spec.iterdir()} == pages


@pytest.mark.parametrize(
    "name", ["index.html", "register.html", "spec/index.html", "docs/index.html", "assets/style.css"]
)
def test_a_page_of_somebody_else_is_not_replaced(command: Command, name: str) -> None:
    page = command.folder / "reports" / name
    page.parent.mkdir(parents=True)
    page.write_text("<!doctype html><p>Ours.")
    command.run(RIGHT)
    call_publish(command, command.out).expect(2, err=f"{name}: is no file of this suite", lines=1)
    assert [path for path in page.parents[name.count("/")].rglob("*") if path.is_file()] == [page]


def test_a_private_key_in_a_site_is_refused(command: Command) -> None:
    key = command.folder / "reports" / "keys" / "vendor-key"
    key.parent.mkdir(parents=True)
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    call_publish(command).expect(2, err="vendor-key: is a private key, and a site is uploaded whole", lines=1)
    assert not (command.folder / "reports" / "spec").exists()
    key.write_text("-----BEGIN PUBLIC KEY-----\nPRIVATE KEY-----\n")
    call_publish(command).expect(0)


def test_a_folder_where_no_file_can_be_made_is_one_line(cli: Cli) -> None:
    """It waited for ever."""
    cli("publish", "/proc/self/fdinfo").expect(2, err="/proc/self/fdinfo/assets: No such file", lines=1)


@pytest.mark.slow
def test_results_of_another_suite_are_not_on_the_page(command: Command) -> None:
    """The page went on to show them if no others were left."""
    folder = publish_run(command, RIGHT)
    command("publish", folder.parent).expect(1, out="not on the page", text="run again")
    assert not (folder.parent / "index.html").exists()
    call_publish(command).expect(0)
    (folder / PUBLISHED).write_bytes(pack(b"changed"))
    call_publish(command).expect(1, out="not on the page")
    assert {page.name for page in folder.parent.glob("*.html")} == {"playground.html", "register.html"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9], lambda data: data[:40] + b"?" + data[41:], lambda _: b"text",
        lambda data: data + b"more", lambda data: data + data, lambda _: lzma.compress(b"", lzma.FORMAT_ALONE),
        lambda _: lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]),
    ],
)  # fmt: skip
def test_packed_results_that_are_damaged_are_one_line(tmp_path: Path, damage: object) -> None:
    path = tmp_path / PUBLISHED
    assert callable(damage)
    path.write_bytes(damage(pack(b"".join(b'{"record":"row","row":"%d"}\n' % number for number in range(1000)))))
    with pytest.raises(InvalidEvidence, match=r"cannot be unpacked.*damaged") as refused:
        read(path)
    assert "\n" not in str(refused.value)


published_here = pytest.mark.skipif(
    not (REPORTS / "index.html").is_file(), reason="nothing is published beside an installed suite"
)


@published_here
def test_what_is_published_stays_small() -> None:
    if not list(REPORTS.glob(f"*/{PUBLISHED}")):
        pytest.skip("reports/ is packed as it was before; publish it again")
    assert count_bytes(REPORTS) < MAX_BYTES


@published_here
@pytest.mark.slow
def test_no_published_page_is_left_over() -> None:
    assert set(REPORTS.rglob("*.html")) - list_reached_files(REPORTS / "index.html") == set()


def test_an_index_of_a_folder_that_is_not_there_is_a_slip(command: Command, tmp_path: Path) -> None:
    command("publish", tmp_path / "reprots").expect(2, err="does not exist; name the folder of a RUN too")
    assert not (tmp_path / "reprots").exists()


def test_no_page_is_written_into_a_suite(command: Command, tmp_path: Path) -> None:
    (tmp_path / "my" / "spec").mkdir(parents=True)
    (tmp_path / "my" / "spec" / "rules.yaml").write_text("extends: bundled\n")
    command("publish", tmp_path / "my").expect(2, err="rules.yaml: is no file of this suite; move it, or name another")
    assert [*(tmp_path / "my").rglob("*.html")] == []


def test_the_table_of_rules_has_those_with_a_failing_test(command: Command) -> None:
    """Each other rule is below it once."""
    folder = publish_run(command, "planted:zero-flag-ignored")
    text = (folder / PAGE).read_text(encoding="utf-8")
    section = text[text.index('aria-labelledby="rules"') : text.index('aria-labelledby="observed"')]
    table, below = section.split("</table>")
    in_table, in_short = (re.findall(r"id=rule-([\w-]+)", part) for part in (table, below))
    failing = re.findall(r"<tr id=rule-([\w-]+)>(?:(?!<tr).)*?(?:✗ [\d,]+ fail|<td class=n>[\d,]+\s)", table, re.DOTALL)
    assert failing == in_table, "a rule is in the table although no test of it fails, and none breaks it"
    broken = sum(int(number.replace(",", "")) for number in re.findall(r"<td class=n>([\d,]+)\s", table))
    assert f"<strong>{broken:,} of " in text, "each failing test breaks one rule"
    assert "✗" not in below
    assert sorted([*in_table, *in_short]) == sorted(load_suite(command.folder).spec.rules)
