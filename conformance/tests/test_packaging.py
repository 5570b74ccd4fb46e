"""What is installed is what lies in the repository, and every way to install it finds the data."""

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
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import conformance

ROOT = Path(conformance.__file__).parents[1]
INSIDE = {"adapters": "conformance/adapters", "cases": "conformance/cases", "spec": "conformance/spec"}
OURS = ("conformance", "reshape_conformance", "__editable__")
NOT_CARRIED = {"__pycache__", ".venv", "build", "dist", ".git"}
PROBE = """
import conformance, json
from importlib.resources import files
def below(folder, ending):
    return sorted(str(path.name) for path in folder.iterdir() if path.name.endswith(ending))
print(json.dumps({
    "package": conformance.__file__,
    "version": conformance.__version__,
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
    """What a command prints; nothing of this process's own Python settings reaches it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        command, cwd=cwd, env=clean | environment, capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == code, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def carried() -> list[str]:
    """The files of the checkout that belong to the repository, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().rstrip("\0").split("\0")
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    return [name for name in names if (ROOT / name).is_file() and not NOT_CARRIED & set(Path(name).parts)]


def copy_of_the_clone(target: Path) -> Path:
    """The repository's files alone, so that nothing is left in the checkout; of the reports only the README."""
    for name in (name for name in carried() if not name.startswith("reports/") or name == "reports/README.md"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


class Built(NamedTuple):
    """A source distribution, and the wheel that was made from it."""

    sdist: Path
    wheel: Path

    def names(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_clone(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both archives; the wheel is made from the unpacked sdist, as an index's users would."""
    tree = copy_of_the_clone(tmp_path_factory.mktemp("tree"))
    run(sys.executable, "-m", "build", "--no-isolation", cwd=tree)
    return Built(*(next((tree / "dist").glob(ending)) for ending in ("*.tar.gz", "*.whl")))


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


class Environment:
    """A clean virtual environment with the libraries and, once installed, the suite."""

    def __init__(self, home: Path, libraries: Path) -> None:
        venv.create(home, with_pip=False, symlinks=True)
        self.python = home / "bin" / "python"
        self.empty = home / "elsewhere"
        self.empty.mkdir()
        site = next((home / "lib").glob("python*/site-packages"))
        (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")

    def install(self, *what: str | Path) -> None:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
        run(self.python, "-m", "pip", "install", *quiet, "--ignore-installed", *what, cwd=self.empty)

    def finds_everything(self, cwd: Path, whole: bool = False) -> Path:
        """Read the data from one working directory, and check them if `whole`; return where the package came from."""
        found = json.loads(run(self.python, "-c", PROBE, cwd=cwd))
        assert found["version"] == conformance.__version__
        for folder, ending in (("spec", ".yaml"), ("cases", ".yaml"), ("adapters", ".py")):
            assert found[folder] == sorted(path.name for path in (ROOT / folder).glob(f"*{ending}"))
        assert found["schema"] == sorted(path.name for path in (ROOT / "spec" / "schema").glob("*.json"))
        assert conformance.__version__ in run(self.python, "-m", "conformance", "--version", cwd=cwd)
        if whole:
            run(self.python, "-m", "conformance", "check", cwd=cwd)
        cases = json.loads(run(self.python, "-m", "conformance", "list", "cases", "--json", cwd=cwd))["cases"]
        assert {case["case"] for case in cases} == set((ROOT / "cases" / "ids.lock").read_text("utf-8").split())
        return Path(found["package"]).parent


@pytest.fixture
def environment(tmp_path: Path, libraries: Path) -> Iterator[Environment]:
    home = tmp_path / "environment"
    yield Environment(home, libraries)
    shutil.rmtree(home)


# ── archives ──────────────────────────────────────────────────────────────────────────────────────
def test_the_wheel_adds_no_name_but_ours(built: Built) -> None:
    top = {name.split("/")[0] for name in built.names()}
    info = f"reshape_conformance-{conformance.__version__}.dist-info"
    assert top == {"conformance", "reshape_conformance_pytest.py", info}


def test_the_wheel_carries_every_file_of_the_folders_it_is_made_of(built: Built) -> None:
    """A new kind of data file that pyproject.toml forgets is named here."""
    parts = [name.split("/", 1) for name in carried() if "/" in name]
    wanted = {f"{INSIDE.get(top, top)}/{rest}" for top, rest in parts if top in (*INSIDE, "conformance")}
    assert wanted - built.names() == set()


def test_the_wheel_is_small(built: Built) -> None:
    assert built.wheel.stat().st_size < 1_400_000  # with its own tests, which are a third of it


def test_the_wheel_is_built_of_the_sdist_as_of_the_clone(built: Built, clone: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, clone, cwd=tmp_path)
    shutil.rmtree(clone / "build")
    again = built._replace(wheel=next(tmp_path.glob("*.whl")))
    assert again.names() == built.names()


@pytest.mark.slow
def test_the_wheel_of_one_source_is_the_same_bytes_wherever_and_whenever_it_is_built(tmp_path: Path) -> None:
    wheels = []
    first = copy_of_the_clone(tmp_path / "here")
    for number, tree in enumerate((shutil.copytree(first, tmp_path / "elsewhere" / "and" / "deeper"), first)):
        for path in tree.rglob("*"):
            os.utime(path, (1_000_000_000 + number, 1_700_000_000 + number))
        build = [sys.executable, "-m", "build", "--no-isolation", "--wheel"]
        run(*build, cwd=tree, SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED=str(number))
        wheels.append(next((tree / "dist").glob("*.whl")))
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_every_dependency_has_its_reason_on_a_line_of_contributing() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.search(r"^dependencies = \[(.*?)^\]", project, re.DOTALL | re.MULTILINE)
    assert needed
    for name in re.findall(r'"([A-Za-z0-9_-]+)', needed[1]):
        assert re.search(rf"^\| {name} \| \S", text, re.MULTILINE), name


def test_the_sdist_carries_what_a_contributor_needs(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    unneeded = {name for name in carried() if name.startswith(("reports/", ".")) and name != ".ci/run"}
    assert set(carried()) - names <= unneeded | {"MANIFEST.in"}


def test_one_file_states_the_version(built: Built) -> None:
    assert conformance.__version__ in built.wheel.name
    assert conformance.__version__ in built.sdist.name
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


# ── ways to install ───────────────────────────────────────────────────────────────────────────────
def test_an_installed_wheel_finds_its_data_and_so_does_a_clone_where_one_stands(
    environment: Environment, built: Built, clone: Path
) -> None:
    environment.install(built.wheel)
    assert environment.finds_everything(environment.empty).parent.name == "site-packages"
    assert environment.finds_everything(clone) == clone / "conformance"


@pytest.mark.slow
def test_pip_install_from_the_folder_finds_the_data(environment: Environment, tmp_path: Path) -> None:
    tree = copy_of_the_clone(tmp_path / "tree")
    environment.install(tree)
    shutil.rmtree(tree)
    assert environment.finds_everything(environment.empty, whole=True).parent.name == "site-packages"


@pytest.mark.slow
def test_an_editable_install_finds_the_data_in_the_clone(environment: Environment, tmp_path: Path) -> None:
    tree = copy_of_the_clone(tmp_path / "tree")
    environment.install("--editable", tree)
    assert environment.finds_everything(environment.empty, whole=True) == tree / "conformance"
    assert environment.finds_everything(tree, whole=True) == tree / "conformance"


def test_a_clone_runs_without_being_installed(environment: Environment, clone: Path) -> None:
    assert environment.finds_everything(clone) == clone / "conformance"


@pytest.mark.slow
def test_the_data_of_an_installed_wheel_and_of_a_clone_are_whole(guest: Environment, clone: Path) -> None:
    for cwd in (guest.empty, clone):
        guest.finds_everything(cwd, whole=True)


# ── guests in a stranger's repository ─────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory, libraries: Path, built: Built) -> Environment:
    """An environment in which the wheel is installed, beside a stranger's own tests."""
    environment = Environment(tmp_path_factory.mktemp("guest"), libraries)
    environment.install(built.wheel)
    return environment


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A repository that has a package `conformance` of its own, and uses our option names."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "__init__.py").write_text("theirs = True\n", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--type', default='tank')\n"
        "    parser.addoption('--operation', default='pump')\n",
        encoding="utf-8",
    )
    (tmp_path / "test_theirs.py").write_text(
        "def test_theirs(pytestconfig):\n"
        "    import conformance\n"
        "    assert conformance.theirs and pytestconfig.getoption('--type') == 'tank'\n",
        encoding="utf-8",
    )
    return tmp_path


def test_a_stranger_with_a_folder_of_that_name_notices_nothing(guest: Environment, stranger: Path) -> None:
    printed = run(guest.python, "-m", "pytest", "-q", cwd=stranger)
    assert "1 passed" in printed


def test_a_stranger_may_have_an_option_called_adapter(guest: Environment, stranger: Path) -> None:
    theirs = stranger / "conftest.py"
    theirs.write_text(theirs.read_text(encoding="utf-8").replace("--operation", "--adapter"), encoding="utf-8")
    printed = run(guest.python, "-m", "pytest", "-q", "--adapter", "hose", cwd=stranger)
    assert "1 passed" in printed


def test_the_suite_runs_in_a_repository_with_a_package_of_its_name(guest: Environment, stranger: Path) -> None:
    (stranger / "conftest.py").unlink()
    words = "--type", "f32", "--operation", "StaticReshape", "-q"
    assert "the whole target conforms" in run(guest.python, "-m", "pytest", "--adapter", "numpy", *words, cwd=stranger)
    printed = run(guest.python, "-m", "pytest", "--adapter", "numpy", "test_theirs.py", cwd=stranger, code=4)
    assert [line for line in printed.splitlines() if line] == [
        f"ERROR: {stranger / 'conformance' / '__init__.py'} and the suite have the same name: run the tests "
        "test_theirs.py in a session of their own, without --adapter"
    ]


def test_the_suite_is_imported_only_for_an_adapter(guest: Environment, tmp_path: Path) -> None:
    (tmp_path / "test_quiet.py").write_text(
        "import sys\n\n\ndef test_quiet():\n    assert 'conformance' not in sys.modules\n", encoding="utf-8"
    )
    assert "1 passed" in run(guest.python, "-m", "pytest", "-q", cwd=tmp_path)


def test_help_lists_our_options(guest: Environment, tmp_path: Path) -> None:
    printed = run(guest.python, "-m", "pytest", "--help", cwd=tmp_path)
    for option in ("--adapter", "--operation", "--document", "--type", "--conformance-out"):
        assert f"{option} " in printed or f"{option}=" in printed


# ── the product, away from the clone ──────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_an_installed_wheel_certifies_the_reference_and_names_report_and_verdict(
    guest: Environment, tmp_path: Path
) -> None:
    printed = run(guest.python, "-m", "conformance", "run", "numpy", cwd=tmp_path)
    assert "\nexit 0: the whole target conforms\n" in printed
    (report,) = re.findall("(?m)^report: (.*)", printed)
    assert (tmp_path / report).is_file()


def test_an_installed_wheel_runs_a_part_of_the_suite_under_pytest(guest: Environment, tmp_path: Path) -> None:
    words = ("-m", "pytest", "-q", "--adapter", "numpy", "cases/zero.yaml::copied-zero-keeps-three")
    printed = run(guest.python, *words, cwd=tmp_path, code=4)
    assert "passed" in printed
    assert "incomplete" in printed


def test_an_installed_wheel_tests_itself(guest: Environment, tmp_path: Path) -> None:
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "conformance.tests.load.test_strict_yaml")
    assert "passed" in run(guest.python, *words, cwd=tmp_path)


def test_an_installed_wheel_writes_an_adapter_that_runs_and_fails_where_the_readme_says(
    guest: Environment, tmp_path: Path
) -> None:
    run(guest.python, "-m", "conformance", "new-adapter", "mine", cwd=tmp_path)
    words = ("run", "./mine.py:Mine", "--isolation", "none", "-k")
    assert "exit 4" in run(guest.python, "-m", "conformance", *words, "copied-zero-keeps-three", cwd=tmp_path, code=4)
    printed = run(guest.python, "-m", "conformance", *words, "minus-two-in-front-is-no-infer", cwd=tmp_path, code=1)
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for said in (
        "answered an illegal call · answers what the text forbids: lower-bound",
        "minus-two-in-front-is-no-infer[StaticReshape-f32]: answered",
    ):
        assert said in printed
        assert said in shown


@pytest.mark.slow
def test_readmes_first_command_certifies_from_a_clean_clone_with_an_empty_home(tmp_path: Path) -> None:
    """Needs an index for pip, as the command does."""
    home = tmp_path / "home"
    home.mkdir()
    tree = copy_of_the_clone(tmp_path / "clone")
    assert "python3 make.py report" in (ROOT / "README.md").read_text(encoding="utf-8")
    printed = run(sys.executable, "make.py", "report", cwd=tree, timeout=900, HOME=str(home))
    assert "\nexit 0: the whole target conforms\nreport: build/numpy/report.html\n" in printed
    assert (tree / "build" / "numpy" / "report.html").is_file()


# ── README ────────────────────────────────────────────────────────────────────────────────────────
def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 250
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_the_readme_shows_commands_that_there_are() -> None:
    from conformance.cli.options import commands_and_options

    known = commands_and_options()
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    shown = re.findall(r"(?:^ {4,6}(?:\$ )?|`|run: )conformance ([a-z][a-z-]+)([^\n`]*)", text, re.MULTILINE)
    assert len(shown) > 10
    for command, rest in shown:
        assert command in known, command
        for option in re.findall(r" (--[a-z-]+)", rest.partition("#")[0]):
            assert option in known[command][1], f"conformance {command} {option}"
