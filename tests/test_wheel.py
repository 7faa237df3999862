"""Wheel that people install: it is built from the sdist, holds everything, and works in an empty environment."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("src", "api", "dashboards", "data", "deploy", "ingest", "models", "pyproject.toml", "LICENSE", "README.md")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist of a copy of the sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, symlinks=True, ignore=LEFT_OUT)
        else:
            shutil.copy(source, copy)
    command = [sys.executable, "-m", "build", "--no-isolation", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert len(list((copy / "dist").glob("crosswind-*.tar.gz"))) == 1
    [built] = (copy / "dist").glob("crosswind-*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def empty_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and nothing else, not even pip."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    return folder


def said_by(program: list[str], home: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.run(program, env=environment, cwd=home, capture_output=True, text=True, check=False)


def test_only_our_package_lands_among_the_users_modules(unpacked: Path) -> None:
    tops = {path.name for path in unpacked.iterdir()}
    assert {name.partition("-")[0] for name in tops} == {"crosswind"}
    assert len(tops) == 2  # the package and its metadata


def test_every_file_of_the_packages_is_in_the_wheel(unpacked: Path) -> None:
    def files(folder: Path) -> set[str]:
        walked = ((base, name) for base, _, names in os.walk(folder, followlinks=True) for name in names)
        paths = (Path(base, name).relative_to(folder) for base, name in walked if not name.startswith("."))
        return {path.as_posix() for path in paths if "__pycache__" not in path.parts}

    present = files(unpacked / "crosswind")
    assert files(ROOT / "src" / "crosswind") - present == set()
    catalog = "data/catalog/migrations/versions/"
    for kind in ("dashboards/templates/base.html", "dashboards/static/", catalog, "data/samples/", "deploy/slurm/"):
        assert any(path.startswith(kind) for path in present), kind


def test_no_link_and_no_foreign_file_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        kinds = {entry.external_attr >> 28 for entry in archive.infolist()}
        assert kinds <= {0, 8}  # regular files alone
        parts = {part for name in archive.namelist() for part in name.split("/")}
    assert not any(part in ("__pycache__", "tests") or part.startswith("test_") for part in parts)


def test_an_empty_environment_has_probe_and_command_line(empty_environment: Path, tmp_path: Path) -> None:
    python, crosswind = (str(empty_environment / "bin" / name) for name in ("python", "crosswind"))
    code = "import crosswind\nwith crosswind.run() as run:\n    print(*run.steps('ab'), crosswind.__file__)"
    probed = said_by([python, "-c", code], tmp_path)
    assert (probed.returncode, probed.stderr) == (0, "")
    assert probed.stdout.split()[:2] == ["a", "b"]
    assert probed.stdout.split()[2].startswith(str(empty_environment))
    assert "crosswind run -- torchrun" in said_by([crosswind, "--help"], tmp_path).stdout
    ran = said_by([crosswind, "run", "--", "sh", "-c", "echo out; exit 3"], tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "out\n")
    assert "crosswind: failed: the program failed: exit code 3" in ran.stderr
    assert len(list((tmp_path / ".local/share/crosswind/incoming").glob("*.segment"))) == 4  # probe, wrapper, agent


@pytest.mark.parametrize("verb", ["ingest", "runs", "show", "explain", "predict", "tune", "serve", "demo"])
def test_an_empty_environment_says_what_a_verb_needs(empty_environment: Path, tmp_path: Path, verb: str) -> None:
    said = said_by([str(empty_environment / "bin" / "crosswind"), verb, "--help"], tmp_path)
    assert "Traceback" not in said.stderr
    if said.returncode:
        assert (said.returncode, said.stderr.split(": ", 2)[2]) == (1, "pip install 'crosswind[server]'\n")


IMPORT_ALL = """
import importlib.util, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import crosswind
assert crosswind.__file__.startswith(sys.argv[1]), crosswind.__file__
def refuse(name):
    raise SystemExit(f"{name} cannot be imported")
names = [module.name for module in pkgutil.walk_packages(crosswind.__path__, "crosswind.", onerror=refuse)]
hosts = {"optuna": "optuna", "raytune": "ray", "samplers.optuna": "optuna", "samplers.ray": "ray"}
absent = tuple(f"crosswind.{name}" for name, host in hosts.items() if not importlib.util.find_spec(host))
for name in names:
    if ".migrations" not in name and not name.startswith(absent):  # alembic runs migrations
        __import__(name)
print(len(names))
"""


@pytest.mark.thorough
def test_every_module_of_the_wheel_imports_with_the_extras(unpacked: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORT_ALL, str(unpacked)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    modules = [path for path in (unpacked / "crosswind").rglob("*.py") if "migrations" not in path.parts]
    assert int(done.stdout) >= len(modules) - 1  # but the package itself
