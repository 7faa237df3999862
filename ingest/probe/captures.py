"""Captures of this rank: the plan is read beside the training, and obeyed at the borders of its steps.

Outside of captured steps the loop compares a number, no more. Nothing here raises: a capture that fails is refused with
its reason, and after an error of PyTorch's there are no more.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from crosswind.data.schema.errors import ProjectError, UnavailableError
from crosswind.ingest.capture.files import draft_of, name_of, pack, refuse, require_room
from crosswind.ingest.capture.plan import FILE, FOLDER, Plan
from crosswind.ingest.probe.torch_calls.profiler import StepProfiler

NEVER = 2**63
logger = logging.getLogger("crosswind")


class Captures:
    """Of one rank of one run; `look` is for the writer's thread, the others for the loop's."""

    def __init__(self, folder: Path, run_id: str, rank: int, part: str = "") -> None:
        self.due = NEVER  # the next step at whose beginning there is something to do
        self._folder, self._run_id, self._rank, self._part = folder, run_id, rank, part
        self._profiler = StepProfiler()
        self._lock = threading.Lock()
        self._seen = 0  # the time of the plan that was read last
        self._plan: Plan | None = None
        self._begun: int | None = None  # the first captured step
        self._step = 0
        self._drafts: list[tuple[Path, str, int]] = []  # with name and limit
        self._is_over = False

    @classmethod
    def given(cls, run_id: str, rank: int, environment: Mapping[str, str] = os.environ) -> Self | None:
        """Return those that `crosswind run --trace` asks for; None without it."""
        folder, base = environment.get(FOLDER), environment.get("CROSSWIND_RUN_ID", "")
        if not folder:
            return None
        return cls(Path(folder), run_id, rank, run_id.removeprefix(base).removeprefix("-"))

    def look(self) -> None:
        """Read a new plan, and pack what was captured."""
        if self._is_over:
            return
        self._profiler.watch_others()
        self._pack()
        try:
            time_ns = (self._folder / FILE).stat().st_mtime_ns
            if time_ns != self._seen:
                self._seen = time_ns
                self._take(Plan.read(self._folder))
        except (OSError, ProjectError):  # there is none yet, or the folder is gone
            return

    def _take(self, plan: Plan) -> None:
        if self._rank in plan.ranks and plan.run_id == self._run_id:
            with self._lock:
                if self._begun is None:
                    self._plan, self.due = plan, plan.first

    def at_border(self, step: int) -> None:
        """Begin, mark or end a capture before a step; call it once `step` has reached `due`."""
        plan = self._plan
        if plan is None:
            return
        self._step = step
        if self._begun is None:
            self._begin(plan, step)
        elif step > plan.last:
            self.end()
        else:
            self._guarded(plan, lambda: self._profiler.mark(step))

    def _begin(self, plan: Plan, step: int) -> None:
        if step > plan.last:
            self._refuse(plan, "these steps were over when the plan arrived")
        else:
            self._begun = step
            self._guarded(plan, lambda: self._start(plan, step))

    def _start(self, plan: Plan, step: int) -> None:
        require_room(self._folder, plan.size_bytes)
        self._profiler.begin()
        self._profiler.mark(step)

    def end(self) -> None:
        """End a capture that is in progress: the steps before the present one are kept."""
        plan, begun = self._plan, self._begun
        if plan is None or begun is None:
            return
        if begun < self._step:
            name = self._name(plan, self._step - 1)
            draft = draft_of(self._folder, name)
            if self._guarded(plan, lambda: self._profiler.end(draft)):
                self._drafts.append((draft, name, plan.size_bytes))
                self._rest()
        else:
            self._refuse(plan, "no captured step came to its end")

    def close(self) -> None:
        """End everything, and pack what was captured."""
        self.end()
        self._pack()
        self._is_over = True
        self._profiler.close()

    def _pack(self) -> None:
        while self._drafts:
            draft, name, limit = self._drafts.pop()
            try:
                pack(draft, limit)
            except (OSError, ProjectError) as error:
                refuse(self._folder, name, str(error))

    def _guarded(self, plan: Plan, action: Callable[[], None]) -> bool:
        """Return whether the action succeeded; if not, the capture is refused."""
        try:
            action()
        except UnavailableError as error:
            self._refuse(plan, str(error))
        except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's training
            self._is_over = True
            logger.warning("crosswind captures no more traces of this rank: %s: %s", type(error).__name__, error)
            self._refuse(plan, f"{type(error).__name__}: {error}")
        else:
            return True
        return False

    def _refuse(self, plan: Plan, reason: str) -> None:
        self._profiler.stop()
        refuse(self._folder, self._name(plan, plan.last), reason)
        self._rest()

    def _name(self, plan: Plan, last: int) -> str:
        return name_of(self._part, self._rank, plan.first, last)

    def _rest(self) -> None:
        with self._lock:
            self._plan, self._begun, self.due = None, None, NEVER
