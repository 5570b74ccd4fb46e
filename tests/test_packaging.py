"""Every way to install the suite installs the files of the repository and finds its data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import conformance
from conformance.load.cases import load_suite
from tests.builders import ROOT, spoil, write_suite

INSIDE = {"adapters": "conformance/adapters", "cases": "conformance/cases", "spec": "conformance/spec"}
OURS = ("conformance", "reshape_conformance", "__editable__")
NOT_CARRIED = {"__pycache__", ".venv", "build", "dist", ".git"}
PROBE = """
import conformance, contextlib, io, json
from conformance.cli.main import main
from conformance.load.schema import check_bundled_files
from importlib.resources import files
def below(folder, ending):
    return sorted(str(path.name) for path in folder.iterdir() if path.name.endswith(ending))
def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(words) == 0
    return out.getvalue()
assert not check_bundled_files()
print(json.dumps({
    "package": conformance.__file__,
    "said": said("--version"),
    "listed": json.loads(said("list", "cases", "--json")),
    "spec": below(files("conformance.spec"), ".yaml"),
    "schema": below(files("conformance.spec") / "schema", ".json"),
    "cases": below(files("conformance.cases"), ".yaml"),
    "adapters": below(files("conformance.adapters"), ".py"),
}))
"""


def can_build() -> bool:
    have = find_spec("build") and find_spec("setuptools")
    return bool(have) and int(version("setuptools").partition(".")[0]) >= 77


pytestmark = [
    pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="only a clone can be built"),
    pytest.mark.skipif(not can_build(), reason="needs build and setuptools>=77, as the extra [test] installs them"),
]


def run(*command: str | Path, cwd: Path, code: int = 0, timeout: int = 120, **environment: str) -> str:
    """Return what a command prints; it gets none of this process's Python settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        command, cwd=cwd, env=clean | environment, capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == code, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def carried() -> list[str]:
    """The files of the checkout that belong to the repository, committed or not."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().rstrip("\0").split("\0")
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    return [name for name in names if (ROOT / name).is_file() and not NOT_CARRIED & set(Path(name).parts)]


def copy_of_the_clone(target: Path) -> Path:
    """The repository's files alone, so that nothing is left in the checkout; of the reports only the README."""
    names = [name for name in carried() if not name.startswith("reports/") or name == "reports/README.md"]
    for folder in {(target / name).parent for name in names}:
        folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy2(ROOT / name, target / name)
    return target


class Archives(NamedTuple):
    """A source distribution and a wheel."""

    sdist: Path
    wheel: Path

    @classmethod
    def below(cls, folder: Path) -> Archives:
        return cls(*(next(folder.glob(ending)) for ending in ("*.tar.gz", "*.whl")))

    def names(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_clone(tmp_path_factory.mktemp("clone"))


BUILD_BOTH = (
    "from setuptools.build_meta import build_sdist as sdist, build_wheel as wheel; wheel('dist'), sdist('dist')"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Both archives of the clone, by one process of setuptools, where an earlier version was built before."""
    tree = copy_of_the_clone(tmp_path_factory.mktemp("tree") / "and" / "deeper")
    (tree / "build" / "lib" / "conformance").mkdir(parents=True)
    (tree / "build" / "lib" / "conformance" / "gone.py").touch()
    run(sys.executable, "-c", BUILD_BOTH, cwd=tree, SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED="1")
    return Archives.below(tree / "dist")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is installed here but the suite, so that clean environments need no network."""
    folder = tmp_path_factory.mktemp("libraries")
    for site in [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]:
        for found in site.iterdir() if site.is_dir() else ():
            ours = found.suffix == ".pth" or found.name.startswith(OURS)
            if not ours and not (folder / found.name).exists():
                (folder / found.name).symlink_to(found)
    return folder


class CleanEnvironment:
    """A clean virtual environment with the libraries and, once installed, the suite."""

    def __init__(self, home: Path, libraries: Path) -> None:
        venv.create(home, with_pip=False, symlinks=True)
        self.python = home / "bin" / "python"
        self.empty = home / "elsewhere"
        self.empty.mkdir()
        self.site = next((home / "lib").glob("python*/site-packages"))
        (self.site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")

    def unpack(self, wheel: Path) -> None:
        """Put the files of a wheel where an installer puts them, in a fraction of pip's time."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)

    def install(self, what: Path) -> None:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
        run(self.python, "-m", "pip", "install", *quiet, "--no-compile", "--ignore-installed", what, cwd=self.empty)

    def finds_everything(self, cwd: Path) -> Path:
        """Read the data from one working directory; return where the package came from."""
        found = json.loads(run(self.python, "-c", PROBE, cwd=cwd))
        for folder, ending in (("spec", ".yaml"), ("cases", ".yaml"), ("adapters", ".py")):
            assert found[folder] == sorted(path.name for path in (ROOT / folder).glob(f"*{ending}"))
        assert found["schema"] == sorted(path.name for path in (ROOT / "spec" / "schema").glob("*.json"))
        assert found["said"] == f"conformance {conformance.__version__}, suite {load_suite().digest}\n"
        listed = {case["case"] for case in found["listed"]["cases"]}
        assert listed == set((ROOT / "cases" / "ids.lock").read_text("utf-8").split())
        return Path(found["package"]).parent


# ── archives ──────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_the_wheel_adds_no_name_but_ours_and_is_small(built: Archives) -> None:
    top = {name.split("/")[0] for name in built.names()}
    info = f"reshape_conformance-{conformance.__version__}.dist-info"
    assert top == {"conformance", "reshape_conformance_pytest.py", info}
    assert "conformance/gone.py" not in built.names(), "it was built earlier"
    assert [name for name in built.names() if re.search(r"(^|/)tests?(/|_|$)", name)] == []
    assert built.wheel.stat().st_size < 1_146_000


@pytest.mark.slow
def test_the_wheel_carries_every_file_of_its_folders(built: Archives) -> None:
    """A new kind of data file that pyproject.toml forgets is named here."""
    parts = [name.split("/", 1) for name in carried() if "/" in name]
    wanted = {f"{INSIDE.get(top, top)}/{rest}" for top, rest in parts if top in (*INSIDE, "conformance")}
    assert wanted - built.names() == set()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_wheel_of_one_source_is_always_the_same_bytes(built: Archives, tmp_path: Path) -> None:
    """The command of CONTRIBUTING makes the wheel from the unpacked sdist, as an index does."""
    tree = copy_of_the_clone(tmp_path / "tree")
    for path in tree.rglob("*"):
        os.utime(path, (1_000_000_000, 1_200_000_000))
    build = [sys.executable, "-m", "build", "--no-isolation"]
    run(*build, cwd=tree, SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED="0")
    again = Archives.below(tree / "dist")
    assert again.wheel.name == built.wheel.name
    assert again.names() == built.names()
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


def test_contributing_has_a_reason_for_every_dependency() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.search(r"^dependencies = \[(.*?)^\]", project, re.DOTALL | re.MULTILINE)
    assert needed
    for name in re.findall(r'"([A-Za-z0-9_-]+)', needed[1]):
        assert re.search(rf"^\| {name} \| \S", text, re.MULTILINE), name


@pytest.mark.slow
def test_the_sdist_carries_what_a_contributor_needs(built: Archives) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    unneeded = {name for name in carried() if name.startswith(("reports/", ".")) and name != ".ci/run"}
    assert set(carried()) - names <= unneeded | {"MANIFEST.in"}


@pytest.mark.slow
def test_one_file_states_the_version(built: Archives) -> None:
    assert conformance.__version__ in built.wheel.name
    assert conformance.__version__ in built.sdist.name
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


# ── ways to install ───────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory, libraries: Path, built: Archives) -> CleanEnvironment:
    """An environment that holds what the wheel holds."""
    environment = CleanEnvironment(tmp_path_factory.mktemp("guest"), libraries)
    environment.unpack(built.wheel)
    return environment


@pytest.mark.slow
def test_an_unpacked_wheel_finds_its_data(guest: CleanEnvironment) -> None:
    assert guest.finds_everything(guest.empty) == guest.site / "conformance"


@pytest.mark.slow
def test_a_clone_runs_without_being_installed(tmp_path: Path, libraries: Path, clone: Path) -> None:
    assert CleanEnvironment(tmp_path / "environment", libraries).finds_everything(clone) == clone / "conformance"


@pytest.mark.slow
@pytest.mark.exhaustive  # pip puts the files where they are unpacked above
def test_an_install_from_the_folder(built: Archives, libraries: Path, tmp_path: Path) -> None:
    """It installs what is in the wheel."""
    tree, environment = copy_of_the_clone(tmp_path / "tree"), CleanEnvironment(tmp_path / "environment", libraries)
    environment.install(tree)
    shutil.rmtree(tree)
    assert environment.finds_everything(environment.empty) == environment.site / "conformance"
    with zipfile.ZipFile(built.wheel) as archive:
        for name in (name for name in archive.namelist() if ".dist-info/" not in name):
            assert (environment.site / name).read_bytes() == archive.read(name), name


# ── guests in a stranger's repository ─────────────────────────────────────────────────────────────
@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A repository that has another package `conformance`, and uses our option names."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "__init__.py").write_text("theirs = True\n", encoding="utf-8")
    options = "def pytest_addoption(parser):\n    parser.addoption('--type', default='tank')\n"
    options += "    parser.addoption('--operation', default='pump')\n"
    (tmp_path / "conftest.py").write_text(options, encoding="utf-8")
    test = "def test_theirs(pytestconfig):\n    import conformance\n"
    test += "    assert conformance.theirs and pytestconfig.getoption('--type') == 'tank'\n"
    (tmp_path / "test_theirs.py").write_text(test, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_stranger_with_a_folder_of_our_name_notices_nothing(guest: CleanEnvironment, stranger: Path) -> None:
    """The test that runs first sees that nothing of the suite was imported."""
    (stranger / "test_quiet.py").write_text(
        "import sys\n\n\ndef test_quiet():\n    assert 'conformance' not in sys.modules\n", encoding="utf-8"
    )
    printed = run(guest.python, "-m", "pytest", "-q", "test_quiet.py", "test_theirs.py", cwd=stranger)
    assert "2 passed" in printed


@pytest.mark.slow
def test_a_stranger_may_have_an_option_called_adapter(guest: CleanEnvironment, stranger: Path) -> None:
    spoil(stranger / "conftest.py", "--operation", "--adapter")
    printed = run(guest.python, "-m", "pytest", "-q", "--adapter", "hose", cwd=stranger)
    assert "1 passed" in printed


@pytest.mark.slow
def test_a_part_of_the_suite_beside_a_package_of_its_name(guest: CleanEnvironment, stranger: Path) -> None:
    (stranger / "conftest.py").unlink()
    words = ("--adapter", "reference", "--conformance-suite", str(write_suite(stranger)), "cases/few0.yaml::stays")
    printed = run(guest.python, "-m", "pytest", "-q", *words, cwd=stranger, code=4)
    assert "passed" in printed
    assert "incomplete" in printed


@pytest.mark.slow
def test_help_lists_our_options(guest: CleanEnvironment, tmp_path: Path) -> None:
    printed = run(guest.python, "-m", "pytest", "--help", cwd=tmp_path)
    for option in ("--adapter", "--operation", "--document", "--type", "--conformance-out"):
        assert f"{option} " in printed or f"{option}=" in printed


# ── the product, away from the clone ──────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_an_installed_wheel_certifies_the_reference(guest: CleanEnvironment, tmp_path: Path) -> None:
    words = ("run", "reference", "--suite", str(write_suite(tmp_path)), "--drawn-rows", "0")
    printed = run(guest.python, "-m", "conformance", *words, cwd=tmp_path)
    assert (
        "\nexit 0: the whole target conforms, without drawn rows, as far as 20 cases of another suite go\n" in printed
    )
    (report,) = re.findall("(?m)^report: (.*)", printed)
    assert (tmp_path / report).is_file()


@pytest.mark.slow
def test_a_new_adapter_fails_where_the_readme_says(guest: CleanEnvironment, tmp_path: Path) -> None:
    run(guest.python, "-m", "conformance", "new-adapter", "mine", cwd=tmp_path)
    words = ("run", "./mine.py:Mine", "--isolation", "none", "-k")
    assert "exit 4" in run(guest.python, "-m", "conformance", *words, "copied-zero-keeps-three", cwd=tmp_path, code=4)
    printed = run(guest.python, "-m", "conformance", *words, "minus-two-on-one-element", cwd=tmp_path, code=1)
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for said in (
        "accepts what the text forbids: lower-bound",
        ": minus-two-on-one-element[StaticReshape-f32]\n",
        "answered f32[1], though the call breaks lower-bound",
    ):
        assert said in printed
        assert said in shown
