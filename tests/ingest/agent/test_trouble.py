import logging

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.agent.trouble import Trouble


def test_every_outage_is_reported_with_its_own_attempts(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble(logging.getLogger("t"), "it is away", "it is back, after %d attempts")
    for attempts in (3, 2):
        for _ in range(attempts):
            with trouble.caught():
                raise UnavailableError("gone")
        for _ in range(2):
            with trouble.caught():
                pass
    first, second = "it is back, after 3 attempts", "it is back, after 2 attempts"
    assert caplog.messages == ["it is away: gone", first, "it is away: gone", second]
    assert trouble.times == 5
