"""Bundled files are checked against their schemas by `conformance check`, those of users at each run."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.load.folders import find_cases_folder, find_spec_folder
from conformance.load.schema import read_file, schema_of

from ..builders import Cli, spoil


def parts_of(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in a schema, and itself."""
    for each in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from parts_of(each)
    if isinstance(schema, Mapping):
        yield schema


@pytest.mark.parametrize("name", sorted(path.stem for path in (find_spec_folder() / "schema").glob("*.json")))
def test_a_schema_takes_no_key_that_it_does_not_name(name: str) -> None:
    objects = [part for part in parts_of(schema_of(name)) if part.get("type") == "object" and "properties" in part]
    assert objects
    assert [part for part in objects if part.get("additionalProperties", True) is True] == []


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the bundled cases that is taken for them."""
    folder = tmp_path / "cases"
    shutil.copytree(find_cases_folder(), folder)
    for module in ("cli.check", "load.cases", "load.folders", "load.schema"):
        monkeypatch.setattr(f"conformance.{module}.find_cases_folder", lambda: folder)
    return folder


@pytest.mark.slow
def test_check_finds_an_unknown_key_in_a_bundled_case(cli: Cli, cases: Path) -> None:
    spoil(cases / "chain.yaml", "    src:", "    lagre: true\n    src:", 1)
    cli("check").expect(1, out="unknown key 'lagre'; did you mean 'large'?")


@pytest.mark.slow
def test_check_lists_the_problems_of_all_bundled_cases(cli: Cli, cases: Path) -> None:
    for name in ("chain.yaml", "zero.yaml"):
        spoil(cases / name, "    rule: ", "    rule: no-", 1)
    said = cli("check").expect(1).text
    assert said.count("unknown rule 'no-") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    src: T[", "    src: 7 # T[", "src: 7 is no"),
        ("    rule: ", "    ruel: ", "unknown key 'ruel'; did you mean"),
    ],
)
def test_a_run_says_what_its_bundled_case_lacks(cli: Cli, cases: Path, old: str, new: str, said: str) -> None:
    spoil(cases / "chain.yaml", old, new, 1)
    cli("run", "reference", "-k", "there-and-back").expect(2, err=said)


def test_a_file_of_a_user_is_checked_against_its_schema(tmp_path: Path) -> None:
    path = Path(shutil.copy(find_spec_folder() / "operations.yaml", tmp_path))
    assert read_file(path, "operations")[1] == []
    spoil(path, "shape_passed_as: [attribute]", "shape_passed_as: [atribute]")
    assert "did you mean 'attribute'" in str(read_file(path, "operations")[1])


@pytest.mark.slow
def test_a_run_of_the_bundled_suite_need_not_wait_for_jsonschema(tmp_path: Path) -> None:
    code = (
        "import sys; from conformance.cli.main import main; "
        f"main(['run', 'reference', '-k', 'there-and-back', '--out', {str(tmp_path)!r}]); "
        "assert not {'jsonschema', 'multiprocessing', 'ssl'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
