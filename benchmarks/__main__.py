"""Runs one benchmark by name, or all of a kind: `python -m benchmarks [--accuracy] [NAME]`."""

import argparse
import importlib
import sys

SPEED = (
    "startup",
    "tuner",
    "agent",
    "slowdown",
    "ingest",
    "agents",
    "remote_write",
    "probe",
    "gpu",
    "lake",
    "series",
    "readers",
    "traces",
    "predict",
    "explain",
    "stragglers",
    "api",
    "pages",
)
ACCURACY = ("tuner", "predict", "explain", "transfer", "energy", "interference", "stragglers", "captures")
LONG = ("tuner_live",)  # accuracy that wants a quiet machine for half an hour: only by name
LONG_SPEED = ("scale",)  # and speed


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--accuracy", action="store_true", help="accuracy beside baselines instead of speed")
    parser.add_argument("name", nargs="?", help="one of them (default: all but the long ones)")
    arguments = parser.parse_args()
    defaults = ACCURACY if arguments.accuracy else SPEED
    named = (*defaults, *(LONG if arguments.accuracy else LONG_SPEED))
    if arguments.name not in (None, *named):
        parser.error(f"{arguments.name!r} is not one of {', '.join(named)}")
    for name in [arguments.name] if arguments.name else defaults:
        module = f"accuracy_{name}" if arguments.accuracy else name
        print(f"== {module}")
        importlib.import_module(f"benchmarks.{module}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
