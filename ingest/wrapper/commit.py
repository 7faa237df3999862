"""The git commit that a program was started from, and whether its files differ from it."""

import os
import re
import subprocess
from pathlib import Path
from threading import Thread

DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
ANSWER_SECONDS = 20.0
HASH = re.compile(r"[0-9a-f]{40,64}")
MAX_LEVELS = 40


class CommitLookup:
    """Looks in a thread, while the program runs: on a shared file system git may take seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts: dict[str, str] = {}
        self._thread = Thread(target=self._look, name="crosswind-commit", daemon=True)
        self._thread.start()

    def facts(self, seconds: float) -> dict[str, str]:
        """Return the facts, empty if they take longer than so many seconds from now."""
        self._thread.join(seconds)
        return self._facts

    def _look(self) -> None:
        self._facts = commit_facts(self._folder)


def commit_facts(folder: Path) -> dict[str, str]:
    """Return `git.commit` and `git.dirty` of a folder; without git only the commit, outside a repository nothing."""
    repository = _repository(folder)
    if repository is None:
        return {}
    command = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *DESCRIBE)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return _by_hand(repository)
    commit, _, dirty = done.stdout.strip().partition("-")
    if done.returncode or not HASH.fullmatch(commit):
        return _by_hand(repository)
    return {"git.commit": commit, "git.dirty": "yes" if dirty else "no"}


def _repository(folder: Path) -> Path | None:
    """Return the `.git` above a folder, so that no process is started where there is none."""
    for level in (folder, *folder.parents)[:MAX_LEVELS]:
        if (level / ".git").exists():
            return level / ".git"
    return None


def _by_hand(repository: Path) -> dict[str, str]:
    """Return the commit as git's own files say, where git is not installed or refuses another user's repository."""
    try:
        if repository.is_file():  # of a worktree or a submodule
            repository = repository.parent / repository.read_text().removeprefix("gitdir:").strip()
        head = (repository / "HEAD").read_text().strip()
        reference = head.removeprefix("ref:").strip()
        commit = head if reference == head else _resolved(repository, reference)
    except (OSError, UnicodeDecodeError):
        return {}
    return {"git.commit": commit} if HASH.fullmatch(commit) else {}


def _resolved(repository: Path, reference: str) -> str:
    common = repository / "commondir"
    folders = [repository] + ([repository / common.read_text().strip()] if common.is_file() else [])
    for folder in folders:
        if (folder / reference).is_file():
            return (folder / reference).read_text().strip()
        packed = folder / "packed-refs"
        for line in packed.read_text().splitlines() if packed.is_file() else ():
            if line.endswith(f" {reference}"):
                return line.partition(" ")[0]
    return ""
