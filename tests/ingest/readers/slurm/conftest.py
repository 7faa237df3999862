from typing import Any

import pytest


@pytest.fixture(scope="session")
def slurm_reports(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what all programs of a real Slurm report of the same jobs."""
    from tests.slurm.reports import report_by_all  # noqa: PLC0415  a second, for few of the tests here

    return report_by_all(tmp_path_factory.mktemp("slurm"))
