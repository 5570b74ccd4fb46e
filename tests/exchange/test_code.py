"""Generated code means what the contracts mean, whatever the lengths."""

import importlib.util
import itertools
import random
import runpy
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from conformance.exchange.code.write import NAMES, render_code
from conformance.load.spec import load_spec
from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import SMALL_DOMAIN, calls
from conformance.model import Spec
from tests.builders import ROOT, Cli, quoted, spoil

SPEC = load_spec(None)
COMPILED = contracts(SPEC)
LARGEST = 2**63 - 1
EMBED = ROOT / "examples" / "embed"
TRAPS = (0, 1, 2, 3, 7, 2**16, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 3 * 2**40, 2**53 + 1, 2**62, LARGEST)
Called = tuple[str, bool, tuple[int, ...], tuple[int, ...]]
JAVASCRIPT = """
const reshape = require("./reshape_meaning.js");
for (const line of require("fs").readFileSync(0, "utf8").trim().split("\\n")) {
  const [document, flag, src, shape] = line.split(";");
  const row = (text) => text.split(",").filter((each) => each).map(BigInt);
  const { kind, dst, rules } = reshape.meaning(document, row(src), row(shape), flag === "1");
  console.log(`${kind};${dst === null ? "" : dst.map((n) => n ?? "?").join(",")};${rules.join(",")}`);
}
"""
CPP = """
#include "reshape_meaning.hpp"
#include <iostream>
#include <sstream>
static std::vector<std::int64_t> row(const std::string &text) {
    std::vector<std::int64_t> found;
    std::stringstream entries(text);
    for (std::string each; std::getline(entries, each, ',');) found.push_back(std::stoll(each));
    return found;
}
int main() {
    const char *kinds[] = {"legal", "illegal", "unspecified"};
    for (std::string line; std::getline(std::cin, line);) {
        std::stringstream fields(line);
        std::string document, flag, src, shape;
        std::getline(fields, document, ';');
        std::getline(fields, flag, ';');
        std::getline(fields, src, ';');
        std::getline(fields, shape, ';');
        const auto found = reshape::meaning(document, row(src), row(shape), flag == "1");
        std::cout << kinds[static_cast<int>(found.kind)] << (found.fits ? ";" : ";large,");
        for (const auto &n : found.dst) std::cout << (n ? std::to_string(*n) : "?") << ",";
        std::cout << ";";
        for (const auto &rule : found.rules) std::cout << rule << ",";
        std::cout << "\\n";
    }
}
"""
RUST = """
mod reshape_meaning;
use std::io::BufRead;
fn row(text: &str) -> Vec<i64> {
    text.split(',').filter(|each| !each.is_empty()).map(|each| each.parse().unwrap()).collect()
}
fn main() {
    for line in std::io::stdin().lock().lines().map(Result::unwrap) {
        let fields: Vec<&str> = line.split(';').collect();
        let found = reshape_meaning::meaning(fields[0], &row(fields[2]), &row(fields[3]), fields[1] == "1").unwrap();
        let dst: Vec<String> = found.dst.iter().map(|n| n.map_or("?".to_string(), |n| n.to_string())).collect();
        let large = if found.fits { "" } else { "large," };
        println!("{};{large}{};{}", format!("{:?}", found.kind).to_lowercase(), dst.join(","), found.rules.join(","));
    }
}
"""
STRICT = "-std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
PROGRAMS = {
    "javascript": ("main.js", JAVASCRIPT, ["node main.js"]),
    "cpp": ("main.cpp", CPP, [f"g++ {STRICT} main.cpp -o main", "./main"]),
    "rust": ("main.rs", RUST, ["rustc -D warnings -F unsafe_code main.rs -o main", "./main"]),
}


def answers(folder: Path, language: str, made: Sequence[Called], spec: Spec = SPEC) -> list[str]:
    """Return what the code of a language says of calls, a line each."""
    file, text = render_code(spec, language)
    (folder / file).write_text(text, "utf-8")
    if language == "python":
        specification = importlib.util.spec_from_file_location("reshape_meaning", folder / file)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return [line(*module.meaning(document, src, shape, flag)) for document, flag, src, shape in made]
    main, program, texts = PROGRAMS[language]
    commands = [text.split() for text in texts]
    if shutil.which(commands[0][0]) is None:
        pytest.skip(f"{commands[0][0]} is not installed")
    (folder / main).write_text(program, "utf-8")
    rows = (",".join(map(str, row)) for _, _, *both in made for row in both)
    given = "".join(f"{name};{int(flag)};{next(rows)};{next(rows)}\n" for name, flag, *_ in made)
    *build, run = commands
    for command in build:
        subprocess.run(command, cwd=folder, check=True, timeout=120)
    said = subprocess.run(run, cwd=folder, input=given, capture_output=True, text=True, check=True, timeout=120).stdout
    return [each.replace(",;", ";").rstrip(",") for each in said.splitlines()]


def line(kind: str, dst: Sequence[int | None] | None, rules: Sequence[str], most: int = 2**5000) -> str:
    """A meaning as the programs print it; in C++ and Rust dst is large if it has a length above `most`."""
    lengths = ["?" if n is None or n > most else str(n) for n in dst or ()]
    large = ["large"] if any(n is not None and n > most for n in dst or ()) else []
    return f"{kind};{','.join([*large, *lengths])};{','.join(rules)}"


def wanted(language: str, made: Sequence[Called], compiled: Mapping[str, Contract] = COMPILED) -> list[str]:
    most = LARGEST if language in ("cpp", "rust") else 2**5000
    meanings = (compiled[document].meaning(src, shape, flag) for document, flag, src, shape in made)
    return [line(meaning.kind, meaning.dst, meaning.rules, most) for meaning in meanings]


def drawn(number: int, seed: int = 1) -> Iterator[Called]:
    """Calls with products past 64 and 128 bits that agree, miss by little, or wrap to the same number."""
    draw = random.Random(seed)
    for _ in range(number):
        src = [draw.choice(TRAPS) if draw.random() < 0.6 else draw.randint(0, 12) for _ in range(draw.randint(0, 6))]
        shape = list(src)
        draw.shuffle(shape)
        for _ in range(draw.randint(0, 3)):
            if len(shape) > 1 and draw.random() < 0.5:
                a, b = shape.pop(), shape.pop()
                shape.append(a * b if abs(a * b) <= LARGEST else draw.choice(TRAPS))
            elif shape and draw.random() < 0.7:
                shape[draw.randrange(len(shape))] = draw.choice((-1, 0, 1, 2, -2, *TRAPS))
            else:
                shape.insert(draw.randint(0, len(shape)), draw.choice((1, -1, 0, 2, 64)))
        if draw.random() < 0.02:
            src, shape = [2**62] * 64, [*[2**62] * 63, draw.choice((-1, 2**62, 2**61))]
        yield draw.choice([*COMPILED]), draw.random() < 0.5, tuple(src), tuple(shape)


def small() -> Iterator[Called]:
    for document, (src, shape, flag) in itertools.product(COMPILED, calls(SMALL_DOMAIN)):
        yield document, flag, src, shape


@pytest.mark.parametrize(
    ("language", "number", "step"),
    [
        ("python", 2000, 97), ("javascript", 2000, 97),
        *(pytest.param(name, 8000, 11, marks=pytest.mark.slow) for name in ("cpp", "rust")),
        *(pytest.param(name, 100_000, 1, marks=[pytest.mark.slow, pytest.mark.exhaustive]) for name in NAMES),
    ],
)  # fmt: skip
def test_the_code_means_what_the_contracts_mean(tmp_path: Path, language: str, number: int, step: int) -> None:
    made = [*drawn(number, number), *itertools.islice(small(), 0, None, step)]
    assert answers(tmp_path, language, made) == wanted(language, made)


def test_python_code_takes_integers_of_numpy_and_no_text_as_flag(tmp_path: Path) -> None:
    """Products of NumPy's integers wrap, and this illegal call was called legal."""
    file, text = render_code(SPEC, "python")
    (tmp_path / file).write_text(text, "utf-8")
    infer = runpy.run_path(str(tmp_path / file))["infer_shape"]
    assert infer("static-oneapi", np.array([3, 4]), np.array([0, -1]), np.bool_(True)) == (3, 4)
    with pytest.raises(ValueError, match="same-volume: "):
        infer("static-oneapi", np.array([2**32, 2**32]), np.array([0]), False)
    with pytest.raises(ValueError, match="special_zero 'false' is neither true nor false"):
        infer("static-oneapi", (3, 4), (12,), "false")
    with pytest.raises(TypeError):
        infer("static-oneapi", (3.0, 4), (12,), False)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('flag === "1"', "flag", "special_zero 0 is neither true nor false"),
        (".map(BigInt)", ".map(Number)", "src: 9007199254740992 is neither a BigInt nor a whole number below 2^53"),
        (".map(BigInt)", "", "src: 9007199254740993 is neither a BigInt nor"),
        ("row(src)", "1", "not iterable"),
    ],
)
def test_javascript_code_takes_nothing_that_it_may_misread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str, said: str
) -> None:
    main, program, commands = PROGRAMS["javascript"]
    monkeypatch.setitem(PROGRAMS, "javascript", (main, program.replace(right, wrong), commands))
    with pytest.raises(subprocess.CalledProcessError) as raised:
        answers(tmp_path, "javascript", [("static-oneapi", False, (2**53 + 1,), (2**53,))])
    assert said in raised.value.stderr


def test_the_command_writes_one_file(tmp_path: Path, cli: Cli) -> None:
    assert "reshape_meaning.hpp" in cli("export", "code", "--lang", "cpp", "--out", str(tmp_path)).expect(0).out
    assert [path.name for path in tmp_path.iterdir()] == ["reshape_meaning.hpp"]
    assert "--lang javascript|" in cli("export", "code", "--out", str(tmp_path / "new")).expect(2).err


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.skipif(not EMBED.is_dir(), reason="the examples stay in the clone")
@pytest.mark.skipif(not Path("/usr/include/gtest/gtest.h").is_file(), reason="googletest is not installed")
def test_a_library_embeds_the_code(tmp_path: Path) -> None:
    (tmp_path / "reshape_meaning.hpp").write_text(render_code(SPEC, "cpp")[1], "utf-8")
    build = f"g++ {STRICT} -I {tmp_path} {EMBED / 'tensor_test.cpp'} -lgtest -lgtest_main -o {tmp_path / 'test'}"
    subprocess.run(build.split(), check=True, timeout=120)
    for mistake, code in ((), 0), (("ACCEPTS_EVERY_SHAPE=1",), 1):
        command = ["env", *mistake, str(tmp_path / "test")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code
        assert ("one-infer: At most one entry of shape is -1." in done.stdout) == bool(code)


@pytest.mark.slow
@pytest.mark.skipif(not EMBED.is_dir(), reason="the examples stay in the clone")
@pytest.mark.parametrize(
    ("language", "rule"),
    [
        ("javascript", "requires: sum(shape) <= 12"),
        ("javascript", "where: d == -1\n    gives: len(shape)"),
        ("javascript", "requires: len(shape) <= - -product(src)"),
        ("javascript", "requires: all(form < 3 for form in shape)"),
        ("javascript", "requires: all(entry in src for entry in shape)"),
        ("python", "requires: special_zero or agrees(src, shape)"),
        *((name, "requires: all(int < entry for int, entry in enumerate(src))") for name in ("cpp", "rust")),
        *((name, "requires: 12 >= product(shape)") for name in ("cpp", "rust")),
        *((name, "ensures: product(dst) == product(shape)") for name in NAMES),
    ],
)  # fmt: skip
def test_code_of_your_rule_means_what_its_contract_means(tmp_path: Path, language: str, rule: str) -> None:
    folder = shutil.copytree(ROOT / "examples" / "dialect" / "spec", tmp_path / "spec")
    spoil(folder / "rules.yaml", "requires: len(shape) <= 6", rule)
    spec = load_spec(folder)
    made = [("acme-2026", flag, src, shape) for _, flag, src, shape in itertools.islice(small(), 20_000)]
    assert answers(tmp_path, language, made, spec) == wanted(language, made, contracts(spec))


@pytest.mark.skipif(not EMBED.is_dir(), reason="the examples stay in the clone")
@pytest.mark.parametrize(
    ("rule", "said", "languages"),
    [
        ("requires: sum(d for d in shape) < 9", "a sum of lengths may wrap; compare", ["cpp", "rust"]),
        ("requires: all(d + 1 > 0 for d in shape)", "exact for every length of 64 bits; compare", ["cpp", "rust"]),
        ("requires: all(-d < 9 for d in shape)", "-d has no form in", ["cpp", "rust"]),
        ("requires: all(d > -9223372036854775808 for d in shape)", "9223372036854775808 has no form", ["cpp", "rust"]),
        ("requires: product(shape) < product(src)", "product(shape) < product(src) has no form", ["cpp", "rust"]),
        ("requires: src != shape", "src has no form in", ["javascript", "cpp", "rust"]),
        ("requires: not shape", "shape has no form in", ["javascript", "cpp", "rust"]),
        ("ensures: all(n <= 9 for n in dst)", "is written in no language; export a copy without", NAMES),
    ],
)  # fmt: skip
def test_a_rule_without_an_exact_form_is_refused(
    tmp_path: Path, cli: Cli, rule: str, said: str, languages: Sequence[str]
) -> None:
    folder = shutil.copytree(ROOT / "examples" / "dialect" / "spec", tmp_path / "spec")
    key, _, expression = rule.partition(": ")
    spoil(folder / "rules.yaml", "requires: len(shape) <= 6", quoted(key, expression))
    for name in NAMES:
        export = cli("export", "code", "--lang", name, "--out", tmp_path / name, "--suite", tmp_path)
        if name in languages:
            export.expect(2, err=[f"{folder / 'rules.yaml'}:4: rule 'acme-six-entries': ", said], lines=1)
        else:
            export.expect(0)
