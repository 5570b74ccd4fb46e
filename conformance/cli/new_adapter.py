"""`conformance new-adapter NAME`: write an adapter that runs as it is."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
from keyword import iskeyword
from pathlib import Path

from ..adapter import bundled_folder
from ..system.terminal import say
from .arguments import Usage, emit

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,60}")
_TEMPLATES = {"python": "template.py", "c": "c/reshape.c", "javascript": "javascript/reshape.mjs"}


def run(args: argparse.Namespace) -> int:
    """Write the file and print the next commands."""
    if not _NAME.fullmatch(args.name):
        raise Usage(f"{args.name!r} is no name for a backend; begin with a letter, go on with letters, digits, - and _")
    path = args.out or Path(_file_name(args.name, args.lang))
    if args.lang == "python" and path.suffix != ".py":
        raise Usage(f"--out {str(path)!r} does not end with .py; Python finds the class only in such a file")
    text = (bundled_folder() / _TEMPLATES[args.lang]).read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_fill_template(text, args.name, args.lang))
    except FileExistsError:
        raise Usage(f"{path} exists and is left as it is; give another name, or --out FILE") from None
    except OSError as error:
        raise Usage(f"{path}: cannot be written: {error.strerror}") from None
    next_ = _next(path, args.name, args.lang)
    if args.json:
        emit({"file": str(path), "next": next_})
        return 0
    say(f"wrote {path}; it works as it stands. What to change is marked in it; next:")
    for command in next_:
        say(f"  {command}")
    return 0


def _file_name(name: str, language: str) -> str:
    """Return a file name that hides no module: `numpy.py` would break every program in the working directory."""
    stem = re.sub(r"\W", "_", name)
    if language == "python" and importlib.util.find_spec(stem) is not None:
        stem += "_adapter"
    return stem + Path(_TEMPLATES[language]).suffix


def _class_name(name: str) -> str:
    name = "".join(part[0].upper() + part[1:] for part in re.split(r"[\W_]+", name) if part)
    return f"{name}Adapter" if iskeyword(name) else name


def _fill_template(text: str, name: str, language: str) -> str:
    if language == "python":
        text = text.replace("NAME: a", f"{name}: a").replace('name = "template"', f'name = "{name}"')
        return text.replace("class Template(", f"class {_class_name(name)}(")
    own = {"c": "reshape.c", "javascript": "reshape.mjs"}[language]
    quoted = {
        "c": (f'\\"name\\":\\"{own}\\"', f'\\"name\\":\\"{name}\\"'),
        "javascript": (f'name: "{own}"', f'name: "{name}"'),
    }
    return text.replace(*quoted[language])


def _next(path: Path, name: str, language: str) -> list[str]:
    """Return the next commands, ready to be pasted."""
    plain = str(path) if path.is_absolute() else f"./{path}"
    if language == "python":
        backend, first = f"{plain}:{_class_name(name)}", []
    elif language == "c":
        binary = plain.removesuffix(".c") if plain.endswith(".c") else f"{plain}.out"
        backend, first = (
            f"cmd:{shlex.quote(binary)}",
            [f"cc -std=c99 -O2 -o {shlex.quote(binary)} {shlex.quote(plain)}"],
        )
    else:
        backend, first = f"cmd:node {shlex.quote(plain)}", []
    quoted = shlex.quote(backend)
    return [*first, f"conformance check-adapter {quoted}", f"conformance run {quoted}"]
