"""Code that runs before every Python program under `crosswind run`: ranks get a hook on `import torch`.

The sitecustomize that this one hides runs as usual. Older Pythons can read this file too, and do nothing more.
"""

import atexit
import os
import sys

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
PLACE_VARIABLES = (*RANK_VARIABLES, "LOCAL_RANK", "NODE_RANK")
LAUNCHERS = (
    *("torchrun", "torch.distributed.run", "torch.distributed.launch"),
    *("accelerate", "accelerate-launch", "accelerate.commands.launch", "horovodrun"),
    *("deepspeed", "deepspeed.launcher.runner", "deepspeed.launcher.launch"),
)
FRAMEWORKS = ("jax", "tensorflow", "keras", "mpi4py", "mxnet", "paddle", "mindspore")
MARK = "CROSSWIND_INJECTED"  # the rank that an ancestor of this process is already
HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would cost every program 5 ms


def _rank():
    # type: () -> str
    return " ".join(name + "=" + os.environ[name] for name in PLACE_VARIABLES if name in os.environ)


def _is_recorded():
    # type: () -> bool
    return bool(os.environ.get("CROSSWIND_RUN_ID")) and os.environ.get("CROSSWIND_INJECT") != "0"


def _is_spawned():
    # type: () -> bool
    """Return whether multiprocessing has started this process: a rank of `torch.multiprocessing.spawn`, or a worker."""
    return "--multiprocessing-fork" in sys.argv


def _may_be_rank():
    # type: () -> bool
    """Return whether this process may train: no launcher, no worker of a rank, no program that a rank has started."""
    if sys.version_info < (3, 11) or not _is_recorded() or _program() in LAUNCHERS:
        return False
    rank, _, process = os.environ.get(MARK, "").rpartition(" in ")
    number, _, training = process.partition(" ")
    if _is_spawned():  # a parent that trains itself has workers, not ranks
        return not training
    return not process or rank != _rank() or number == str(os.getpid())  # a program may replace itself


def _program():
    # type: () -> str
    """Return the script's name, or the module's after `-m`: the word before the program's own."""
    if sys.argv[:1] == ["-c"]:
        return "-c"
    words = sys.orig_argv[-len(sys.argv) :][:1]
    return os.path.basename(words[0]) if words else ""  # noqa: PTH119


def _mark():
    # type: () -> None
    os.environ[MARK] = "%s in %d" % (_rank(), os.getpid())  # noqa: UP031


def _mark_training():
    # type: () -> None
    os.environ[MARK] = "%s in %d training" % (_rank(), os.getpid())  # noqa: UP031


class _AfterTorch:
    """Loads torch as its own loader does, and then installs the hooks."""

    def __init__(self, loader, finder):
        # type: (object, object) -> None
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name):
        # type: (str) -> object
        return getattr(self._loader, name)

    def exec_module(self, module):
        # type: (object) -> None
        """Run the module's code."""
        module.__loader__ = module.__spec__.loader = self._loader  # type: ignore[attr-defined]
        self._loader.exec_module(module)  # type: ignore[attr-defined]
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
            _watch_loop()


class _Finder:
    """Waits for the import of torch; many programs look for its spec long before."""

    def find_spec(self, name, path=None, target=None):
        # type: (str, object, object) -> object
        """Return torch's own spec with our loader around its; None for all other modules."""
        if name != "torch":
            return None
        finders = list(sys.meta_path)  # type: list[object]
        if self not in finders:
            return None
        later = (finder for finder in finders[finders.index(self) + 1 :] if hasattr(finder, "find_spec"))
        specs = (finder.find_spec(name, path, target) for finder in later)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _AfterTorch(spec.loader, self)
        return spec


def _watch_loop():
    # type: () -> None
    try:
        _provide_crosswind()
        from crosswind.ingest.injected.hooks import install  # noqa: PLC0415

        install(_mark_training)
    except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's program
        sys.stderr.write("crosswind does not record this process: %s\n" % error)  # noqa: UP031


def _note_end(process, is_launcher):
    # type: (int, bool) -> None
    """Leave a note for `crosswind run`: why a process failed, or why it has recorded no steps."""
    if os.getpid() != process:  # a fork of it
        return
    try:
        ours = ("torch", "crosswind.ingest.probe.identity")
        is_plain = getattr(sys, "last_type", None) is None and not any(name in sys.modules for name in ours)
        if not is_plain:
            _provide_crosswind()
            from crosswind.ingest.injected.leaving import note_end  # noqa: PLC0415

            note_end(_program(), is_launcher=is_launcher)
        elif not is_launcher and not _is_spawned():
            _note_plainly()
    except Exception:  # noqa: BLE001, S110 - the user's program is over, and its exit code is not ours to change
        pass


def _note_plainly():
    # type: () -> None
    """Leave a note without loading anything, which would take longer than many programs."""
    seen = next((name for name in FRAMEWORKS if name in sys.modules), "")
    version = "%d.%d" % sys.version_info[:2]  # noqa: UP031
    program = "".join(letter if letter.isalnum() or letter in " ._-+/" else "?" for letter in _program())
    line = '{"pid": %d, "program": "%s", "saw": "%s", "python": "%s"}\n'
    path = os.path.join(os.environ["CROSSWIND_SPOOL"], os.environ["CROSSWIND_RUN_ID"] + ".notes")  # noqa: PTH118
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    os.write(fd, (line % (os.getpid(), program[:200], seen, version)).encode("ascii", "replace"))
    os.close(fd)


def _provide_crosswind():
    # type: () -> None
    """Make our package, and nothing else of its folder, importable where the program's environment lacks it."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location  # noqa: PLC0415

    installed = find_spec("crosswind")
    if installed is not None and installed.origin is not None:
        return
    folder = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))  # noqa: PTH120
    spec = spec_from_file_location(
        "crosswind",
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    assert spec is not None  # noqa: S101 - a .py file has a loader
    assert spec.loader is not None  # noqa: S101
    module = sys.modules["crosswind"] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _run_hidden():
    # type: () -> None
    """Run the sitecustomize that would have run without us, and leave sys.path as it would have been."""
    ours = sys.modules.pop("sitecustomize")
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]  # noqa: PTH100
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401, PLC0415
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours


if __name__ == "sitecustomize":
    if _may_be_rank():
        if _rank() and not _is_spawned():
            _mark()
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
        atexit.register(_note_end, os.getpid(), False)
    elif _is_recorded() and sys.version_info < (3, 11):
        atexit.register(_note_plainly)
    elif _is_recorded() and _program() in LAUNCHERS:
        atexit.register(_note_end, os.getpid(), True)
    _run_hidden()
