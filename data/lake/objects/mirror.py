"""A lake in an object store: the catalog says which objects are in it, and those that are read are copied here.

An object is written once, under a key that no other ever has, before the catalog names it; one transaction lets it
count, together with the batch whose rows it holds, or in place of those that it was made of. What nobody named is no
part of the lake, whatever the store lists.
"""

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.files import make_private
from crosswind.data.lake.locks import make_lock, reading
from crosswind.data.lake.objects.bounded import at_once
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.claim import claim
from crosswind.data.lake.objects.copies import Copies
from crosswind.data.lake.objects.described import described, name_of
from crosswind.data.lake.objects.inventory import take_inventory
from crosswind.data.lake.objects.sweep import sweep
from crosswind.data.lake.parts import ALWAYS, Held, Span, dates_of, held, manifest_of
from crosswind.data.lake.publish import Staged, drop, hidden_name
from crosswind.data.lake.publish_merged import Merged, drop_merged
from crosswind.data.lake.removal import remove_abandoned
from crosswind.data.lake.storage import Day, Filed, Inventory, LocalStorage, Published
from crosswind.data.schema.errors import ConflictError, GoneError, UnavailableError
from crosswind.data.schema.lake_file import WITH_ROWS, LakeFile, LakeFileKind
from crosswind.data.schema.run import new_ulid

TURN, TURN_SECONDS, BEAT_SECONDS = "change", 60.0, 15.0
PAUSE_SECONDS = 0.1
CHECKED_SECONDS = 30.0  # so long a check holds: requests cost money
STALE_COPIES_SECONDS = 3600.0


class Mirror:
    """A lake in a bucket, with copies below `root`."""

    keeps_summaries = False

    def __init__(self, root: Path, catalog: Catalog, bucket: Bucket) -> None:
        self.root = root
        self._catalog = catalog
        self._bucket = bucket
        self._copies = Copies(root, bucket)
        self._is_claimed = False
        self._defined: set[str] = set()
        self._noted: dict[Path, list[LakeFile]] = {}  # of the day that is compacted: files, and what they were made of
        self._live: dict[str, LakeFile] = {}  # that were named last
        self._seen: dict[Path, tuple[int, int]] = {}  # days with several files: how many, and when the last was added
        self._resting: dict[Path, tuple[int, int]] = {}  # those that need no compaction
        self._checked, self._tidied = -CHECKED_SECONDS, time.monotonic()
        make_private(root)
        make_lock(root)

    def sets(self) -> list[str]:
        """Return the names of the sets that hold rows."""
        with self._catalog.read() as session:
            return session.lake_files.sets()

    def definitions(self, name: str) -> list[Path]:
        """Return the files that define a set."""
        with self._catalog.read() as session:
            files = session.lake_files.definitions(name)
        self._defined.update(file.name for file in files)
        return self._brought(files)

    def is_defined(self, definition: Path) -> bool:
        """Return whether a definition is stored under this name."""
        name = name_of(self.root, definition)
        if name not in self._defined:
            set_name = definition.parent.name.removeprefix("set=")
            with self._catalog.read() as session:
                self._defined.update(file.name for file in session.lake_files.definitions(set_name))
        return name in self._defined

    def parts(self, name: str, within: Span = ALWAYS, run_ids: Collection[str] | None = None) -> list[Path]:
        """Return the parts that may hold such rows, which are here then."""
        with self._catalog.read() as session:
            files = session.lake_files.between(name, *dates_of(within))
        rows = [file for file in files if file.kind in WITH_ROWS and _overlaps(file, within)]
        if run_ids is not None:
            self._brought(list(_manifests(files, rows).values()))
            rows = [file for file in rows if self._may_hold(file, run_ids)]
        return self._brought(rows)

    def _may_hold(self, file: LakeFile, run_ids: Collection[str]) -> bool:
        is_merged = file.kind in (LakeFileKind.COMPACTED, LakeFileKind.LANDING)
        return not is_merged or any(map(held(self._copies.path(file.key)).may_hold, run_ids))

    def listed(self, name: str, within: Span = ALWAYS, *, with_manifests: bool = False) -> list[Filed]:
        """Return the same parts, wherever they are."""
        with self._catalog.read() as session:
            files = session.lake_files.between(name, *dates_of(within))
        rows = [file for file in files if file.kind in WITH_ROWS and _overlaps(file, within)]
        if with_manifests:
            self._brought(list(_manifests(files, rows).values()))
        return [Filed(self._copies.path(file.key), file) for file in rows]

    def fetch(self, files: Iterable[Filed]) -> None:
        """Copy them."""
        self._brought([file.noted for file in files if file.noted is not None])

    def made_of(self, file: Filed) -> Held:
        """Copy its manifest, and return it."""
        if file.noted is not None:
            with self._catalog.read() as session:
                files = session.lake_files.between(file.noted.set_name, file.noted.date, file.noted.date)
            self._brought(list(_manifests(files, [file.noted]).values()))
        return held(file.path)

    def dates(self, name: str) -> list[str]:
        """Return the dates of which a set has files."""
        with self._catalog.read() as session:
            return session.lake_files.dates(name)

    def dates_to_compact(self, name: str) -> list[str]:
        """Return the dates with several files, or one that was never compacted, but for those that rest."""
        with self._catalog.read() as session:
            dates = session.lake_files.dates_with_several(name)
        folder = self.root / f"set={name}"
        self._seen.update({folder / f"date={date}": state for date, state in dates.items()})
        return [date for date, state in dates.items() if self._resting.get(folder / f"date={date}") != state]

    def day(self, folder: Path) -> Day:
        """Return the parts of a day, which need not be here."""
        set_name, date = folder.parent.name.removeprefix("set="), folder.name.removeprefix("date=")
        with self._catalog.read() as session:
            files = session.lake_files.between(set_name, date, date)
        rows = [file for file in files if file.kind in WITH_ROWS]
        manifests = _manifests(files, rows)
        both = ([file, manifests[file.key]] if file.key in manifests else [file] for file in rows)
        self._noted = {self._copies.path(of_path[0].key): of_path for of_path in both}
        return Day([Filed(path, of_path[0]) for path, of_path in self._noted.items()])

    def tidy_day(self, folder: Path) -> None:
        """Nothing: what a killed compaction uploaded, the catalog does not name."""

    def rest(self, folder: Path) -> None:
        """Note it, as of the last list of dates."""
        self._resting[folder] = self._seen[folder]

    def bring(self, path: Path) -> None:
        """Copy a part of the day that was returned last, and its manifest."""
        self._copies.bring(self._noted[path])

    def publish(self, staged: Sequence[Staged]) -> Published:
        """Upload files; they count once a session of the catalog has added them."""
        try:
            return self._uploaded(staged)
        finally:
            drop(staged)

    def _uploaded(self, staged: Sequence[Staged], *, is_landing: bool = False) -> Published:
        if not staged:
            return Published(())
        self._claim()
        token = secrets.token_hex(8)
        files = [described(name_of(self.root, path), token, hidden) for hidden, path in staged]
        if is_landing:
            merged = {LakeFileKind.COMPACTED: LakeFileKind.LANDING}
            files = [replace(file, kind=merged.get(file.kind, file.kind)) for file in files]
        at_once(self._upload(hidden, file) for (hidden, _), file in zip(staged, files, strict=True))
        paths = tuple(self._copies.path(file.key) for file in files if file.kind in WITH_ROWS)
        return Published(paths, tuple(files))

    def _claim(self) -> None:
        """Check once whose the objects are, before the first. Raises: ConflictError."""
        if self._is_claimed:
            return
        claim(self._catalog, self._bucket, self.root)
        self._is_claimed = True

    def _upload(self, hidden: Path, file: LakeFile) -> Callable[[], None]:
        def upload() -> None:
            self._bucket.put(file.key, hidden)
            self._copies.keep(hidden, file)

        return upload

    def take_over(self, folder: Path) -> None:
        """Upload the files of a lake in a folder that count, which leave it, and let them be found."""
        local = LocalStorage(folder)
        for name in local.sets():
            self._take(local.definitions(name), folder)
            for date in local.dates(name):
                parts = [part.path for part in local.day(folder / f"set={name}" / f"date={date}").live]
                manifests = [manifest for part in parts if (manifest := manifest_of(part)).is_file()]
                self._take([*parts, *manifests], folder)

    def _take(self, paths: Sequence[Path], folder: Path) -> None:
        self.note(self._uploaded([(path, self.root / path.relative_to(folder)) for path in paths]))

    def note(self, published: Published) -> None:
        """Let files be found."""
        with self._catalog.write() as session:
            session.lake_files.add(published.files)

    def publish_together(self, files: Sequence[Merged]) -> Published:
        """Upload files with their manifests; they count once a session of the catalog has added them."""
        try:
            return self._uploaded([one for file in files for one in (file.manifest, file.file)], is_landing=True)
        finally:
            drop_merged(files)

    def replace(self, paths: Sequence[Path], merged: Merged) -> None:
        """Let a file be found in place of those, if all that it is made of still count."""
        keys = [file.key for path in paths for file in self._noted[path]]
        try:
            if gone := merged.made_of - {path.name for path in paths}:
                raise ConflictError(f"{min(gone)} was replaced by others meanwhile")
            published = self._uploaded([merged.manifest, merged.file])
        finally:
            drop_merged([merged])
        with self._catalog.write() as session:
            session.lake_files.replace(keys, published.files)

    def rewrite(self, part: Path, hidden: Path | None) -> None:
        """Let a file be found in place of a part, if that still counts; a manifest goes on with it."""
        manifest, keys = manifest_of(part), [self._key(part)]
        staged = [] if hidden is None else [(hidden, part)]
        is_landing = False
        if manifest.is_file():
            keys.append(self._key(manifest))
            if hidden is not None:
                draft = hidden_name(self.root, manifest)
                draft.write_bytes(manifest.read_bytes())
                staged.append((draft, manifest))
                is_landing = held(part).is_landing
        try:
            published = self._uploaded(staged, is_landing=is_landing)
        finally:
            drop(staged)
        with self._catalog.write() as session:
            session.lake_files.replace(keys, published.files)

    def discard(self, day: Path) -> bool:
        """Let them count no more; who reads them has copies."""
        self.day(day)
        keys = [file.key for files in self._noted.values() for file in files]
        with self._catalog.write() as session:
            session.lake_files.replace(keys, ())
        return True

    def remove(self, parts: Iterable[str]) -> None:
        """Nothing: what no batch was noted with does not count."""

    @contextmanager
    def changing(self, patience_seconds: float = 0.0) -> Iterator[bool]:
        """Take the turn, and keep it; copies stay meanwhile."""
        until, owner = time.monotonic() + patience_seconds, new_ulid()  # of this thread, and not of the process
        while not (is_ours := self._take_turn(TURN, owner, TURN_SECONDS)) and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)
        if not is_ours:
            yield False
            return
        with reading(self.root), self._kept_turn(owner):
            yield True

    def _take_turn(self, work: str, owner: str, seconds: float) -> bool:
        with self._catalog.write() as session:
            return session.lake_files.take_turn(work, owner, seconds)

    @contextmanager
    def _kept_turn(self, owner: str) -> Iterator[None]:
        is_over = threading.Event()

        def beat() -> None:
            while not is_over.wait(BEAT_SECONDS):
                try:
                    self._take_turn(TURN, owner, TURN_SECONDS)
                except Exception:  # noqa: BLE001, S112 - who loses the turn is refused by what it would replace
                    continue

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            is_over.set()
            beating.join()  # or it might take the turn again after its end
            with self._catalog.write() as session:
                session.lake_files.end_turn(TURN, owner)

    def why_unsafe(self, mounts: Path) -> str | None:  # noqa: ARG002 - transactions hold wherever a server is
        """Return None: of two who change the same files the catalog refuses one."""
        return None

    def check(self) -> None:
        """Write, read and remove an object, unless that was a moment ago and nothing has failed since."""
        if self._bucket.answers and time.monotonic() - self._checked < CHECKED_SECONDS:
            return
        draft = hidden_name(self.root, self.root / "set=ready" / secrets.token_hex(8))
        try:
            draft.write_bytes(b"ready")
            self._bucket.check(draft)
            self._claim()
        except OSError as error:
            raise UnavailableError(f"the folder of copies {self.root} takes no files: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)
        self._checked = time.monotonic()

    def make_room(self) -> None:
        """Remove copies beyond what may be kept here, unless somebody reads."""
        self._copies.make_room()

    def tidy(self) -> None:
        """Remove old drafts, and once an hour the copies of what counts no more."""
        remove_abandoned(self.root)
        self._copies.remove_drafts(STALE_COPIES_SECONDS)
        self.make_room()
        if time.monotonic() - self._tidied >= STALE_COPIES_SECONDS:
            self.remove_stale_copies(STALE_COPIES_SECONDS)

    def remove_stale_copies(self, older_seconds: float) -> None:
        """Remove copies of objects that count no more, unless somebody reads. Raises: OSError."""
        keys = self._copies.older_keys(older_seconds)
        with self._catalog.read() as session:
            live = session.lake_files.live_among(keys)
        self._copies.remove_if(key for key in keys if key not in live)
        self._tidied = time.monotonic()

    def names(self) -> list[str]:
        """Return the names of the files that count."""
        with self._catalog.read() as session:
            self._live = {file.name: file for file in session.lake_files.live()}
        return list(self._live)

    def opened(self, name: str) -> Path:
        """Copy one of the files that were named last."""
        return self._brought([self._live[name]])[0]

    def sweep(self) -> None:
        """Remove objects that were replaced an hour ago, and once a day those that nobody ever named."""
        self._claim()
        sweep(self._catalog, self._bucket, lists_all=lambda seconds: self._take_turn("orphans", new_ulid(), seconds))

    @contextmanager
    def examined(self, path: Path) -> Iterator[Path]:
        """Read an object and what says what it was made of, beside any copies."""
        with self._catalog.read() as session:
            files = session.lake_files.of_key(self._key(path))
            manifest = session.lake_files.of_key(self._key(manifest_of(path)))
        if not files:
            raise GoneError("it was replaced meanwhile")
        with ExitStack() as drafts:
            [content, *others] = [drafts.enter_context(self._copies.fetched(file)) for file in (*files, *manifest)]
            for other in others:
                other.rename(content.with_name(other.name))
            yield content

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def inventory(self) -> Inventory:
        """Hold the bucket against the catalog."""
        return take_inventory(self._catalog, self._bucket)

    def _brought(self, files: Sequence[LakeFile]) -> list[Path]:
        try:
            self._copies.bring(files)
        except GoneError:
            self._claim()  # which says so where the bucket is another lake's
            raise
        return [self._copies.path(file.key) for file in files]


def _overlaps(file: LakeFile, within: Span) -> bool:
    return file.first_ns <= within[1] and file.last_ns >= within[0]


def _manifests(files: Iterable[LakeFile], of: Iterable[LakeFile]) -> dict[str, LakeFile]:
    """Return the manifests of some of the files, by the keys of these."""
    by_key = {file.key: file for file in files if file.kind is LakeFileKind.MANIFEST}
    keys = {file.key: manifest_of(Path(file.key)).as_posix() for file in of}
    return {key: by_key[manifest] for key, manifest in keys.items() if manifest in by_key}
