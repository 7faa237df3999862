"""Studies as points that Ray Tune's searchers start from."""

import json
from collections.abc import Sequence

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Study, TrialRecord
from crosswind.models.tuner.exports.measured import directions, measured, metrics


def points_of(study: Study, records: Sequence[TrialRecord]) -> str:
    """Return metric, mode, and the complete trials as `points_to_evaluate` and `evaluated_rewards`, as JSON.

    Raises: InvalidInputError for several objectives.
    """
    aims = directions(study)
    if len(aims) > 1:
        raise InvalidInputError(f"study {study.name} has {len(aims)} objectives, expected one for the format ray")
    pairs: list[tuple[Configuration, float]] = [
        (record.trial.configuration, values[0]) for record in records if (values := measured(study, record))
    ]
    return (
        json.dumps(
            {
                "metric": metrics(study)[0],
                "mode": "max" if aims[0] else "min",
                "points_to_evaluate": [dict(configuration) for configuration, _ in pairs],
                "evaluated_rewards": [value for _, value in pairs],
            },
            ensure_ascii=False,
        )
        + "\n"
    )
