"""README is short, and its links and commands exist."""

import re
import shlex
import subprocess
import sys

import pytest

from conformance.cli.commands import COMMANDS, parser_of
from conformance.draw.combinations import count_combinations
from conformance.load.spec import load_spec
from conformance.model import BLAMES
from tests.builders import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="README stays in the clone")


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_the_readme_says_how_many_combinations_there_are() -> None:
    said = re.search(r"some ([0-9,]+) computed calls", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said
    assert int(said[1].replace(",", "")) == round(count_combinations(), -2)


def test_the_readme_shows_commands_that_there_are() -> None:
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    shown = re.findall(r"(?:^ {4,6}(?:\$ )?|`|run: )conformance ([a-z][a-z-]+)([^\n`]*)", text, re.MULTILINE)
    assert len(shown) > 10
    for command, rest in shown:
        assert command in COMMANDS, command
        for option in re.findall(r" (--[a-z-]+)", rest.partition("#")[0]):
            assert option in parser_of(command).options, f"conformance {command} {option}"


def test_the_python_that_pages_show_runs() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*ROOT.glob("*.md"), *ROOT.glob("[!.r]*/*.md"))]
    shown = re.findall(r"^ {4,6}(?:\$ )?python3? (-c .+)$", "\n".join(texts), re.MULTILINE)
    assert shown
    for words in shown:
        subprocess.run([sys.executable, *shlex.split(words)], cwd=ROOT, check=True, timeout=60)


def test_the_readme_of_spec_says_where_each_document_is() -> None:
    shown = re.findall(
        r"^\| (\S+) \| \[(\S+)\]\((\S+)\) \| (\S+) \|$", (ROOT / "spec/README.md").read_text("utf-8"), re.MULTILINE
    )
    due = []
    for document in load_spec().documents.values():
        assert document.origin is not None
        path, release = document.origin.path, document.origin.releases[-1]
        due.append((document.id, path, f"{document.origin.repository}/blob/{release}/{path}", release))
    assert shown == due


def test_how_we_read_names_every_document_and_no_other() -> None:
    spec = load_spec()
    text = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:static|dynamic|reshape)-[a-z0-9]+(?:[.-][a-z0-9]+)*", text)) - {"reshape-conformance"}
    assert named >= set(spec.documents)
    assert named - {*spec.documents, *spec.rules, *spec.findings} == set()


def test_how_we_read_names_findings_that_there_are() -> None:
    text = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    named = re.findall(r"\*\*([a-z]+(?:-[a-z]+)+)\.?\*\*", text)
    assert len(named) >= 10
    assert set(named) <= set(load_spec().findings)


def test_how_we_read_defines_blame_in_the_words_of_the_legend() -> None:
    lines = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith(tuple(f"| {blame} |" for blame in BLAMES))]
    assert table == [f"| {blame} | {meaning} |" for blame, meaning in BLAMES.items()]


PAGES = (
    "README.md", "CONTRIBUTING.md", "adapters/README.md",
    *(f"docs/{name}.md" for name in ("architecture", "threats", "lab")),
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_and_functions_that_there_are(page: str) -> None:
    """The name of a file in a room begins with the room; a row of a table may name functions of its file."""
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        names = [name for name in re.findall(r"`([a-z_./]+/[a-z_]+\.py)`", line) if "NAME" not in name]
        folders = (ROOT, ROOT / "conformance", (ROOT / page).parent)
        files = {name: next((at / name for at in folders if (at / name).is_file()), None) for name in names}
        assert None not in files.values(), (page, files)
        if line.startswith("| ") and len(files) == 1 and page == "docs/architecture.md":
            (file,) = files.values()
            for function in re.findall(r"\| `([a-z_]+)`", line.split("`" + names[0] + "`")[1]):
                assert file is not None
                assert re.search(rf"^def {function}\(", file.read_text(encoding="utf-8"), re.MULTILINE), line
