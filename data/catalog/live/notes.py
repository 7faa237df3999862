"""Notes of what a transaction stores, which become events at its end."""

import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, insert

from crosswind.data.catalog import rows
from crosswind.data.catalog.live.tables import events
from crosswind.data.schema.answers.events import Detail, EventKind
from crosswind.data.schema.landing import Landing
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.schema.trial import ENDED, Study, TrialRecord, TrialState

NEWS_NS = 86_400 * 1_000_000_000  # what happened longer ago is no news: an import of old runs announces nothing
PROGRESS_SECONDS = 5.0  # between two events of one run's progress
PACED_MAX = 10_000  # runs of which the last progress is remembered
ORDER = {kind: place for place, kind in enumerate(EventKind)}  # within a transaction: a start before an end
STORE = insert(events)  # built once: that takes longer than to execute it
TOKEN_ENDED = "token.ended"  # noqa: S105 - a kind that no reader gets: streams that the token opened end
JUDGED = ("verdict", "cause", "measured_seconds", "expected_seconds")
EXCESS = ("excess_seconds", "excess_low_seconds", "excess_high_seconds")


class Pace:
    """Says when the progress of a run is worth an event again; for all sessions of a process."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, float] = OrderedDict()

    def is_due(self, run_id: str) -> bool:
        """Return whether the run's last progress is long enough ago; then it counts as announced now."""
        now = time.monotonic()
        if now - self._last.get(run_id, -PROGRESS_SECONDS) < PROGRESS_SECONDS:
            return False
        self._last[run_id] = now
        self._last.move_to_end(run_id)
        if len(self._last) > PACED_MAX:
            self._last.popitem(last=False)
        return True


class Notes:
    """Notes of one transaction that others may wait for; nothing is written before its end."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._rows: list[dict[str, Any]] = []

    def run(self, stored: Run | None, merged: Run) -> None:
        """Note that a run came, or ended."""
        if stored is None and is_news(merged.started_ns):
            of_run: dict[str, Detail] = {"world_size": merged.world_size, "job_id": merged.job_id}
            self._add(EventKind.RUN_STARTED, of_run, run_id=merged.run_id)
        was = RunState.RUNNING if stored is None else stored.state
        if merged.state is not was and merged.state is not RunState.RUNNING and is_news(merged.ended_ns):
            how: dict[str, Detail] = {"state": merged.state, "exit_code": merged.exit_code, "seconds": merged.seconds}
            self._add(EventKind.RUN_ENDED, how, run_id=merged.run_id)

    def lost(self, run_id: str) -> None:
        """Note that a run will not say how it ended."""
        self._add(EventKind.RUN_ENDED, {"state": RunState.LOST, "exit_code": None, "seconds": None}, run_id=run_id)

    def landed(self, landings: Iterable[Landing]) -> None:
        """Note how far runs are, and checks."""
        for landing in landings:
            if not is_news(landing.last_ns):
                continue
            for run_id, step in landing.steps.items():
                if self._pace.is_due(run_id):
                    self._add(EventKind.RUN_PROGRESS, {"step": step}, run_id=run_id)
            for check_id in landing.checks:
                self._add(EventKind.CHECK_MEASURED, {"check_id": check_id}, system=landing.system)

    def gap(self, origin: str, refused_frames: int) -> None:
        """Note that parts of a batch could not be stored, if some could not."""
        if refused_frames:
            self._add(EventKind.DATA_GAP, {"origin": origin, "refused_frames": refused_frames})

    def verdict(self, before: tuple[object, object], verdict: RunVerdict, last_ns: int) -> None:
        """Note a verdict that is another one than before; `last_ns` is the run's last moment."""
        if before != (verdict.verdict, verdict.cause) and is_news(last_ns):
            judged: dict[str, Detail] = {name: getattr(verdict, name) for name in (*JUDGED, *EXCESS)}
            self._add(EventKind.RUN_VERDICT, judged, run_id=verdict.run_id)

    def study(self, study: Study) -> None:
        """Note a new study."""
        self._add(EventKind.STUDY_CREATED, {"name": study.name}, study_id=study.study_id)

    def study_state(self, study: Study) -> None:
        """Note that a study was paused or stopped, or goes on."""
        self._add(EventKind.STUDY_STATE, {"name": study.name, "state": study.state}, study_id=study.study_id)

    def trial(self, before: TrialState | None, record: TrialRecord) -> None:
        """Note that a trial began or ended."""
        state = record.trial.state
        if state is before or state not in (TrialState.LEASED, *ENDED):
            return
        is_ended = state in ENDED
        how: dict[str, Detail] = {"state": state, "objective": record.trial.objective} if is_ended else {}
        kind = EventKind.TRIAL_ENDED if is_ended else EventKind.TRIAL_STARTED
        self._add(kind, how, study_id=record.study_id, trial_id=record.trial_id)

    def tokens_ended(self, token_ids: Iterable[str]) -> None:
        """Note that tokens were revoked, for those who stream with them."""
        for token_id in token_ids:
            self._add(TOKEN_ENDED, {"token_id": token_id})

    def store(self, connection: Connection) -> None:
        """Write the events, as the last act of a transaction.

        PostgreSQL gives out ids before it commits: one transaction after the other does, so that nobody who reads in
        the order of ids passes one over that becomes visible later.
        """
        if not self._rows:
            return
        rows.hold(connection, "events")
        now_ns = time.time_ns()
        self._rows.sort(key=lambda row: ORDER.get(row["kind"], 0))
        connection.execute(STORE, [{**row, "at_ns": now_ns} for row in self._rows])

    def _add(  # noqa: PLR0913 - the columns of a row
        self,
        kind: str,
        details: dict[str, Detail],
        *,
        run_id: str | None = None,
        study_id: str | None = None,
        trial_id: str | None = None,
        system: str | None = None,
    ) -> None:
        subject = {"run_id": run_id, "study_id": study_id, "trial_id": trial_id, "system": system}
        self._rows.append({"kind": str(kind), **subject, "details": details})


def is_news(moment_ns: int | None) -> bool:
    """Return whether a moment, ns UTC, is less than a day ago, or unknown."""
    return moment_ns is None or time.time_ns() - moment_ns < NEWS_NS
