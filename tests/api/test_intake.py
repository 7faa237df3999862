import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.ingest.load.test_together import batch, files_of, one_by_one, rows_of

from crosswind.api import intake
from crosswind.api.intake import Intake
from crosswind.api.settings import ServerSettings
from crosswind.data.schema.access import Principal, RowRule
from crosswind.data.store.store import Store
from crosswind.ingest.load.receive import Fate

SETS, ROWS = 2, 8  # of a batch
OF_N1 = SimpleNamespace(write_rule=RowRule(sees_all=True, changes_all=True, nodes=frozenset({"n1"})))


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


@pytest.mark.parametrize("others", [0, 3])
def test_samples_of_another_node_are_refused_however_many_are_stored_together(tmp_path: Path, others: int) -> None:
    foreign, *more = [batch(tmp_path, f"n{number}") for number in range(2, 3 + others)]

    async def send(taking: Intake, bound: Any) -> list[Any]:
        sent = [(bound, foreign), (bound, batch(tmp_path, "n1")), *((taking, one) for one in more)]
        return await asyncio.gather(
            *(
                by.take(one.segment.content, "identity", name=one.segment.name, batch_id=one.identity)
                for by, one in sent
            ),
            return_exceptions=True,
        )

    with Store.open(tmp_path / "home") as store:
        one_by_one(store, [batch(tmp_path, "first")])
        taking = Intake(store, ServerSettings())
        refused, *stored = asyncio.run(send(taking, taking.of_sender(cast(Principal, OF_N1))))
        assert "node n2: this token may store samples of n1" in str(refused)
        assert [one.fate for one in stored] == [Fate.STORED] * (1 + others)
        assert len(rows_of(store)) == ROWS * (2 + others)
