import re
from pathlib import Path

import pytest

from crosswind.models.analytic.machine.constants import NAMES
from crosswind.models.analytic.prior import case
from crosswind.models.analytic.strategies import STRATEGIES

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "models" / "analytic.md").read_text()
READ = sorted(set(re.findall(r'columns(?:, |\.get\(|\[)"(\w+)"', Path(case.__file__).read_text())))


@pytest.mark.parametrize("name", [*NAMES, *(strategy.name for strategy in STRATEGIES), *READ])
def test_every_constant_strategy_and_column_is_documented(name: str) -> None:
    assert f"`{name}`" in GUIDE


def test_columns_were_found() -> None:
    assert {"hidden", "ranks", "accelerator", "recompute", "flops_per_sample"} <= set(READ)
