"""The request and the program of a batch script."""

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.command.arguments import arguments_of, value_of
from crosswind.data.schema.command.launchers import LAUNCHERS, started_by
from crosswind.data.schema.redaction import is_secret
from crosswind.data.schema.trial import Configuration

DIRECTIVE = re.compile(r"#SBATCH\s+(.+)")
CROSSWIND = "crosswind"
LETTERS = {"N": "nodes", "n": "ntasks", "t": "time", "J": "job_name", "G": "gpus"}
GPUS = ("gpus_per_node", "gres", "gpus")  # the first that is given
BY_THE_NODE = ("gpu", "auto")  # words of torchrun for one process a GPU


@dataclass(frozen=True)
class JobScript:
    """The request and the program of a batch script; empty or None where it does not say."""

    job_name: str = ""
    nodes: int | None = None
    ranks: int | None = None
    gpus_per_node: int | None = None
    limit: str = ""
    program: str = ""
    workload: str = ""
    configuration: Configuration = field(default_factory=dict)


def read_script(text: str) -> JobScript:
    """Return what the script's `#SBATCH` lines and the command with the most launchers say."""
    asked = _directives(text)
    words = max(_commands(text), key=_launchers, default=[])
    own, words = _of_crosswind(words)
    started = started_by(words) if words else None
    launching = _named(started.launchers) if started else {}
    request = {**asked, **launching}
    nodes, gpus = _whole(request.get("nodes") or request.get("nnodes")), _gpus(request)
    return JobScript(
        job_name=asked.get("job_name", ""),
        nodes=nodes,
        ranks=_ranks(request, nodes, gpus),
        gpus_per_node=gpus,
        limit=request.get("time", ""),
        program=started.name if started else "",
        workload=own.get("workload", ""),
        configuration={**(_configuration(started.words) if started else {}), **_assigned(own.get("config", ""))},
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote that goes on in the next line
        return []


def _directives(text: str) -> dict[str, str]:
    matches = [match for line in _lines(text) if (match := DIRECTIVE.fullmatch(line))]
    return {name: value for match in matches for name, value in _named(_split(match[1])).items()}


def _named(words: Sequence[str]) -> dict[str, str]:
    """Return options with their values, single letters by their long names."""
    named = [argument for argument in arguments_of(words) if argument.is_named and argument.text]
    return {LETTERS.get(argument.name, argument.name): argument.text or "" for argument in named}


def _commands(text: str) -> Iterator[list[str]]:
    for line in _lines(text):
        words = [] if line.startswith("#") else _split(line)
        if words and (words[0] in LAUNCHERS or words[0] == CROSSWIND or words[0].startswith("python")):
            yield words


def _launchers(words: Sequence[str]) -> int:
    return len(started_by(_of_crosswind(words)[1] or ["true"]).launchers)


def _of_crosswind(words: Sequence[str]) -> tuple[Mapping[str, str], list[str]]:
    """Return the options of `crosswind run` and the command behind them; no options of another command."""
    if CROSSWIND not in words:
        return {}, list(words)
    begin = list(words).index(CROSSWIND)
    rest = list(words[begin + 1 :])
    end = rest.index("--") if "--" in rest else 0
    return _named(rest[:end]), [*words[:begin], *(rest[end + 1 :] if end else rest[1:])]


def _ranks(request: Mapping[str, str], nodes: int | None, gpus: int | None) -> int | None:
    """Return the number of processes: of torchrun on each node, else the scheduler's tasks."""
    here = request.get("nproc_per_node", "")
    per_node = gpus if here in BY_THE_NODE else _whole(here)
    if per_node is not None:
        return per_node * (nodes or 1)
    tasks, on_a_node = _whole(request.get("ntasks")), _whole(request.get("ntasks_per_node"))
    if tasks is None and on_a_node is not None:
        return on_a_node * (nodes or 1)
    return tasks or nodes


def _gpus(request: Mapping[str, str]) -> int | None:
    """Return the accelerators of a node, of `--gpus-per-node=a100:4`, `--gres=gpu:a100:4` or `--gpus=8`."""
    name = next((name for name in GPUS if request.get(name)), "")
    asked = request.get(name, "").partition(",")[0]
    count = None if name == "gres" and not asked.startswith("gpu") else _whole(asked.rpartition(":")[2])
    nodes = _whole(request.get("nodes"))
    return math.ceil(count / nodes) if count and nodes and name == "gpus" else count


def _whole(text: str | None) -> int | None:
    """Return a whole number from 1 on; None of anything else, such as a variable."""
    return int(text) if text and text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9 else None


def _configuration(words: Sequence[str]) -> Configuration:
    """Return the program's named arguments, without secrets and without what a shell would have to fill in."""
    return {
        argument.name: argument.value
        for argument in arguments_of(words)
        if argument.is_named and "$" not in (argument.text or "") and not is_secret(argument.name, argument.text or "")
    }


def _assigned(words: str) -> Configuration:
    pairs = (word.partition("=") for word in words.split())
    return {name: value_of(text) for name, equals, text in pairs if name and equals}
