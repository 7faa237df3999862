"""Facts as columns: those that differ, dates of a year and more, and names of systems that say nothing more."""

import pandas as pd
import pytest

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.question import Question
from crosswind.models.next_run.fact_columns import DATE, MODEL, fact_columns
from crosswind.models.next_run.new_cohort_model import SYSTEMS_MAX, _is_noise

YEAR_NS = 366 * 24 * 3600 * 10**9
BEGAN_NS = 1_700_000_000_000_000_000


def asked(accelerator: str | None = None, started_ns: int | None = BEGAN_NS) -> Question:
    return Question("w", "s", {}, 4, facts=Facts(accelerator=accelerator), started_ns=started_ns)


def test_a_date_counts_where_runs_span_a_year() -> None:
    year = [asked(), asked(started_ns=BEGAN_NS + YEAR_NS)]
    assert DATE in fact_columns(year)
    assert DATE not in fact_columns([asked(), asked(started_ns=BEGAN_NS + YEAR_NS // 2)])
    assert DATE not in fact_columns([asked(started_ns=None)] * 2)
    assert DATE in fact_columns([asked()], [DATE])


def test_figures_that_differ_are_columns_and_a_device_always_is() -> None:
    assert set(fact_columns([asked("NVIDIA A100-SXM4-40GB")])) == {MODEL}
    both = fact_columns([asked("NVIDIA A100-SXM4-40GB"), asked("NVIDIA H100 SXM")])
    assert both["device.flops_16bit"][0] < both["device.flops_16bit"][1]
    assert both["device.flops_8bit"][1] > both["device.flops_16bit"][1]


@pytest.mark.parametrize(
    ("systems", "devices", "is_noise"),
    [
        (["a", "b", "c"], ["x", "y", "z"], True),
        (["a", "b", "c"], ["x", "y", "y"], False),
        (["a", "a", "b"], ["x", "y", "z"], False),
        (["a", "b", "c"], ["x", "y", None], False),
        ([f"s{place}" for place in range(SYSTEMS_MAX + 1)], ["x"] * (SYSTEMS_MAX + 1), True),
    ],
)
def test_names_of_systems_count_where_devices_do_not_say_the_same(
    systems: list[str], devices: list[str | None], is_noise: bool
) -> None:
    table = pd.DataFrame({"system": systems, MODEL: pd.Series(devices, dtype=object)})
    assert _is_noise(table) is is_noise
