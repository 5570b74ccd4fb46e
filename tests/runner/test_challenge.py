"""A run under a nonce: a backend that knows the suite by heart fails; the evidence is judged without the backend."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.reference import Decided, Reference
from conformance.draw.nonce import is_of_nonce, plan_under_nonce
from conformance.draw.rows import Drawn, RowDrawer
from conformance.evidence.folder import RESULTS
from conformance.evidence.results import Evidence, InvalidEvidence, Target
from conformance.load.cases import load_suite
from conformance.model import Cases, Claims, Node, Suite
from conformance.plan.rows import Plan, plan_of
from conformance.run.row import run_rows
from conformance.runner.run_suite import RunRequest, run_suite
from conformance.verdict.conclude import conclude_evidence
from conformance.verdict.rejudge import read_and_judge
from tests.builders import Cli, Command, Records, put, rewrite

NONCE = "0123456789abcdef" * 4


def small_suite() -> Suite:
    """Some cases of a few rules that are one call, among them rules of the planted backends, for one type."""
    suite = load_suite()
    rules = ("one-infer", "same-volume", "literal-lengths", "same-content", "zero-copies")
    one_call = {name: case for name, case in suite.cases.items() if not case.large and not case.generated}
    cases = {name: case for name, case in one_call.items() if case.rule in rules}
    operations = {name: replace(one, types=("f32",)) for name, one in suite.spec.operations.items()}
    return replace(suite, spec=replace(suite.spec, operations=operations), cases=Cases(dict([*cases.items()][::3])))


SUITE = small_suite()
PLAN = plan_of(SUITE)
DRAWN = 100
BY_HEART = '''
import pickle
from pathlib import Path
from adapters.reference import Reference
from conformance import Rejected

KNOWN = pickle.loads(Path({known!r}).read_bytes())

class ByHeart(Reference):
    """Right for the calls that it knows; rejects every other."""

    def answer(self, node, src, shape):
        if (src, shape, node.special_zero.values) not in KNOWN:
            raise Rejected("run", "never heard of it")
        return super().answer(node, src, shape)
'''


class RecordsCalls(Reference):
    """The reference, which writes down each call."""

    def __init__(self) -> None:
        self.made: set[object] = set()

    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        self.made.add((src, shape, node.special_zero.values))  # type: ignore[union-attr]
        return super().answer(node, src, shape)


def draw_few(patch: pytest.MonkeyPatch) -> None:
    """Let a nonce draw what it draws at first: how much in all is the matter of other tests."""
    patch.setattr("conformance.draw.nonce.MAX_DRAWS", 2000)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_few(monkeypatch)


@pytest.fixture(scope="module")
def by_heart(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A backend that knows every call of the suite, and those that each run draws."""
    folder = tmp_path_factory.mktemp("by_heart")
    reference = RecordsCalls()
    drawn = RowDrawer(SUITE.spec, Claims(tuple(SUITE.spec.operations))).rows(Drawn(0, DRAWN))
    for _ in run_rows([*PLAN.rows, *drawn], reference):
        pass
    (folder / "known").write_bytes(pickle.dumps(reference.made))
    (folder / "by_heart.py").write_text(BY_HEART.format(known=str(folder / "known")))
    return f"{folder / 'by_heart.py'}:ByHeart"


def run_under(plan: Plan, backend: str, folder: Path) -> Evidence:
    request = RunRequest(backend, plan, Target(types=("f32",)), lambda row: True, isolation="none", drawn_rows=DRAWN)
    return run_suite(request, lambda name: folder)


@pytest.mark.slow
def test_a_backend_that_knows_the_suite_by_heart_fails(by_heart: str, tmp_path: Path) -> None:
    before = run_under(PLAN, by_heart, tmp_path)
    assert conclude_evidence(PLAN, before).exit_code == 0
    plan = plan_under_nonce(PLAN, NONCE)
    after = run_under(plan, by_heart, tmp_path)
    assert conclude_evidence(PLAN, after).exit_code == 1
    failed = [result.row for result in after.results if result.is_failure]
    assert len(failed) > 200
    assert all(is_of_nonce(row) for row in failed)


@pytest.fixture(scope="module")
def evidence_under_nonce(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The evidence of the reference."""
    folder = tmp_path_factory.mktemp("nonce")
    with pytest.MonkeyPatch.context() as patch:
        draw_few(patch)
        run_under(plan_under_nonce(PLAN, NONCE), "reference", folder)
    return (folder / RESULTS).read_bytes()


@pytest.mark.slow
def test_rows_of_a_run_under_another_nonce_are_refused(tmp_path: Path, evidence_under_nonce: bytes) -> None:
    path = tmp_path / RESULTS
    path.write_bytes(evidence_under_nonce)
    assert read_and_judge(path, PLAN).header["nonce"] == NONCE
    whole = path.read_bytes()
    rewrite(path, lambda records: records[0].pop("nonce"))
    with pytest.raises(InvalidEvidence, match="has rows that the suite does not"):
        read_and_judge(path, PLAN)
    path.write_bytes(whole)
    rewrite(path, lambda records: put(records[0], ("nonce",), "f" * 64))
    with pytest.raises(InvalidEvidence, match=r"lacks .* rows of the suite"):
        read_and_judge(path, PLAN)


@pytest.mark.slow
def test_answers_prepared_for_another_nonce_are_refused(tmp_path: Path, evidence_under_nonce: bytes) -> None:
    """The rows have the contents of another nonce: their digests are not those that are due."""
    path = tmp_path / RESULTS
    path.write_bytes(evidence_under_nonce)
    old = {result.row: result.digests for result in run_under(PLAN, "reference", tmp_path / "public").results}

    def put_old_contents(records: Records) -> None:
        for record in records[1:-1]:
            if any(old.get(record["row"], ())):
                record["digests"] = list(old[record["row"]])

    rewrite(path, put_old_contents)
    with pytest.raises(InvalidEvidence, match="makes it fail"):
        read_and_judge(path, PLAN)


def test_a_nonce_is_64_digits(cli: Cli) -> None:
    words = "'abc' is no nonce; write 64 of the digits 0 to 9 and a to f"
    cli("run", "reference", "--nonce", "abc").expect(2, err=words)


@pytest.mark.slow
def test_the_command_that_repeats_a_row_has_the_nonce(by_heart: str, command: Command) -> None:
    words = ("--nonce", NONCE, "--type", "f32", "--operation", "StaticReshape", "-k", "fresh")
    command.run(by_heart, *words).expect(1, text=f"--nonce {NONCE} -k 'fresh-01234567-")
