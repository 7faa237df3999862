"""Announcements of ranks to the node's agent: a small file for every process, in an agreed directory."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.data.files import published
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.ingest.kernel.fd_limits import is_exhausted
from crosswind.ingest.kernel.procfs import start_ticks

MAX_FILE_BYTES = 4096
NEVER_NS = 2**63
NODE_DIRECTORY = Path("/run/crosswind")  # of the node's own agent, for the ranks of all users
NAME = re.compile(r"[A-Za-z0-9._@:+-]{1,200}")
LIMITS = {"rank": 2**31, "pid": 2**31, "start_ticks": 2**63}  # 2**31 ticks are not even a year


@dataclass(frozen=True, slots=True)
class Announcement:
    """One rank of one run on this node; pid and start together identify the process for good."""

    run_id: str
    rank: int
    node: str
    pid: int
    start_ticks: int

    def __post_init__(self) -> None:
        for name in ("run_id", "node"):
            text = getattr(self, name)
            if not (isinstance(text, str) and NAME.fullmatch(text)):
                raise InvalidInputError(f"announcement: {name} {text!r:.80}, expected up to 200 letters and digits")
        for name, limit in LIMITS.items():
            number = getattr(self, name)
            if type(number) is not int or not 0 <= number < limit:
                raise InvalidInputError(f"announcement: {name} {number!r:.80}, expected a whole number below {limit}")


@dataclass(frozen=True, slots=True)
class Announced:
    """The living ranks of a node, and the numbers of files of ended ranks and of garbled files."""

    ranks: tuple[Announcement, ...]
    stale: int
    garbled: int


def announce(directory: Path, *, run_id: str, rank: int, node: str, pid: int | None = None) -> Announcement:
    """Announce a rank, this process unless another pid is given; the file appears whole or not at all.

    Raises: UnavailableError when the directory cannot be written or the process is gone; InvalidInputError.
    """
    process = os.getpid() if pid is None else pid
    announcement = Announcement(run_id, rank, node, process, start_ticks(process))
    with _unavailable(directory):
        folder = directory / "ranks"
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / _name(announcement), json.dumps(asdict(announcement)))
    return announcement


def directories(spool: Path, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the directories in which a rank announces itself: its spool's, and that of the node's agent, if any."""
    node = Path(environment.get("CROSSWIND_RUN_DIRECTORY") or NODE_DIRECTORY)
    return [spool, node] if node != spool and os.access(node / "ranks", os.W_OK | os.X_OK) else [spool]


def withdraw(directory: Path, pid: int | None = None) -> None:
    """Remove the announcement of this process, or of another pid, if there is one.

    Raises: UnavailableError when the directory refuses.
    """
    process = os.getpid() if pid is None else pid
    with _unavailable(directory):
        for path in _files(directory):
            with suppress(FileNotFoundError):  # the agent was quicker
                if _pid_in(path.name) == process and path.lstat().st_uid == os.geteuid():
                    path.unlink()


def announced(directory: Path, proc: Path = Path("/proc")) -> Announced:
    """Return the ranks whose processes live; files of ended processes are removed, garbled ones left and counted.

    Anybody may write into the directory: an announcement of somebody else's process counts as garbled.
    Raises: UnavailableError when the directory cannot be listed or there is nothing left to open a file with.
    """
    ranks: list[Announcement] = []
    stale = garbled = 0
    with _unavailable(directory):
        paths = _files(directory)
    for path in paths:
        try:
            announcement, owner = _read(path)
        except MalformedError:
            garbled += 1
            continue
        except FileNotFoundError:  # withdrawn meanwhile
            continue
        if not _lives(announcement, proc):
            stale += 1
            _remove(path)
        elif _may_announce(owner, announcement.pid, proc):
            ranks.append(announcement)
        else:
            garbled += 1
    return Announced(tuple(ranks), stale, garbled)


def require_alone(directory: Path, run_id: str, rank: int) -> None:
    """Check that no other living process here has announced itself as this rank of the run before this one.

    Raises: InvalidInputError saying what the processes need.
    """
    try:
        ranks = announced(directory).ranks
    except UnavailableError:
        return
    same = [other for other in ranks if (other.run_id, other.rank) == (run_id, rank)]
    first = min(same, key=lambda other: (_announced_ns(directory, other), other.pid), default=None)
    if first is None or first.pid == os.getpid():
        return
    for announcements in directories(directory):
        with suppress(UnavailableError):
            withdraw(announcements)
    raise InvalidInputError(
        f"rank {rank} of this run is process {first.pid} already: set RANK and WORLD_SIZE in each of its processes, "
        "or call torch.distributed.init_process_group before the first step"
    )


def _announced_ns(directory: Path, announcement: Announcement) -> int:
    """Return when its file appeared, as its change time says after the rename; later than all if it is withdrawn."""
    try:
        return (directory / "ranks" / _name(announcement)).lstat().st_ctime_ns
    except OSError:
        return NEVER_NS


def changed_ns(directory: Path) -> int | None:
    """Return the time of the last change of the announcements; None if there never was one."""
    try:
        return (directory / "ranks").stat().st_mtime_ns
    except OSError:
        return None


def _name(announcement: Announcement) -> str:
    """Return a file name that is this process's for good: a file left behind by another user is never in the way."""
    return f"{announcement.pid}.{announcement.start_ticks}.json"


def _pid_in(name: str) -> int | None:
    pid = name.partition(".")[0]
    return int(pid) if name.endswith(".json") and pid.isdecimal() and len(pid) <= 10 else None


def _files(directory: Path) -> list[Path]:
    folder = directory / "ranks"
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in entries if _pid_in(entry.name) is not None)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # no ranks, or none that we may see
        return []


def _write(path: Path, text: str) -> None:
    with published(path, is_durable=False) as file:
        file.write(text.encode())
        os.fchmod(file.fileno(), 0o644)  # an agent of another user reads it


def _read(path: Path) -> tuple[Announcement, int]:
    """Return the announcement and the file's owner. Raises: MalformedError; UnavailableError; FileNotFoundError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
            owner, content = os.fstat(fd).st_uid, file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:  # a link, a folder, another user's secret: no rank leaves these
        failure = UnavailableError if is_exhausted(error) else MalformedError
        raise failure(f"{path}: {error.strerror}") from error
    try:
        return _announcement(path, json.loads((content or b"").decode("utf-8"))), owner
    except (ValueError, TypeError, RecursionError, InvalidInputError) as error:
        raise MalformedError(f"{path}: expected an announcement: {error!s:.200}") from error


def _announcement(path: Path, value: Mapping[str, object]) -> Announcement:
    announcement = Announcement(**value)  # type: ignore[arg-type]  # checked on construction
    if _pid_in(path.name) != announcement.pid:
        raise ValueError(f"pid {announcement.pid} in a file of another name")
    return announcement


def _lives(announcement: Announcement, proc: Path) -> bool:
    try:
        return start_ticks(announcement.pid, str(proc)) == announcement.start_ticks
    except (UnavailableError, MalformedError) as error:
        if is_exhausted(error):
            raise
        return False


def _may_announce(user: int, pid: int, proc: Path) -> bool:
    try:
        return user in (0, (proc / str(pid)).stat().st_uid)
    except OSError:  # it has just ended
        return False


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # another user's; the owner of the file or of the directory may remove it
        return


@contextmanager
def _unavailable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"runtime directory {directory}: {error.strerror}") from error
