"""A page is right about itself: where the evidence is, which cases it has, and how it is verified."""

import hashlib
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.evidence.folder import PAGE, PUBLISHED
from conformance.evidence.results import parse, read_content
from conformance.load.cases import load_suite
from conformance.report import embedded
from conformance.report.summary import name_facet

from ..builders import Command, bundled_plan, spoil
from .page import Page

CLAIMS = re.compile(
    r"in this file|beside it|[Ee]very case|[Ee]very test of the suite|on this page|shown|all cases|[Ww]hat each backend"
)


pytestmark = pytest.mark.usefixtures("only_readme")


@pytest.fixture(scope="module")
def publish_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[pytest.CaptureFixture[str], str], Command]:
    """Run a backend and publish that run, once."""
    commands: dict[str, Command] = {}

    def make(capsys: pytest.CaptureFixture[str], backend: str) -> Command:
        if backend not in commands:
            command = commands[backend] = Command(tmp_path_factory.mktemp("truth"), capsys)
            command.run(backend)
            command("publish", command.folder / "site", command.out, "--suite", command.folder).expect(0)
        return commands[backend]

    return make


@pytest.fixture(params=["local", "published"])
def folder(
    request: pytest.FixtureRequest,
    publish_once: Callable[..., Command],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Callable[[str], Path]:
    """A copy of the folder of a page: of a run, or as it is published."""

    def copy(backend: str) -> Path:
        root = Path(shutil.copytree(publish_once(capsys, backend).folder, tmp_path / "copy"))
        return root / "out" if request.param == "local" else next(root.glob(f"site/*/{PUBLISHED}")).parent

    return copy


def evidence_of(page: Path) -> Path:
    """The file that the page links as its evidence."""
    (name,) = re.findall(r'<dt>Evidence</dt><dd><a href="([^"#:/]+)"', page.read_text(encoding="utf-8"))
    return page.with_name(name)


def failing_cases(page: Path) -> set[str]:
    """The cases that fail in the evidence of a page."""
    evidence = parse(read_content(evidence_of(page)), evidence_of(page))
    return {each.row.partition("[")[0] for each in evidence.results if each.is_failure}


def holds(sentence: str, page: Path, cases: set[str]) -> bool:
    """Check a sentence of a page about itself; KeyError for a sentence that this test does not know."""
    html = page.read_text(encoding="utf-8")
    if "The evidence is in this file" in sentence:
        lines = embedded.extract_lines(html, page)
        return lines == read_content(evidence_of(page))
    if "The evidence is not in this file" in sentence:
        return embedded.BEGIN not in html
    if "It is beside it" in sentence:
        return evidence_of(page).is_file()
    if "Every case of the suite under its rule" in sentence:
        return set(re.findall(r'id="case-([^"]+)"', html)) == cases
    if "Every case that failed is under Failures" in sentence:
        return set(re.findall(r'id="case-([^"]+)"', html)) == failing_cases(page)
    if "The list of all cases has each with its call, and the comparison says what each backend did" in sentence:
        pages = [page.parent.parent / name for name in ("spec/cases.html", "compare.html")]
        return all(set(re.findall(r'id="?case-([^" >]+)', path.read_text(encoding="utf-8"))) == cases for path in pages)
    if "What each backend did there is on a separate page" in sentence:
        return "rejected" in (page.parent.parent / "unspecified.html").read_text(encoding="utf-8")
    if "Every test of the suite was run" in sentence:
        return "not run" not in re.findall(r"\d+ tests = [^.]*", Page(html).text)[0]
    if "Printed: the head and the failures that are open" in sentence:
        left_out = re.findall(r'<section class="screen" aria-labelledby="([^"]+)"', html)
        return {"rules", "observed", "cases", "environment", "legend"} <= {*left_out}
    if "nothing is shown of any document" in sentence:
        return "does not conform" not in html
    raise KeyError(sentence)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["planted:eight-buffers-in-turn", "planted:zero-flag-ignored"])
def test_each_sentence_of_a_page_about_itself_is_so(
    folder: Callable[[str], Path], reporting: Command, backend: str
) -> None:
    page = folder(backend) / PAGE
    text = " ".join(Page(page.read_text(encoding="utf-8")).text.split())
    sentences = [sentence for sentence in text.split(".") if CLAIMS.search(sentence)]
    cases = set(load_suite(reporting.folder).cases)
    assert len(sentences) >= 2
    for sentence in sentences:
        assert holds(sentence, page, cases), sentence


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["planted:eight-buffers-in-turn", "planted:zero-flag-ignored"])
def test_the_command_on_the_page_verifies_it(
    folder: Callable[[str], Path], reporting: Command, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    page = folder(backend) / PAGE
    monkeypatch.chdir(page.parent)
    (command,) = re.findall(r"<dt>Check it</dt><dd><code>([^<]*)</code>", page.read_text(encoding="utf-8"))
    reporting(*shlex.split(command)[1:]).expect(0)
    spoil(page, "tests", "test s", 1)
    assert reporting(*shlex.split(command)[1:]).code == 1


def test_the_evidence_that_a_page_names_is_that_of_the_page(folder: Callable[[str], Path]) -> None:
    page = folder("planted:zero-flag-ignored") / PAGE
    digest = hashlib.sha256(evidence_of(page).read_bytes()).hexdigest()
    html = page.read_text(encoding="utf-8")
    assert f"{evidence_of(page).name}</a> SHA-256 {digest[:12]}" in html
    assert f"<th scope=row>SHA-256 of {evidence_of(page).name}<td>{digest}" in html


def test_a_page_without_its_evidence_says_what_is_missing(folder: Callable[[str], Path], reporting: Command) -> None:
    page = folder("planted:eight-buffers-in-turn") / PAGE
    if evidence_of(page).suffix == ".xz":
        evidence_of(page).unlink()
        reporting("verify", "--suite", reporting.folder, page).expect(2, err="is not beside it")
    else:
        reporting("verify", "--suite", reporting.folder, page).expect(0)


def test_each_facet_has_a_name_of_its_own() -> None:
    facets = {facet for row in bundled_plan().rows for facet in row.facets} | {"layout", "form"}
    names = {facet: name_facet(facet) for facet in facets}
    assert {facet for facet, name in names.items() if name == facet} == {"large"}
    assert len(set(names.values())) == len(facets)
