"""The planner of a run's captures: a thread of its wrapper that reads steps, chooses, and writes plans for ranks."""

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.files import make_private
from crosswind.ingest.capture.chooser import Choice, Chooser, Reason, Role
from crosswind.ingest.capture.files import PACKED, REFUSED
from crosswind.ingest.capture.following import Follower
from crosswind.ingest.capture.plan import Plan, folder_of
from crosswind.ingest.capture.steps import RankStep
from crosswind.ingest.capture.stored import Why
from crosswind.ingest.capture.wanted import Wanted

LOOK_SECONDS = 1.0
LEAD_SECONDS = 3.0  # until each rank has seen a plan: its last rows' age, our look, and its own
LEAST_LEAD = 2  # steps
LATE_SECONDS = 120.0  # after which a capture whose ranks say nothing is given up
LEAST_BYTES = 100_000  # of one file: with less left there are no more captures
logger = logging.getLogger("crosswind")


@dataclass
class Planner:
    """Plans the captures of one run, one after the other, within the budget."""

    spool: Path
    run_id: str
    wanted: Wanted
    why: Why = field(default_factory=dict)  # of each rank and first step that was planned
    _captures: int = 0
    _running: Plan | None = None
    _since: float = 0.0
    _next: float = 0.0
    _left_out: set[int] = field(default_factory=set)
    _of_run: str = ""
    _chooser: Chooser = field(default_factory=Chooser)

    def __post_init__(self) -> None:
        """Make the folder, and write a plan made by hand. Raises: OSError."""
        self.folder = folder_of(self.spool, self.run_id)
        make_private(self.folder)
        self._follower = Follower(self.spool, self.run_id)
        if self.wanted.ranks:
            roles = dict.fromkeys(self.wanted.ranks, Role.ASKED)
            self._begin(Choice(Reason.ASKED, roles, 0), self.run_id, self.wanted.first, self.wanted.last)

    def look(self, now: float) -> None:
        """Take the steps recorded since the last look at monotonic time `now`, and plan a capture if one is due."""
        if self.wanted.ranks:
            return
        choice = self._choice()
        if self._running and (self._is_over(self._running) or now > self._since + LATE_SECONDS):
            self._running, self._next = None, now + self.wanted.budget.pause_seconds
        if choice and not self._running and now >= self._next and self._has_budget():
            self._since = now
            self._plan(choice)

    def _choice(self) -> Choice | None:
        rows: list[RankStep] = []  # of all ranks, before any step is judged
        for run_id, row in self._follower.news():
            if run_id != self._of_run:  # the first steps, or those of a restart
                self._of_run, self._chooser, rows = run_id, Chooser(self.wanted.budget.ranks), []
            rows.append(row)
        return self._chooser.observe(rows, left_out=self._left_out)

    def _plan(self, choice: Choice) -> None:
        first = choice.newest + LEAST_LEAD + math.ceil(LEAD_SECONDS / max(self._chooser.lags.usual, 1e-4))
        try:
            self._begin(choice, self._of_run, first, first + self.wanted.budget.steps - 1)
        except OSError as error:
            logger.warning("no capture is planned: %s", error)
        else:
            self._chooser.taken(choice)

    def _begin(self, choice: Choice, run_id: str, first: int, last: int) -> None:
        ranks = tuple(choice.ranks)
        plan = Plan(run_id, ranks, first, last, self._bytes_left() // len(ranks))
        plan.write(self.folder)
        self._running, self._captures = plan, self._captures + 1
        self._left_out |= set(range(first, last + 2))  # the trace is written in the step after the last
        self.why |= {(rank, first): (str(role), str(choice.reason)) for rank, role in choice.ranks.items()}

    def _is_over(self, plan: Plan) -> bool:
        ended = sum(1 for path in self.folder.glob(f"*.step{plan.first}-*") if path.name.endswith((PACKED, REFUSED)))
        return ended >= len(plan.ranks) and self._chooser.table.newest > plan.last

    def _has_budget(self) -> bool:
        share = self._bytes_left() // self.wanted.budget.ranks
        return self._captures < self.wanted.budget.captures and share >= min(LEAST_BYTES, self.wanted.budget.size_bytes)

    def _bytes_left(self) -> int:
        used = 0
        for path in self.folder.glob(f"*{PACKED}"):
            with suppress(OSError):
                used += path.stat().st_size
        return max(1, self.wanted.budget.size_bytes - used)

    def close(self) -> None:
        """Let go of the spool's files."""
        self._follower.close()


@contextmanager
def planning(spool: Path, run_id: str, wanted: Wanted | None) -> Iterator[Planner | None]:
    """Plan captures in a thread as long as the block lasts; without a folder for them there are none."""
    if wanted is None:
        yield None
        return
    try:
        planner = Planner(spool, run_id, wanted)
    except OSError as error:
        logger.warning("no traces of this run: %s", error)
        yield None
        return
    stop = threading.Event()
    thread = threading.Thread(target=_plan_until, args=(planner, stop), name="crosswind-captures", daemon=True)
    thread.start()
    try:
        yield planner
    finally:
        stop.set()
        thread.join()
        planner.close()


def _plan_until(planner: Planner, stop: threading.Event) -> None:
    try:
        while not stop.wait(LOOK_SECONDS):
            planner.look(time.monotonic())
    except Exception as error:  # noqa: BLE001 - nothing else would catch it in this thread
        logger.warning("no further captures of this run: %s: %s", type(error).__name__, error)
