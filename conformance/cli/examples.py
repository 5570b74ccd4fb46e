"""The text of `conformance --help`, and examples of every command."""

from __future__ import annotations

from collections.abc import Mapping

from ..system import exit_codes

GROUPS: Mapping[str, tuple[str, ...]] = {
    "test a backend": ("new-adapter", "check-adapter", "run", "sweep", "hunt"),
    "read results": ("verify", "report", "compare", "diff", "merge"),
    "certify a backend": ("certify", "challenge", "audit", "register"),
    "ask what the documents say": ("meaning", "check-graph", "explain", "list", "diff-documents", "site"),
    "maintain the suite": ("check", "mutants", "publish", "lab", "export", "completion"),
}
"""All commands by purpose."""
OPENING = """\
usage: conformance COMMAND …   (conformance COMMAND --help has its options and examples)

An executable specification and conformance suite for the reshape operations of oneDNN Graph.
"""
CLOSING = f"""\
begin here:
  conformance run reference                the reference: what a verdict and a report look like
  conformance new-adapter mine             a backend of yours, in one file that runs at once
  conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true

exit codes: {exit_codes.SUMMARY}
"""
EXAMPLES: Mapping[str, str] = {
    "run": f"""\
  conformance run reference                                    everything on the reference
  conformance run ./mine.py:Mine --out build/mine              a class in a file of yours
  conformance run cmd:./reshape --jobs 2                       a program in any language
  conformance run onednn --document static-oneapi --type bf16    a part of the target
  conformance run mine.py:Mine -k copies-by-index              some cases only; never conforms
  conformance run reference --spec my/spec --cases my/cases    with rules and cases of yours beside ours
exit codes: {exit_codes.SUMMARY}""",
    "merge": """\
  conformance run reference --shard 1/2 --out build/one
  conformance run reference --shard 2/2 --out build/two
  conformance merge build/one build/two --out build/whole""",
    "new-adapter": """\
  conformance new-adapter mine                        mine.py
  conformance new-adapter mine --lang c --out mine.c  a program in C that speaks the protocol
  conformance new-adapter mine --lang rust            a crate, in the folder mine""",
    "check-adapter": """\
  conformance check-adapter mine.py:Mine
  conformance check-adapter cmd:./reshape --timeout 5""",
    "sweep": """\
  conformance sweep reference --rank 2 --max-dim 3    every call of a small world""",
    "hunt": """\
  conformance hunt reference --examples 2000 --seed 1     calls nobody wrote down, shrunk to the smallest that fails""",
    "verify": """\
  conformance verify build/reference                  a folder of a run
  conformance verify report.html                      a page that somebody sent: is it true to its evidence?
  conformance verify report.html --conforms           for a gate: 0 only where it is true, and says yes
  conformance verify report.html --conforms static-graph-v0.9
  conformance verify report.html --repeat 50 --backend ./mine.py:Mine   calls some rows again and compares""",
    "site": """\
  conformance site --out build/site                      a page for each document, with its rules, findings and cases
  conformance site --results reports --out build/site    with the published backends that fail them""",
    "certify": """\
  conformance certify ./mine.py:Mine --by "Mine Ltd" --key mine-key    self-tested and signed
  conformance certify ./mine.py:Mine --commit                          names what will be tested, for an issuer
  conformance certify ./mine.py:Mine --challenge challenge.json --key mine-key
docs/certify.md has the whole conversation of vendor and issuer""",
    "challenge": """\
  conformance challenge commitment.json --key issuer-key""",
    "audit": """\
  conformance audit certificate ./mine.py:Mine --allowed signers --challenge challenge.json --key issuer-key""",
    "register": """\
  conformance register certificates --allowed signers""",
    "report": """\
  conformance report build/reference                  its pages, if the run was interrupted before they were written""",
    "compare": """\
  conformance compare build/reference build/onednn --out compare.html""",
    "diff": """\
  conformance diff build/before build/after           1 where something got worse
  conformance diff build/before build/after --format markdown""",
    "check": """\
  conformance check                                   the suite that comes along
  conformance check --cases my/cases --lock           vectors of yours, and lock the ids of new ones
  conformance check --sources DIR                     hold it against the documents themselves""",
    "mutants": """\
  conformance mutants                                 all of them; takes a while
  conformance mutants -k zero""",
    "lab": """\
  conformance lab plan --json               the jobs of a CI matrix
  conformance lab status                    which published results are stale, and why
  conformance lab run onnx jax              make these environments, run their backends, publish""",
    "publish": """\
  conformance publish onednn                          run it whole, and put its report into reports/
  conformance publish --results build/mine --index    a run made already; put the page together""",
    "list": """\
  conformance list rules --level decided
  conformance list findings --document static-oneapi
  conformance list cases --rule zero-copies
  conformance list backends""",
    "explain": """\
  conformance explain one-infer                       a rule: where it is stated, whom it binds
  conformance explain copies-by-index-not-in-turn     a case: its call, what it means, how to run it
  conformance explain static-oneapi                     a document""",
    "meaning": """\
  conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true
  conformance meaning --src 0,3 --shape 0,-1 --special-zero false --document static-graph-v0.9""",
    "check-graph": """\
  conformance check-graph graph.json                  the reshapes of a dump of oneDNN Graph
  conformance check-graph model.onnx --input x=1..8,3,32,32   with each batch from 1 to 8
  conformance check-graph model.xml --run openvino    make the same calls on a backend
exit codes: 0 none is illegal · 1 one is illegal · 2 a file cannot be read · 4 one is not decided""",
    "export": """\
  conformance export onnx --out build/onnx            a folder for each test, for onnx's own runner
  conformance export benchdnn --out build/benchdnn    a graph file for each, for benchdnn""",
    "diff-documents": """\
  conformance diff-documents static-graph-v0.9 static-oneapi""",
    "completion": """\
  eval "$(conformance completion bash)"               in ~/.bashrc
  eval "$(conformance completion zsh)"                in ~/.zshrc, after compinit
  conformance completion fish > ~/.config/fish/completions/conformance.fish""",
}


def story(summaries: Mapping[str, str]) -> str:
    """The whole help: every command under what it is for."""
    lines = [OPENING]
    for what, names in GROUPS.items():
        lines += [what, *(f"  {name:<15} {summaries[name]}" for name in names if name in summaries), ""]
    return "\n".join([*lines, CLOSING])
