"""A run's steps, part by part, or all of them in windows that bound what is in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi.responses import Response
from pydantic import ConfigDict, Field, create_model

from crosswind.api.paging import Format, ListQuery
from crosswind.api.tables.listing import EVERY_ROW, Asked
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.metric import Column
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

if TYPE_CHECKING:  # heavy
    import pyarrow as pa

TYPES: dict[str, type] = {"int64": int, "uint64": int, "float64": float, "string": str, "bool": bool}
INT32 = 2**31
WINDOW_ROWS = 50_000  # at once in memory: some 10 MB
_OF_RUN = "from step where run_id = $1 and ($2 is null or rank = $2)"


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


@dataclass(frozen=True)
class Steps:
    """The steps of a run that a request asks for: of one rank, or of all."""

    asked: Asked
    store: Store
    run: Run
    rank: int | None

    def answer(self) -> Response:
        """Return the part that is asked for, or all of them in windows that bound what is in memory."""
        asked = self.asked
        if asked.part.limit == EVERY_ROW:
            return asked.stream(window.select(asked.names).cast(asked.schema) for window in self._windows())
        table = self._table(f"{self._ordered(self._behind)} limit {asked.part.limit}")
        if asked.form is Format.JSON:
            return asked.answer(table.to_pylist(), run_id=self.run.run_id)
        following = asked.next_behind(table.slice(max(0, table.num_rows - 1)).to_pylist(), table.num_rows)
        return asked.stream([table.select(asked.names).cast(asked.schema)], following)

    def _windows(self) -> Iterator["pa.Table"]:
        """Yield all rows behind the place that is asked for, a few steps at once."""
        extent = self._query(f"select count(*), min(step), max(step) {self._behind}")
        count, first, last = (column[0].as_py() for column in extent.columns)
        steps = max(1, WINDOW_ROWS * (last - first + 1) // count) if count else 1
        begins = range(first, last + 1, steps) if count else range(0)
        for begin in reversed(begins) if self.asked.part.descending else begins:
            yield self._table(self._ordered(f"{self._behind} and step between {begin} and {begin + steps - 1}"))

    def _ordered(self, rows: str) -> str:
        order = "desc" if self.asked.part.descending else "asc"
        return f"{rows} order by step {order}, rank {order}"

    def _table(self, rows: str) -> "pa.Table":
        names = ", ".join(f'"{name}"' for name in dict.fromkeys((*self.asked.names, *self.asked.listing.key)))
        return self._query(f"select {names} {rows}")

    @property
    def _behind(self) -> str:
        sign = "<" if self.asked.part.descending else ">"
        return _OF_RUN if self.asked.part.after is None else f"{_OF_RUN} and (step, rank) {sign} ($3, $4)"

    def _query(self, sql: str) -> "pa.Table":
        parameters = [self.run.run_id, self.rank, *(self.asked.part.after or ())]
        return self.store.lake.table(sql, parameters, within=time_of([self.run]))
