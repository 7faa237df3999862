"""Systems: what is stored of each."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about, fill_texts, text_of


@dataclass(frozen=True)
class ListedSystem:
    """One cluster as far as runs and jobs of it are stored."""

    system: str
    runs: int
    node_count: int = field(metadata=about("of the newest 2,000 runs and jobs"))
    workloads: tuple[str, ...] = field(metadata=about("those of most runs first"))
    accelerators: tuple[str, ...] = field(metadata=about("of the newest 200 runs; empty where none is known"))
    from_ns: int | None = field(metadata=about("when the first stored run or job began"))
    to_ns: int | None = field(metadata=about("when the last one ended, or began"))
    from_at: str | None = field(default=None, metadata=text_of("from_ns"))
    to_at: str | None = field(default=None, metadata=text_of("to_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class SystemWorkload:
    """A workload's runs on a system."""

    workload: str
    runs: int
    from_ns: int | None
    to_ns: int | None
    from_at: str | None = field(default=None, metadata=text_of("from_ns"))
    to_at: str | None = field(default=None, metadata=text_of("to_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class SystemReport:
    """One system with its workloads, those of most runs first, and its nodes by name."""

    system: ListedSystem
    workloads: tuple[SystemWorkload, ...]
    nodes: tuple[str, ...]
