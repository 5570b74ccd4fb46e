"""A wrong name in spec/factors.yaml is reported with its line."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.draw import factors
from conformance.draw.factors import Factors
from conformance.load.folders import find_spec_folder
from conformance.model import Malformed

from ..builders import spec, spoil

FILE = "factors.yaml"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the file, which is read instead of it."""
    (tmp_path / "spec").mkdir()
    copy = Path(shutil.copy(find_spec_folder() / FILE, tmp_path / "spec"))
    monkeypatch.setattr(factors, "find_spec_folder", lambda: copy.parent)
    factors._read.cache_clear()
    yield copy
    factors._read.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("threes: [src_rank,", "threes: [src_rnak,", "unknown factor 'src_rnak'; did you mean 'src_rank'?"),
        ("if: {layout: [far]}", "if: {layot: [far]}", "unknown factor 'layot'; did you mean 'layout'?"),
        ("then: {size: [2-15], src", "then: {size: [2-16], src", "unknown value of size '2-16'; did you mean '2-15'?"),
        ("{node: [single, fork]}", "{node: [single, frok]}", "unknown value of node 'frok'; did you mean 'fork'?"),
    ],
)
def test_an_unknown_name_of_a_factor_or_value(path: Path, old: str, new: str, said: str) -> None:
    Factors(spec())
    factors._read.cache_clear()
    line = path.read_text(encoding="utf-8").partition(old)[0].count("\n") + 1
    spoil(path, old, new, 1)
    with pytest.raises(Malformed) as malformed:
        Factors(spec())
    assert str(malformed.value) == f"spec/{FILE}:{line}: {said}"
