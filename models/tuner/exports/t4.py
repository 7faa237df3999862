"""Studies as results in the T4 format of Kernel Tuner and the autotuning benchmarks."""

import json
from collections.abc import Mapping, Sequence

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import ENDED, Study, TrialRecord, TrialState
from crosswind.models.tuner.exports.measured import NAMES, directions, measured, metrics

VERSION = "1.0.0"
VALIDITY: Mapping[TrialState, str] = {
    TrialState.DONE: "correct",
    TrialState.INFEASIBLE: "constraints",
    TrialState.FAILED: "runtime",
    TrialState.PRUNED: "timeout",
}


def results_of(study: Study, records: Sequence[TrialRecord]) -> str:
    """Return the ended trials as JSON. Raises: InvalidInputError for several objectives, which T4 does not have.

    `metadata` has the direction and the space, which T4 has no fields for; a result has Crosswind's state beside T4's.
    Source: kernel_tuner/schema/T4/1.0.0/results-schema.json of Kernel Tuner 1.5.
    """
    aims = directions(study)
    if len(aims) > 1:
        raise InvalidInputError(f"study {study.name} has {len(aims)} objectives, expected one for the format t4")
    results = [_result(study, record) for record in records if record.trial.state in ENDED]
    metadata = {"direction": NAMES[aims[0]], "study": study.name, "space": study.space}
    return json.dumps({"results": results, "schema_version": VERSION, "metadata": metadata}, ensure_ascii=False) + "\n"


def _result(study: Study, record: TrialRecord) -> dict[str, object]:
    [objective] = metrics(study)
    outcomes = [{"name": name, "value": value, "unit": ""} for name, value in record.outcomes.items()]
    own = [{"name": objective, "value": value, "unit": study.unit} for value in measured(study, record) or ()]
    return {
        "configuration": dict(record.trial.configuration),
        "times": {"runtimes": []},
        "invalidity": VALIDITY[record.trial.state],
        "correctness": 1,
        "measurements": own + [entry for entry in outcomes if entry["name"] != objective],
        "objectives": [objective],
        "state": str(record.trial.state),
    }
