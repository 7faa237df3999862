"""Remarks on oddities of jobs in Slurm's accounting, counted over their rows."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.slurm.sacct_repeats import Remembered


@dataclass
class Remarks:
    """Counts of a file's oddities."""

    clock: Clock
    repeats: int = 0
    backwards: int = 0
    differing: int = 0
    by_steps: int = 0
    remembered: Remembered = field(default_factory=Remembered)

    def look_at(self, table: pa.Table) -> None:
        """Take jobs; `nodes_named` are the numbers of nodes in their lists, 0 without a list."""
        self.repeats += self.remembered.repeats_among(table["job_id"])
        self.backwards += pc.sum(pc.less(table["ended_ns"], table["started_ns"])).as_py() or 0
        has_list, differs = pc.greater(table["nodes_named"], 0), pc.not_equal(table["nodes_named"], table["node_count"])
        self.differing += pc.sum(pc.and_(has_list, differs)).as_py() or 0
        self.by_steps += pc.sum(pc.not_equal(table["energy_from"], "")).as_py() or 0

    def notes(self, *, further_headers: int, steps: int) -> list[str]:
        """Return the remarks, for the report."""
        remarks = {
            "further header lines: several exports in one file": further_headers,
            "job steps folded into their jobs": steps,
            "jobs are repeated (requeued or resized): the later line counts": self.repeats,
            "jobs end before they start": self.backwards,
            "jobs whose NodeList and NNodes differ": self.differing,
            "jobs with the energy of their job steps": self.by_steps,
        }
        return [f"{count} {text}" for text, count in remarks.items() if count] + self.clock.notes()
