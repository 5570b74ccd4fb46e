"""`conformance new-adapter NAME`: write an adapter that runs as it is."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
from keyword import iskeyword
from pathlib import Path
from shutil import rmtree

from ..system.files import find_adapters_folder
from ..system.terminal import say, verbatim
from .arguments import Stop, emit
from .parser import Parser

_ENDINGS = {"python": ".py", "c": ".c", "cpp": ".cpp", "javascript": ".mjs", "rust": ""}
"""The ending of the file in each language. An adapter in Rust is a folder."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,60}")
_TEMPLATES = {
    "python": ("template.py",),
    "c": ("c/reshape.c",),
    "cpp": ("cpp/reshape.cpp",),
    "javascript": ("javascript/reshape.mjs",),
    "rust": ("rust/Cargo.toml", "rust/src/main.rs", "rust/src/protocol.rs", "rust/src/json.rs"),
}

EXAMPLES = """\
  conformance new-adapter mine                        mine.py
  conformance new-adapter mine --lang c --out mine.c  a program in C that speaks the protocol
  conformance new-adapter mine --lang rust            a crate, in the folder mine"""


def add_options(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name of the backend, such as mine")
    parser.add_argument("--lang", choices=[*_ENDINGS], default="python", help="the language of the adapter (python)")
    parser.path("--out", "FILE", "the file to write (NAME.py), or the folder of a crate in Rust (NAME)")


def run(args: argparse.Namespace) -> int:
    name, language = args.name, args.lang
    if not _NAME.fullmatch(name):
        raise Stop(f"{name!r} is no name for a backend; begin with a letter, go on with letters, digits, - and _")
    path = args.out or Path(_choose_file_name(name, language))
    if path.suffix != _ENDINGS[language] and language != "rust":
        raise Stop(f"--out {str(path)!r} does not end with {_ENDINGS[language]}; give a file that does")
    try:
        _write(path, name, language)
    except FileExistsError:
        raise Stop(f"{path} exists and is left as it is; give another name, or --out FILE") from None
    except OSError as error:
        raise Stop(f"{path}: cannot be written: {error.strerror}") from None
    commands = _list_next_commands(path, name, language)
    if args.json:
        emit({"file": str(path), "next": commands})
        return 0
    say(f"wrote {path}; it works as it is. What to change is marked in it; next:")
    for command in commands:
        say(verbatim(f"  {command}"))
    return 0


def _write(path: Path, name: str, language: str) -> None:
    """Write the file with the name filled in; in Rust, a folder of files. Nothing stays of what cannot be written."""
    if language == "rust":
        path.mkdir()
    else:
        path.touch(exist_ok=False)
    try:
        for template in _TEMPLATES[language]:
            target = path / Path(template).relative_to("rust") if language == "rust" else path
            text = (find_adapters_folder() / template).read_text(encoding="utf-8").replace('"template"', f'"{name}"')
            if language == "python":
                class_ = _choose_class_name(name)
                text = text.replace("NAME: a", f"{name}: a").replace("class Template(", f"class {class_}(")
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError:  # a full disk
        rmtree(path) if path.is_dir() else path.unlink()
        raise


def _choose_file_name(name: str, language: str) -> str:
    """Return a file name that hides no module: `numpy.py` would break every program in the working directory."""
    stem = re.sub(r"\W", "_", name)
    name = stem + _ENDINGS[language]
    found = importlib.util.find_spec(stem) if language == "python" else None
    is_other = found is not None and Path(found.origin or "").resolve() != Path(name).resolve()
    return f"{stem}_adapter.py" if is_other else name


def _choose_class_name(name: str) -> str:
    name = "".join(part[0].upper() + part[1:] for part in re.split(r"[\W_]+", name) if part)
    return f"{name}Adapter" if iskeyword(name) else name


def _list_next_commands(path: Path, name: str, language: str) -> list[str]:
    """Return the next commands, ready to be pasted: the one that builds the program, check and run."""
    plain = str(path) if path.is_absolute() else f"./{path}"
    program, manifest = plain.removesuffix(_ENDINGS[language]), ["--manifest-path", f"{plain}/Cargo.toml"]
    build, backend = {
        "python": ([], f"{plain}:{_choose_class_name(name)}"),
        "c": (["cc", "-O2", "-o", program, plain], f"cmd:{shlex.quote(program)}"),
        "cpp": (["c++", "-std=c++17", "-O2", "-o", program, plain], f"cmd:{shlex.quote(program)}"),
        "javascript": ([], f"cmd:node {shlex.quote(plain)}"),
        "rust": (
            ["cargo", "build", "--release", *manifest, "--target-dir", f"{plain}/target"],
            f"cmd:{shlex.quote(f'{plain}/target/release/reshape-adapter')}",
        ),
    }[language]
    quoted = shlex.quote(backend)
    return [*([shlex.join(build)] if build else []), f"conformance check-adapter {quoted}", f"conformance run {quoted}"]
