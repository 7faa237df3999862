"""How a rank tells the node's agent that it is there: one small file a process, in a directory that both know."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.data.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.ingest.procfs import start_ticks

MAX_FILE_BYTES = 4096
NODE_DIRECTORY = Path("/run/crosswind")  # of the node's own agent, whoever's ranks run there
TYPES = {"run_id": str, "rank": int, "node": str, "pid": int, "start_ticks": int}


@dataclass(frozen=True, slots=True)
class Announcement:
    """One rank of one run on this node; pid and start together name the process for ever."""

    run_id: str
    rank: int
    node: str
    pid: int
    start_ticks: int

    def __post_init__(self) -> None:
        for name, expected in TYPES.items():
            value = getattr(self, name)
            if type(value) is not expected or (isinstance(value, int) and value < 0):
                raise InvalidInputError(f"announcement: {name} {value!r:.80}, expected {expected.__name__}, 0 or more")


@dataclass(frozen=True, slots=True)
class Announced:
    """The living ranks of a node, and how many files told of ended ones or could not be understood."""

    ranks: tuple[Announcement, ...]
    stale: int
    garbled: int


def announce(directory: Path, *, run_id: str, rank: int, node: str, pid: int | None = None) -> Announcement:
    """Announces a rank, this process unless another pid is given; the file appears whole or not at all.

    Raises: UnavailableError when the directory cannot be written or the process is gone; InvalidInputError.
    """
    process = os.getpid() if pid is None else pid
    announcement = Announcement(run_id, rank, node, process, start_ticks(process))
    with _unavailable(directory):
        folder = directory / "ranks"
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{process}.{secrets.token_hex(4)}"
        draft.write_text(json.dumps(asdict(announcement)), encoding="utf-8")
        draft.chmod(0o644)  # an agent of another user reads it
        draft.rename(folder / f"{process}.json")
    return announcement


def directories(spool: Path, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Where a rank announces itself: in its spool, and to the node's own agent where there is one."""
    node = Path(environment.get("CROSSWIND_RUN_DIRECTORY") or NODE_DIRECTORY)
    return [spool, node] if node != spool and os.access(node / "ranks", os.W_OK | os.X_OK) else [spool]


def withdraw(directory: Path, pid: int | None = None) -> None:
    """Takes the announcement of this process, or of another pid, away; nothing happens when there is none.

    Raises: UnavailableError when the directory refuses.
    """
    with _unavailable(directory):
        (directory / "ranks" / f"{os.getpid() if pid is None else pid}.json").unlink(missing_ok=True)


def announced(directory: Path, proc: Path = Path("/proc")) -> Announced:
    """The ranks whose processes live; files of ended processes are removed, garbled ones left and counted.

    Anybody may write into the directory: an announcement of somebody else's process counts as garbled.
    """
    ranks: list[Announcement] = []
    stale = garbled = 0
    for path in sorted((directory / "ranks").glob("[0-9]*.json")):
        try:
            announcement = _read(path, proc)
        except MalformedError:
            garbled += 1
            continue
        except UnavailableError:  # withdrawn meanwhile
            continue
        if _lives(announcement, proc):
            ranks.append(announcement)
        else:
            stale += 1
            _remove(path)
    return Announced(tuple(ranks), stale, garbled)


def changed_ns(directory: Path) -> int | None:
    """When an announcement last came or went; None where nobody has announced anything."""
    try:
        return (directory / "ranks").stat().st_mtime_ns
    except OSError:
        return None


def _read(path: Path, proc: Path) -> Announcement:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
            owner, content = os.fstat(fd), file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    except OSError as error:  # a link, a folder, another user's secret: nothing that a rank would leave
        raise MalformedError(f"{path}: {error.strerror}") from error
    try:
        announcement = _announcement(path, json.loads((content or b"").decode("utf-8")))
    except (ValueError, TypeError, RecursionError, InvalidInputError) as error:
        raise MalformedError(f"{path}: expected an announcement: {error!s:.200}") from error
    with suppress(OSError):  # it has ended
        if owner.st_uid not in (0, (proc / str(announcement.pid)).stat().st_uid):
            raise MalformedError(f"{path}: user {owner.st_uid} announced somebody else's process {announcement.pid}")
    return announcement


def _announcement(path: Path, value: Mapping[str, object]) -> Announcement:
    announcement = Announcement(**value)  # type: ignore[arg-type]  # checked on construction
    if path.name != f"{announcement.pid}.json":
        raise ValueError(f"pid {announcement.pid} in a file of another name")
    return announcement


def _lives(announcement: Announcement, proc: Path) -> bool:
    try:
        return start_ticks(announcement.pid, str(proc)) == announcement.start_ticks
    except (UnavailableError, MalformedError):
        return False


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # another user's; whoever owns it may clear it away
        return


@contextmanager
def _unavailable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"runtime directory {directory}: {error.strerror}") from error
