"""Stored metrics, and their course over time."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from crosswind.api.dependencies import ClientOf
from crosswind.api.paging import Format, ListQuery, Page
from crosswind.api.tables.columns import columns_of
from crosswind.api.tables.formats import MEDIA_TYPES, format_of, schema_of, table_of, written
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Name, View, as_plain, plain_json, refuse_unknown_query
from crosswind.data.schema.answers.series import SeriesAnswer, SeriesPoint, StoredMetric, points
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.moment import duration_seconds, moment_ns
from crosswind.data.schema.series_question import (
    BUCKETS_MAX,
    POINTS,
    SERIES,
    SERIES_MAX,
    SeriesQuestion,
    Statistic,
)

router = APIRouter(prefix="/v1", tags=["series"], dependencies=[Depends(refuse_unknown_query)])
Listed = Annotated[str, StringConstraints(min_length=1, max_length=8000, pattern=r"^[^\x00-\x1f\x7f]+$", strict=True)]
ALL_TOGETHER = "none"


class MetricPage(Page):
    """Part of the list of metrics, by name."""

    metrics: list[StoredMetric]


class SeriesTable(View):
    """The values of series as rows, series by series, in the order of time."""

    points: list[SeriesPoint]
    left_out: int


class SeriesQuery(BaseModel):
    """Metrics of nodes, a job or runs over a time. Lists are separated by commas."""

    model_config = ConfigDict(populate_by_name=True)

    metric: Annotated[Listed, Field(description="names as GET /v1/metrics has them, at most 20")]
    node: Annotated[Listed | None, Field(description="names of nodes; without them, job or run: all nodes")] = None
    job: Annotated[Name | None, Field(description="a job: its nodes and runs, in its time")] = None
    system: Annotated[Name | None, Field(description="where several systems have a job of this id")] = None
    run: Annotated[Listed | None, Field(description="ids of runs: these, their nodes, in their time")] = None
    from_: Annotated[
        Name | None, Field(alias="from", description="RFC 3339, or -1h; the begin of the job or runs, else -1h")
    ] = None
    to: Annotated[Name | None, Field(description="RFC 3339, now, or -5m; the end of the job or runs, else now")] = None
    step: Annotated[Name | None, Field(description="30s, 5m, 1h or seconds; else as `points` requires")] = None
    statistic: Annotated[
        Listed | None, Field(description=f"{', '.join(Statistic)}; else rate of counters, mean of gauges")
    ] = None
    by: Annotated[
        Listed | None,
        Field(description="one series for each node, device, rank, run or other key; none: one; else for all keys"),
    ] = None
    points: Annotated[
        int, Field(ge=1, le=BUCKETS_MAX, description="about so many values each, where no step is given")
    ] = POINTS
    limit: Annotated[int, Field(ge=1, le=SERIES_MAX, description="at most so many series")] = SERIES
    device: Annotated[Listed | None, Field(description="names of devices of nodes; else all")] = None

    def question(self) -> SeriesQuestion:
        """Return the question. Raises: InvalidInputError naming the parameter."""
        now_ns = time.time_ns()
        to = self.to or (None if self.job or self.run else "now")
        by = () if self.by == ALL_TOGETHER else None if self.by is None else _words(self.by)
        return SeriesQuestion(
            *(_words(self.metric), _words(self.node), self.job, self.system, _words(self.run)),
            from_ns=None if self.from_ is None else moment_ns(self.from_, now_ns, field="from"),
            to_ns=None if to is None else moment_ns(to, now_ns, field="to"),
            step_seconds=None if self.step is None else duration_seconds(self.step, field="step"),
            statistics=tuple(map(_statistic, _words(self.statistic))),
            by=by,
            points=self.points,
            limit=self.limit,
            devices=_words(self.device),
        )


SeriesQueryOf = Annotated[SeriesQuery, Query()]


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (text or "").split(",") if word)


def _statistic(word: str) -> Statistic:
    if word not in list(Statistic):
        raise InvalidInputError(f"statistic {word!r:.60}: expected some of {', '.join(Statistic)}")
    return Statistic(word)


METRICS = Listing(MetricPage, "metrics", ("name", "unit", "kind"), ("name",))


@router.get("/metrics", **METRICS.route)
def list_metrics(query: Annotated[ListQuery, Query()], request: Request, client: ClientOf) -> Response:
    """Return the metrics that samples are stored of, by name, with unit and kind."""
    asked = METRICS.asked(query, request)
    return asked.answer(asked.of_all(client.fleet.metrics()))


@router.get("/series", response_model=SeriesAnswer)
def get_series(query: SeriesQueryOf, client: ClientOf) -> Response:
    """Return metrics of nodes, a job or runs over time, as a value a step; null where nothing was sampled."""
    return plain_json(client.fleet.series(query.question()))


class PointsQuery(SeriesQuery):
    """The same, and the format of the table."""

    format: Annotated[Format | None, Field(description="in place of the field Accept")] = None


POINT_FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            MEDIA_TYPES[Format.CSV]: {"schema": {"type": "string"}},
            MEDIA_TYPES[Format.ARROW]: {"schema": {"type": "string", "format": "binary"}},
        }
    }
}


@router.get("/series/points", response_model=SeriesTable, responses=POINT_FORMATS)
def list_series_points(query: Annotated[PointsQuery, Query()], request: Request, client: ClientOf) -> Response:
    """Return the same as the rows of one table, a row for each step and series, in JSON, CSV or Arrow."""
    form = format_of(query.format, request.headers.get("accept", ""))
    answer = client.fleet.series(query.question())
    rows = list(points(answer))
    if form is Format.JSON:
        return plain_json({"points": rows, "left_out": answer.left_out})
    schema = schema_of(SeriesPoint, tuple(columns_of(SeriesPoint)), form)
    content = b"".join(written([table_of(as_plain(rows), schema)], schema, form))
    return Response(content, media_type=MEDIA_TYPES[form], headers={"Vary": "Accept"})
