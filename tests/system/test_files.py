"""Files that are read are regular and bounded, files that are replaced follow no link, and one run holds a folder."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.system.exit_codes import CommandError
from conformance.system.files import lock_folder, read_bytes, replace_text


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert read_bytes(tmp_path / "file") == b"content"


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "/dev/null"])
def test_only_a_regular_file_is_read(tmp_path: Path, path: str) -> None:
    """A pipe has no writer here; reading must not wait for one."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_bytes(tmp_path / path)


def test_a_file_over_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="more than 1,073,741,824 bytes"):
        read_bytes(tmp_path / "sparse")


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_symbolic_link_is_replaced_and_not_written_through(tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / target)
    replace_text(tmp_path / "link", "new")
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert not (tmp_path / "nowhere").exists()
    assert (tmp_path / "link").read_text() == "new"
    assert not (tmp_path / "link").is_symlink()


def test_a_replaced_file_is_alone_with_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        replace_text(tmp_path / "file", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_device_is_not_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(path := tmp_path / "there")
    with pytest.raises(OSError, match="is a folder or a device; name a file"):
        replace_text(path, "new")
    assert not path.is_file()


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    with pytest.raises(OSError, match="too long") as raised:
        replace_text(path, "new")
    assert raised.value.filename == str(path)


def test_a_second_holder_is_told_that_the_folder_is_in_use(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(CommandError, match="in use by another run"), lock_folder(tmp_path):
        pytest.fail("two runs hold the folder")
    with lock_folder(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_a_folder_that_goes_before_it_is_locked_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, lock = tmp_path / "out", fcntl.flock

    def lock_too_late(descriptor: int, operation: int) -> None:
        folder.rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", lock_too_late)
    with pytest.raises(CommandError, match="in use by another run"), lock_folder(folder):
        pytest.fail("nobody holds the folder")


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    code = f"""import fcntl
import os
from pathlib import Path
from conformance.system.files import lock_folder
with lock_folder(Path({str(tmp_path)!r})):
    os._exit(1)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
    with lock_folder(tmp_path):
        pass


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_without_a_size_is_read_to_its_end() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert read_bytes(path).startswith(b"Name:")
    with pytest.raises(OSError, match="more than 8 bytes"):
        read_bytes(path, 8)
