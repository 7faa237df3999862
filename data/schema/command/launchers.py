"""Programs that start other programs, and where on their command lines the words of these begin."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

PYTHON = re.compile(r"(python|pypy)[\d.]*")
MODULE, CODE = ("-m", "--module"), "-c"
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
TWO_VALUES = frozenset(("--mca", "-mca", "--gmca", "-gmca", "-genv", "-env"))


@dataclass(frozen=True)
class Launcher:
    """The grammar of one launcher: its options without a value, or those with one, whichever are fewer.

    `subcommands` is the number of words before the program that are no options, such as `exec IMAGE`.
    """

    flags: frozenset[str] | None = None
    valued: frozenset[str] = frozenset()
    subcommands: int = 0
    is_python: bool = False  # starts a script, or a module after -m

    def values_of(self, word: str) -> int:
        """Return how many of the words after this option are its values."""
        if word in TWO_VALUES:
            return 2
        if "=" in word:
            return 0
        takes_one = word in self.valued if self.flags is None else word not in self.flags
        return int(takes_one)


def _flags(words: str, *, subcommands: int = 0, is_python: bool = False) -> Launcher:
    return Launcher(frozenset(words.split()), subcommands=subcommands, is_python=is_python)


def _valued(words: str = "", *, subcommands: int = 0, is_python: bool = False) -> Launcher:
    return Launcher(None, frozenset(words.split()), subcommands, is_python)


TORCHRUN = _flags(
    "--standalone --no-python --no_python --run-path --run_path --use-env --use_env --virtual-local-rank --help",
    is_python=True,
)
MPI = _flags(
    "--oversubscribe -oversubscribe --allow-run-as-root -q -v -l --report-bindings --display-map --tag-output "
    "--use-hwthread-cpus --nolocal --bynode --byslot --verbose -genvall -prepend-rank --do-not-launch"
)
SRUN = _flags(
    "-l --label -u --unbuffered -v -vv -Q --quiet --exclusive --overlap --exact -K --kill-on-bad-exit -O --overcommit "
    "-s --oversubscribe --no-kill -k --contiguous -H --pty -E --preserve-env -Z --no-allocate -X --spread-job --verbose"
)
ACCELERATE = _flags(
    "--cpu --multi_gpu --tpu --use_xpu --use_deepspeed --use_fsdp --use_megatron_lm --same_network --debug --quiet -q "
    "--no_python --use_parallelism_config --dynamo_use_dynamic --dynamo_use_fullgraph "
    "--dynamo_use_regional_compilation",
    subcommands=1,
    is_python=True,
)
DEEPSPEED = _flags(
    "--no_ssh --no_python --no_local_rank --save_pid --elastic_training --force_multi --bind_cores_to_rank",
    is_python=True,
)
CONTAINER = _flags("--nv --rocm -e --cleanenv -c --contain -C --containall -w --writable -u --userns", subcommands=2)
SHELL = _valued("-o -O")
LAUNCHERS = {
    **dict.fromkeys(("torchrun", "torch.distributed.run", "torch.distributed.launch"), TORCHRUN),
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "horovodrun", "aprun", "jsrun"), MPI),
    "srun": SRUN,
    "accelerate": ACCELERATE,
    **dict.fromkeys(("accelerate-launch", "accelerate.commands.launch"), Launcher(ACCELERATE.flags, is_python=True)),
    **dict.fromkeys(("deepspeed", "deepspeed.launcher.runner"), DEEPSPEED),
    **dict.fromkeys(("singularity", "apptainer"), CONTAINER),
    **dict.fromkeys(("sh", "bash", "zsh", "dash", "ksh"), SHELL),
    "env": _valued("-u --unset -C --chdir"),
    "numactl": _valued("-N -C -m -p -i -P --cpunodebind --physcpubind --membind --interleave --preferred"),
    "taskset": _valued(subcommands=1),
    "chrt": _valued(subcommands=1),
    "timeout": _valued("-s -k --signal --kill-after", subcommands=1),
    "nice": _valued("-n --adjustment"),
    "ionice": _valued("-c -n --class --classdata"),
    "stdbuf": _valued("-i -o -e"),
    **dict.fromkeys(("nohup", "setsid", "time", "exec", "catchsegv"), _valued("-f -o")),
    "uv": _valued("--with --python -p --project --extra --group --env-file --directory", subcommands=1),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch"), _valued(subcommands=1)),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _valued("-n --name -p --prefix --cwd", subcommands=1)),
    "nsys": _valued("-o --output -t --trace -s --sample -d -y -c", subcommands=1),
    "ncu": _valued("-o -k -s -c --set --section"),
}


@dataclass(frozen=True)
class Started:
    """The program that a command comes to: its word, its own words, and those of all launchers before it."""

    program: str
    words: tuple[str, ...]
    launchers: tuple[str, ...] = ()
    is_code: bool = False  # the program is the text of one

    @property
    def name(self) -> str:
        """The program's name, without folder and suffix of a script."""
        return PurePath(self.program).name if self.is_code else _name(self.program)


def started_by(command: Sequence[str]) -> Started:
    """Return the program of a command, past launchers, interpreters and tools such as `env` and `numactl`."""
    words, begin = list(command), 0
    while launcher := _launcher_of(words[begin]):
        after = _program_after(words, begin, launcher)
        if after is None:
            break
        if words[after - 1] == CODE and _is_interpreter(words[begin]):
            name = PurePath(words[begin]).name
            return Started(name, tuple(words[after + 1 :]), tuple(words[: after - 1]), is_code=True)
        begin = after
    return Started(words[begin], tuple(words[begin + 1 :]), tuple(words[:begin]))


def _launcher_of(word: str) -> Launcher | None:
    name = PurePath(word).name
    return _valued("-X -W", is_python=True) if PYTHON.fullmatch(name) else LAUNCHERS.get(name)


def _is_interpreter(word: str) -> bool:
    name = PurePath(word).name
    return bool(PYTHON.fullmatch(name)) or LAUNCHERS.get(name) is SHELL


def _program_after(words: Sequence[str], begin: int, launcher: Launcher) -> int | None:
    """Return the place of the program that the launcher at `begin` starts; None if there is none."""
    place, subcommands = begin + 1, launcher.subcommands
    while place < len(words):
        word = words[place]
        if (launcher.is_python and word in MODULE) or (word == CODE and _is_interpreter(words[begin])):
            return place + 1 if place + 1 < len(words) else None
        if word == "--":
            return place + 1 if place + 1 < len(words) else None
        if word.startswith("-") and len(word) > 1:
            place += launcher.values_of(word)
        elif subcommands:
            subcommands -= 1
        elif not (PurePath(words[begin]).name == "env" and ASSIGNMENT.fullmatch(word)):
            return place
        place += 1
    return None


def _name(program: str) -> str:
    path = PurePath(program)
    if path.suffix in (".py", ".sh", ".bash", ".pyc"):
        return path.stem
    is_module = "/" not in program and "." in program and all(part.isidentifier() for part in program.split("."))
    return program.rpartition(".")[2] if is_module else path.name
