"""Two servers on one PostgreSQL catalog and one lake: whichever a request comes to, the answer is the same."""

import itertools
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.access.issuing import bearer
from tests.api.live.listening import listening, store_run, until
from tests.api.live.receiving import receiving
from tests.api.segments import headers_of, segment
from tests.api.several.fleet import DEVICES, SECOND_NS, Agent
from tests.api.several.servers import ServerProcess, serving_all

from crosswind.api.access.token_cache import FRESH_SECONDS
from crosswind.data.store.store import Store
from crosswind.ingest.ship.shipper import PATH
from crosswind.ingest.spool.spool import sealed_segments

SPACE = {"batch": {"kind": "int", "low": 1, "high": 1000}}
STUDY = {"space": SPACE, "objective": "step_p50_seconds"}
SERVICE = {"name": "grafana", "kind": "service", "role": "support", "scopes": ["read"], "seconds": 600}
BEGAN_NS = 1_767_323_040_000_000_000
Clients = tuple[httpx2.Client, httpx2.Client]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, lasting_postgres_url: str) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("several") / "home", database=lasting_postgres_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def servers(store: Store, lasting_postgres_url: str) -> Iterator[list[ServerProcess]]:
    words = store.home, lasting_postgres_url, "--webhook-network", "127.0.0.0/8"
    started = [ServerProcess(*words) for _ in range(2)]
    with serving_all(*started):
        yield started


@pytest.fixture
def clients(servers: list[ServerProcess]) -> Iterator[Clients]:
    with servers[0].client() as one, servers[1].client() as two:
        yield one, two


def done(answer: httpx2.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


def counted(client: httpx2.Client, query: str) -> list[Any]:
    """Return the one row of an answer."""
    [row] = done(client.post("/v1/sql", json={"query": query}))["rows"]
    return list(row)


def test_a_key_gets_the_first_answer_at_the_other_server(clients: Clients) -> None:
    for number, (one, two) in enumerate((clients, clients[::-1])):
        key, body = {"Idempotency-Key": f"make-{number}"}, {**STUDY, "name": f"keyed {number}"}
        first, again = one.post("/v1/studies", json=body, headers=key), two.post("/v1/studies", json=body, headers=key)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["location"] == first.headers["location"]
        assert [answer.headers.get("idempotency-replayed") for answer in (first, again)] == [None, "true"]
        other = two.post("/v1/studies", json={**body, "name": "another"}, headers=key)
        assert (other.status_code, "was used for another request" in other.text) == (422, True)


def test_one_key_at_both_at_once_changes_something_once(clients: Clients) -> None:
    done(clients[0].post("/v1/studies", json={**STUDY, "name": "at once"}))

    def suggest(client: httpx2.Client) -> httpx2.Response:
        body = {"owner": "a", "count": 3}
        return client.post("/v1/studies/at once/trials:suggest", json=body, headers={"Idempotency-Key": "same"})

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(suggest, clients * 8))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.content for answer in answers if answer.is_success}) == 1
    for client in clients:
        assert suggest(client).headers["idempotency-replayed"] == "true"
        assert len(done(client.get("/v1/studies/at once/trials"))["trials"]) == 3


def test_workers_at_both_get_trials_of_their_own_and_end_them_at_the_other(clients: Clients) -> None:
    done(clients[0].post("/v1/studies", json={**STUDY, "name": "shared", "trials_max": 24}))

    def work(number: int) -> str:
        one, two = clients[number % 2], clients[1 - number % 2]
        [trial] = done(one.post("/v1/studies/shared/trials:suggest", json={"owner": f"w{number}"}))["trials"]
        url = f"/v1/studies/shared/trials/{trial['trial_id']}"
        assert done(two.post(f"{url}:heartbeat", json={"owner": f"w{number}"}))["owner"] == f"w{number}"
        refused = two.post(f"{url}:complete", json={"objective": 1.0, "owner": "somebody else"})
        assert (refused.status_code, f"w{number}" in refused.text) == (409, True)
        done(two.post(f"{url}:complete", json={"objective": 1.0 + number, "owner": f"w{number}"}))
        return str(trial["trial_id"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(24)))) == 24
    for client in clients:
        status = done(client.get("/v1/studies/shared"))
        assert (status["trials"]["done"], status["best"]["objective"], status["is_exhausted"]) == (24, 1.0, True)


def test_a_trial_whose_lease_is_over_is_handed_out_by_the_other(clients: Clients) -> None:
    one, two = clients
    suggest = "/v1/studies/lost/trials:suggest"
    done(one.post("/v1/studies", json={**STUDY, "name": "lost", "trials_max": 1}))
    [trial] = done(one.post(suggest, json={"owner": "dies", "lease_seconds": 1.0}))["trials"]
    assert done(two.post(suggest, json={"owner": "next"}))["trials"] == []
    time.sleep(1.1)
    [again] = done(two.post(suggest, json={"owner": "next"}))["trials"]
    assert (again["trial_id"], again["owner"], again["losses"]) == (trial["trial_id"], "next", 1)
    late = one.post(f"/v1/studies/lost/trials/{trial['trial_id']}:heartbeat", json={"owner": "dies"})
    assert late.status_code == 409


def test_what_one_stores_the_other_answers_with_at_once(clients: Clients, store: Store, tmp_path: Path) -> None:
    one, two = clients
    store_run(store.catalog, "seen", user="ann")
    tag = one.get("/v1/runs").headers["etag"]
    assert two.get("/v1/runs", headers={"If-None-Match": tag}).status_code == 304
    for number, (writer, reader) in enumerate(((one, two), (two, one)) * 2):
        done(writer.post("/v1/studies", json={**STUDY, "name": f"new {number}"}))
        assert done(reader.get(f"/v1/studies/new {number}"))["name"] == f"new {number}"
    path = segment(tmp_path / "spool")
    sent = [client.post(PATH, content=path.read_bytes(), headers=headers_of(path)) for client in (one, two, one)]
    assert [answer.status_code for answer in sent] == [201, 200, 200]
    assert [counted(client, "select count(*) from heat") for client in clients] == [[3], [3]]


def test_a_stream_goes_on_at_the_other_server(servers: list[ServerProcess], store: Store) -> None:
    with ThreadPoolExecutor(1) as writer:
        seen, turns = list[str](), itertools.cycle(servers)
        with listening(servers[0].url, "?workload=moved&after=0") as listener:
            written = writer.submit(lambda: [store_run(store.catalog, f"e{n}", workload="moved") for n in range(60)])
            seen += [event["run_id"] for event in listener.some(7)]
        while len(seen) < 60:
            headers = {"Last-Event-ID": listener.last_id}
            with listening(next(turns).url, "?workload=moved", headers) as listener:
                seen += [event["run_id"] for event in listener.some(min(11, 60 - len(seen)))]
        written.result()
    assert seen == [f"e{number}" for number in range(60)]


def test_a_stream_of_a_killed_server_goes_on_at_the_other(servers: list[ServerProcess], store: Store) -> None:
    with listening(servers[0].url, "?workload=killed&after=0") as listener:
        for number in range(5):
            store_run(store.catalog, f"k{number}", workload="killed")
        assert [event["run_id"] for event in listener.some(5)] == [f"k{number}" for number in range(5)]
        servers[0].kill()
        try:
            store_run(store.catalog, "k5", workload="killed")
            with suppress(OSError):
                assert listener.rest() == []
        finally:
            servers[0].start()
    with listening(servers[1].url, "?workload=killed", {"Last-Event-ID": listener.last_id}) as resumed:
        assert [event["run_id"] for event in resumed.some(1)] == ["k5"]
    servers[0].await_ready()


def test_a_token_that_one_revoked_is_refused_by_the_other(clients: Clients) -> None:
    for one, two in (clients, clients[::-1]):
        made = done(one.post("/v1/tokens", json=SERVICE))
        with httpx2.Client(base_url=two.base_url, headers=dict(bearer(made["secret"]))) as holder:
            done(holder.get("/v1/runs"))
            done(one.post(f"/v1/tokens/{made['token']['token_id']}:revoke"))
            began = time.monotonic()
            assert until(lambda client=holder: client.get("/v1/runs").status_code == 401)
            assert time.monotonic() - began < FRESH_SECONDS + 1.0
        unused = done(one.post("/v1/tokens", json=SERVICE))
        done(one.post(f"/v1/tokens/{unused['token']['token_id']}:revoke"))
        assert two.get("/v1/runs", headers=dict(bearer(unused["secret"]))).status_code == 401


def test_every_event_is_sent_once_and_in_order_whoever_stores_it(clients: Clients, store: Store) -> None:
    with receiving() as receiver, ExitStack() as hooks:
        body = {"url": receiver.url, "kinds": ["study.created"]}
        webhook_id = done(clients[0].post("/v1/webhooks", json=body))["webhook"]["webhook_id"]
        hooks.callback(clients[0].post, f"/v1/webhooks/{webhook_id}:delete")
        names = [f"sent {number}" for number in range(20)]
        for name, client in zip(names, itertools.cycle(clients), strict=False):
            done(client.post("/v1/studies", json={**STUDY, "name": name}))
        assert until(lambda: len(receiver.bodies) >= len(names), 30)
        time.sleep(2.5)  # in which the other server has looked, too
        assert [said["data"]["details"]["name"] for said in receiver.said] == names
        assert len({headers["webhook-id"] for headers in receiver.headers}) == len(names)


@contextmanager
def without_room(server: ServerProcess, size: int) -> Iterator[None]:
    """Have the kernel refuse a server every file of more bytes, as a disk that is full does."""
    _, hard = before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 3000])  # for the latter, a file of one of two sets has room
def test_what_one_has_no_room_for_the_other_stores_once(
    servers: list[ServerProcess], clients: Clients, tmp_path: Path, size: int
) -> None:
    urls = [server.url for server in servers]
    agents = [Agent(tmp_path / f"{number}", f"room{size}.{number}", urls) for number in range(6)]
    for number, agent in enumerate(agents):
        agent.fill(BEGAN_NS, 2)
        agent.fill(BEGAN_NS + 60 * SECOND_NS, 40 if number % 2 else 3)
    first, *_ = paths = [path for agent in agents for path in sealed_segments(agent.spool)]
    kept = [(headers_of(path), path.read_bytes()) for path in paths]
    with without_room(servers[0], size):
        for headers, content in kept:
            refused = clients[0].post(PATH, content=content, headers=headers)
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True), refused.text
        assert until(lambda: clients[0].get("/readyz").status_code == (503 if size == 0 else 200))
        assert clients[1].get("/readyz").status_code == 200
        with ThreadPoolExecutor(len(agents)) as pool:
            assert until(lambda: sum(pool.map(Agent.ship, agents)) == 0, 30)
        assert not first.exists()
        again = [clients[0].post(PATH, content=content, headers=headers) for headers, content in kept]
        assert {answer.status_code for answer in again} <= {200, 503}
    assert [clients[0].post(PATH, content=content, headers=headers).status_code for headers, content in kept] == [
        200 for _ in kept
    ]
    rows = 3 * ((2 + 3) + (2 + 40)) * DEVICES
    stored = f"select count(*), count(distinct (node, ts_ns, device)) from load where node like 'room{size}.%'"
    assert [counted(client, stored) for client in clients] == [[rows, rows]] * 2
