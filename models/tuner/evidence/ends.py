"""The ends of runs, and what they tell of their configuration."""

from crosswind.data.schema.run import Run, RunState

# SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGTERM: a scheduler or a person ended it. Not SIGKILL: that is out of memory, too.
SIGNALS = (1, 2, 10, 12, 15)
STOPPED_CODES = frozenset({128 + signal for signal in SIGNALS} | {-signal for signal in SIGNALS})
STOPPED_STATES = frozenset({"CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED", "DEADLINE", "TIMEOUT"})


def is_cut_short(run: Run, job_state: str = "") -> bool:
    """Return whether it ended early for reasons that its configuration has nothing to do with, or that nobody knows.

    `job_state` is the scheduler's word, such as `PREEMPTED`; empty where nobody knows it. A time limit belongs here: it
    was that of another job. Source: sbatch(1) and sacct(1), JOB STATE CODES; bash(1), EXIT STATUS.
    """
    if run.state is RunState.LOST or job_state in STOPPED_STATES:
        return run.state is not RunState.COMPLETED
    return run.state is RunState.FAILED and run.exit_code in STOPPED_CODES
