"""Fixtures of the tests of the plugin: a repository, and a file of backends."""

from pathlib import Path

import pytest

from tests.builders import write_cases

BACKENDS = """import os
from conformance.adapter import FunctionAdapter
from conformance.adapters.reference import Reference
from conformance.model import Rejected
class Refuses(FunctionAdapter):
    name, version = 'refuses', '1'
    def reshape(self, src, shape, special_zero):
        raise ValueError('no \\x1b[31m way')
class Errs(FunctionAdapter):
    name, version = 'errs', '1'
    def reshape(self, src, shape, special_zero):
        raise KeyError('lost')
class Exits(FunctionAdapter):
    name, version = 'exits', '1'
    def reshape(self, src, shape, special_zero):
        raise SystemExit(0)
class Abstains(FunctionAdapter):
    name, version = 'abstains', '1'
    operations = ()
    def reshape(self, src, shape, special_zero):
        return src
class Differs(FunctionAdapter):
    name, version = 'differs', os.environ.get('PYTEST_XDIST_WORKER', 'main')
    def reshape(self, src, shape, special_zero):
        raise ValueError
class DiffersInClaims(Reference):
    @property
    def claims(self):
        own = super().claims
        return own._replace(not_claimed=('large',)) if 'PYTEST_XDIST_WORKER' in os.environ else own
class Wavers(Reference):
    calls = 0
    def compile(self, graph):
        type(self).calls += 1
        if str(self.calls) == os.environ.get('REFUSED'):
            raise Rejected('compile', 'not now')
        return super().compile(graph)
class ExitsOnDoubles(Reference):
    def compile(self, graph):
        if graph.src.type == 'f64':
            os._exit(3)
        return super().compile(graph)
class Dies(Reference):
    def compile(self, graph):
        os._exit(3)
class Forks(Reference):
    def compile(self, graph):
        if os.fork():
            os.wait()
        return super().compile(graph)
class Leaves(Reference):
    def compile(self, graph):
        os.mkdir('gone')
        os.chdir('gone')
        os.rmdir('../gone')
        return super().compile(graph)
"""


@pytest.fixture(autouse=True)
def no_planted_backends() -> None:
    """Runs call them here too, because sessions are compared with runs."""


@pytest.fixture
def backend(tmp_path: Path) -> str:
    """A file of backends outside the working directory, as the beginning of a name."""
    path = tmp_path / "backends.py"
    path.write_text(BACKENDS, encoding="utf-8")
    return str(path)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


@pytest.fixture
def few(here: Path) -> Path:
    """The repository `here`, with a folder of a few cases."""
    write_cases(here)
    return here
