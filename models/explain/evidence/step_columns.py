"""Columns that every run records of its segments by itself: phases, and times and counts of its threads."""

from collections.abc import Mapping

LOCAL_PHASES = ("input", "compute", "checkpoint", "other")
MARKED = ("checkpoint", "other")
FABRIC, COMMUNICATION = "fabric", "comm"  # when all ranks are there; the phase of which it is the part
PHASES = (*LOCAL_PHASES, FABRIC)
# Of the loop's thread, with the columns of the step set.
THREAD: Mapping[str, str] = {
    "run_queue_wait": "run_queue_wait_seconds",
    "cpu_user": "cpu_user_seconds",
    "cpu_system": "cpu_system_seconds",
    "minor_faults": "minor_faults",
    "major_faults": "major_faults",
}
OTHER_THREADS = "comm_thread_wait"  # run-queue wait of a rank's other threads, which samples of its process give
