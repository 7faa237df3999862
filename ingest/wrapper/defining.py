"""The rule that says which arguments define a run's configuration, and so its cohort.

What tunes the work does: `batch_size=8`, `layers 12`, the content of a configuration file. Seeds, paths, names, ports,
dates and how much is logged define nothing: a nightly run with another seed and output folder is the same work again.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from crosswind.data.schema.command.arguments import Argument
from crosswind.data.schema.redaction import is_secret, word_set, words_of

ANYWHERE = word_set(  # words of a name that defines nothing
    "seed seeds rng dir dirs directory directories path paths folder folders root file files filename filenames fname "
    "logdir outdir workdir savedir datadir ckptdir rundir tmpdir cachedir prefix "
    "port ports addr address host hosts hostname hostfile ip ips endpoint url uri rdzv "
    "date datetime timestamp today uuid wandb mlflow comet neptune clearml tensorboard swanlab hydra"
)
ALONE = word_set(  # names that define nothing as a whole
    "o out output outputs result results name names tag tags note notes comment comments description desc id uid user "
    "email project group entity experiment exp expname exp_name jobname runname display_name report_to random_state "
    "save save_to load load_from checkpoint checkpoints ckpt export dump plot local_rank global_rank node_rank "
    "machine_rank group_rank verbose verbosity v vv quiet q log_level loglevel resume resume_from auto_resume restart "
    "log logs logger log_to help version day"
)
NAMED_THINGS = word_set("run exp experiment job project session trial user log display group sweep study")
OF_NAMES = word_set("name id title label")
OF_MODELS = word_set("model tokenizer dataset config")  # `model_name_or_path` names one of these
OF_CONFIGURATION = word_set(
    "config configs configuration conf cfg settings params parameters hparams yaml toml recipe spec input in i c gin "
    "deepspeed fsdp options args arguments yml"
)
CONFIGURATION_SUFFIXES = word_set(
    ".yaml .yml .json .toml .ini .cfg .conf .gin .jsonnet .prototxt .xml .nml .in .inp .par .mdp .lua .py"
)
OF_DATA = word_set("out output log data dataset tokenizer")
LAUNCHING = word_set("bind map precision dynamo membind cpunodebind physcpubind interleave")
FILES = re.compile(  # by suffix, whether they exist already or not: outputs do so from the second run on
    r"[^=\s]+\.(pt|pth|ckpt|bin|npz|npy|log|txt|csv|tsv|jsonl?|ya?ml|toml|h5|hdf5|safetensors|out|dat|parquet|tar|t?gz|zst|zip"
    r"|png|pdf|svg|pkl|pickle|db|sqlite|arrow|mds|onnx|gguf|nc|vtk|cfg|ini|conf|py)"
)
PATH = re.compile(r"(~|\.{1,2}|[A-Za-z][A-Za-z0-9+.-]*:/)?/.*|~|\.{1,2}", re.DOTALL)
DATE = re.compile(r"(19|20)\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])([T _-].*)?")
MAX_DIGESTED = 1 << 20
DIGITS = 12


@dataclass(frozen=True)
class Rule:
    """The rule of this module, unless a pattern of names (`data.*`) says otherwise."""

    define: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def defines(self, argument: Argument) -> bool:
        """Return whether this argument is part of the configuration."""
        if is_secret(argument.name, argument.text or ""):
            return False
        if _matches(argument.name, self.define):
            return True
        return not _matches(argument.name, self.ignore) and _tunes(argument)

    def launcher_defines(self, argument: Argument) -> bool:
        """Return whether an option of a launcher is: where processes are bound, and in which precision they compute."""
        if _matches(argument.name, self.define):
            return True
        return bool(LAUNCHING.intersection(words_of(argument.name))) and not _matches(argument.name, self.ignore)

    def digest(self, argument: Argument) -> str | None:
        """Return the digest of the configuration file that an argument names; None if it names none."""
        if argument.text is None or _matches(argument.name, self.ignore):
            return None
        words = set(words_of(argument.name))
        is_meant = argument.text.startswith("@") or not argument.is_named or words & OF_CONFIGURATION
        is_excluded = argument.is_named and words & OF_DATA
        return digest_of(Path(argument.text.removeprefix("@"))) if is_meant and not is_excluded else None


def digest_of(path: Path) -> str | None:
    """Return the digest of a small file by whose suffix it is a configuration; None for any other, or none."""
    if path.suffix.lower() not in CONFIGURATION_SUFFIXES:
        return None
    try:
        if not path.is_file() or path.stat().st_size > MAX_DIGESTED:
            return None
        return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
    except OSError:
        return None


def model_named(argument: Argument) -> str | None:
    """Return the model in an argument such as `model_name_or_path`, wherever its files are; None in another one."""
    words = words_of(argument.name)
    if words[-3:] != ["name", "or", "path"] or not OF_MODELS.intersection(words):
        return None
    return (argument.text or "").rstrip("/").rpartition("/")[2] or None


def _tunes(argument: Argument) -> bool:
    words = words_of(argument.name)
    if "_".join(words) in ALONE or ANYWHERE.intersection(words):
        return False
    if (OF_NAMES.intersection(words) and NAMED_THINGS.intersection(words)) or not words:
        return False
    return argument.text is None or not (DATE.fullmatch(argument.text) or is_path(argument.text))


def is_path(text: str) -> bool:
    """Return whether a value is the path of something here, or a URL."""
    if PATH.fullmatch(text) or FILES.fullmatch(text):
        return True
    try:
        return ("/" in text or bool(Path(text).suffix)) and Path(text).exists()
    except (OSError, ValueError):
        return False


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern.lstrip("-").replace("-", "_")) for pattern in patterns)
