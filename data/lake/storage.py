"""Storage of a lake: which files it has, and how they come and go. In a local folder, its listing is the truth."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from crosswind.data.files import sync
from crosswind.data.lake.locks import COMPACTING, alone, make_lock
from crosswind.data.lake.mounts import MOUNTS
from crosswind.data.lake.parts import ALWAYS, DEFINITION, Held, Span, days, held, live_parts, part_names, superseded_in
from crosswind.data.lake.publish import WRITING, Staged, drop, land, publish
from crosswind.data.lake.publish_merged import Merged, landing, publish_merged, why_unlocked
from crosswind.data.lake.removal import remove_abandoned, remove_lone_manifests, remove_replaced
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_file import LakeFile
from crosswind.data.schema.metric import is_name

PATIENCE_SECONDS = 1.0  # for a moment at which nobody reads


@dataclass(frozen=True)
class Published:
    """Files that were published; those in an object store count once a session of the catalog has added `files`."""

    paths: tuple[Path, ...]
    files: tuple[LakeFile, ...] = ()


@dataclass(frozen=True)
class Filed:
    """A part that counts; `noted` is what the catalog says of it, where it says anything."""

    path: Path
    noted: LakeFile | None = None

    @property
    def date(self) -> str:
        """Return the date of its day."""
        return self.path.parent.name.removeprefix("date=") if self.noted is None else self.noted.date

    @property
    def bytes(self) -> int:
        """Return its size. Raises: OSError."""
        return self.path.stat().st_size if self.noted is None else self.noted.bytes

    @property
    def appeared_ns(self) -> int:
        """Return when it was published, ns UTC. Raises: OSError."""
        return self.path.stat().st_mtime_ns if self.noted is None else self.noted.added_ns


@dataclass(frozen=True)
class Day:
    """The parts of a day that count, and those that are there and count no more."""

    live: Sequence[Filed]
    replaced: Sequence[Path] = ()


@dataclass
class Inventory:
    """Problems of the objects that count, and what is stored besides: replaced, or named by nobody.

    An object that nobody names is being written, or its writer was killed.
    """

    problems: list[str] = field(default_factory=list)
    replaced: int = 0
    replaced_bytes: int = 0
    unnamed: int = 0
    unnamed_bytes: int = 0


class Storage(Protocol):
    """Files of a lake below `root`; those that are returned can be opened there, while nobody removes any."""

    @property
    def root(self) -> Path:
        """Return the folder."""
        ...

    @property
    def keeps_summaries(self) -> bool:
        """Return whether summaries of runs' steps are kept beside the sets."""
        ...

    def __hash__(self) -> int: ...

    def sets(self) -> list[str]:
        """Return the names of the sets that hold rows."""
        ...

    def definitions(self, name: str) -> list[Path]:
        """Return the files that define a set, in the order of their names."""
        ...

    def is_defined(self, definition: Path) -> bool:
        """Return whether a definition is stored under this name."""
        ...

    def parts(self, name: str, within: Span = ALWAYS, run_ids: Collection[str] | None = None) -> list[Path]:
        """Return the parts that may hold rows of that time and of one of those runs. Raises: MalformedError."""
        ...

    def listed(self, name: str, within: Span = ALWAYS, *, with_manifests: bool = False) -> list[Filed]:
        """Return the same parts, none of which need be here, unless their manifests shall. Raises: MalformedError."""
        ...

    def fetch(self, files: Iterable[Filed]) -> None:
        """Make sure that parts can be opened. Raises: UnavailableError."""
        ...

    def made_of(self, file: Filed) -> Held:
        """Return what a compacted part was made of. Raises: MalformedError, UnavailableError, OSError."""
        ...

    def dates(self, name: str) -> list[str]:
        """Return the dates of which a set has files, in order."""
        ...

    def dates_to_compact(self, name: str) -> list[str]:
        """Return those of which files may be made fewer."""
        ...

    def day(self, folder: Path) -> Day:
        """Return the parts of a set's day, `set=…/date=…`. Raises: MalformedError, OSError."""
        ...

    def tidy_day(self, folder: Path) -> None:
        """Remove from a day what a compaction that was killed left, within `changing`. Raises: OSError."""
        ...

    def rest(self, folder: Path) -> None:
        """Note that a day needs no compaction until it changes, as it was when it was tidied last."""
        ...

    def bring(self, path: Path) -> None:
        """Make sure that a part of a day can be opened, and what it was made of. Raises: UnavailableError."""
        ...

    def publish(self, staged: Sequence[Staged]) -> Published:
        """Let files be found, once their batch is noted at the latest. Raises: OSError, UnavailableError."""
        ...

    def note(self, published: Published) -> None:
        """Let files be found that no batch is noted for."""
        ...

    def publish_together(self, files: Sequence[Merged]) -> Published:
        """Let files that stand for the parts of several batches be found, as `publish`. Raises: ConflictError."""
        ...

    def replace(self, paths: Sequence[Path], merged: Merged) -> None:
        """Let a file be found in place of those that it was made of, at once. Raises: ConflictError."""
        ...

    def rewrite(self, part: Path, hidden: Path | None) -> None:
        """Let a file be found in place of a part, or nothing. Raises: ConflictError, OSError."""
        ...

    def discard(self, day: Path) -> bool:
        """Return whether the files of a day went, within `changing`: not while they are read. Raises: OSError."""
        ...

    def remove(self, parts: Iterable[str]) -> None:
        """Remove parts that were published by somebody who was killed before noting it. Raises: OSError."""
        ...

    def changing(self, patience_seconds: float = 0.0) -> AbstractContextManager[bool]:
        """Yield whether nobody else compacts or erases within; waits so long for others."""
        ...

    def why_unsafe(self, mounts: Path) -> str | None:
        """Return why two processes could compact at once; None where they cannot."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files that count, below the lake, as a folder would have them."""
        ...

    def opened(self, name: str) -> Path:
        """Return one of the files that were named last, to be opened. Raises: UnavailableError."""
        ...

    def examined(self, path: Path) -> AbstractContextManager[Path]:
        """Yield a part or a definition to be read as it is stored. Raises: MalformedError, UnavailableError."""
        ...

    def inventory(self) -> Inventory | None:
        """Hold what an object store lists against what counts; None for a folder. Raises: UnavailableError."""
        ...

    def check(self) -> None:
        """Check that files can be written and read. Raises: UnavailableError, InvalidInputError."""
        ...

    def make_room(self) -> None:
        """Remove copies beyond what may be kept here, unless somebody reads."""
        ...

    def tidy(self) -> None:
        """Remove what killed writers left here long ago. Raises: OSError."""
        ...

    def sweep(self) -> None:
        """Remove what nobody can need any more, within `changing`. Raises: UnavailableError."""
        ...


@dataclass(frozen=True)
class LocalStorage:
    """A local folder: a file counts from its rename, until it is removed or a compacted one names it."""

    root: Path
    keeps_summaries: bool = True
    _tidied: dict[Path, int] = field(default_factory=dict, compare=False, repr=False)  # when each day was changed last
    _resting: dict[Path, int] = field(default_factory=dict, compare=False, repr=False)

    def sets(self) -> list[str]:
        """Return the names of the sets that hold rows."""
        folders = [folder for folder in self.root.glob("set=*") if next(folder.glob("date=*/part-*.parquet"), None)]
        return sorted(name for folder in folders if is_name(name := folder.name.removeprefix("set=")))

    def definitions(self, name: str) -> list[Path]:
        """Return the files that define a set."""
        folder = self._folder(name)
        try:
            with os.scandir(folder) as entries:
                return sorted(folder / entry.name for entry in entries if DEFINITION.fullmatch(entry.name))
        except FileNotFoundError:
            return []

    def is_defined(self, definition: Path) -> bool:
        """Return whether the file is there."""
        return definition.exists()

    def parts(self, name: str, within: Span = ALWAYS, run_ids: Collection[str] | None = None) -> list[Path]:
        """Return the parts that count and may hold such rows."""
        return live_parts(self._folder(name), within, run_ids)

    def listed(self, name: str, within: Span = ALWAYS, *, with_manifests: bool = False) -> list[Filed]:  # noqa: ARG002
        """Return them."""
        return [Filed(path) for path in live_parts(self._folder(name), within)]

    def fetch(self, files: Iterable[Filed]) -> None:
        """Nothing: they are there."""

    def made_of(self, file: Filed) -> Held:
        """Return its manifest."""
        return held(file.path)

    def dates(self, name: str) -> list[str]:
        """Return the dates of the folders of a set."""
        return [day.name.removeprefix("date=") for day in days(self._folder(name))]

    def dates_to_compact(self, name: str) -> list[str]:
        """Return those but for days that were found to need none, and are as they were."""
        folders = [day for day in days(self._folder(name)) if self._resting.get(day) != _changed_ns(day)]
        return [day.name.removeprefix("date=") for day in folders]

    def day(self, folder: Path) -> Day:
        """Return the parts in the folder of a day."""
        names = part_names(folder)
        replaced = superseded_in(folder, names)
        live = [Filed(folder / name) for name in names if name not in replaced]
        return Day(live, [folder / name for name in sorted(replaced)])

    def tidy_day(self, folder: Path) -> None:
        """Remove manifests of no file."""
        with landing(self.root):
            remove_lone_manifests(folder)
        self._tidied[folder] = _changed_ns(folder)

    def rest(self, folder: Path) -> None:
        """Note it, as its manifests take long to read again."""
        self._resting[folder] = self._tidied[folder]

    def bring(self, path: Path) -> None:
        """Nothing: it is there."""

    def publish(self, staged: Sequence[Staged]) -> Published:
        """Let files be found, each by its rename."""
        try:
            touched = land(staged)
        finally:
            drop(staged)
        for folder in touched:
            sync(folder)
        return Published(tuple(path for _, path in staged if not DEFINITION.fullmatch(path.name)))

    def note(self, published: Published) -> None:
        """Nothing: they are found already."""

    def publish_together(self, files: Sequence[Merged]) -> Published:
        """Let files be found, unless one of their parts stands in another."""
        publish_merged(self.root, files)
        return Published(tuple(file.path for file in files))

    def replace(self, paths: Sequence[Path], merged: Merged) -> None:  # noqa: ARG002 - its manifest has them
        """Let a file be found, which names those that count no more; they are removed when nobody reads."""
        publish_merged(self.root, [merged])

    def rewrite(self, part: Path, hidden: Path | None) -> None:
        """Put a file in place of a part; an empty compacted one stays, as what it replaced would count again."""
        if hidden is None:
            part.unlink(missing_ok=True)
        else:
            publish(hidden, part)

    def discard(self, day: Path) -> bool:
        """Remove them and their manifests at a moment at which nobody reads."""
        return not remove_replaced(self.root, [day / name for name in part_names(day)], PATIENCE_SECONDS)

    def remove(self, parts: Iterable[str]) -> None:
        """Remove the parts' files."""
        for part in parts:
            for path in self.root.glob(f"set=*/date=*/part-{part}.parquet"):
                path.unlink(missing_ok=True)

    @contextmanager
    def changing(self, patience_seconds: float = 0.0) -> Iterator[bool]:
        """Hold the lock of the folder."""
        make_lock(self.root)
        with alone(self.root / COMPACTING, patience_seconds) as is_ours:
            yield is_ours

    def why_unsafe(self, mounts: Path = MOUNTS) -> str | None:
        """Return why locks of this folder need not hold for all who write to it."""
        return why_unlocked(self.root, mounts)

    def names(self) -> list[str]:
        """Return the names of the files below the folder, without drafts and locks."""
        return [path.relative_to(self.root).as_posix() for path in _files_below(self.root)]

    def opened(self, name: str) -> Path:
        """Return its path."""
        return self.root / name

    def examined(self, path: Path) -> AbstractContextManager[Path]:
        """Yield it."""
        return nullcontext(path)

    def inventory(self) -> None:
        """Return None."""
        return

    def check(self) -> None:
        """Write a file."""
        folder = self.root / WRITING
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f".ready.{os.getpid()}"
            path.write_bytes(b"ready")
            with path.open("rb+") as file:
                os.fsync(file.fileno())
            path.unlink()
        except OSError as error:
            raise UnavailableError(f"the lake takes no files: {error.strerror}") from error

    def make_room(self) -> None:
        """Nothing: what is here is the lake."""

    def tidy(self) -> None:
        """Remove drafts that nobody can be at."""
        remove_abandoned(self.root)

    def sweep(self) -> None:
        """Nothing: compaction removes what it replaced when nobody reads."""

    def _folder(self, name: str) -> Path:
        return self.root / f"set={name}"


def _changed_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return -1


def _files_below(root: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != WRITING)
        yield from (Path(place) / name for name in sorted(files) if not name.startswith("."))
