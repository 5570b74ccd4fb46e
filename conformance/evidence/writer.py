"""Write results.jsonl, row by row, so that what was called can be read if the run is interrupted."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ..isolate.process.usage import ProcessEnd
from ..model import VERDICTS, Result
from ..system.files import create, open_regular
from .journal import Tampered, encode, name_unfinished, seal_of
from .results import DrawnCounts, Evidence, parse
from .subject import NO_SUBJECT, Subject

_BUFFER_BYTES = 1 << 13
"""Bytes that are lost if the process is killed. The default of Python 3.14 is 16 times as many."""
_CHUNK_BYTES = 1 << 20
_MIN_MILLISECONDS = 10
"""The least time of a row that evidence notes: the times of all would be a sixth of its size, packed."""


class Writer:
    """Writes a results file under a temporary name. Without a path it writes into memory."""

    def __init__(self, path: Path | None, header: Mapping[str, Any]) -> None:
        self._path = path
        self._whole, self._rows = hashlib.sha256(), hashlib.sha256()
        self._size = self._number = self._resumed = 0
        self._counts: Counter[str] = Counter()
        self._milliseconds: dict[str, int] = {}
        self._stream: BinaryIO = io.BytesIO() if path is None else create(name_unfinished(path), _BUFFER_BYTES)
        self._header_digest = hashlib.sha256(self._append(header)).hexdigest()

    def row(self, result: Result) -> None:
        self._rows.update(self._append(result.to_json()))
        self._number += 1
        self._resumed += result.resumed
        self._counts.update(result.verdicts.values())
        if result.milliseconds >= _MIN_MILLISECONDS:
            self._milliseconds[result.row] = result.milliseconds

    def close(
        self, seconds: float, notes: tuple[str, ...] = (), planted: Mapping[str, int] | None = None,
        drawn: DrawnCounts | None = None, subject: Subject = NO_SUBJECT, processes: Iterable[ProcessEnd] = (),
    ) -> Evidence:  # fmt: skip
        """Write the footer and give the file its name; Tampered if it does not hold what this writer wrote.

        `planted`: failures by planted backend. `subject`: the files under test. `processes`: those of the backend.
        """
        footer: dict[str, Any] = {
            "record": "footer", "rows": self._number, "verdicts": {each: self._counts[each] for each in VERDICTS},
            "digest": self._rows.hexdigest(), "header": self._header_digest, "notes": notes,
            "planted": dict(planted or {}), "seconds": round(seconds, 3),
        }  # fmt: skip
        optional = {
            "milliseconds": self._milliseconds, "resumed": self._resumed, "drawn": drawn and drawn.to_json(),
            "subject": dict(subject.files), "unnamed_code": subject.unnamed_code,
            "not_named": subject.not_named, "processes": [end.to_json() for end in processes],
        }  # fmt: skip
        footer |= {name: value for name, value in optional.items() if value}
        self._append(footer | {"seal": seal_of(footer)})
        content = self._read_back()
        self._give_name()
        return parse(content, self._path or Path("evidence"))

    def _flush(self) -> None:
        with self._naming_the_file():
            self._stream.flush()

    def _append(self, record: Mapping[str, Any]) -> bytes:
        line = f"{encode(record)}\n".encode()
        self._whole.update(line)
        self._size += len(line)
        with self._naming_the_file():
            self._stream.write(line)
        return line

    @contextlib.contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """Name the file in an error of the system, such as a full disk, after which nothing more is written."""
        try:
            yield
        except OSError as error:
            if self._path is not None:
                error.filename = str(name_unfinished(self._path))
            with contextlib.suppress(OSError):
                self._stream.close()  # otherwise the buffer would be written again when the object is deleted
            raise

    def _read_back(self) -> bytes:
        """Read what the file holds; Tampered if that is not what was written."""
        self._flush()
        self._stream.seek(0)
        content = self._stream.read(self._size + 1)
        self._refuse_changes(hashlib.sha256(content).digest())
        return content

    def _give_name(self) -> None:
        """Give the file its name; Tampered if what bears the name is not what was written."""
        self._flush()
        if self._path is not None:
            with self._naming_the_file():
                os.fsync(self._stream.fileno())
        self._stream.close()
        if self._path is None:
            return
        named, failure = self._path, None
        try:
            os.replace(name_unfinished(self._path), self._path)
        except (FileNotFoundError, IsADirectoryError):
            pass  # somebody removed it, or put a folder there
        except OSError as error:
            named, failure = name_unfinished(self._path), error
        digest, size = hashlib.sha256(), 0
        with contextlib.suppress(OSError), open_regular(named) as stream:
            while size <= self._size and (chunk := stream.read(_CHUNK_BYTES)):
                digest.update(chunk)
                size += len(chunk)
        self._refuse_changes(digest.digest())
        if failure:
            why = f"is whole, but cannot be renamed to {self._path.name}: {failure.strerror}; rename it"
            raise OSError(failure.errno, why, str(named))

    def _refuse_changes(self, digest: bytes) -> None:
        """Remove the file and raise Tampered if its digest is not that of what was written."""
        if digest == self._whole.digest():
            return
        if self._path is not None:
            for path in (self._path, name_unfinished(self._path)):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        raise Tampered(f"{self._path} was changed while the run wrote it; no verdict holds, run again")
