import sys
from pathlib import Path

import pytest

from crosswind import __version__
from crosswind.data.schema.errors import ConflictError, InvalidInputError, UnavailableError
from crosswind.models.training.cluster.connect import SLURM, ClusterOptions, connected
from crosswind.models.training.cluster.versions import Versions

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own


def test_another_version_is_refused_with_both_named() -> None:
    here, own = Versions.here(), ".".join(map(str, sys.version_info[:3]))
    other = Versions.reported({"host": {"python": "3.99.1.final.0"}, "packages": {"crosswind": __version__}})
    with pytest.raises(ConflictError, match=r"Python 3\.99, expected 3\."):
        here.check("tcp://w:1", other)
    other = Versions.reported({"host": {"python": own}, "packages": {"crosswind": "0.0.1"}})
    with pytest.raises(ConflictError, match=rf"Crosswind 0\.0\.1, expected {__version__}"):
        here.check("tcp://w:1", other)


@pytest.mark.parametrize("where", ["", "node1:8786", "http://node1:8786", "slurm2"])
def test_a_place_that_is_none_is_refused(where: str) -> None:
    with pytest.raises(InvalidInputError, match="expected local, slurm"), connected(where, ClusterOptions()):
        pass


def test_an_address_where_nothing_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.models.training.cluster.connect.ANSWER_SECONDS", 0.5)
    with (
        pytest.raises(UnavailableError, match=r"tcp://127\.0\.0\.1:1"),
        connected("tcp://127.0.0.1:1", ClusterOptions()),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("CROSSWIND_CLUSTER_WORKERS", "0"), ("CROSSWIND_CLUSTER_MEMORY", "2"), ("CROSSWIND_SLURM_WALLTIME", "an hour")],
)
def test_a_wrong_option_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=name):
        ClusterOptions.from_environment({name: value})


def test_slurm_without_its_commands_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="there is no sbatch here"), connected(SLURM, ClusterOptions()):
        pass
