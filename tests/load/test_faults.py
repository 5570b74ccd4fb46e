"""adapters/faults.yaml: each fault names a backend of the suite or of lab.yaml and has a condition on legal calls."""

from pathlib import Path

import pytest

from conformance.load.faults import load_faults
from conformance.load.spec import load_spec
from conformance.meaning.faults import KnownFaults
from conformance.model import Malformed, PlainCall
from tools.lab.read import load_lab

ENTRY = """faults:
  - id: it
    title: It fails
    advice: Do not call it.
    backends:
      numpy: ["1"]
    shows: [crash]
    when: {when}
"""
CALL = PlainCall("f32", (2, 0), (7, -1), False, (7, 0))


def load_text(folder: Path, text: str) -> KnownFaults:
    path = folder / "faults.yaml"
    path.write_text(text, encoding="utf-8")
    return KnownFaults(load_faults(path))


def test_each_bundled_fault_is_of_a_backend_that_is_run() -> None:
    faults, lab = load_faults(), load_lab(Path(__file__).parents[2] / "lab.yaml")
    run = {name.replace("@", "-") for each in lab.environments.values() for name in each.backends}
    assert {backend for fault in faults for backend, _ in fault.backends} <= run
    assert {rule for fault in faults for rule in fault.rules} <= load_spec().rules.keys()
    KnownFaults(faults)


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("product(src) == 0", True), ("src_type == 'f16'", False), ("all(n <= 7 for n in dst)", True),
        ("special_zero or -1 in shape", True), ("any(n == 0 and i < len(src) for i, n in enumerate(dst))", True),
    ],
)  # fmt: skip
def test_a_condition_reads_the_call_its_answer_and_its_type(tmp_path: Path, when: str, holds: bool) -> None:
    assert bool(load_text(tmp_path, ENTRY.format(when=f'"{when}"')).of_legal_call(CALL)) is holds


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (ENTRY.format(when="src[0] == 1"), "may read past the end"),
        (ENTRY.format(when="declared == 1"), "unknown name 'declared'"),
        (ENTRY.format(when="len(src)"), "where true or false is wanted"),
        (ENTRY.format(when="len(src) > 1").replace("    title: It fails\n", ""), "missing key 'title'"),
        (ENTRY.format(when="len(src) > 1").replace("id: it", "id: It"), "in kebab-case"),
        (ENTRY.format(when="len(src) > 1") + ENTRY.format(when="len(src) > 1")[8:], "the id 'it' occurs twice"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(Malformed) as error:
        load_text(tmp_path, text)
    assert what in str(error.value)
    assert "/faults.yaml:" in str(error.value)
