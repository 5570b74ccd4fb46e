"""The hooks of pre-commit check the folders that docs/ci.md names, and model files."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import builders
from tests.builders import ROOT, spoil, write_tiny_spec

HOOKS = ROOT / ".pre-commit-hooks.yaml"
pytestmark = pytest.mark.skipif(not HOOKS.is_file(), reason="the hook stays in the clone")


def hook(dialect: Path) -> list[str]:
    """The words after `conformance` that the hook gives, for a dialect instead of the folder that the docs name."""
    used, hook = used_and_hook(0)
    assert re.search(hook["files"], "my/cases/a.yaml")
    assert "my" in used["args"]
    words = [str(dialect) if word == "my" else word for word in (*shlex.split(hook["entry"]), *used["args"])]
    assert words[0] == "conformance"
    return words[1:]


def used_and_hook(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A hook as the docs use it, and as the repository has it."""
    (block,) = re.findall(r"```yaml\n(repos:.*?)```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
    used = yaml.safe_load(block)["repos"][0]["hooks"][number]
    hook = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))[number]
    assert used["id"] == hook["id"]
    return used, hook


def test_the_hook_checks_the_cases_that_the_docs_name(tmp_path: Path, cli: builders.Cli) -> None:
    """No folder extends the bundled ones, so that these are not checked again."""
    write_tiny_spec(tmp_path)
    cases = builders.write_cases(tmp_path, TWO_INFERS)
    cli(*hook(tmp_path)).expect(1, out="few0.yaml:3: two-infers: the id is not in cases/ids.lock")
    (cases / "ids.lock").write_text("two-infers\n", encoding="utf-8")
    cli(*hook(tmp_path)).expect(0, text="cases 1")


TWO_INFERS = """about: One.
cases:
  - {id: two-infers, rule: one-infer, src: "T[4]", shape: [-1, -1], special_zero: false, expect: reject}
"""


def test_a_hook_fails_on_an_illegal_model(tmp_path: Path, cli: builders.Cli) -> None:
    pytest.importorskip("onnx")
    from tests.graphs.test_onnx_models import flatten, value

    used, hook = used_and_hook(1)
    assert all(re.search(files, "models/a.onnx") for files in (hook["files"], used["files"]))
    for entry, code in ((0, 0), (1, 1)):
        model = flatten(tmp_path, entry, 12, x=value("x", "batch", 3, 4))
        assert cli(*shlex.split(hook["entry"])[1:], *used["args"], model).code == code


@pytest.mark.parametrize("file", ["spec/rules.yaml", "cases/acme.yaml"])
def test_the_hook_names_a_slip(file: str, tmp_path: Path, cli: builders.Cli) -> None:
    shutil.copytree(ROOT / "examples" / "dialect", tmp_path / "mine")
    slip = tmp_path / "mine" / file
    spoil(slip, "  - id: ", "  - idd: ", 1)
    cli(*hook(tmp_path / "mine")).expect(1, text="'idd'", out=f"{slip.name}:")
