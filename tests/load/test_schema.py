"""Bundled files are checked against their schemas when they change, and only then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from conformance.load.folders import cases_folder, spec_folder
from conformance.load.schema import checked_digests, checked_lock, read_file, schema_of
from conformance.load.strict_yaml import read

BUNDLED = [
    *((path, path.stem) for path in sorted(spec_folder().glob("*.yaml"))),
    *((path, "cases") for path in sorted(cases_folder().glob("*.yaml"))),
]


@pytest.mark.parametrize(("path", "schema"), BUNDLED, ids=lambda part: getattr(part, "name", part))
def test_a_bundled_file_passes_its_schema(path: Path, schema: str) -> None:
    content = json.loads(json.dumps(read(path, path.name)[0]))
    jsonschema.Draft202012Validator(schema_of(schema)).validate(content)


def test_the_lock_is_of_the_bundled_files() -> None:
    assert checked_lock().read_text(encoding="utf-8").split() == checked_digests()


def test_a_file_that_differs_from_the_checked_one_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "operations.yaml"
    text = (spec_folder() / "operations.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    assert read_file(path, "operations")[1] == []
    path.write_text(text.replace("given: [attribute]", "given: [atribute]"), encoding="utf-8")
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
