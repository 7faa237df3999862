"""Job files, by which the scheduler's prolog and epilog announce the jobs on this node."""

import json
import logging
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.ingest.kernel.fd_limits import is_exhausted
from crosswind.ingest.occupancy.environment import GPU, IDENTIFIER, MAX_GPUS, NAME

LOG = logging.getLogger("crosswind.agent")
MAX_FILE_BYTES = 16 * 1024
MAX_FILES = 4096
MAX_NS = 2**63 - 1
LIMITS = {"uid": 2**32 - 2, "cpus": 2**31 - 1, "restart_count": 2**31 - 1, "started_ns": MAX_NS, "ended_ns": MAX_NS}
TEXTS = {"job_id": IDENTIFIER, "node": NAME, "system": NAME}
NODELIST = "nodelist"  # a field of allocations, but a node reports only itself


@dataclass(frozen=True)
class JobFile:
    """The content of one file, and its path."""

    path: Path
    allocation: Allocation
    stamp: tuple[int, ...]

    def remove(self) -> None:
        """Remove the file if this user may, unless another has taken its place: that of a requeued job."""
        with suppress(OSError):  # root's; its epilog clears old ones away
            if _stamp_of(self.path.lstat()) == self.stamp:
                self.path.unlink()


@dataclass
class JobFiles:
    """The job files of a directory; each is read when it is new or was replaced.

    Only files of root or of this user that nobody else may write are trusted. Garbled ones are logged once and counted.
    """

    directory: Path
    node: str
    system: str = ""
    files: dict[str, JobFile] = field(default_factory=dict)
    _stamps: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def garbled(self) -> int:
        """Return the number of files that cannot be trusted or parsed."""
        return len(self._stamps) - len(self.files)

    def refresh(self) -> bool:
        """Look for new, replaced and removed files. Return whether there are any.

        Raises: OSError when there is nothing left to open a file with.
        """
        stamps = self._listed()
        changed = [name for name, stamp in stamps.items() if self._stamps.get(name) != stamp]
        gone = self._stamps.keys() - stamps.keys()
        for name in [*gone, *changed]:
            self.files.pop(name, None)
        self._stamps = {name: stamp for name, stamp in stamps.items() if name not in changed}
        for name in changed:
            self._read(name)
            self._stamps[name] = stamps[name]
        return bool(changed or gone)

    def changed_ns(self) -> int | None:
        """Return the time of the last change of the directory; None without one."""
        try:
            return self.directory.stat().st_mtime_ns
        except OSError:
            return None

    def _listed(self) -> dict[str, tuple[int, ...]]:
        try:
            with os.scandir(self.directory) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(".json") and entry.name[0] != "."]
        except OSError as error:  # no job has been here yet
            if is_exhausted(error):
                raise
            return {}
        return {name: stamp for name in names[:MAX_FILES] if (stamp := _stamp(self.directory / name))}

    def _read(self, name: str) -> None:
        path = self.directory / name
        try:
            content, stamp = _trusted_content(path)
            value = json.loads(content.decode("utf-8"))
            self.files[name] = JobFile(path, _allocation(value, self.node, self.system), stamp)
        except (OSError, ValueError, RecursionError, MalformedError) as error:
            if is_exhausted(error):
                raise
            LOG.warning("job file %s is ignored: %s", str(path)[:300], str(error)[:200])


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        return _stamp_of(path.lstat())
    except OSError:  # removed meanwhile
        return ()


def _stamp_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode, status.st_uid


def _trusted_content(path: Path) -> tuple[bytes, tuple[int, ...]]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise MalformedError(
                f"owner {status.st_uid}, mode {stat.filemode(status.st_mode)}: "
                "expected a file of root or of the agent that nobody else may write"
            )
        content = os.read(fd, MAX_FILE_BYTES + 1)
    finally:
        os.close(fd)
    if len(content) > MAX_FILE_BYTES:
        raise MalformedError(f"expected at most {MAX_FILE_BYTES} bytes")
    return content, _stamp_of(status)


def _allocation(value: object, node: str, system: str) -> Allocation:
    if not isinstance(value, Mapping):
        raise MalformedError("expected an object")
    facts = {name: item for name, item in value.items() if name != NODELIST and item not in (None, "", [])}
    for name, item in facts.items():
        if not _fits(name, item):
            raise MalformedError(f"{name[:40]!r} is {item!r:.80}")
    if "job_id" not in facts:
        raise MalformedError("job_id missing")
    defaults = {"node": node, "system": system, "sampled_as": node, "source": Source.PROLOG}
    return Allocation(**{**defaults, **facts, "gpus": tuple(facts.get("gpus", ()))})


def _fits(name: str, item: object) -> bool:
    if name == "gpus":
        return isinstance(item, list) and len(item) <= MAX_GPUS and all(_is_text(gpu, GPU) for gpu in item)
    if name in TEXTS:
        return _is_text(item, TEXTS[name])
    return name in LIMITS and type(item) is int and 0 <= item <= LIMITS[name]


def _is_text(item: object, form: re.Pattern[str]) -> bool:
    return isinstance(item, str) and form.fullmatch(item) is not None
