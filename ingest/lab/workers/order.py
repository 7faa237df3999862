"""Orders to a warm worker, and its replies, as lines of JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

STEPS_A_CHECKPOINT = 20


@dataclass(frozen=True)
class Order:
    """One rank of one training run: train this workload for so many steps, with rank 0 at `address`."""

    run_id: str
    workload: str
    rank: int
    world_size: int
    local_rank: int
    address: str
    port: int
    cores: tuple[int, ...]
    steps: int
    batch: int
    bucket_mb: float
    threads: int
    seed: int
    link: str
    marks: tuple[int, ...] = ()  # steps, from 0, whose beginning rank 0 reports
    is_recorded: bool = True

    def configuration(self) -> dict[str, int | float | str]:
        """Return the tunable parameters, and the kind of link, as the run's configuration."""
        return {"batch": self.batch, "bucket_mb": self.bucket_mb, "threads": self.threads, "link": self.link}

    def environment(self) -> dict[str, str]:
        """Return the variables that a launcher would set for this rank."""
        return {
            "CROSSWIND_RUN_ID": self.run_id,
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }

    def line(self) -> bytes:
        """Return the order as a line for a worker."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: str) -> Self:
        """Return the order that `line` wrote."""
        value = json.loads(line)
        return cls(**{**value, "cores": tuple(value["cores"]), "marks": tuple(value["marks"])})


READY, BEGUN, MARK, ENDED = "ready", "begun", "mark", "ended"


def reply(event: str, **facts: object) -> bytes:
    """Return a worker's reply as a line."""
    return json.dumps({"event": event, **facts}).encode() + b"\n"


def read_reply(line: bytes) -> Mapping[str, object]:
    """Return the reply that `reply` wrote."""
    value: Mapping[str, object] = json.loads(line)
    return value
