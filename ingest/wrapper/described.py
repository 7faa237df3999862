"""The description of a command as it is written down: configuration, arguments, environment, versions; no secrets."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.command.arguments import MAX_NAME, Argument, arguments_of, value_of
from crosswind.data.schema.command.launchers import ASSIGNMENT, Started, started_by
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.spool.redaction import REDACTED, is_secret, redacted, redacted_words, secrets_in
from crosswind.ingest.wrapper.defining import Rule, model_named
from crosswind.ingest.wrapper.hydra import with_hydra_file

RELEVANT = re.compile(
    r"(NCCL|RCCL|OMP|KMP|GOMP|MKL|OPENBLAS|BLIS|TORCH|TORCHINDUCTOR|TORCHDYNAMO|PYTORCH|CUDA|CUBLAS|CUDNN|HIP|ROCR|HSA"
    r"|MIOPEN|GLOO|TP|UCX|UCC|OMPI_MCA|MPICH|I_MPI|FI|PSM2|XLA|JAX|MALLOC|DS|DEEPSPEED|ACCELERATE|FSDP|HF|LIGHTNING"
    r"|PL|NVIDIA(?!_REQUIRE_)|NVTE|TRITON|SLURM_CPU_BIND|SLURM_MEM_BIND|SLURM_GPU_BIND)(_.*)?"
    r"|TF_(XLA|ENABLE|GPU|NUM|CPP|FORCE|CUDNN|DETERMINISTIC|USE|CONFIG|FP16)\w*|LD_PRELOAD|TOKENIZERS_PARALLELISM|PYTHONHASHSEED|PYTHONOPTIMIZE|PYTHONMALLOC|CONDA_DEFAULT_ENV|VIRTUAL_ENV"
    r"|LOADEDMODULES|SINGULARITY_NAME|APPTAINER_NAME"
)
MAX_VARIABLES = 100
MAX_TEXT = 1000


@dataclass(frozen=True)
class Described:
    """The facts of one command; nothing in them is secret."""

    name: str
    command: list[str]
    configuration: Configuration = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()  # of the program, where its commit is looked up


def described(
    command: Sequence[str],
    *,
    rule: Rule | None,
    given: Configuration | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Described:
    """Return what is to be recorded of a command; `given` parameters are part of the configuration in any case.

    Without a rule they are all of it.
    """
    words = [printable(word) for word in command]
    started = started_by(words)
    seen = {**environment, **_assigned(started.launchers)}
    secrets = secrets_in(seen)
    own, launching = arguments_of(started.words), arguments_of(started.launchers[1:])
    read = with_hydra_file(own, started.program)
    defining = (dict(_defining(read, launching, rule, secrets)) if rule else {}) | dict(given or {})
    tags = {
        f"argument.{argument.name}": text
        for argument in own
        if (text := _recorded(argument, secrets)) is not None and defining.get(argument.name) != argument.value
    }
    if started.launchers:
        tags["launcher"] = " ".join(redacted_words(started.launchers, secrets))[:MAX_TEXT]
    return Described(
        name=redacted(started.name, secrets),
        command=redacted_words(words, secrets),
        configuration=dict(sorted(defining.items())),
        tags=tags | _variables(seen, secrets),
        folder=Path(started.program).resolve().parent if _is_file(started) else Path.cwd(),
    )


def printable(text: str) -> str:
    """Return a word of a command line as text, which its bytes need not be."""
    return os.fsencode(text).decode("utf-8", "replace")


def _defining(
    own: Iterable[Argument], launching: Iterable[Argument], rule: Rule, secrets: Sequence[str]
) -> Iterator[tuple[str, bool | int | float | str]]:
    for argument in own:
        if digest := rule.digest(argument):
            yield (argument.name if argument.is_named else f"config_{argument.name}"), digest
        elif rule.defines(argument):
            yield argument.name, _clean(argument.value, secrets)
        elif model := model_named(argument):
            yield argument.name, model
    for argument in launching:
        if argument.is_named and rule.launcher_defines(argument):
            yield f"launcher.{argument.name}", _clean(argument.value, secrets)


def _recorded(argument: Argument, secrets: Sequence[str]) -> str | None:
    if is_secret(argument.name, argument.text or ""):
        return REDACTED
    return str(_clean(argument.value, secrets))


def _clean(value: bool | int | float | str, secrets: Sequence[str]) -> bool | int | float | str:
    return on_one_line(redacted(value, secrets)) if isinstance(value, str) else value


def on_one_line(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text as records take it: printable, and not too long."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:limit]


def _assigned(launchers: Sequence[str]) -> dict[str, str]:
    """Return the variables that `env NAME=VALUE` sets for the program."""
    if not any(Path(word).name == "env" for word in launchers):
        return {}
    pairs = (word.partition("=") for word in launchers if ASSIGNMENT.fullmatch(word))
    return {name: value for name, _, value in pairs}


def _variables(environment: Mapping[str, str], secrets: Sequence[str]) -> dict[str, str]:
    names = sorted(name for name in environment if RELEVANT.fullmatch(name))[:MAX_VARIABLES]
    return {
        f"environment.{name[:MAX_NAME]}": REDACTED
        if is_secret(name, environment[name])
        else on_one_line(redacted(printable(environment[name]), secrets))
        for name in names
    }


def _is_file(started: Started) -> bool:
    try:
        return not started.is_code and Path(started.program).is_file()
    except (OSError, ValueError):
        return False


def given_value(text: str) -> bool | int | float | str:
    """Return the value of `--config NAME=VALUE`, without secrets."""
    return _clean(value_of(text), ())
