"""docs/certify.md: its commands, run to the letter."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.certificate.statement import LEVELS
from tests.builders import ROOT

DOC = ROOT / "docs" / "certify.md"
COMMANDS = re.findall(r"(?m)^    (\S.*)$", DOC.read_text(encoding="utf-8"))


def test_a_challenge_shows_the_same_on_page_and_certificate() -> None:
    for phrase in ("answers were computed after that", "the named files computed them", "such as the public reference"):
        assert phrase in LEVELS["challenged"]
        assert phrase in DOC.read_text(encoding="utf-8")


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
def test_the_conversation_can_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from conformance.adapters.reference import Reference\n\n\nclass Mine(Reference):\n"
        '    identity = Reference.identity._replace(name="mine")\n',
        encoding="utf-8",
    )
    script = "\n".join(["set -e", f'conformance() {{ {shlex.quote(sys.executable)} -m conformance "$@"; }}', *COMMANDS])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "not shown" not in done.stdout
    (entry,) = json.loads((tmp_path / "site" / "register.json").read_text())
    assert (entry["level"], entry["tester"], entry["issuer"]) == ("re-run", "tester@example.com", "issuer@example.com")
