"""SQL over the rows that the caller may see."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field

from crosswind.api.dependencies import ClientOf
from crosswind.api.paging import Format
from crosswind.api.wire import BINARY, Name, RequestBody, Value, plain_json, refuse_unknown_query
from crosswind.data.schema.answers.sql import SqlAnswer, SqlTables
from crosswind.data.sql.limits import PARAMETERS_MAX, QUERY_MAX, ROWS, ROWS_MAX
from crosswind.data.sql.statement import SqlRows, Statement
from crosswind.data.sql.stop import Stop
from crosswind.data.sql.values import answer_of, as_arrow, as_csv

router = APIRouter(prefix="/v1/sql", tags=["sql"], dependencies=[Depends(refuse_unknown_query)])
COMPLETE = "Crosswind-Complete"
ParameterValue = Value | None


class SqlRequest(RequestBody):
    """One SELECT, the values of its parameters, and how many rows to return."""

    query: Annotated[str, Field(min_length=1, max_length=QUERY_MAX, description="one SELECT, as DuckDB has it")]
    parameters: Annotated[
        list[ParameterValue] | dict[Name, ParameterValue],
        Field(max_length=PARAMETERS_MAX, description="values of `?` in order, or by name of `$name`"),
    ] = Field(default_factory=list)
    limit: Annotated[int, Field(ge=1, le=ROWS_MAX)] = ROWS
    format: Annotated[Format, Field(strict=False, description="`arrow`: Arrow's IPC stream")] = Format.JSON

    @property
    def statement(self) -> Statement:
        """Return the statement. Raises: InvalidInputError."""
        return Statement(self.query, self.parameters, self.limit)


OTHER_FORMS = {
    200: {
        "content": {"text/csv": {"schema": {"type": "string"}}, "application/vnd.apache.arrow.stream": BINARY},
        "headers": {COMPLETE: {"description": "`false`: there are more rows", "schema": {"type": "string"}}},
    }
}


@router.get("")
def list_sql_tables(client: ClientOf) -> SqlTables:
    """Return the tables that a statement may name, with columns and units."""
    return client.sql.tables()


@router.post("", response_model=SqlAnswer, responses=OTHER_FORMS)  # type: ignore[arg-type]
async def ask_sql(body: SqlRequest, client: ClientOf) -> Response:
    """Return the first rows of a SELECT over the rows that you may see; stores nothing, and ends when you leave."""
    stop = Stop()
    try:
        rows = await run_in_threadpool(client.sql.rows, body.statement, stop)
        return await run_in_threadpool(_response, rows, body.format)
    finally:  # this is cancelled when the client has gone, and the thread is not
        stop.stop("nobody waits for it any more")


def _response(rows: SqlRows, form: Format) -> Response:
    complete = {COMPLETE: str(rows.is_complete).lower()}
    if form is Format.CSV:
        return Response(as_csv(rows), headers=complete, media_type="text/csv; charset=utf-8; header=present")
    if form is Format.ARROW:
        return Response(as_arrow(rows), headers=complete, media_type="application/vnd.apache.arrow.stream")
    return plain_json(answer_of(rows))
