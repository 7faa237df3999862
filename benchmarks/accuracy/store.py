"""Stores that are filled and asked as users do it: by `crosswind ingest`, and through `crosswind.connect()`."""

import io
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from crosswind.cli.main import VERBS, build_parser, load
from crosswind.client.connection import connect
from crosswind.client.protocol import Client
from crosswind.settings import Settings


@dataclass(frozen=True)
class Files:
    """Files about one system, and the further options of `crosswind ingest` that they need."""

    system: str
    paths: tuple[Path, ...]
    options: tuple[str, ...] = ()


@contextmanager
def filled(files: Iterable[Files], *, train: str | None = None) -> Iterator[Client]:
    """Yield a client of a fresh store, after `crosswind ingest --system NAME FILE ...` for each system.

    train: an outcome, for which `crosswind models train` follows. It is for stores of many workloads, as otherwise the
    first question about each fits a model; one that does not beat the naive forecasts is not promoted.
    """
    with TemporaryDirectory(prefix="crosswind-accuracy-") as folder:
        settings = replace(Settings.from_environment({}), home=Path(folder) / "store", spool=Path(folder) / "spool")
        for (system, options), paths in _by_call(files).items():
            _run(settings, ["ingest", "--json", "--system", system, *options, *map(str, paths)])
        if train is not None:
            _run(settings, ["models", "--json", "train", train])
        with connect(settings=settings) as client:
            yield client


def _run(settings: Settings, words: list[str]) -> None:
    """Run a verb. Raises: RuntimeError if it fails."""
    verb, said = next(verb for verb in VERBS if verb.name == words[0]), io.StringIO()
    with redirect_stdout(said):
        code = load(verb).execute(build_parser(verb.name).parse_args(words), settings)
    if code:
        raise RuntimeError(f"crosswind {' '.join(words)[:200]} exits with {code}: {said.getvalue()[:2000]}")


def _by_call(files: Iterable[Files]) -> dict[tuple[str, tuple[str, ...]], list[Path]]:
    calls: dict[tuple[str, tuple[str, ...]], list[Path]] = defaultdict(list)
    for of_one in files:
        calls[of_one.system, of_one.options] += of_one.paths
    return calls
