"""One study in its folder, and the turns of its trials."""

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import InvalidInputError, MalformedError, NotFoundError, UnavailableError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import ENDED, Study
from crosswind.models.tuner.service.folder import turns
from crosswind.models.tuner.service.folder.clock import FolderClock
from crosswind.models.tuner.service.folder.files import DRAFT_SUFFIX, appear, content_of, reaching, replace_file
from crosswind.models.tuner.service.folder.reported import FolderReports
from crosswind.models.tuner.service.folder.turns import Turn
from crosswind.models.tuner.service.service import NANOSECONDS

STUDY_FILE = "study.json"
PARAMETER = "parameter-"  # begins the names of files with parameters of a study that grows
SOURCES_FILE = "sources.json"
CHANGED_FILE = "study.{:04d}.json"  # the study after that many changes
TRASH_PREFIX = ".deleted-"
LEFT_OVER_NS = 24 * 3600 * NANOSECONDS  # drafts older than this are of writers that were killed


@dataclass
class StudyFolder:
    """The files of one study; ended trials are read once, as they cannot change any more."""

    path: Path
    clock: FolderClock
    _ended: dict[int, Turn] = field(default_factory=dict, init=False)
    _seen: dict[int, int] = field(default_factory=dict, init=False)  # newest generations that this process knows of
    _changes: int = field(default=0, init=False)  # of the study that this process knows of
    _identity: tuple[int, int] | None = field(default=None, init=False)
    reports: FolderReports = field(init=False)

    def __post_init__(self) -> None:
        self.reports = FolderReports(self.path)

    def create(self, study: Study, request: RequestKey | None) -> bool:
        """Write the study, unless there is one of this name; return whether it was written."""
        with reaching(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        return self._write(STUDY_FILE, study, request)

    def is_there(self) -> bool:
        """Return whether the study of before is still here, and not another one in its place."""
        try:
            status = (self.path / STUDY_FILE).stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UnavailableError(f"{self.path}: {error.strerror or error}") from error
        identity = (status.st_ino, status.st_mtime_ns)  # the file is never changed
        self._identity = self._identity or identity
        return identity == self._identity

    def study(self) -> Study:
        """Return the study as it was changed last. Raises: NotFoundError, MalformedError."""
        return self.version(self._newest_change())[0]

    def change(self, rule: Callable[[Study], Study], request: RequestKey | None) -> Study | None:
        """Change the study by the rule, but not again for the same request; None where another writer was faster.

        Raises: NotFoundError, MalformedError, UnavailableError; what the rule raises.
        """
        number = self._newest_change()
        stored = self.version(number)[0]
        if request is not None and any(self.version(at)[1] == request for at in range(1, number + 1)):
            return stored
        changed = rule(stored)
        if changed == stored:
            return stored
        return changed if self._write(CHANGED_FILE.format(number + 1), changed, request) else None

    def version(self, number: int) -> tuple[Study, RequestKey | None]:
        """Return the study after so many changes, and the request that made it so. Raises: as `study`."""
        path = self.path / (CHANGED_FILE.format(number) if number else STUDY_FILE)
        content = content_of(path)
        if content is None:
            raise NotFoundError(f"{path} is not there")
        try:
            fields: dict[str, Any] = json.loads(content[0])
            study = Study.from_json(fields["study"])
            if study.define_by_run:
                study = replace(study, space={"parameters": self._parameters()})
            return study, RequestKey(**fields["request"]) if fields["request"] else None
        except (ValueError, KeyError, TypeError, AttributeError, InvalidInputError) as error:
            raise MalformedError(f"{path}: expected a study as Crosswind writes it: {error}") from error

    def add_parameters(self, parameters: Mapping[str, Mapping[str, object]]) -> None:
        """Add parameters to a study that grows, each in a file of its own; one that is there stays as it is."""
        for name, parameter in parameters.items():
            content = json.dumps({"name": name, "parameter": dict(parameter)}, allow_nan=False).encode() + b"\n"
            path = self.path / f"{PARAMETER}{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}.json"
            if not path.exists():
                appear(path, content, stamp=self.clock.stamp)

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters that were added, by name."""
        contents = [content_of(path) for path in sorted(self.path.glob(f"{PARAMETER}*.json"))]
        entries = sorted((json.loads(content[0]) for content in contents if content), key=lambda entry: entry["name"])
        return {entry["name"]: entry["parameter"] for entry in entries}

    def sources(self) -> StudySources | None:
        """Return the sources that were kept of the study; None without any, and where they cannot be read."""
        content = content_of(self.path / SOURCES_FILE)
        try:
            return StudySources.from_json(json.loads(content[0])) if content else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def keep_sources(self, sources: StudySources) -> None:
        """Keep the sources that the study's search uses now; of several writers the last one counts."""
        if sources != self.sources():
            content = json.dumps(sources.as_json(), allow_nan=False).encode() + b"\n"
            replace_file(self.path / SOURCES_FILE, content)

    def turns(self) -> list[Turn]:
        """Return the newest turn of every trial, in the order in which the trials were begun."""
        return self.look()[0]

    def look(self) -> tuple[list[Turn], int]:
        """Return the turns, and the number of the next trial, which a process that has seen these may begin."""
        generations = dict(self._generations())  # a copy: another thread may change it meanwhile
        newest = (self._newest(number, generations[number]) for number in sorted(generations))
        return [turn for turn in newest if turn], max(generations, default=-1) + 1

    def turn(self, number: int) -> Turn | None:
        """Return the newest turn of one trial, None where there is no such trial."""
        generation = self._seen.get(number, 0)
        with reaching(self.path):
            while (self.path / turns.file_name(number, generation)).exists():
                generation += 1
        return self._newest(number, generation - 1) if generation else None

    def first_turn(self, number: int) -> Turn | None:
        """Return the turn by which a trial was made, None where there is no such trial or it is damaged."""
        return self._read(number, 0)

    def make(self, turn: Turn) -> Turn | None:
        """Store a turn, its lease running from now; return None where another writer was faster."""
        path = self.path / turn.file_name
        made = appear(path, turns.written(turn), stamp=self.clock.stamp)
        self._seen[turn.number] = max(self._seen.get(turn.number, 0), turn.generation)
        return self._read(turn.number, turn.generation) if made else None

    def renew(self, turn: Turn, lease_seconds: float) -> None:
        """Let the turn's lease hold so many seconds from now."""
        path = self.path / turn.file_name
        self.clock.stamp(path)
        longer_ns = round((lease_seconds - turn.lease_seconds) * NANOSECONDS)
        if longer_ns:
            with reaching(path):
                stamp_ns = path.stat().st_mtime_ns + longer_ns
                os.utime(path, ns=(stamp_ns, stamp_ns))

    def sweep(self, now_ns: int) -> None:
        """Remove drafts that killed writers left."""
        for path in self._drafts():
            with reaching(path), suppress(FileNotFoundError):
                if path.stat().st_mtime_ns < now_ns - LEFT_OVER_NS:
                    path.unlink()

    def remove(self) -> None:
        """Remove the study; it goes at once for all who look, and its files after it. Raises: UnavailableError."""
        trash = self.path.parent / f"{TRASH_PREFIX}{new_ulid()}"
        with reaching(self.path):
            self.path.rename(trash)
        for path in self.path.parent.glob(f"{TRASH_PREFIX}*"):  # of removers that were killed, too
            shutil.rmtree(path, ignore_errors=True)

    def _newest_change(self) -> int:
        number = self._changes
        with reaching(self.path):
            while (self.path / CHANGED_FILE.format(number + 1)).exists():
                number += 1
        self._changes = number
        return number

    def _write(self, name: str, study: Study, request: RequestKey | None) -> bool:
        fields = {"study": study.as_json(), "request": asdict(request) if request else None}
        content = json.dumps(fields, allow_nan=False).encode() + b"\n"
        return appear(self.path / name, content, stamp=self.clock.stamp)

    def _drafts(self) -> Iterator[Path]:
        return self.path.glob(f".*{DRAFT_SUFFIX}")

    def _generations(self) -> dict[int, int]:
        """Return the newest generation of each trial, as far as the folder's list and this process know.

        A list that an NFS client has cached may lack names. Trials are begun one after the other, so all are there up
        to the last one; and a turn that is missed here comes to light when somebody tries to make it again.
        """
        newest: dict[int, int] = defaultdict(int, self._seen)
        with reaching(self.path):
            places = [turns.place_of(entry.name) for entry in os.scandir(self.path)]
        for number, generation in filter(None, places):
            newest[number] = max(newest[number], generation)
        self._seen = {number: newest[number] for number in range(max(newest, default=-1) + 1)}
        return self._seen

    def _newest(self, number: int, generation: int) -> Turn | None:
        """Return the newest turn that can be read; a damaged one counts as none, and its name as used."""
        if number in self._ended:
            return self._ended[number]
        for candidate in range(generation, -1, -1):
            turn = self._read(number, candidate)
            if turn:
                break
        else:
            return None
        if turn.record.trial.state in ENDED:
            self._ended[number] = turn
        return replace(turn, generation=generation)

    def _read(self, number: int, generation: int) -> Turn | None:
        content = content_of(self.path / turns.file_name(number, generation))
        turn = turns.read(content[0]) if content else None
        return turn.stamped(content[1]) if turn and content else None


def study_folders(root: Path, clock: FolderClock) -> list[StudyFolder]:
    """Return the folders of all studies below the root, in the order of their names."""
    paths = sorted(path.parent for path in root.glob(f"*/{STUDY_FILE}"))
    return [StudyFolder(path, clock) for path in paths if not path.name.startswith(TRASH_PREFIX)]


def folder_name(study: str) -> str:
    """Return the name of a study's folder: readable, safe, and another one for every name."""
    plain = "".join(character if character.isascii() and character.isalnum() else "-" for character in study)[:40]
    return f"{plain}-{sha256(study.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
