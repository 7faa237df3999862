"""The tools of the agent door: each asks the client and returns its answer as REST has it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from crosswind.api.routes.studies import StudyStatusView
from crosswind.api.routes.trials import LEASE_SECONDS, TrialView
from crosswind.cli.verbs.mcp.answered import Answered, IntervalShown, ToolAnswer, answered, as_text
from crosswind.client.protocol import Client
from crosswind.client.run_names import run_named
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.errors import InvalidInputError, ProjectError
from crosswind.data.schema.question import LikeRun, Question
from crosswind.data.schema.run import RunState
from crosswind.data.schema.trial import Configuration
from crosswind.data.sql.limits import ROWS_MAX
from crosswind.models.tuner.service.service import COUNT_MAX, Lease

OF_CALL = ("self", "ctx", "cursor")  # no part of a question
AT_ONCE = 4  # questions of all callers
LISTED_MAX = 500
PEERS_MAX = 500
LEVEL = 0.9
T = TypeVar("T")
Result = Annotated[CallToolResult, Answered]
Ask = Callable[[Context, Mapping[str, object], Callable[[Client], ToolAnswer]], CallToolResult]
Cursor = Annotated[str | None, Field(description="`next_cursor` of the page before; other arguments as then")]
RunName = Annotated[str, Field(description="id of a run, the end of one, or `latest`")]
Text = Annotated[str | None, Field(max_length=200)]
Many = Annotated[int, Field(ge=1, le=LISTED_MAX)]
Parameters = Annotated[dict[str, str | int | float | bool] | None, Field(description="parameters of the run by name")]
Owner = Annotated[str, Field(min_length=1, max_length=200, description="who evaluates the trial")]


class Tools:
    """The tools, over the client that `client_of` returns for whoever calls."""

    def __init__(self, client_of: Callable[[Context, bool], Client]) -> None:
        self._client_of = client_of
        self._places = threading.BoundedSemaphore(AT_ONCE)

    def _ask(
        self, ctx: Context, question: Mapping[str, Any], ask: Callable[[Client], ToolAnswer], *, writes: bool = False
    ) -> CallToolResult:
        """Return the page of an answer that a question asks for. Raises: ToolError saying what is wrong."""
        arguments = {name: value for name, value in question.items() if name not in OF_CALL and not callable(value)}
        try:
            client = self._client_of(ctx, writes)
            with self._places:
                given = ask(client)
            answer = answered(given, arguments, question.get("cursor"))
        except ProjectError as error:
            raise ToolError(str(error)) from error
        return CallToolResult(
            content=[TextContent(type="text", text=as_text(answer))], structured_content=answer.model_dump(mode="json")
        )

    def explain(self, ctx: Context, *, run: RunName, cursor: Cursor = None) -> Result:
        """Why a run took as long as it did: verdict, excess over its cohort with interval, shares of causes."""

        def ask(client: Client) -> ToolAnswer:
            answer = client.explain(run_named(client, run).run_id)
            counts = {"cohort_runs": answer.cohort_runs, "steps": answer.steps, "missing": answer.missing}
            reason = answer.next_action if answer.excess is None else None
            return ToolAnswer(answer, counts, _ids(answer.run_id), None, _interval("excess", answer.excess), reason)

        return self._ask(ctx, {"tool": "explain", **locals()}, ask)

    def compare(self, ctx: Context, *, first: RunName, second: RunName, cursor: Cursor = None) -> Result:
        """By what one run took longer than another: causes that sum to the difference, and what differs."""

        def ask(client: Client) -> ToolAnswer:
            answer = client.compare(run_named(client, first).run_id, run_named(client, second).run_id)
            counts = {"slower_steps": answer.slower_steps, "faster_steps": answer.faster_steps}
            interval = _interval("difference", answer.difference)
            return ToolAnswer(answer, counts, _ids(answer.slower, answer.faster), None, interval)

        return self._ask(ctx, {"tool": "compare", **locals()}, ask)

    def predict(
        self,
        ctx: Context,
        *,
        like: Annotated[str | None, Field(description="a stored run that it is like in all that is not given")] = None,
        workload: Text = None,
        system: Text = None,
        world_size: Annotated[int | None, Field(ge=1, description="ranks")] = None,
        node_count: Annotated[int | None, Field(ge=1)] = None,
        configuration: Parameters = None,
        limit_seconds: Annotated[float | None, Field(gt=0, description="how likely is it to take longer?")] = None,
        outcome: Annotated[Outcome | None, Field(description="null: the finest that was recorded")] = None,
        cursor: Cursor = None,
    ) -> Result:
        """Predict how long a run to come, or its steps, will take: quantiles, the runs they rest on, their accuracy."""
        question = _question(like, workload, system, world_size, node_count, configuration)

        def ask(client: Client) -> ToolAnswer:
            answer = client.predict(question(), outcome, limit_seconds=limit_seconds)
            return ToolAnswer(answer, _counts(answer), _evidence, None, _of_quantiles(answer), _doubt(answer))

        return self._ask(ctx, {"tool": "predict", **locals()}, ask)

    def walltime(
        self,
        ctx: Context,
        *,
        like: Annotated[str | None, Field(description="a stored run that it is like in all that is not given")] = None,
        workload: Text = None,
        system: Text = None,
        world_size: Annotated[int | None, Field(ge=1, description="ranks")] = None,
        node_count: Annotated[int | None, Field(ge=1)] = None,
        configuration: Parameters = None,
        confidence: Annotated[float, Field(ge=0.5, lt=1, description="that the limit is enough")] = 0.95,
        cursor: Cursor = None,
    ) -> Result:
        """The shortest time limit that is enough with a confidence, as a line for sbatch, and what it rests on."""
        question = _question(like, workload, system, world_size, node_count, configuration)

        def ask(client: Client) -> ToolAnswer:
            advice = client.advise_walltime(question(), confidence)
            interval, doubt = _of_quantiles(advice.answer), _doubt(advice.answer)
            return ToolAnswer(advice, _counts(advice.answer), _evidence_of_advice, None, interval, doubt)

        return self._ask(ctx, {"tool": "walltime", **locals()}, ask)

    def stragglers(
        self,
        ctx: Context,
        *,
        run: Annotated[str | None, Field(description="of this run alone: the ranks that it waited for")] = None,
        system: Text = None,
        workload: Text = None,
        cursor: Cursor = None,
    ) -> Result:
        """Nodes, devices and rank places slower than their peers over all runs, or ranks that one run waited for."""

        def of_run(client: Client) -> ToolAnswer:
            answer = client.run_stragglers(run_named(client, run or "").run_id)
            counts = {"steps": answer.steps, "ranks": answer.ranks, "warnings": answer.warnings}
            reason = None if answer.episodes else f"no rank of the run kept the others waiting in {answer.steps} steps"
            return ToolAnswer(answer, counts, _ids(answer.run_id), "episodes", None, reason)

        def of_all(client: Client) -> ToolAnswer:
            answer = client.stragglers(system, workload, limit=PEERS_MAX)
            counts = {"runs": answer.runs, "compared": answer.compared, "named": len(answer.named)}
            first = next(iter(answer.ranked), None)
            shown = _shown(f"ratio of {first.name}", first.low_ratio, first.high_ratio, "1") if first else None
            reason = None if answer.ranked else "; ".join(answer.warnings) or "no peers were compared"
            return ToolAnswer(answer, counts, _field("ranked", "name"), "ranked", shown, reason)

        return self._ask(ctx, {"tool": "stragglers", **locals()}, of_run if run else of_all)

    def runs(
        self,
        ctx: Context,
        *,
        workload: Text = None,
        system: Text = None,
        state: RunState | None = None,
        limit: Many = 50,
        cursor: Cursor = None,
    ) -> Result:
        """The newest runs, newest first, with configuration, nodes, times and job."""

        def ask(client: Client) -> ToolAnswer:
            rows = client.runs(workload, system, state=state, limit=limit)
            reason = None if rows else "no run that you may see meets these conditions"
            return ToolAnswer({"runs": rows}, _listed(rows, limit), _field("runs", "run_id"), "runs", None, reason)

        return self._ask(ctx, {"tool": "runs", **locals()}, ask)

    def jobs(
        self,
        ctx: Context,
        *,
        name: Text = None,
        system: Text = None,
        user: Text = None,
        state: Annotated[str | None, Field(description="the scheduler's word, such as TIMEOUT")] = None,
        limit: Many = 50,
        cursor: Cursor = None,
    ) -> Result:
        """The newest jobs of the scheduler, newest first: time limit, time used, nodes, energy."""

        def ask(client: Client) -> ToolAnswer:
            rows = client.jobs(name, system, user=user, state=state, limit=limit)
            reason = None if rows else "no job that you may see meets these conditions"
            return ToolAnswer({"jobs": rows}, _listed(rows, limit), _field("jobs", "job_id"), "jobs", None, reason)

        return self._ask(ctx, {"tool": "jobs", **locals()}, ask)

    def sql(
        self,
        ctx: Context,
        *,
        query: Annotated[str, Field(description="one SELECT in DuckDB's SQL; the table `columns` lists all columns")],
        parameters: Annotated[list[str | int | float | bool | None] | None, Field(description="of `?`")] = None,
        limit: Annotated[int, Field(ge=1, le=ROWS_MAX)] = 100,
        cursor: Cursor = None,
    ) -> Result:
        """Rows of one SELECT over what you may see: runs, ranks, verdicts, jobs, studies, trials, steps and samples."""

        def ask(client: Client) -> ToolAnswer:
            answer = client.sql(query, parameters or [], limit=limit)
            counts = {"rows": len(answer.rows), "is_complete": answer.is_complete, "read": answer.read}
            reason = None if answer.rows else "no row that you may see meets the statement"
            named = [name.name for name in answer.columns]
            ids = named.index("run_id") if "run_id" in named else None
            evidence = _nothing if ids is None else _column("rows", ids)
            return ToolAnswer(answer, counts, evidence, "rows", None, reason)

        return self._ask(ctx, {"tool": "sql", **locals()}, ask)

    def tune_status(self, ctx: Context, *, study: str, cursor: Cursor = None) -> Result:
        """A study: its space, its trials by state, the best so far, and what its search learns from."""

        def ask(client: Client) -> ToolAnswer:
            status = client.studies.status(study)
            view = StudyStatusView.of_status(status).model_dump(mode="json")
            reason = None if status.best else "no trial has been measured yet"
            return ToolAnswer(view, {"trials": view["trials"]}, _field("front", "trial_id"), "front", None, reason)

        return self._ask(ctx, {"tool": "tune_status", **locals()}, ask)

    def tune_suggest(
        self,
        ctx: Context,
        *,
        study: str,
        owner: Owner,
        count: Annotated[int, Field(ge=1, le=COUNT_MAX)] = 1,
        lease_seconds: Annotated[float, Field(gt=0)] = LEASE_SECONDS,
        job: Text = None,
    ) -> Result:
        """Lease the next configurations of a study to evaluate. Not to be called merely to look."""

        def ask(client: Client) -> ToolAnswer:
            records = client.studies.suggest(study, count, Lease(owner, lease_seconds, job))
            trials = [TrialView.of(record).model_dump(mode="json") for record in records]
            reason = None if trials else "the budget or the space of the study is used up, or it was stopped"
            return ToolAnswer(
                {"trials": trials}, {"trials": len(trials)}, _field("trials", "trial_id"), "trials", None, reason
            )

        return self._ask(ctx, {"tool": "tune_suggest", **locals()}, ask, writes=True)

    def tune_complete(
        self,
        ctx: Context,
        *,
        study: str,
        trial_id: str,
        objective: Annotated[float, Field(description="lower is better: negated where the study maximises")],
        owner: Text = None,
        run_id: Text = None,
    ) -> Result:
        """Report what a trial measured. The same value again changes nothing; another value is refused."""

        def ask(client: Client) -> ToolAnswer:
            record = client.studies.complete(study, trial_id, objective, owner=owner, run_id=run_id)
            return ToolAnswer(TrialView.of(record).model_dump(mode="json"), {}, lambda page: [page["trial_id"]])

        return self._ask(ctx, {"tool": "tune_complete", **locals()}, ask, writes=True)


def _question(
    like: str | None,
    workload: str | None,
    system: str | None,
    world_size: int | None,
    node_count: int | None,
    configuration: Configuration | None,
) -> Callable[[], Question | LikeRun]:
    """Return what makes the question. It raises InvalidInputError naming what is missing."""

    def made() -> Question | LikeRun:
        if like is not None:
            return LikeRun(like, workload, system, configuration or {}, world_size, node_count)
        if workload is None or system is None or world_size is None:
            given = {"workload": workload, "system": system, "world_size": world_size}
            missing = ", ".join(name for name, value in given.items() if value is None)
            raise InvalidInputError(f"{missing}: missing, expected unless `like` names a stored run")
        return Question(workload, system, configuration or {}, world_size, node_count)

    return made


def _shown(of: str, low: float, high: float, unit: str) -> IntervalShown:
    return IntervalShown(of=of, low=low, high=high, unit=unit, level=LEVEL)


def _interval(of: str, interval: Interval | None) -> IntervalShown | None:
    return None if interval is None else _shown(of, interval.low, interval.high, "s")


def _of_quantiles(answer: RunPrediction) -> IntervalShown | None:
    """Return the widest interval between two quantiles that lie around the median alike."""
    first, last = min(answer.quantiles, key=lambda q: q.level), max(answer.quantiles, key=lambda q: q.level)
    shown = _shown(answer.outcome, first.seconds, last.seconds, answer.unit)
    return shown.model_copy(update={"level": round(last.level - first.level, 6)})


def _counts(answer: RunPrediction) -> dict[str, object]:
    measured = {"coverage_90": answer.worth.coverage_90, "measured_on_runs": answer.worth.runs}
    return {"basis": answer.basis, "cohort_runs": answer.cohort_runs, "runs": answer.runs, **measured}


def _doubt(answer: RunPrediction) -> str | None:
    return "; ".join(answer.warnings) or None


def _listed(rows: Sequence[object], limit: int) -> dict[str, object]:
    return {"rows": len(rows), "is_complete": len(rows) < limit}


def _nothing(_: Mapping[str, Any]) -> list[object]:
    return []


def _evidence(page: Mapping[str, Any]) -> list[object]:
    return [run["run_id"] for run in page.get("evidence") or ()]


def _evidence_of_advice(page: Mapping[str, Any]) -> list[object]:
    return _evidence(page.get("answer") or {})


def _ids(*ids: str) -> Callable[[Mapping[str, Any]], Sequence[object]]:
    return lambda _: ids


def _field(rows: str, name: str) -> Callable[[Mapping[str, Any]], Sequence[object]]:
    return lambda page: [row[name] for row in page[rows] if isinstance(row, dict) and name in row]


def _column(rows: str, number: int) -> Callable[[Mapping[str, Any]], Sequence[object]]:
    return lambda page: [row[number] for row in page[rows] if isinstance(row, list) and row[number] is not None]
