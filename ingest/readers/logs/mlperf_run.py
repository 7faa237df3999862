"""A run put together from MLPerf's events."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from crosswind.data.devices.sheets import device_named
from crosswind.data.schema import facts as run_facts
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Parameter
from crosswind.data.store.progress_rate import PROGRESS_TAG, UNIT_TAG
from crosswind.ingest.readers.logs.mlperf_events import JOB, SYSTEM, Event, number
from crosswind.ingest.readers.logs.mlperf_facts import described_facts

PARAMETERS_MAX = 500  # of one run; no benchmark has a fifth of it
TEXT_MAX = 1000  # characters of a parameter
TAGS = {
    "submission_org": "submitter",
    "submission_division": "division",
    "submission_platform": "platform",
    "submission_status": "submission_status",
    "seed": "seed",
    "instance_id": "instance",
    "run_set_random_seed": "seed",  # v0.5
}
SIZES = ("number_of_ranks", "number_of_nodes", "accelerators_per_node")
FACTS = frozenset((*TAGS, *SIZES, "submission_benchmark", SYSTEM, JOB))
OF_V05 = {"True": "success", "False": "aborted"}
STATES = {"success": RunState.COMPLETED, "aborted": RunState.FAILED}


@dataclass
class Facts:
    """Facts of a run from before it begins, and of the next one in the same log unless that has its own."""

    benchmark: str = ""
    configuration: dict[str, Parameter] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    described: dict[str, int] = field(default_factory=dict)  # sizes of the whole system: the log's own override them
    software: dict[str, str] = field(default_factory=dict)
    system: run_facts.Facts = field(default_factory=run_facts.Facts)
    job_id: str | None = None
    nodes: tuple[str, ...] = ()

    def copy(self) -> "Facts":
        """Return a copy."""
        return replace(
            self,
            configuration=dict(self.configuration),
            tags=dict(self.tags),
            sizes=dict(self.sizes),
            described=dict(self.described),
            software=dict(self.software),
        )

    def takes(self, event: Event) -> bool:
        """Take a fact of the run and the system. Return False for any other event. Raises: MalformedError."""
        key, value = event.key, event.value
        if key not in FACTS:
            return False
        if key == "submission_benchmark" and isinstance(value, str):
            self.benchmark = value[:100]
        elif key in TAGS and isinstance(value, int | float | str):
            self.tags[TAGS[key]] = str(value)[:TEXT_MAX]
        elif key in SIZES:
            self.size(key, value)
        elif key == SYSTEM:
            self.describe(event.metadata)
        elif key == JOB:
            self.job(event.metadata)
        return True

    def parameter(self, key: str, value: object) -> None:
        """Take a hyperparameter; null means nothing. Raises: MalformedError."""
        scalar = _scalar(value)
        if scalar is None:
            return
        if len(self.configuration) == PARAMETERS_MAX and key not in self.configuration:
            raise MalformedError(f"more than {PARAMETERS_MAX} parameters")
        self.configuration[key] = scalar

    def size(self, key: str, value: object) -> None:
        """Take a size of the run. Raises: MalformedError."""
        count = _count(value)
        if count is None:
            raise MalformedError(f"{key} {str(value)[:50]!r} is no count")
        self.sizes[key] = count

    def describe(self, system: Mapping[str, object]) -> None:
        """Take the description of the system in submissions."""
        counts = {key: _count(system.get(key)) for key in SIZES}
        self.described |= {key: count for key, count in counts.items() if count is not None}
        if isinstance(framework := system.get("framework"), str) and framework:
            self.software["framework"] = framework[:TEXT_MAX]
        self.system = described_facts(system)

    def job(self, job: Mapping[str, object]) -> None:
        """Take the Slurm job, and its nodes."""
        self.job_id, nodes = str(job["job_id"]), job["nodes"]
        self.nodes = nodes if isinstance(nodes, tuple) else ()
        self.described["number_of_nodes"] = len(self.nodes)

    def world_size(self) -> int | None:
        """Return the number of processes that compute: the ranks, else the accelerators; None without any."""
        if ranks := self.sizes.get("number_of_ranks"):
            return ranks
        return self._accelerators()

    def of_run(self) -> run_facts.Facts:
        """Return the facts of the system and its software; the log's own sizes override the description's."""
        sizes, count = self.described | self.sizes, run_facts.count_fact
        per_node = count(sizes.get("accelerators_per_node"), least=0)
        counted = run_facts.Facts(
            accelerators=None if per_node == 0 else count(self.sizes.get("number_of_ranks") or self._accelerators()),
            accelerators_per_node=per_node,
            node_count=count(sizes.get("number_of_nodes")),
        ).over(self.system)
        platform = run_facts.text_fact(self.tags.get("platform"))
        is_named = counted.accelerator is None and per_node != 0 and platform and device_named(platform)
        return replace(counted, accelerator=platform) if is_named else counted

    def _accelerators(self) -> int | None:
        sizes = self.described | self.sizes
        return sizes.get("number_of_nodes", 0) * sizes.get("accelerators_per_node", 0) or None


@dataclass
class Draft:
    """A run whose log is being read."""

    facts: Facts
    instance: str
    run_id: str = ""  # once it started
    first_ns: int | None = None
    init_ns: int | None = None
    init_seconds: float | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    status: str = ""
    is_training: bool = False
    open: dict[tuple[str, int], int] = field(default_factory=dict)  # intervals of ranks that have not ended
    evaluations: int = 0
    progress: tuple[str, float] | None = None  # at the last evaluation
    has_moved: bool = False

    def is_over(self, event: Event) -> bool:
        """Return whether an event at a run's beginning is of the next one: this one stopped, or died and restarted."""
        if event.time_ns is None:
            return False
        if self.ended_ns is not None:
            return event.time_ns >= self.ended_ns
        return self.is_training and event.key == "init_start"

    def initialised(self, time_ns: int) -> None:
        """Note the end of the work before the run's time: compiling, loading the model."""
        if self.init_ns is not None and self.init_ns <= time_ns:
            self.init_seconds = (time_ns - self.init_ns) / 1e9

    def start(self, system: str, time_ns: int) -> None:
        """Note the beginning, which with the facts before it makes the run's identity."""
        facts, self.started_ns = self.facts, time_ns
        tags = [facts.tags.get(tag, "") for tag in ("submitter", "platform", "seed", "instance")]
        of = (facts.benchmark, *tags, self.instance, facts.job_id)
        self.run_id = imported_id("mllog", system, *of, self.first_ns, time_ns)

    def stop(self, event: Event, time_ns: int) -> None:
        """Note the end. Raises: MalformedError when it is before the beginning."""
        if time_ns < (self.started_ns or 0):
            raise MalformedError("run_stop is before run_start")
        self.ended_ns = time_ns
        status = event.metadata.get("status", OF_V05.get(str(event.metadata.get("success")), ""))
        self.status = str(status)[:TEXT_MAX]

    def evaluated(self, position: tuple[str, float] | None) -> None:
        """Note how far the training was at an evaluation."""
        self.evaluations += 1
        if position is None:
            return
        self.has_moved |= self.progress is not None and position != self.progress
        self.progress = position

    def progress_reached(self) -> tuple[str, float] | None:
        """Return how far the run came; None if several evaluations name the same place, which then means nothing."""
        return self.progress if self.has_moved or self.evaluations == 1 else None

    def run(self, system: str, workload: str) -> Run:
        """Return the run as far as the log has it; one without an end, or with an unclear one, is `lost`."""
        facts, tags = self.facts, dict(self.facts.tags)
        tags |= {"instance": self.instance} if self.instance else {}
        tags |= {"status": self.status} if self.status else {}
        tags |= {} if self.init_seconds is None else {"init_seconds": f"{self.init_seconds:.9g}"}
        if progress := self.progress_reached():
            tags |= {UNIT_TAG: progress[0], PROGRESS_TAG: f"{progress[1]:.17g}"}
        return Run(
            run_id=self.run_id,
            workload=facts.benchmark or workload,
            system=system,
            state=STATES.get(self.status, RunState.LOST),
            world_size=facts.world_size(),
            configuration=dict(facts.configuration),
            job_id=facts.job_id,
            nodes=facts.nodes,
            started_ns=self.started_ns,
            ended_ns=self.ended_ns,
            software=dict(facts.software),
            tags=tags,
            facts=facts.of_run(),
        )


def _scalar(value: object) -> Parameter | None:
    """Return a parameter's value; lists and objects become their JSON text. Raises: MalformedError."""
    if isinstance(value, float) and number(value) is None:
        return None
    parameter = json.dumps(value, separators=(",", ":")) if isinstance(value, list | dict) else value
    if isinstance(parameter, str) and len(parameter) > TEXT_MAX:
        raise MalformedError(f"a parameter of {len(parameter)} characters; expected at most {TEXT_MAX}")
    return parameter if isinstance(parameter, int | float | str) else None


def _count(value: object) -> int | None:
    """Return a count, which system descriptions write as text."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
