"""`crosswind ingest --dry-run`: shows what files would become, and stores nothing."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.cli.text.output import printable, say
from crosswind.dashboards.wording import count, seconds, utc
from crosswind.data.schema.errors import MalformedError, ProjectError
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import History
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.preview import Preview, preview
from crosswind.ingest.reader.lines import refuse_pipe
from crosswind.ingest.reader.reader import Context, Reader, Report
from crosswind.ingest.readers.fetch import fetched, is_url
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.search import candidates_below

SHOWN = 12  # parameters, tags or workloads of an example


@dataclass
class Looking:
    """A look at files under way: what each would become, and the problems."""

    context: Context
    reader: Reader | None  # for all files, where one is named
    loaded: Loaded = field(default_factory=Loaded)  # its reports alone, which progress looks at
    previews: list[Preview] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def look(self, name: str) -> None:
        """Look at a path or URL; one that cannot be read does not stop the others."""
        try:
            for path, shown in _files(name):
                self._file(path, shown)
        except ProjectError as error:
            self.failures.append(str(error))
        except OSError as error:
            self.failures.append(f"{name}: {error.strerror}")

    def _file(self, path: Path, shown: str) -> None:
        try:
            reader = self.reader or reader_for(path)
            self.loaded.reports.append(report := Report(shown, reader.name))
            self.previews.append(preview(path, reader, report, self.context))
            if report.damage:
                self.failures.append(f"{shown}: {report.damage}")
        except ProjectError as error:
            self.failures.append(str(error).replace(str(path), shown))

    def as_json(self) -> dict[str, object]:
        """Return all of it as plain values."""
        return {"dry_run": [look.as_json() for look in self.previews], "failures": self.failures}

    def say(self) -> None:
        """Print all of it."""
        for look in self.previews:
            _say(look)
        for problem in self.failures:
            say(printable(f"problem: {problem}"))
        say("nothing was stored (--dry-run)")


def _files(name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a path or URL, with their names for people. Raises: ProjectError, OSError."""
    if is_url(name):
        with _downloaded(name) as path:
            yield path, name
    elif Path(name).is_dir():
        candidates = [candidate for candidate in candidates_below(Path(name)) if candidate.reader]
        if not candidates:
            raise MalformedError(f"{name}: holds nothing of a known format (of spools there is no --dry-run)")
        yield from ((candidate.path, str(candidate.path)) for candidate in candidates)
    else:
        refuse_pipe(Path(name))
        yield Path(name), name


@contextmanager
def _downloaded(url: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, fetched(url, Path(folder)) as path:
        yield path


def _say(look: Preview) -> None:
    report = look.report
    say(printable(f"{report.path} ({report.format}): {report.read} rows read, {report.skipped} skipped"))
    for skipped in report.quoted:
        say(printable(f"  line {skipped.line}: {skipped.reason}: {skipped.text}"))
    for note in report.notes:
        say(printable(f"  note: {note}"))
    say(printable(f"  would store: {_amounts(look)}"))
    for run in look.example_runs:
        say(printable(f"  such as run {_run(run)}"))
    for history in look.example_trials:
        say(printable(f"  such as study {_history(history)}"))


def _amounts(look: Preview) -> str:
    parts = [count(look.runs, "run")] if look.runs else []
    if look.workloads:
        names = [f"{name} ({runs})" for name, runs in list(look.workloads.items())[:SHOWN]]
        more = f" and {len(look.workloads) - SHOWN} more" if len(look.workloads) > SHOWN else ""
        parts[-1] += f" of {', '.join(names)}{more}"
    parts += [count(look.jobs, "job")] if look.jobs else []
    parts += [count(look.trials, "trial")] if look.trials else []
    parts += [f"{count(rows, 'row')} of {name}" for name, rows in look.rows.items()]
    return "; ".join(parts) or "nothing"


def _run(run: Run) -> str:
    facts = [run.workload, run.system, str(run.state)]
    facts += [] if run.world_size is None else [count(run.world_size, "rank")]
    facts += [] if run.seconds is None else [seconds(run.seconds)]
    facts += [] if run.started_ns is None or "time_from" in run.tags else [utc(run.started_ns)]
    groups = (
        ("configuration", run.configuration),
        ("software", run.software),
        ("facts", run.facts.given),
        ("tags", run.tags),
    )
    facts += [f"{name} {_pairs(dict(group))}" for name, group in groups if group]
    return ", ".join(facts)


def _history(history: History) -> str:
    study, trials = history.study, [f"{_pairs(dict(one.configuration))} -> {one.objective}" for one in history.trials]
    return f"{study.name}, {study.objective} [{study.unit or 'no unit'}]: {'; '.join(trials)}"


def _pairs(values: dict[str, object]) -> str:
    pairs = [f"{name}={value}" for name, value in list(values.items())[:SHOWN]]
    return " ".join(pairs) + (f" and {len(values) - SHOWN} more" if len(values) > SHOWN else "")
