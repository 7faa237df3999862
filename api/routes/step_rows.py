"""A run's steps, part by part."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, create_model

from crosswind.api.paging import ListQuery, cursor_of, place_of
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.metric import Column
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

TYPES: dict[str, type] = {"int64": int, "uint64": int, "float64": float, "string": str, "bool": bool}
INT32 = 2**31
_PAGE = """
select * from step
where run_id = $1 and ($2 is null or rank = $2) and ($3 is null or (step, rank) > ($3, $4))
order by step, rank limit $5
"""


class StepsQuery(ListQuery):
    """The steps to return."""

    rank: Annotated[int | None, Field(ge=0, lt=INT32, description="this rank alone")] = None


def _field(column: Column) -> tuple[object, object]:
    value = TYPES[column.dtype] if column.scale == 1.0 else float
    return (value | None, Field(description=f"{column.description} [{column.unit}]"))


StepRow = create_model(
    "StepRow",
    __config__=ConfigDict(frozen=True),
    __doc__="One turn of the training loop on one rank; null where it was not measured.",
    **{column.name: _field(column) for column in STEP.columns},  # type: ignore[call-overload]
)


def step_rows(store: Store, run_id: str, query: StepsQuery) -> tuple[list[BaseModel], str | None]:
    """Return a part of the steps, and the cursor of the next part. Raises: NotFoundError, InvalidInputError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    step, rank = place_of(query.cursor, int, int) or (None, None)
    frame = store.lake.frame(_PAGE, [run_id, query.rank, step, rank, query.limit], within=time_of([run]))
    values = frame.astype(object).where(frame.notna(), None).to_dict("records")
    rows = [StepRow.model_validate(row) for row in values]
    last = values[-1] if len(values) == query.limit else None
    return rows, cursor_of(int(last["step"]), int(last["rank"])) if last else None
