"""Find an adapter by name, class or file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..model import Adapter
from ..system.text import as_text, describe_unknown
from .bundled import Bundled, find_registered_backends, list_backend_names, read_bundled_backends
from .claims import CannotStart, check_members

_ON_DEVICE = re.compile(r"(?!cmd:)(?P<backend>.+:\w+|[\w.-]+)@(?P<device>[A-Za-z0-9_:]+)")
"""A backend and its device: `torch@cuda`, `package.module:Class@cuda:1`."""


def load_adapter(backend: str) -> Adapter:
    """Return a backend by bundled name, `package.module:Class` or `path/to/file.py:Class`; otherwise CannotStart.

    The text after an `@` is a device, the argument of the class.
    """
    name, device = name_and_device(backend)
    try:
        adapter_class = _load_class(name)
        if device is None:
            return check_members(adapter_class(), backend)
        if not inspect.signature(adapter_class).parameters:
            raise CannotStart(f"{backend}: {name} has no choice of device")
        return check_members(adapter_class(device), backend)
    except CannotStart:
        raise
    except ImportError as error:
        bundled = read_bundled_backends().get(name)
        module = name.partition(":")[0]
        own = f"{module}.".startswith(f"{error.name}.") and not module.endswith(".py")  # not a module that it needs
        remedy = "it is not on Python's path; install it, or name its file" if own else "install what it needs"
        if "relative import" in str(error):
            remedy = "name it as a module of its package, package.module:Class"
        remedy = (bundled and bundled.install) or remedy
        raise CannotStart(f"{backend}: cannot be imported: {error}; {remedy}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = f"{type(error).__name__}: {as_text(error)}{place_in(file_of(backend), error)}"
        raise CannotStart(f"{backend}: cannot be started: {what}") from error


def import_adapter(backend: str) -> None:
    """Import what `load_adapter` imports, without making an adapter."""
    _load_class(name_and_device(backend)[0])


_importing: list[str] = []


def is_importing() -> bool:
    """Ask whether the code that is running was called by the import of an adapter."""
    return bool(_importing)


def find_bundled(backend: str) -> Bundled | None:
    """Return the bundled backend that a person named, on whatever device; None if it is another."""
    return read_bundled_backends().get(name_and_device(backend)[0])


def name_and_device(backend: str) -> tuple[str, str | None]:
    on_device = _ON_DEVICE.fullmatch(backend)
    return (on_device["backend"], on_device["device"]) if on_device else (backend, None)


def place_in(file: Path | str | None, error: BaseException) -> str:
    """Return the last line of a file that an exception passed, as ` (mine.py:25)`; an empty text if there is none."""
    line, trace = 0, error.__traceback__
    while trace is not None and file is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" ({os.path.basename(file)}:{line})" if file is not None and line else ""


def command_of(backend: str) -> list[str]:
    """Return the words of `cmd:PROGRAM ARGUMENTS`, the program with its path; none for another backend."""
    import shutil  # slow to import, as is shlex, and only needed here
    from shlex import split

    try:
        program, *arguments = split(backend.removeprefix("cmd:")) if backend.startswith("cmd:") else []
    except ValueError:  # no words, or a quote without an end
        return []
    return [shutil.which(program) or program, *arguments]


def file_of(backend: str) -> Path | None:
    if backend.startswith("cmd:"):
        return next(map(Path, command_of(backend)), None)
    module = module_of(backend)
    if module.endswith(".py"):
        return Path(module)
    try:
        file = _look_for(module)[0] if module else None
    except (ImportError, ValueError):
        return None
    return Path(file) if file else None


def module_of(backend: str) -> str:
    """Return the module, or the path of the file, that has the class of an adapter."""
    module = _find_class_path(name_and_device(backend)[0]).rpartition(":")[0]
    return "conformance.adapters.planted" if module == "planted" else module


def _look_for(module: str) -> tuple[str | None, list[str]]:
    """Return the file of a module, and the folders of those below it, without an import: a package is backend's code.

    An import of its package could end this process, with any exit code.
    """
    package = module.rpartition(".")[0]
    if not package or package in sys.modules:
        specs = [importlib.util.find_spec(module)]
    else:
        finders = map(pkgutil.get_importer, _look_for(package)[1])
        specs = [finder.find_spec(module) for finder in finders if finder is not None]
    found = [spec for spec in specs if spec is not None]
    found = [spec for spec in found if spec.loader is not None][:1] or found  # several: they have no __init__.py
    return found[0].origin if found else None, [at for spec in found for at in spec.submodule_search_locations or ()]


def _find_class_path(name: str) -> str:
    """Return `module:Class` for a bundled name or one that an installed package registers; others as they are."""
    if ":" in name:
        return name
    if bundled := read_bundled_backends().get(name):
        return f"conformance.adapters.{bundled.module}:{bundled.class_name}"
    return find_registered_backends().get(name, name)


def _load_class(backend: str) -> Any:
    module, separator, name = _find_class_path(backend).rpartition(":")
    if module == "planted":
        return _load_planted_class(name)
    if not separator:
        raise CannotStart(_describe_unknown(backend))
    if not module.endswith(".py") and _find_beside(module):
        what = f"the module {module!r} is not on Python's path, but there is a file"
        raise CannotStart(f"{backend}: {what}; write {_find_beside(module)}:{name}")
    if not module or (module.startswith(".") and not module.endswith(".py")):
        raise CannotStart(f"{backend}: names no module and no file; write package.module:Class or path/file.py:Class")
    _importing.append(backend)
    try:
        imported = _import_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    finally:
        _importing.pop()
    if not hasattr(imported, name):
        own = {n: value for n, value in vars(imported).items() if isinstance(value, type) and n[0] != "_"}
        near = ", ".join(sorted(n for n, value in own.items() if value.__module__ == imported.__name__)) or "none"
        raise CannotStart(f"{backend}: {module} has no class {name!r}; its classes are {near}")
    if inspect.isfunction(getattr(imported, name)):
        raise CannotStart(
            f"{backend}: {name!r} is a function; an adapter is a class, as `conformance new-adapter` writes"
        )
    if not callable(getattr(imported, name)):
        raise CannotStart(f"{backend}: {name!r} is no class; name the adapter's class")
    return getattr(imported, name)


REFERENCE = "reference"
"""The bundled backend that is part of the suite. It is no library: nothing of it is published or certified."""


def is_reference(backend: str) -> bool:
    """Ask if a name means the reference, also by its module."""
    return backend == REFERENCE or backend.startswith("conformance.adapters.reference:")


def is_own(backend: str) -> bool:
    """Ask if a name is short for the reference or a planted backend: plain Python, safe in the process of a run."""
    return backend == REFERENCE or backend.startswith("planted:")


def _find_beside(module: str) -> str:
    """Return the file of that name, such as ./mine.py, if there is no such module; else an empty text."""
    parts = module.split(".")
    path = Path(*parts).with_suffix(".py") if all(map(str.isidentifier, parts)) else Path()
    return f"./{path}" if path.is_file() and not importlib.util.find_spec(parts[0]) else ""


def _load_planted_class(name: str) -> Any:
    """Return the class of a planted backend by name: `zero-flag-ignored` of `planted:zero-flag-ignored`."""
    planted = importlib.import_module("conformance.adapters.planted").PLANTED
    if name not in planted:
        raise CannotStart(describe_unknown("planted backend", name, planted, "conformance check --mutants"))
    return planted[name]


def _describe_unknown(backend: str) -> str:
    if Path(backend).suffix == ".py" or _find_beside(backend):
        return f"unknown backend {backend!r}; name the file and the class: {_find_beside(backend) or backend}:Class"
    if Path(backend).is_file():
        path = backend if os.path.dirname(backend) else f"./{backend}"
        return f"unknown backend {backend!r}; if it is a program, write cmd:{path}"
    unknown = describe_unknown("backend", backend, list_backend_names(), "conformance list backends")
    return f"{unknown}{',' * (unknown[-1] != '?')} or give package.module:Class, path/to/file.py:Class or cmd:PROGRAM"


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CannotStart(f"{path}: no such file; give the path of the adapter, then :Class")
    spec = importlib.util.spec_from_file_location(f"adapter_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    _forget_earlier_files()
    known, folder = set(sys.modules), path.parent.resolve()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that no file there hides a module of the suite or of a library
        _added.append(str(folder))
    importlib.invalidate_caches()  # the files may be younger than what Python remembers of the folder
    try:
        spec.loader.exec_module(module)
    finally:
        _imported.extend(name for name in {*sys.modules} - known if _is_in(folder, name))
    return module


_added: list[str] = []
_imported: list[str] = []
"""The folder that the last import of an adapter added to Python's path, and the modules that it found there."""
_importer = [0]
"""The pid of the process that imported them."""


def build_worker_path() -> list[str]:
    """Return Python's path for another process: without the folder of an adapter in this one, which may be another."""
    return [folder for folder in sys.path if folder and folder not in _added]


def _is_in(folder: Path, name: str) -> bool:
    """Ask whether a module is a file of a folder, or of a package there; a `.venv` there is no package."""
    file, top = getattr(sys.modules[name], "__file__", None), folder / name.partition(".")[0]
    return file is not None and (Path(file) == top.with_suffix(".py") or Path(file).is_relative_to(top))


def _forget_earlier_files() -> None:
    """Forget the files beside the adapter before: another adapter may have some of the same names, or they changed.

    A fork of the process that imported them is made to save their import, for the same adapter.
    """
    if _importer[0] not in (0, os.getpid()):
        return
    _importer[0] = os.getpid()
    sys.path[:] = [folder for folder in sys.path if folder not in _added]
    for name in _imported:
        sys.modules.pop(name, None)
    _added.clear()
    _imported.clear()
