"""The application: routers, and what every request and answer passes."""

from collections.abc import Mapping
from importlib.metadata import version

from anyio import CapacityLimiter
from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from crosswind.api import problems
from crosswind.api.access.attempts import Attempts
from crosswind.api.access.caller import Callers
from crosswind.api.access.scopes import Needs
from crosswind.api.access.token_cache import TokenCache
from crosswind.api.answer_cache import AnswerCache
from crosswind.api.auth import Authentication
from crosswind.api.background_answers import BackgroundAnswers
from crosswind.api.body_check import BodyCheck
from crosswind.api.edge.edge import Edge
from crosswind.api.edge.spool import Spool
from crosswind.api.intake import Intake, segment_rule
from crosswind.api.late_pages import add_pages_later
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
    health,
    interference,
    jobs,
    login,
    models,
    nodes,
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
    stragglers,
    studies,
    tokens,
    trials,
    victims,
    weather,
)
from crosswind.api.security_headers import FailureHandler, SecurityHeaders, Validators
from crosswind.api.series_intake import SeriesIntake, series_rules
from crosswind.api.settings import ServerSettings
from crosswind.api.telemetry import RequestCounts, Telemetry
from crosswind.api.workers import AT_ONCE, Workers
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
    *(counters, interference, sql),
    *(stragglers, studies, disturbances, series, checks, tokens, problems, login, docs),
)
LOOPBACK = ServerSettings()
FRESH_SECONDS = 1.0  # after which a prediction takes in runs that have ended since
WEATHER_FRESH_SECONDS = 60.0  # the same for the weather, which takes seconds to fit


def create_app(
    store: Store, settings: ServerSettings = LOOPBACK, trainers: Mapping[str, Trainer] = TRAINERS
) -> FastAPI:
    """Return the application over a store; `settings` say who may call it, `trainers` which models it can train."""
    app = FastAPI(
        **TITLE_FACTS,
        version=version("crosswind"),
        openapi_url=None,  # routes/docs.py
        docs_url=None,  # its script would come from another site
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,  # the names of functions in clients
        root_path_in_servers=False,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # telemetry.py counts
    )
    app.state.runner = Runner(store, trainers)
    app.state.client = client = Local(
        store,
        compute=AnswerCache(),
        intensity=lambda: settings.intensity,
        fresh_seconds=FRESH_SECONDS,
        weather_fresh_seconds=WEATHER_FRESH_SECONDS,
        sql_processes=SqlProcesses(keeps=True),
    )
    app.state.page_client = client.with_compute(BackgroundAnswers(client.compute))
    store.lake.skipped = Skipped(store.lake.root)
    app.state.edge = Edge(settings.limits.within_files(), settings.root_path)
    app.state.readiness = Readiness(store)
    app.state.prediction_places = CapacityLimiter(AT_ONCE)
    app.state.request_counts = RequestCounts()
    app.state.description = None
    app.state.intake = Intake(store, settings)
    app.state.series_intake = SeriesIntake(store, settings)
    app.state.tokens = TokenCache(store.catalog)
    app.state.attempts = Attempts()
    app.state.settings = settings
    app.state.callers = Callers(settings, app.state.tokens)
    for module in ROUTERS:
        app.include_router(module.router)
    add_pages_later(app)
    describe(app, settings.root_path)
    problems.add_handlers(app)
    # The last one added sees a request first.
    rules = {batches.PATH: segment_rule(settings)} | series_rules(settings) | dict.fromkeys(login.PATHS, login.FORM)
    app.add_middleware(Workers)
    app.add_middleware(
        BodyCheck, limit_bytes=settings.body_bytes, spool=Spool(settings.limits.spooled_bytes), rules=rules
    )
    app.add_middleware(FailureHandler)
    app.add_middleware(Validators)
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    needs = Needs()
    needs.check(routes_of(app))
    app.add_middleware(Authentication, settings=settings, callers=app.state.callers, needs=needs)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Telemetry, counts=app.state.request_counts)
    app.add_middleware(Prefix, root_path=settings.root_path)
    return app


def routes_of(app: FastAPI) -> list[Route]:
    """Return every route of the application but the pages', in the order in which they are tried."""
    routes = [*app.routes, *(route for module in ROUTERS for route in module.router.routes)]
    return [route for route in routes if isinstance(route, Route)]
