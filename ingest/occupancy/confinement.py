"""The job of a process by the control group that Slurm confines it to.

Everybody may read it for every process, and no user can forge it, so it overrides the environment's variables. The
number of the task in its path is left alone: sources differ on whether it counts within the node or the step.

Source: https://slurm.schedmd.com/cgroup_v2.html; proc_pid_cgroup(5).
"""

import re
from dataclasses import dataclass

MAX_BYTES = 4096
# From the root on, since everybody may name groups below his own as he likes. A name holds no line's end.
# v2, with the node's name in front where several slurmd share a host; and v1, once a controller.
STEP = rb"/job_(\d{1,10})(?:/step_([\w+-]{1,60}))?(?=[/\n]|\Z)"
SCOPE = re.compile(rb"(?m)^0::/system\.slice/(?:([\w.-]{1,200})_)?slurmstepd\.scope" + STEP)
LEGACY = re.compile(rb"(?m)^\d+:[^:\n]+:/slurm[^/\n]*/uid_\d{1,10}()" + STEP)


@dataclass(frozen=True, slots=True)
class Confinement:
    """The job and step of a control group; `node` if its path names one."""

    job_id: str
    step_id: str | None = None
    node: str | None = None


def confinement_of(groups: bytes) -> Confinement | None:
    """Return the job in the content of /proc/<pid>/cgroup, or None outside of any."""
    match = SCOPE.search(groups) or LEGACY.search(groups)
    if match is None:
        return None
    node, job_id, step_id = (part.decode("ascii", "replace") if part else None for part in match.groups())
    return Confinement(job_id or "", step_id, node)
