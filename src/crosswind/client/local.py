"""Answers from a store of this machine, in this process; models are imported when they are first needed."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from crosswind.client.local_parts import LocalParts
from crosswind.client.protocol import LISTED
from crosswind.client.run_names import run_named
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.part import Part
from crosswind.data.schema.question import (
    HOUR_SECONDS,
    HOURS_MAX,
    RANKED_RUNS,
    REGRESSION_RUNS,
    TRACED_NAMES,
    LikeRun,
    Price,
    Question,
    Scales,
)
from crosswind.data.schema.run import RunState
from crosswind.data.store.jobs import JobFilter

if TYPE_CHECKING:  # 100 ms that a verb does not need
    from collections.abc import Iterator, Mapping, Sequence

    from crosswind.data.schema.answers.advice import BatchShares, ScalingAdvice, WalltimeAdvice
    from crosswind.data.schema.answers.checks import SystemChecks
    from crosswind.data.schema.answers.effects import CounterRanking, Interference
    from crosswind.data.schema.answers.events import Event, EventFilter
    from crosswind.data.schema.answers.explanations import Comparison, Explanation, Waits
    from crosswind.data.schema.answers.jobs import JobReport, ListedJob
    from crosswind.data.schema.answers.nodes import NodeState
    from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
    from crosswind.data.schema.answers.runs import ListedRun, RunOutcome, RunReport
    from crosswind.data.schema.answers.stragglers import PeerRanking, Regressions, RunReplay, RunStragglers
    from crosswind.data.schema.answers.studies import Disturbance
    from crosswind.data.schema.answers.trace_difference import RunsDifference
    from crosswind.data.schema.answers.traces import TracedRun, TraceReport
    from crosswind.data.schema.answers.weather import Remaining, SystemWeather
    from crosswind.models.next_run.model import Batch


class Local(LocalParts):
    """The `Client` of a store."""

    def runs(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        state: RunState | None = None,
        id_end: str | None = None,
        limit: int = LISTED,
    ) -> tuple[ListedRun, ...]:
        """As `Client.runs`."""
        from crosswind.data.store.features import listed

        with self.store.catalog.read() as session:
            newest = session.runs.find(RunFilter(workload, system, state, id_end=id_end), limit=limit)
        return tuple(map(listed, newest))

    def run_outcomes(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        state: RunState | None = None,
        limit: int = LISTED,
    ) -> tuple[RunOutcome, ...]:
        """As `Client.run_outcomes`."""
        from crosswind.data.store.features import outcomes

        with self.store.catalog.read() as session:
            newest = session.runs.find(RunFilter(workload, system, state), limit=limit)
        return outcomes(self.store, newest)

    def run_report(self, run_id: str) -> RunReport:
        """As `Client.run_report`."""
        from crosswind.models.reports.run_report import run_report

        return run_report(self.store, run_id, self.fitted.intensity())

    def jobs(
        self,
        name: str | None = None,
        system: str | None = None,
        *,
        user: str | None = None,
        state: str | None = None,
        limit: int = LISTED,
    ) -> tuple[ListedJob, ...]:
        """As `Client.jobs`."""
        from crosswind.data.store.job_usage import listed_job

        wanted = JobFilter(name, system, user, state)
        return tuple(map(listed_job, self.store.jobs.find(wanted, limit=limit)))

    def job(self, job_id: str, system: str | None = None) -> JobReport:
        """As `Client.job`."""
        from crosswind.models.reports.job_report import job_report

        return job_report(self.store, job_id, system, explain=self.explain_runs, intensity=self.fitted.intensity())

    def nodes(self, since_seconds: int = HOUR_SECONDS, *, limit: int | None = None) -> tuple[NodeState, ...]:
        """As `Client.nodes`."""
        from crosswind.data.store.fleet import EVERY, fleet

        part = Part(limit or EVERY.limit)
        return fleet(self.store, max(0, time.time_ns() - since_seconds * 1_000_000_000), part)

    def predict(
        self, question: Question | LikeRun, outcome: Outcome | None = None, *, limit_seconds: float | None = None
    ) -> RunPrediction:
        """As `Client.predict`."""

        with self.fitted.cut.hints(self.store):
            answer = self.fitted.predictor.answer(self.question_of(question), outcome, limit_seconds=limit_seconds)
        return self.fitted.cut(self.store, answer)

    def predict_many(self, questions: Sequence[Question], outcome: Outcome | None = None) -> Batch:
        """Return quantiles of many runs of one workload on one system. Raises: InvalidInputError."""

        with self.fitted.cut.hints(self.store):
            return self.fitted.predictor.answers(questions, outcome)

    def predicted(
        self, question: Question, outcome: Outcome | None = None, *, limit_seconds: float | None = None
    ) -> RunPrediction | None:
        """Return the answer of `predict` at once, without reading the store; None where it is not cached."""
        return (
            self.fitted.predictor.cached(question, outcome, limit_seconds=limit_seconds)
            if self.store.rule.sees_all
            else None
        )

    def advise_walltime(
        self, question: Question | LikeRun, confidence: float, *, startup_seconds: float | None = None
    ) -> WalltimeAdvice:
        """As `Client.advise_walltime`."""
        from crosswind.models.advice.advise import walltime_advice

        with self.fitted.cut.hints(self.store):
            advice = walltime_advice(
                self.fitted.predictor, self.question_of(question), confidence, startup_seconds=startup_seconds
            )
        return replace(advice, answer=self.fitted.cut(self.store, advice.answer))

    def advise_scaling(self, question: Question | LikeRun, scales: Scales, price: Price) -> ScalingAdvice:
        """As `Client.advise_scaling`."""
        from crosswind.models.advice.advise import scaling_advice

        with self.fitted.cut.hints(self.store):
            advice = scaling_advice(self.fitted.predictor, self.question_of(question), scales, price)
        return replace(advice, answers=tuple(self.fitted.cut(self.store, answer) for answer in advice.answers))

    def remaining(self, run_id: str, *, total_steps: int | None = None) -> Remaining:
        """As `Client.remaining`."""
        from crosswind.models.forecast.running import remaining

        return remaining(self.store, run_id, total_steps=total_steps)

    def batch_shares(self, run_id: str, *, batch: int | None = None, now_batch: int | None = None) -> BatchShares:
        """As `Client.batch_shares`."""
        from crosswind.models.advice.shares_of_run import shares_of_run

        return shares_of_run(self.store, run_id, batch, now_batch=now_batch)

    def explain(self, run_id: str) -> Explanation:
        """As `Client.explain`."""
        from crosswind.models.explain.explain import explain_run

        return self._shared(("explain", run_id), lambda: explain_run(self.store, run_id))

    def waits(self, run_id: str) -> Waits:
        """As `Client.waits`."""
        from crosswind.models.explain.victims import victims_of

        return victims_of(self.store, run_id)

    def compare(self, first: str, second: str) -> Comparison:
        """As `Client.compare`."""
        from crosswind.models.explain.compare import compare_runs

        return self.compute(self.store, compare_runs, first, second)

    def stragglers(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        runs: int = RANKED_RUNS,
        limit: int | None = None,
        switches: Mapping[str, str] | None = None,
    ) -> PeerRanking:
        """As `Client.stragglers`; with the switch of each node, switches are ranked too."""
        from crosswind.models.stragglers.fleet import fleet_ranking

        if switches is None:
            ranking = self.compute(self.store, fleet_ranking, system, workload, runs=runs)
        else:
            ranking = fleet_ranking(self.store, system, workload, runs=runs, switches=switches)
        return replace(ranking, ranked=ranking.ranked[:limit])

    def run_stragglers(self, run_id: str) -> RunStragglers:
        """As `Client.run_stragglers`."""
        from crosswind.models.stragglers.live import stragglers_of_run

        return stragglers_of_run(self.store, run_id)

    def replay(self, run_id: str) -> RunReplay:
        """As `Client.replay`."""
        from crosswind.models.stragglers.replayed_run import replayed_run

        return replayed_run(self.store, run_id)

    def trace(self, run_id: str, *, top: int = TRACED_NAMES) -> TraceReport:
        """As `Client.trace`."""
        from crosswind.client.stored_traces import trace_of_run

        return self._shared(("trace", run_id, top), lambda: trace_of_run(self.store, self.compute, run_id, top))

    def trace_diff(self, first: str, second: str) -> RunsDifference:
        """As `Client.trace_diff`."""
        from crosswind.client.stored_traces import trace_difference

        return trace_difference(self.store, self.compute, first, second)

    def traced_runs(self, *, limit: int | None = LISTED) -> tuple[TracedRun, ...]:
        """As `Client.traced_runs`; None: all."""
        from crosswind.data.store.traced_runs import traced_runs

        return traced_runs(self.store)[:limit]

    def watch(self, run_id: str, every_seconds: float) -> Iterator[RunStragglers]:
        """Yield the stragglers of a run now, and again after so many seconds while it goes on."""
        from crosswind.models.stragglers.live import RunWatch

        watch = RunWatch.of(self.store, run_id)
        while (answer := watch.look()).state == RunState.RUNNING:
            yield answer
            time.sleep(every_seconds)
        yield answer

    def regressions(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        runs: int = REGRESSION_RUNS,
        since_ns: int | None = None,
    ) -> Regressions:
        """As `Client.regressions`."""
        from crosswind.models.stragglers.regressions import regressions

        return self.compute(self.store, regressions, system, workload, runs=runs, since_ns=since_ns)

    def weather(
        self, system: str | None = None, workload: str | None = None, *, hours: int = HOURS_MAX
    ) -> SystemWeather:
        """As `Client.weather`."""
        from crosswind.models.forecast.seen import weather_seen

        return weather_seen(self.store, self.fitted.forecaster, system, workload, hours=hours)

    def counters(
        self, workload: str | None = None, system: str | None = None, *, since_ns: int | None = None
    ) -> CounterRanking:
        """As `Client.counters`."""
        from crosswind.models.counters.counters import counters

        return self.compute(self.store, counters, workload, system, since_ns=since_ns)

    def interference(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        groups: Mapping[str, str] | None = None,
        since_ns: int | None = None,
    ) -> Interference:
        """As `Client.interference`; with the group of each node, neighbours in the same group count too."""
        from crosswind.models.interference.interference import interference

        if groups is None:
            return self.compute(self.store, interference, workload, system, since_ns=since_ns)
        return interference(self.store, workload, system, groups=groups, since_ns=since_ns)

    def checks(self, system: str) -> SystemChecks:
        """As `Client.checks`."""
        from crosswind.data.schema.answers.checks import SystemChecks
        from crosswind.models.preflight.history import earlier_checks

        return SystemChecks(system, earlier_checks(self.store.lake, system))

    def disturbance(self, study: str, run_id: str) -> Disturbance:
        """As `Client.disturbance`."""
        from crosswind.models.tuner.evidence.disturbed import disturbance_in

        return disturbance_in(self.store, self.studies.status(study).study, self.studies.trials(study), run_id)

    def events(
        self, wanted: EventFilter | None = None, *, after: int | None = None, follow: bool = True
    ) -> Iterator[Event]:
        """As `Client.events`."""
        from crosswind.client.events import events_of_store
        from crosswind.data.schema.answers.events import ANY_EVENT

        return events_of_store(self.store, wanted or ANY_EVENT, after, follow=follow)

    def question_of(self, question: Question | LikeRun) -> Question:
        """Return the question, with what it has from a stored run. Raises: NotFoundError, InvalidInputError."""
        if isinstance(question, Question):
            return question
        from crosswind.data.store.run_facts import facts_of_runs

        run_id = run_named(self, question.like).run_id
        with self.store.catalog.read() as session:
            run = session.runs.get(run_id)
        [facts] = facts_of_runs(self.store, [run])
        return question.question(replace(run, facts=facts))
