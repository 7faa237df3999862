import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.load.test_together import batch, files_of, one_by_one, rows_of

from crosswind.api import intake
from crosswind.api.intake import Intake
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store
from crosswind.ingest.load.receive import Fate

SETS, ROWS = 2, 8  # of a batch


def test_what_comes_while_one_is_stored_is_stored_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, go_on = threading.Semaphore(0), threading.Event()
    receive = intake.receive

    def slow(*args: Any, **options: Any) -> Any:
        alone.release()
        assert go_on.wait(30)
        return receive(*args, **options)

    batches = [batch(tmp_path, f"n{number}") for number in range(6)]

    async def send(store: Store) -> list[Fate]:
        taking, tasks = Intake(store, ServerSettings()), []
        for one in batches:
            name, content = one.segment.name, one.segment.content
            tasks.append(asyncio.create_task(taking.take(content, "identity", name=name, batch_id=one.identity)))
            if len(tasks) == 1:
                assert await asyncio.to_thread(alone.acquire, timeout=30)
            else:
                await asyncio.sleep(0.02)
        go_on.set()
        return [received.fate for received in await asyncio.gather(*tasks)]

    with Store.open(tmp_path / "home") as store:
        one_by_one(store, [batch(tmp_path, "first")])  # the store knows the sets
        monkeypatch.setattr(intake, "receive", slow)
        assert asyncio.run(send(store)) == [Fate.STORED] * len(batches)
        assert len(rows_of(store)) == ROWS * (1 + len(batches))
        assert files_of(store) == SETS * 3
