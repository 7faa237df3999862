"""First steps for those who have just installed Crosswind, or opened an empty store."""

import importlib.util
from pathlib import Path

from crosswind.cli.text.output import table
from crosswind.settings import Settings

CATALOG = "catalog.sqlite"
RECORDED = "crosswind run -- torchrun ... records one, crosswind demo records a dozen"
STEPS = (
    ("crosswind run -- torchrun train.py", "record a run of your program, which you need not change"),
    ("crosswind explain", "why was the latest run slow?"),
    ("crosswind runs", "what is stored"),
    ("crosswind ingest sacct.txt logs/", "start with what you have: accounting, logs, telemetry"),
    ("crosswind predict --workload NAME --ranks 8", "how long will the next run take?"),
    ("crosswind tune exec STUDY -- CMD {parameter}", "find a good configuration in a handful of runs"),
    ("crosswind demo", "all of this on this machine, within two minutes"),
    ("crosswind doctor", "what works here, and how to get the rest"),
)


def first_steps(settings: Settings) -> str:
    """Return what to type first, and where what is recorded goes."""
    lines = [
        "Why a distributed training run was slow, how long the next one will take, and what to run. Type:",
        "",
        *[f"  {line}" for line in table(("", ""), STEPS).splitlines()[1:]],
        "",
        *_place(settings),
        "`crosswind --help` lists every verb, `crosswind VERB --help` says more.",
    ]
    return "\n".join(lines)


def no_runs_words(settings: Settings) -> str:
    """Return how to fill an empty store, and where the demo's runs are."""
    demo = demo_home(settings)
    where = f" The demo's runs are in its own store: export CROSSWIND_HOME={demo}" if demo else ""
    return f"No runs are stored yet: {RECORDED}.{where}"


def demo_home(settings: Settings) -> Path | None:
    """Return the folder of the demo's store, if a demo ran here and this is not it."""
    home = settings.home / "demo"
    return home if (home / CATALOG).exists() else None


def _place(settings: Settings) -> list[str]:
    if importlib.util.find_spec("pyarrow") is None:
        return [
            f"This is the plain installation: it records into {settings.spool}, and asks servers (--server URL).",
            "pip install 'crosswind[server]' adds the store, the models, the pages and the API.",
        ]
    state = "" if (settings.home / CATALOG).exists() or settings.database else ", which is made on first use"
    lines = [f"The store is {settings.home}{state}; CROSSWIND_HOME names another."]
    if demo := demo_home(settings):
        lines.append(f"The demo's runs are in its own store: export CROSSWIND_HOME={demo}")
    return lines
