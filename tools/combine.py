"""Make cases/combinations.txt: rows in which every three values of factors meet that can meet.

    python -m tools.combine

Draws calls of every kind, then adds row after row, each the best of some tries: the one with most meetings that no row
has yet. Lines that are there stay, so that a row keeps its number, and evidence of earlier suites counts. Delete the
file to begin again, as is due after a change of the values in spec/factors.yaml. It takes some minutes and comes out
the same on every machine.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from conformance.draw.calls import DrawnCall
from conformance.draw.combinations import COMBINATIONS_FILE, Combination, read_combinations
from conformance.draw.factors import CombinationCodes, Design, Factors, Meetings, find_factors
from conformance.load.cases import load_suite
from conformance.load.folders import find_cases_folder
from conformance.meaning.contract import Contract, contracts, group_documents
from conformance.meaning.domain import Lengths
from conformance.selfcheck.meetings import find_common_kind, list_calls_of_cases

PAIRS = 120_000
"""Pairs of src and dst to draw for the kinds of calls."""
CALLS_TRIED, CALLS_KEPT = 150, 3
Core = tuple[tuple[str, str], ...]
HEAD = """\
# Made by `python -m tools.combine`. A line: the value of each factor that a call leaves to choose, by its place in
# spec/factors.yaml, then src, shape and special_zero.
"""


# ── calls of every kind ───────────────────────────────────────────────────────────────────────────


def draw_pairs(rng: random.Random) -> Iterator[tuple[Lengths, Lengths]]:
    """Yield src and dst of one volume, of every rank, size and kind of change."""
    while True:
        rank = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12))
        most = rng.choice((1, 15, 255, 4000, 65_000, 130_000))
        fine = [rng.choice((1, 2, 2, 3, 3, 4, 5, 7)) if math.prod((2, most)) > 2 else 1 for _ in range(rank)]
        while math.prod(fine) > most:
            fine[rng.randrange(rank)] = 1
        for _ in range(rng.choice((0, 1, 2))):
            if fine and (room := most // math.prod(fine)) > 1:
                fine[rng.randrange(rank)] *= rng.choice((room, rng.randint(1, room)))
        if fine and rng.random() < 0.15:
            fine[rng.randrange(rank)] = 0
        pair = list(_change(rng, fine))
        if rng.random() < 0.5:
            pair.reverse()
        if max(map(len, pair)) <= 12:
            yield tuple(pair[0]), tuple(pair[1])


def _change(rng: random.Random, fine: list[int]) -> tuple[list[int], list[int]]:
    kind = rng.randrange(11)
    at, rank = rng.randrange(len(fine) + 1), len(fine)
    if kind == 0 or not fine:
        return fine, [*fine, *[1] * rng.choice((0, 1, 2, 3, 8))]
    if kind == 1:
        return fine, rng.choice(([1, *fine], [*fine, 1], [*fine[:at], 1, *fine[at:]]))
    if kind == 2:
        ones = [1] * rng.randint(1, 5)
        return fine, [*fine[:at], *ones, *fine[at:], *ones[1:]]
    if kind == 3:
        return fine, [math.prod(fine)]
    if kind == 4:
        return fine, rng.sample(fine, rank)
    if kind in (5, 6) and rank >= kind - 3:
        parts = kind - 3
        at = rng.randrange(rank - parts + 1)
        fine = [*fine]
        fine[at + parts - 1] = fine[at + parts - 2] = rng.choice((2, 3, 4, 7)) if math.prod(fine) < 9000 else 2
        return fine, [*fine[:at], math.prod(fine[at : at + parts]), *fine[at + parts :]]
    if kind == 7 and rank >= 2:
        return fine, [*fine[:-2], fine[-2] * fine[-1]]
    groups = _grouped(rng, fine)
    return (fine, groups) if kind == 8 else (groups, _grouped(rng, fine))


def _grouped(rng: random.Random, fine: list[int]) -> list[int]:
    """Return products of neighbours, with some ones between them."""
    groups = [fine[0]]
    for length in fine[1:]:
        if rng.random() < 0.5:
            groups[-1] *= length
        else:
            groups.append(length)
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        groups.insert(rng.randrange(len(groups) + 1), 1)
    return groups


def calls_of(rng: random.Random, src: Lengths, dst: Lengths) -> Iterator[DrawnCall]:
    """Yield shapes that give dst: with copied zeros, with a -1, with both, with neither."""
    same = [at for at in range(min(len(src), len(dst))) if src[at] == dst[at]]
    choices = [(), same, *(rng.sample(same, rng.randint(1, len(same))) for _ in range(4 if same else 0))]
    for copied in choices:
        shape = [0 if at in copied else length for at, length in enumerate(dst)]
        rest = [at for at in range(len(dst)) if at not in copied]
        for infer in (None, *({rest[0], rest[-1], rng.choice(rest)} if rest else ())):
            entries = tuple(-1 if at == infer else length for at, length in enumerate(shape))
            for flag in (False, True):
                yield DrawnCall(src, entries, flag)


def spoilt(rng: random.Random, call: DrawnCall) -> Iterator[DrawnCall]:
    """Yield calls with one thing wrong, whatever else is wrong then; no entry is beyond 32 bits."""
    shape, volume = [*call.shape], math.prod(call.src)
    if not shape:
        yield from (DrawnCall((length,), (), call.special_zero) for length in (0, 2, 12, 150, 70_000))
        return
    at = rng.randrange(len(shape))
    for entry in (shape[at] + 1, 2 * shape[at], max(shape[at] - 1, 1), 1, 0, -1, -2, -max(shape[at], 1), 7):
        yield call._replace(shape=(*shape[:at], entry, *shape[at + 1 :]))
    if len(shape) > 1:
        other = rng.choice([each for each in range(len(shape)) if each != at])
        for sign in (1, -1):
            two = {at: -1 if sign > 0 else -abs(shape[at]), other: -1 if sign > 0 else -abs(shape[other])}
            yield call._replace(shape=tuple(two.get(each, entry) for each, entry in enumerate(shape)))
    for bits in (32, 64):
        lengths = next((found for more in range(1, 400) if (found := _short_factors(volume + (more << bits)))), [])
        if lengths and len(lengths) <= len(shape):
            ones = [1] * (len(shape) - len(lengths))
            yield call._replace(shape=tuple(rng.sample([*lengths, *ones], len(shape))))


def _short_factors(number: int) -> list[int]:
    """Return a few factors of less than 31 bits with a product, if they are easily found."""
    factors, rest = [1], number
    for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97):
        while rest % prime == 0:
            rest //= prime
            if factors[-1] * prime >= 1 << 31:
                factors.append(1)
            factors[-1] *= prime
    return [*factors, rest] if rest < 1 << 31 else []


def draw_calls(
    rng: random.Random, kinds: Mapping[str, Contract], known: Iterable[DrawnCall], pairs: int
) -> dict[str, dict[Core, list[DrawnCall]]]:
    """Draw legal and illegal calls by the values of their factors, some of each, beside those that are known."""
    found: dict[str, dict[Core, list[DrawnCall]]] = {"legal": {}, "illegal": {}}
    differing = group_documents(kinds)

    def keep(call: DrawnCall) -> None:
        values = find_factors(call)
        name = "illegal" if "broken" in values else "legal"
        kept = found[name].setdefault(tuple(values.items()), [])
        fits = max(call.src, default=0) < 1 << 31  # other nodes have lengths of src in shapes of 32 bits
        if fits and len(kept) < CALLS_KEPT and call not in kept and find_common_kind(differing, call) == name:
            kept.append(call)

    for call in known:
        keep(call)
    for _, (src, dst) in zip(range(pairs), draw_pairs(rng), strict=False):
        calls = list(calls_of(rng, src, dst))
        for call in (*calls, *spoilt(rng, rng.choice(calls))):
            keep(call)
    return {name: {core: calls for core, calls in each.items() if calls} for name, each in found.items()}


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


class Builder:
    """Adds rows until all values meet that can; a group of two factors has a third one with one value."""

    def __init__(self, factors: Factors, design: Design, calls: Mapping[Core, list[DrawnCall]]) -> None:
        self.factors, self.design, self.calls, self.rng = factors, design, calls, random.Random(design.name)
        self.names = list(design.factors)
        self.of_call = [self.names.index(name) for name in design.of_call]
        self.sizes = [len(factors.values[name]) for name in self.names]
        self.codes = CombinationCodes(factors, design)
        orders = [factors.values[name] for name in design.of_call]
        self.cores = np.array(
            [[order.index(dict(core)[n]) for order, n in zip(orders, design.of_call, strict=True)] for core in calls]
        )
        self.order = [name for name, _ in next(iter(calls))]
        self.allowed = self._allowed()
        meetings = Meetings(factors, design, map(dict, calls))
        self.open = np.concatenate([*(meetings.table(group).ravel() for group in design.groups), [False]])

    def _allowed(self) -> dict[tuple[int, int], Any]:
        """Return for each two factors with limits which of their values go together."""
        tables: dict[tuple[int, int], Any] = {}
        for limit in self.factors.limits:
            if not {limit.factor, limit.other} <= {*self.names}:
                continue
            a, b = self.names.index(limit.factor), self.names.index(limit.other)
            limited = [value in limit.values for value in self.factors.values[limit.factor]]
            allowed = [value in limit.allowed for value in self.factors.values[limit.other]]
            table = ~np.logical_and.outer(limited, np.logical_not(allowed))
            tables[a, b] = tables.get((a, b), True) & table
            tables[b, a] = tables[a, b].T
        return tables

    def fits(self, rows: Any) -> Any:
        """Ask of each row whether its values go together."""
        good = np.ones(len(rows), bool)
        for (a, b), table in self.allowed.items():
            if a < b:
                good &= table[rows[:, a], rows[:, b]]
        return good

    def gain(self, rows: Any) -> Any:
        return self.open[self.codes.of(rows)].sum(axis=1)

    def close(self, combinations: Iterable[Combination]) -> None:
        """Count what meets in some rows."""
        for combination in combinations:
            self.open[self.codes.of(self.places(combination))] = False

    def places(self, combination: Combination) -> Any:
        return self.codes.places({**combination.chosen, **find_factors(combination.call)})

    def rows(self) -> Iterator[Combination]:
        while self.open.any():
            row = self._best_row()
            self.open[self.codes.of(row)] = False
            values = {name: self.factors.values[name][row[at]] for at, name in enumerate(self.names)}
            calls = self.calls[tuple((name, values[name]) for name in self.order)]
            chosen = {name: values.get(name, self.factors.values[name][0]) for name in self.factors.chosen}
            yield Combination(self.rng.choice(calls), chosen)

    def _best_row(self) -> Any:
        seed = self._seed()
        row = self._complete(seed)
        best = int(self.gain(row[None])[0])
        while True:
            tries = [row]
            for factor in range(len(self.names)):
                if factor not in seed and factor not in self.of_call:
                    values = np.repeat(row[None], self.sizes[factor], 0)
                    values[:, factor] = range(self.sizes[factor])
                    tries.extend(values)
            cores = self._cores_with(seed)
            few = cores[self._sample(len(cores))]
            others = np.repeat(row[None], len(few), 0)
            others[:, self.of_call] = few
            rows = np.concatenate([np.array(tries), others])
            rows = rows[self.fits(rows)]
            gains = self.gain(rows)
            if gains.max() <= best:
                return row
            best, row = int(gains.max()), rows[int(gains.argmax())]

    def _sample(self, size: int) -> Any:
        if size <= CALLS_TRIED:
            return np.arange(size)
        return np.array(self.rng.sample(range(size), CALLS_TRIED))

    def _cores_with(self, seed: Mapping[int, int]) -> Any:
        cores = self.cores
        for factor, value in seed.items():
            for column, at in enumerate(self.of_call):
                if factor == at:
                    cores = cores[cores[:, column] == value]
                elif (factor, at) in self.allowed:
                    cores = cores[self.allowed[factor, at][value, cores[:, column]]]
        return cores

    def _seed(self) -> dict[int, int]:
        """Return three values that do not meet yet."""
        codes = self.codes
        number = int(np.add.reduceat(self.open, codes.starts, dtype=int).argmax())
        end = int(codes.starts[number + 1]) if number + 1 < len(codes.starts) else None
        rest = self.rng.choice(np.flatnonzero(self.open[int(codes.starts[number]) : end]).tolist())
        x, rest = divmod(rest, int(codes.scale_i[number]))
        y, z = divmod(rest, int(codes.scale_j[number]))
        group = zip(map(int, codes.groups[number]), (x, y, z), strict=True)
        return {factor: value for factor, value in group if factor < len(self.names)}

    def _complete(self, seed: Mapping[int, int]) -> Any:
        """Return a row with three values: one of the calls that go with them, and for the rest what comes first."""
        cores = self._cores_with(seed)
        for core in cores[self._sample(len(cores))]:
            row = self._choose({**dict(zip(self.of_call, map(int, core), strict=True)), **seed}, 0)
            if row is not None:
                return np.array([row[at] for at in range(len(self.names))])
        values = {self.names[at]: self.factors.values[self.names[at]][value] for at, value in seed.items()}
        raise ValueError(f"{[*values.items()]} cannot meet; say so in spec/factors.yaml")

    def _choose(self, row: dict[int, int], factor: int) -> dict[int, int] | None:
        while factor in row:
            factor += 1
        if factor == len(self.names):
            return row
        for value in range(self.sizes[factor]):
            if all((factor, at) not in self.allowed or self.allowed[factor, at][value, v] for at, v in row.items()):
                found = self._choose({**row, factor: value}, factor + 1)
                if found is not None:
                    return found
        return None


def main() -> int:
    suite = load_suite()
    factors, path = Factors(suite.spec), find_cases_folder() / COMBINATIONS_FILE
    there = list(read_combinations(factors)) if path.exists() else []
    known = (*(each.call for each in there), *list_calls_of_cases(suite))
    calls = draw_calls(random.Random("calls"), contracts(suite.spec), known, PAIRS)
    for design in factors.designs:
        builder = Builder(factors, design, calls[design.name])
        builder.close(each for each in there if ("broken" in find_factors(each.call)) == (design.name == "illegal"))
        kinds, meetings = len(calls[design.name]), builder.open.sum()
        print(f"{design.name}: {kinds} kinds of calls, {meetings} meetings to come", file=sys.stderr)
        for number, combination in enumerate(builder.rows(), 1):
            there.append(combination)
            if number % 200 == 0:
                print(f"{number} rows, {builder.open.sum()} to come", file=sys.stderr)
    path.write_text("".join([HEAD, *(each.line(factors) + "\n" for each in there)]), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
