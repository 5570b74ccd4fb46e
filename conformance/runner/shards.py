"""Put the shards of one run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..evidence.journal import find_difference
from ..evidence.machine import join_environments, pick_shared_part
from ..evidence.results import DrawnCounts, Evidence, InvalidEvidence
from ..model import Result
from ..plan.rows import parse_drawn_id


class MergedRun(NamedTuple):
    """The shards of a run put together."""

    header: Mapping[str, Any]
    results: Sequence[Result]
    notes: tuple[str, ...]
    planted: Mapping[str, int]
    """By planted backend, the fewest failures that a shard saw."""
    seconds: float
    drawn: DrawnCounts | None


def merge_shards(paths: Sequence[Path], parts: Sequence[Evidence]) -> MergedRun:
    """Put the shards of one run together; InvalidEvidence if they are not all the shards of one run, each once.

    `paths` are those of the parts, for messages.
    """
    header = {**parts[0].header, "target": {**parts[0].header["target"], "shard": None}}
    first_header = _pick_common(header)
    for path, part in zip(paths, parts, strict=True):
        its_header = _pick_common(part.header)
        for key in ("suite", "backend", "claims", "isolation", "limits", "waivers", "nonce", "drawn", "environment"):
            if its_header.get(key) != first_header.get(key):
                what, its, first = find_difference(key, its_header.get(key), first_header.get(key))
                raise InvalidEvidence(
                    f"{path}: its {what} is {its}, that of {paths[0]} {first}; name the shards of one run"
                )
        if {**part.header["target"], "shard": None} != header["target"]:
            raise InvalidEvidence(f"{path}: its target is not that of {paths[0]}")
    shards = [str(part.header["target"].get("shard")) for part in parts]
    _check_shards(paths, shards)
    # else the order of the parts would decide whether a waiver had expired
    header["started"] = min(part.header["started"] for part in parts)
    header["environment"] = join_environments([part.header["environment"] for part in parts])
    if names := dict.fromkeys(part.header["tester"] for part in parts if "tester" in part.header):
        header["tester"] = ", ".join(names)
    header["shards"] = [
        {"shard": shard, "started": part.header["started"]}
        | ({"drawn": part.drawn.called} if "drawn" in part.footer else {})
        for shard, part in zip(shards, parts, strict=True)
    ]
    footers = [part.footer for part in parts]
    return MergedRun(
        header, _join(paths, parts), tuple(dict.fromkeys(note for footer in footers for note in footer["notes"])),
        {name: min(footer["planted"].get(name, 0) for footer in footers) for name in footers[0]["planted"]},
        sum(footer["seconds"] for footer in footers), _count_drawn(header, [part.drawn for part in parts]),
    )  # fmt: skip


def _count_drawn(header: Mapping[str, Any], counts: Sequence[DrawnCounts]) -> DrawnCounts | None:
    """Add up the drawn rows. The others were not called, unless a shard ended before."""
    if "drawn" not in header:
        return None
    called, failed, _, waived = map(sum, zip(*counts, strict=True))
    wanted = header["drawn"]["rows"]
    ended = all(each.not_called or each.called == wanted for each in counts)
    return DrawnCounts(called, failed, wanted - called if ended else 0, waived)


def _pick_common(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header without the facts that may differ between machines."""
    return {**header, "environment": pick_shared_part(header["environment"])}


def _check_shards(paths: Sequence[Path], shards: list[str]) -> None:
    """Refuse anything but all N shards of a run, once each."""
    count = shards[0].partition("/")[2]
    for path, shard in zip(paths, shards, strict=True):
        if "/" not in shard or shard.partition("/")[2] != count:
            what = f"shard {shard}" if "/" in shard else "a whole run and no shard"
            raise InvalidEvidence(f"{path}: is {what}, not one of {count or 'several'}; name the shards of one run")
        if int(shard.partition("/")[0]) > int(count):
            raise InvalidEvidence(f"{path}: is shard {shard}, which there cannot be; the file is damaged")
    for part in range(1, int(count) + 1):
        named = [str(path) for path, shard in zip(paths, shards, strict=True) if shard == f"{part}/{count}"]
        if not named:
            raise InvalidEvidence(
                f"shard {part}/{count} is missing; run it with --shard {part}/{count}, and name its folder too"
            )
        if len(named) > 1:
            raise InvalidEvidence(
                f"shard {part}/{count} is there {len(named)} times: {' and '.join(named)} overlap; name one"
            )


def _join(paths: Sequence[Path], parts: Sequence[Evidence]) -> list[Result]:
    """Take each row from the shard that ran it, and the drawn rows that failed from all."""
    joined: dict[str, Result] = {}
    # each shard has every written row, mostly as not run, but only those drawn rows that failed in it
    drawn = [result for part in parts for result in part.results if parse_drawn_id(result.row) is not None]
    for path, part in zip(paths, parts, strict=True):
        results = [result for result in part.results if parse_drawn_id(result.row) is None]
        if joined and list(joined) != [result.row for result in results]:
            raise InvalidEvidence(f"{path}: its rows are not those of {paths[0]}")
        for result in results:
            before = joined.get(result.row)
            if before is None or before.is_not_run:
                joined[result.row] = result
            elif not result.is_not_run:
                raise InvalidEvidence(f"{path}: the row {result.row} was run by another shard too; the shards overlap")
    return [*joined.values(), *drawn]
