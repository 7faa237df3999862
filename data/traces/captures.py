"""The captures of a run: traces of its ranks at one time, with nothing known between one and the next."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from crosswind.data.traces.rows import Facts

JOINED = 0.05  # of the time traced so far: traces less far apart are of one capture
NAMED = 6  # traces that are left out


def one_capture(by_rank: Mapping[int, list[Facts]]) -> tuple[Mapping[int, list[Facts]], tuple[str, ...]]:
    """Return the facts of one capture by rank, that of most ranks and of these the newest; a note names the others.

    Where no rank was traced twice, all traces are of one, as clocks of ranks may be far apart.
    """
    captures = _captures([one for facts in by_rank.values() for one in facts])
    if len(captures) == 1 or all(len(facts) == 1 for facts in by_rank.values()):
        return by_rank, ()
    chosen = max(captures, key=lambda one: (len({facts["rank"] for facts in one}), one[-1]["first_ns"]))
    left = [PurePath(facts["source"]).name for one in captures if one is not chosen for facts in one]
    kept = {rank: [one for one in facts if one in chosen] for rank, facts in by_rank.items()}
    return {rank: facts for rank, facts in kept.items() if facts}, (_note(len(captures), left),)


def _captures(traces: Iterable[Facts]) -> list[list[Facts]]:
    """Return traces that overlap, or nearly meet, together; in the order of their begins."""
    captures: list[list[Facts]] = []
    begin = end = 0
    for one in sorted(traces, key=lambda one: one["first_ns"]):
        if not captures or one["first_ns"] > end + JOINED * (end - begin):
            captures.append([])
            begin = end = one["first_ns"]
        captures[-1].append(one)
        end = max(end, one["last_ns"])
    return captures


def _note(count: int, left: list[str]) -> str:
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    return f"one of {count} captures of the run, that of most ranks; left out: {', '.join(left[:NAMED])}{more}"
