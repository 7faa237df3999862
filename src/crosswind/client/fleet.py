"""Questions about systems, their nodes and stored metrics: to a store of this machine, or to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crosswind.data.schema.answers.fields import rfc3339

if TYPE_CHECKING:
    from crosswind.client.answers import Answers
    from crosswind.client.compute import Compute
    from crosswind.data.schema.answers.series import SeriesAnswer, StoredMetric
    from crosswind.data.schema.series_question import SeriesQuestion
    from crosswind.data.store.store import Store


class Fleet(Protocol):
    """Systems, their nodes and stored metrics; raises as `Client` does."""

    def metrics(self) -> tuple[StoredMetric, ...]:
        """The metrics that samples are stored of, by name."""
        ...

    def series(self, question: SeriesQuestion) -> SeriesAnswer:
        """The course of metrics of nodes, a job or runs over time."""
        ...


@dataclass(frozen=True)
class LocalFleet:
    """The `Fleet` of a store."""

    store: Store
    compute: Compute

    def metrics(self) -> tuple[StoredMetric, ...]:
        """As `Fleet.metrics`."""
        from crosswind.data.store.metrics.stored import stored_metrics  # noqa: PLC0415 - heavy

        return stored_metrics(self.store.lake)

    def series(self, question: SeriesQuestion) -> SeriesAnswer:
        """As `Fleet.series`."""
        from crosswind.data.store.metrics.series import series  # noqa: PLC0415 - heavy

        return series(self.store, question)


@dataclass(frozen=True)
class RemoteFleet:
    """The `Fleet` of a server."""

    answers: Answers

    def metrics(self) -> tuple[StoredMetric, ...]:
        """As GET /v1/metrics."""
        from crosswind.data.schema.answers.series import StoredMetric  # noqa: PLC0415 - few need it

        return self.answers.rows(StoredMetric, "/v1/metrics", {}, None)

    def series(self, question: SeriesQuestion) -> SeriesAnswer:
        """As GET /v1/series."""
        from crosswind.data.schema.answers.series import SeriesAnswer  # noqa: PLC0415 - few need it

        return self.answers.get(SeriesAnswer, "/v1/series", **_query(question))


def _query(question: SeriesQuestion) -> dict[str, object | None]:
    """Return the parameters of a question; `by` may be empty, which means all together."""
    return {
        "metric": ",".join(question.metrics),
        "node": ",".join(question.nodes) or None,
        "job": question.job,
        "system": question.system,
        "run": ",".join(question.runs) or None,
        "from": rfc3339(question.from_ns),
        "to": rfc3339(question.to_ns),
        "step": None if question.step_seconds is None else f"{question.step_seconds:.9f}",
        "statistic": ",".join(question.statistics) or None,
        "by": None if question.by is None else ",".join(question.by) or "none",
        "points": question.points,
        "limit": question.limit,
    }
