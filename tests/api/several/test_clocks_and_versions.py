"""Servers on one PostgreSQL catalog whose clocks or versions differ, and work that one of them does at a time."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.api.access.issuing import bearer
from tests.api.live.listening import until
from tests.api.test_studies import STUDY
from tests.serving import own_client

from crosswind.api.access.oidc.pending import Pending
from crosswind.api.app import create_app
from crosswind.api.edge.limits import Limits
from crosswind.api.live.event_stream import EventStream
from crosswind.api.live.feed import Feed, Stream
from crosswind.data.catalog.clock import FRESH_NS, CatalogClock
from crosswind.data.catalog.database import HEAD, OtherVersionError, open_database
from crosswind.data.lake.compaction import compact
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope, TokenUse
from crosswind.data.schema.answers.events import ANY_EVENT
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.store.store import Store

AHEAD_SECONDS = 300
ANNA = Principal(PrincipalKind.PERSON, "anna", Role.USER, frozenset({Scope.READ}), user="anna")
SHIFTED = """
import sys, time
from pathlib import Path
true_ns = time.time_ns
time.time_ns = lambda: true_ns() + {ahead} * 1_000_000_000
time.time = lambda: time.time_ns() * 1e-9
from crosswind.data.schema.operation import Operation
from crosswind.data.store.store import Store
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training.operations import Runner
with Store.open(Path(sys.argv[1]), database=sys.argv[2]) as store:
    begun = Runner(store, {{"step-time": Trainer(None)}})._claim(None)
    print(begun and begun.operation_id)
"""
HOLDS = """
import sys, time
from pathlib import Path
from crosswind.data.store.store import Store
with Store.open(Path(sys.argv[1]), database=sys.argv[2]) as store:
    with store.catalog.alone("owners") as is_ours, store.lake.storage.changing() as is_lake_ours:
        print(is_ours, is_lake_ours, flush=True)
        time.sleep(600)
"""


def by_process(program: str, home: Path, url: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, str(home), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


@contextmanager
def opened(*homes: Path, url: str) -> Iterator[list[Store]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Store.open(home, database=url)) for home in homes]


def test_a_clock_that_is_five_minutes_ahead_takes_over_no_training(tmp_path: Path, postgres_url: str) -> None:
    from crosswind.models.registry.trainer import Trainer  # noqa: PLC0415
    from crosswind.models.training.operations import Runner  # noqa: PLC0415

    with opened(tmp_path / "one", url=postgres_url) as [store]:
        runner = Runner(store, {"step-time": Trainer(lambda _: pytest.fail("it is not trained here"))})
        runner.ask("step-time")
        assert runner._claim(None) is not None
        with by_process(SHIFTED.format(ahead=AHEAD_SECONDS), tmp_path / "one", postgres_url) as other:
            assert other.communicate(timeout=60)[0] == "None\n"


def test_the_clock_is_the_database_s_and_goes_on_while_it_is_away(postgres_url: str) -> None:
    elapsed = [0]
    engine = open_database(postgres_url)
    clock = CatalogClock(engine, lambda: elapsed[0])
    assert abs(clock() - time.time_ns()) < 1e9
    before = clock()
    elapsed[0] += FRESH_NS // 2
    assert clock() - before == FRESH_NS // 2
    elapsed[0] += FRESH_NS
    assert abs(clock() - time.time_ns()) < 1e9, "it is compared again"
    clock._engine = create_engine("postgresql+pg8000://nobody@127.0.0.1:1/none")
    elapsed[0] += 2 * FRESH_NS
    assert clock() > before
    engine.dispose()


@pytest.mark.parametrize("seconds", [AHEAD_SECONDS, -AHEAD_SECONDS])
def test_a_token_lasts_as_long_at_a_server_whose_clock_differs(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    with opened(tmp_path, url=postgres_url) as [store]:
        with store.catalog.write() as session:
            ours, over = (session.tokens.issue(ANNA, valid, created_by="test") for valid in (60, 1e-6))
        true_ns = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: true_ns() + seconds * 10**9)
        client = own_client(create_app(store))
        answers = [client.get("/v1/runs", headers=bearer(token.secret)) for token in (ours, over)]
        assert [answer.status_code for answer in answers] == [200, 401]
        assert "has expired" in answers[1].text
        stream = EventStream(
            Feed(store.catalog, Limits()), store.catalog, Stream(ANNA, ANY_EVENT, ours.token.token_id), 0
        )
        assert stream._expiry() - time.monotonic() == pytest.approx(60, abs=10)


def test_a_login_that_was_begun_where_the_clock_is_ahead_ends_at_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, now = Pending.new("/"), time.time()
    monkeypatch.setattr(time, "time", lambda: now - AHEAD_SECONDS)
    assert begun.is_answered_by(begun.state)
    monkeypatch.setattr(time, "time", lambda: now + 601)
    assert not begun.is_answered_by(begun.state)


def test_a_link_that_one_server_made_is_used_up_at_the_other(tmp_path: Path, postgres_url: str) -> None:
    from crosswind.data.catalog.tokens import digest_of  # noqa: PLC0415

    with opened(tmp_path, tmp_path, url=postgres_url) as [one, two]:
        with one.catalog.write() as session:
            link = session.tokens.issue(ANNA, 60, created_by="test", use=TokenUse.LINK)
        with two.catalog.write() as session:
            assert session.tokens.claim(digest_of(link.secret)).principal.name == "anna"
        with pytest.raises(NotFoundError, match="was used already"), one.catalog.write() as session:
            session.tokens.claim(digest_of(link.secret))


def test_work_is_done_by_one_and_goes_on_once_it_is_killed(tmp_path: Path, postgres_url: str) -> None:
    with opened(tmp_path, url=postgres_url) as [store], by_process(HOLDS, tmp_path, postgres_url) as other:
        assert other.stdout
        assert other.stdout.readline() == "True True\n"
        with store.catalog.alone("owners") as is_ours, store.catalog.alone("verdicts") as is_other_work_ours:
            assert (is_ours, is_other_work_ours) == (False, True)
        with pytest.raises(ConflictError, match="compacted by another process"):
            compact(store.lake)
        other.kill()
        other.wait()
        compact(store.lake)
        assert until(lambda: is_ours_now(store)), "it is held for somebody who was killed"


def is_ours_now(store: Store) -> bool:
    with store.catalog.alone("owners") as is_ours:
        return is_ours


def test_a_server_older_than_the_catalog_writes_nothing_and_says_so(tmp_path: Path, postgres_url: str) -> None:
    with opened(tmp_path, url=postgres_url) as [store]:
        client = own_client(create_app(store), base_url="http://localhost")
        assert client.get("/readyz").status_code == 200
        with store.catalog.engine.begin() as connection:  # as a newer version does while this one runs
            connection.execute(text("update alembic_version set version_num = '9999'"))
        time.sleep(2.1)  # so long an answer of /readyz holds
        said = f"is at revision 9999 by now, this process knows {HEAD}"
        for refused in (client.get("/readyz"), client.post("/v1/studies", json=STUDY)):
            assert (refused.status_code, said in refused.text) == (503, True), refused.text
        with pytest.raises(OtherVersionError, match=said), store.catalog.write():
            pass


def test_a_migration_waits_for_those_who_write(tmp_path: Path, postgres_url: str) -> None:
    with opened(tmp_path, url=postgres_url) as [store], store.catalog.engine.connect() as other:
        other.execute(text("set lock_timeout = 200"))
        with store.catalog.write(), pytest.raises(Exception, match="lock timeout"):
            other.execute(text("lock table alembic_version in access exclusive mode"))
