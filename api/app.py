"""The application: routers, and what every request and answer passes."""

import time
from collections.abc import Mapping
from importlib.metadata import version

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from crosswind.api import problems
from crosswind.api.access.attempts import Attempts
from crosswind.api.access.caller import Callers
from crosswind.api.access.oidc.provider import Provider
from crosswind.api.access.scopes import Needs
from crosswind.api.access.token_cache import TokenCache
from crosswind.api.answer_cache import AnswerCache
from crosswind.api.auth import Authentication
from crosswind.api.background_answers import client_for_pages
from crosswind.api.body_check import BodyCheck
from crosswind.api.coverage import Coverage
from crosswind.api.delivery.coding import Coding
from crosswind.api.delivery.deprecation import Notices
from crosswind.api.delivery.problem_pages import ProblemPages
from crosswind.api.delivery.repeats import Repeats
from crosswind.api.delivery.validators import NotModifiedError, Validators, not_modified
from crosswind.api.edge.edge import Edge
from crosswind.api.edge.spool import Spool
from crosswind.api.example import Example
from crosswind.api.intake import Intake, segment_rule
from crosswind.api.late_pages import add_pages_later
from crosswind.api.live.feed import Feed
from crosswind.api.observe.correlation import Correlating
from crosswind.api.observe.traces import Traces
from crosswind.api.openapi.document import TITLE_FACTS, describe
from crosswind.api.prefix import Prefix
from crosswind.api.readiness import Readiness
from crosswind.api.routes import (
    advice,
    batches,
    checks,
    counters,
    disturbances,
    docs,
    events,
    health,
    interference,
    jobs,
    login,
    models,
    nodes,
    oidc,
    operations,
    own_rows,
    parameters,
    predictions,
    remaining,
    run_outcomes,
    runs,
    series,
    shares,
    sql,
    status,
    stragglers,
    studies,
    tokens,
    trials,
    victims,
    weather,
    webhooks,
)
from crosswind.api.routes import traces as run_traces
from crosswind.api.routes.fleet import cohorts, node_history, systems
from crosswind.api.routes.fleet import series as metric_series
from crosswind.api.security_headers import FailureHandler, SecurityHeaders
from crosswind.api.series_intake import SeriesIntake, series_rules
from crosswind.api.settings import ServerSettings
from crosswind.api.state.observed import Observed
from crosswind.api.state.recent import RecentErrors
from crosswind.api.state.sizes import Sizes
from crosswind.api.telemetry import RequestCounts, Telemetry
from crosswind.api.workers import AT_ONCE, Workers, places_of
from crosswind.client.fitted import Fitted
from crosswind.client.local import Local
from crosswind.data.lake.skipped import Skipped
from crosswind.data.sql.process import SqlProcesses
from crosswind.data.store.store import Store
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training.operations import Runner
from crosswind.models.training.trainers import TRAINERS

ROUTERS = (  # matched one after the other: the most frequent requests first
    *(predictions, batches, trials, parameters, health),
    *(runs, run_outcomes, victims, remaining, shares, weather, jobs, nodes, advice, models, operations, own_rows),
    *(counters, interference, metric_series, systems, node_history, cohorts, sql),
    *(stragglers, run_traces, studies, disturbances, series, checks, tokens, problems, login, oidc, status),
    *(events, webhooks, docs),
)
LOOPBACK = ServerSettings()
TESTS_AT_ONCE = 4  # of webhooks
FRESH_SECONDS = 1.0  # after which a prediction takes in runs that have ended since
WEATHER_FRESH_SECONDS = 60.0  # the same for the weather, which takes seconds to fit


def create_app(
    store: Store,
    settings: ServerSettings = LOOPBACK,
    trainers: Mapping[str, Trainer] = TRAINERS,
    *,
    traces: Traces | None = None,
) -> FastAPI:
    """Return the application over a store; `settings` say who may call it, `trainers` which models it can train.

    Requests and queries are recorded in `traces`.
    """
    app = FastAPI(
        **TITLE_FACTS,
        version=version("crosswind"),
        openapi_url=None,  # routes/docs.py
        docs_url=None,  # its script would come from another site
        redoc_url=None,
        routes=_routes(),
        root_path_in_servers=False,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # telemetry.py counts
    )
    app.state.runner = Runner(store, trainers)
    app.state.client = client = Local(
        store,
        compute=AnswerCache(),
        fitted=Fitted(
            store,
            intensity=lambda: settings.intensity,
            fresh_seconds=FRESH_SECONDS,
            weather_fresh_seconds=WEATHER_FRESH_SECONDS,
        ),
        sql_processes=SqlProcesses(keeps=True),
    )
    app.state.page_client = client_for_pages(client)
    app.state.example = Example()
    store.lake.skipped = Skipped(store.lake.root)
    app.state.edge = Edge(settings.limits.within_files(), settings.root_path)
    app.state.readiness = Readiness(store)
    app.state.feed = Feed(store.catalog, app.state.edge.limits)
    app.state.tests_at_once = CapacityLimiter(TESTS_AT_ONCE)
    app.state.prediction_places = CapacityLimiter(AT_ONCE)
    app.state.request_counts = RequestCounts()
    app.state.description = None
    app.state.intake = Intake(store, settings)
    app.state.series_intake = SeriesIntake(store, settings)
    app.state.tokens = TokenCache(store.catalog)
    app.state.attempts = Attempts()
    app.state.settings = settings
    app.state.provider = None if settings.oidc is None else Provider(settings.oidc)
    app.state.callers = Callers(settings, app.state.tokens)
    places = places_of()
    app.state.observed = Observed(
        store=store,
        settings=settings,
        edge=app.state.edge,
        readiness=app.state.readiness,
        counts=app.state.request_counts,
        errors=RecentErrors(),
        sizes=Sizes(store.home, store.catalog.engine),
        places={**places, "predictions": app.state.prediction_places, "batches": app.state.intake.places},
        started_ns=time.time_ns(),
    )
    add_pages_later(app)
    describe(app, settings.root_path)
    problems.add_handlers(app)
    app.add_exception_handler(NotModifiedError, not_modified)
    # The last one added sees a request first.
    rules = (
        {batches.PATH: segment_rule(settings)}
        | series_rules(settings)
        | dict.fromkeys((*login.PATHS, "/studies", "/models"), login.FORM)
    )
    needs = Needs()
    needs.check(routes_of(app))
    app.add_middleware(Workers, places=places)
    app.add_middleware(Repeats, catalog=store.whole.catalog, needs=needs)
    app.add_middleware(
        BodyCheck, limit_bytes=settings.body_bytes, spool=Spool(settings.limits.spooled_bytes), rules=rules
    )
    app.add_middleware(FailureHandler)
    app.add_middleware(Coverage, count=lambda: store.lake.damaged)
    app.add_middleware(Validators)
    app.add_middleware(Coding)
    app.add_middleware(Notices)
    app.add_middleware(Authentication, settings=settings, callers=app.state.callers, needs=needs)
    app.add_middleware(ProblemPages)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Telemetry, counts=app.state.request_counts)
    app.add_middleware(Correlating, traces=traces)
    app.add_middleware(Prefix, root_path=settings.root_path)
    return app


def _routes() -> list[BaseRoute]:
    """Return the routes of all modules; to include their routers would make each again for each application."""
    routes = [route for module in ROUTERS for route in module.router.routes]
    for route in routes:
        if isinstance(route, APIRoute):
            route.unique_id = route.name  # the names of functions in clients
    return routes


def routes_of(app: FastAPI) -> list[Route]:
    """Return every route of the application but the pages', in the order in which they are tried."""
    return [route for route in app.routes if isinstance(route, Route)]
