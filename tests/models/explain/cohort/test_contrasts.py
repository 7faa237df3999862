"""Time that each rank of a run spent more than the others, and the ranks that a late checkpoint delays."""

from collections.abc import Callable

import pandas as pd
import pytest
from tests.models.explain.drawn_segments import segments_from

from crosswind.cli.text.explanation import explanation_text
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import explain

Rows = Callable[..., pd.DataFrame]
COMPUTE, CHECKPOINT = COLUMNS.index("compute"), COLUMNS.index("checkpoint")


def test_a_rank_is_held_against_the_median_of_the_others(step_rows: Rows) -> None:
    segments = segments_from(step_rows([[0.04, 0.05, 0.07]] * 10))
    assert segments is not None
    assert segments.of_ranks[:, COMPUTE] == pytest.approx([0.04, 0.05, 0.07])
    assert segments.contrasts()[:, COMPUTE] == pytest.approx([0.04 - 0.06, 0.05 - 0.055, 0.07 - 0.045])
    assert not segments.contrasts()[:, COLUMNS.index("fabric")].any()


def test_a_single_rank_has_no_contrasts(step_rows: Rows) -> None:
    segments = segments_from(step_rows([[0.04]] * 10))
    assert segments is not None
    assert segments.contrasts().shape == (0, len(COLUMNS))


@pytest.mark.parametrize("is_late", [True, False])
def test_a_checkpoint_after_the_last_collective_delays_the_next_segment(step_rows: Rows, *, is_late: bool) -> None:
    """Rank 1 writes for 0.5 s at step 6. After the collective the other rank waits in step 7, before it in step 6."""
    rows = step_rows([[0.05, 0.04]] * 10)
    rows["tail_seconds"] = 0.0
    written = (rows["step"] == 6) & (rows["rank"] == 1)
    waited = (rows["step"] == (7 if is_late else 6)) & (rows["rank"] == 0)
    rows.loc[written, ["checkpoint_seconds", "duration_seconds"]] += 0.5
    rows.loc[waited, ["comm_seconds", "duration_seconds"]] += 0.49
    segments = segments_from(rows)
    assert segments is not None
    at = 7 - 4 if is_late else 6 - 4  # the first segment ends at the fifth step, three of warm-up before it
    assert segments.values[at, CHECKPOINT] == pytest.approx(0.5)
    assert segments.culprits[at] == 1
    assert (segments.values[:, CHECKPOINT] > 0).sum() == 1
    assert segments.values[at, COLUMNS.index("fabric")] < 0.1


def test_a_terminal_shows_the_further_causes(drawn: Callable[..., Segments], cohort: list[Segments]) -> None:
    text = explanation_text(explain("r", drawn(99, input=0.021, checkpoint=0.010), cohort))
    assert "\nalso: slow checkpoint" in text
    assert "\nalso:" not in explanation_text(explain("r", drawn(99, input=0.021), cohort))
