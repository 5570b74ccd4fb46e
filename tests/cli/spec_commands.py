"""The commands about the specification."""

from typing import Any

from ..builders import ROOT, Cli

MEANING = ["meaning", "--src", "3,4,5", "--shape", "0,-1", "--special-zero", "true"]


def answer(cli: Cli, *words: str) -> Any:
    said = cli(*words, "--json").expect(0, lines=0)
    assert said.out.isascii()
    return said.data


MISTYPED: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "say what to do"),
    "unknown-command": (["chekc"], "did you mean 'check'"),
    "empty-command": ([""], "unknown command"),
    "no-command": (["reference", "--jobs", "2"], "to run the suite on a backend, write `conformance run reference`"),
    "no-command-but-a-file": (["./mine.py:Mine"], "write `conformance run ./mine.py:Mine`"),
    "certify-reference": (["certify", "reference"], "the reference is part of the suite and gets no certificate"),
    "choice": (["run", "reference", "--isolation", "wroker"], "did you mean 'worker'?"),
    "no-truth": (["meaning", "--src", "3", "--shape", "3", "--special-zero", "maybe"], "neither true nor false"),
    "memory-no-number": (["run", "reference", "--memory", "x"], "write --memory 2;"),
    "too-many-drawn-rows": (["run", "reference", "--drawn-rows", "1000000001"], "0 to 10^9; write --drawn-rows 2;"),
    "max-dim-no-number": (["sweep", "reference", "--max-dim", "x"], "write --max-dim 2;"),
    "empty-out": (["run", "reference", "--out", ""], "--out: the name is empty; name a file or a folder"),
    "unknown-rule": (["list", "cases", "qqqqqqqqq"], "see `conformance list rules`"),
    "unknown-kind": (["list", "findings", "qqqqqqqqq"], "see `conformance list findings`"),
    "option-first": (["--mutants", "check"], "conformance check"),
    "unknown-top-option": (["--verison"], "did you mean '--version'"),
    "unknown-option": (["check", "--source", "x"], "did you mean '--sources'"),
    "abbreviated-option": (["run", "reference", "--doc", "static-oneapi"], "did you mean '--document'"),
    "option-of-another-command": (["certify", "x", "--type", "f32"], "'--type'; see `conformance certify --help`"),
    "extra-argument": (["check", "spec"], "unknown argument 'spec'"),
    "no-such-folder": (["check", "--suite", "/no/such/folder"], "folder: is not a folder; name"),
    "suite-of-nothing": (["check", "--suite", str(ROOT / "docs")], "docs: has neither spec/ nor cases/"),
    "a-file-for-a-folder": (["check", "--sources", __file__], "is not a folder"),
    "no-such-sources": (["check", "--sources", "no such"], "does not exist"),
    "no-value": (["check", "--sources"], "a value is missing"),
    "option-twice": (["meaning", "--src", "1", "--src", "2"], "given twice"),
    "shard-twice": (["run", "reference", "--shard", "1/2", "--shard", "2/2"], "--shard is given twice"),
    "default-then-another": (["run", "reference", "--jobs", "1", "--jobs", "2"], "--jobs is given twice"),
    "shard-of-many-digits": (["run", "reference", "--shard", f"{'1' * 5000}/2"], "(5004 characters) is no part of"),
    "jobs-of-many-digits": (["run", "reference", "--jobs", "1" * 5000], "(5002 characters) is not a whole number"),
    "rank-of-many-digits": (["check", "--prove", "1" * 5000], "write a rank from 1 to 4"),
    "rows-of-many-digits": (["verify", "x", "--repeat", "1" * 5000, "y"], "is not a whole number from 1; write"),
    "export-unknown": (["export", "smt", "--out", "x"], "unknown value 'smt'; did you mean 'smt2'?"),
    "publish-nothing": (["publish"], "the following arguments are required: DIR; see"),
    "list-nothing": (["list"], "say what to list"),
    "list-unknown": (["list", "ruels"], "unknown list 'ruels'; did you mean 'rules'"),
    "verify-nothing": (["verify"], "name what to verify"),
    "wrong-filter": (["list", "rules", "defect"], "it filters findings"),
    "unknown-level": (["list", "rules", "shall"], "unknown document or level 'shall'"),
    "unknown-document": (["list", "rules", "staticoneapi"], "did you mean 'static-oneapi'"),
    "explain-nothing": (["explain"], "say what to explain"),
    "explain-unknown": (["explain", "one-infre"], "did you mean 'one-infer'"),
    "explain-noise": (["explain", "qqqqqqqqq"], "conformance list rules"),
    "explain-drawn": (["explain", "drawn-0-39"], "`conformance run BACKEND -k drawn-0-39` calls it"),
    "explain-own": (
        ["explain", "there-and-back", "--backend", "./mine.py:Mine"],
        "bundled backends only; to call the case on ./mine.py:Mine: conformance run ./mine.py:Mine -k there-and-back",
    ),
    "explain-rule-as-script": (["explain", "one-infer", "--backend", "numpy"], "`conformance list cases one-infer`"),
    "explain-long": (["explain", "q" * 10_000], "… (10002 characters)"),
    "explain-surrogate": (["explain", "\udcff"], "unknown name"),
    "diff-unknown": (["diff", "static-oneapi", "static-2012"], "did you mean"),
    "diff-run-and-document": (["diff", "/dev/null", "static-oneapi"], "/dev/null is no document; compare two runs or"),
    "diff-three": (["diff", "static-oneapi", "static-graph-v0.9", "static-spec-v0.9"], "unknown argument"),
    "meaning-nothing": (["meaning"], "--src is missing; for example: conformance meaning"),
    "meaning-no-flag": (["meaning", "--src", "3", "--shape", "3"], "--special-zero is missing"),
    "src-without-value": (["meaning", "--src", "--shape", "3", "--special-zero", "1"], "--src: a value is missing"),
}  # fmt: skip
MISTYPED |= {
    f"src {typed!r}": (["meaning", "--src", typed, "--shape", "3", "--special-zero", "true"], said)
    for typed, said in {
        "a-b": "not a whole number; write for example", "3,,4": "an entry is empty", ",": "a comma without a number",
        "[3,4": "is not closed", "[3,4)": "is not closed", "3.0": "not a whole number", "None": "not a whole number",
        "3, -1": "no tensor has a length below 0", str(2**63): "does not fit 64 bits",
        ",".join(["1"] * 1001): "at most 1000", "3²": "not a whole number", "3\x00": "not a whole number",
        "f33[3]": "unknown type", "((3))": "not a whole number",
    }.items()
}  # fmt: skip
MISTYPED |= {
    " ".join(words): (["meaning", "--src", "3", "--shape", "3", "--special-zero", "true", *words], said)
    for words, said in {
        ("--special-zero", "no"): "given twice", ("--form", "src_type=flot32"): "did you mean 'f32'",
        ("--form", "src_type="): "unknown type",
        ("--form", "shape_rank=x"): "not a number", ("--form", "shape_rank=65"): "0 to 64",
        ("--form", "declared=3,a"): "not a whole number", ("--form", "declared=-3"): "not below 0",
        ("--form", "missing=sape"): "'shape'",
        ("--form", "document=x"): "unknown key", ("--suite", "/dev/null"): "is not a folder",
        ("--special-zeros", "1"): "did you mean '--special-zero'",
    }.items()
}  # fmt: skip
