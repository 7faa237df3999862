"""The scope that each route requires: the one place that says so."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from starlette.routing import Route, compile_path

from crosswind.data.schema.access import Principal, Role, Scope


@dataclass(frozen=True)
class Need:
    """The scope that a route requires; one that counts over all rows also requires a role that may see them."""

    scope: Scope
    sees_all: bool = False

    def refusal(self, principal: Principal) -> str | None:
        """Return why the principal may not use the route; None if it may."""
        if not principal.allows(self.scope):
            given = ", ".join(sorted(principal.scopes))
            return f"this needs the scope {self.scope}, and {principal} has {given}"
        if self.sees_all and not principal.row_rule.sees_all:
            return f"this counts over all rows: it needs the role {Role.SUPPORT} or {Role.ADMIN}"
        return None


OPEN: Need | None = None
READ, INGEST, TUNE, ADMIN = (Need(scope) for scope in Scope)
READ_ALL = Need(Scope.READ, sees_all=True)
STUDY, TRIAL = "/v1/studies/{study_id}", "/v1/studies/{study_id}/trials/{trial_id}"
FORMS = ("", ".json", ".csv", ".html")  # of pages
PAGES = (
    *(
        "runs",
        "runs/{run_id}",
        "runs/{run_id}/trace",
        "compare",
        "predict",
        "variability",
        "selection",
        "regressions",
        "counters",
        "interference",
    ),
    *("stragglers", "checks", "links", "energy", "data", "studies", "models", "sql"),
)
WEBHOOK_ACTS = ("delete", "enable", "test")
NEEDS: Mapping[str, Need | None] = {
    **dict.fromkeys(("GET /healthz", "GET /problems/{name}", "GET /static/{name}"), OPEN),
    **dict.fromkeys(("GET /login", "POST /login", "POST /logout", "GET /login/oidc", "GET /login/oidc/callback"), OPEN),
    "GET /metrics": READ_ALL,
    **dict.fromkeys(("GET /status", "GET /status.json"), ADMIN),
    "GET /readyz": READ,
    **dict.fromkeys(("GET /openapi.json", "GET /docs", "GET /docs/examples/{name}"), READ),
    "GET /": READ,
    **{f"GET /overview{form}": READ for form in FORMS if form},
    **{f"GET /{page}{form}": READ for page in PAGES for form in FORMS},
    "POST /studies": TUNE,  # forms of pages
    "POST /models": ADMIN,
    # Questions, which are sent by POST because they are long, and store nothing.
    **{f"POST /v1/{question}": READ for question in ("predictions", "predictions:batch")},
    **{f"POST /v1/{question}": READ for question in ("walltime-advice", "scaling-advice", "sql")},
    "GET /v1/sql": READ,
    **{f"GET /v1/runs{path}": READ for path in ("", "/{run_id}")},
    **{f"GET /v1/runs/{{run_id}}/{part}": READ for part in ("report", "steps", "comparison", "explanation", "waits")},
    **{f"GET /v1/runs/{{run_id}}/{part}": READ for part in ("remaining", "batch-shares", "stragglers", "replay")},
    **{f"GET /v1/runs/{{run_id}}/trace{part}": READ for part in ("", "/difference", "/events", "/perfetto")},
    "GET /v1/traces": READ,
    **{f"GET /v1/jobs{path}": READ for path in ("", "/{job_id}", "/{job_id}/nodes")},
    **{f"GET /v1/{noun}": READ for noun in ("run-outcomes", "nodes", "weather", "counters", "interference")},
    **{f"GET /v1/{noun}": READ for noun in ("stragglers", "regressions", "checks", "operations/{operation_id}")},
    **{f"GET /v1/{noun}": READ for noun in ("metrics", "series", "series/points", "systems", "systems/{system}")},
    **{f"GET /v1/cohorts{path}": READ for path in ("", "/{cohort_id}", "/{cohort_id}/runs", "/{cohort_id}/comparison")},
    **{f"POST /v1/cohorts{path}": TUNE for path in ("", "/{cohort_id}:share", "/{cohort_id}:delete")},
    **{f"GET /v1/nodes/{{node}}{part}": READ for part in ("", "/history")},
    **{f"GET /v1/models{path}": READ for path in ("", "/{name}", "/{name}/drift", "/{name}/versions/{version}")},
    **{f"POST /v1/models/{{name}}{act}": ADMIN for act in ("/versions/{version}:promote", ":rollback", ":train")},
    **{f"POST /v1/ingest/{kind}": INGEST for kind in ("batches", "prometheus", "otlp/v1/metrics")},
    **{f"GET /v1/studies{path}": READ for path in ("", ":status", "/{study_id}")},
    **{f"GET {STUDY}/{part}": READ for part in ("trials", "reports", "runs/{run_id}/disturbance")},
    f"GET {TRIAL}": READ,
    "POST /v1/studies": TUNE,
    **{f"POST {STUDY}:{act}": TUNE for act in ("extend", "pause", "resume", "stop", "rename", "delete")},
    **{f"POST {STUDY}/trials:{act}": TUNE for act in ("suggest", "enqueue")},
    **{f"POST {TRIAL}:{act}": TUNE for act in ("heartbeat", "report", "complete", "fail")},
    **{f"POST {TRIAL}:{act}": TUNE for act in ("retry", "release", "define")},
    # A person lists, creates and revokes their own tokens, an agent makes some for its node's jobs: routes/tokens.py.
    **dict.fromkeys(("GET /v1/tokens", "POST /v1/tokens", "POST /v1/tokens/{token_id}:revoke"), READ),
    "POST /v1/tokens:link": READ,
    "POST /v1/tokens:job": INGEST,
    # One's own rows, and what is kept of acts: routes/own_rows.py.
    "GET /v1/runs/{run_id}/export": READ,
    **{f"POST /v1/runs/{{run_id}}:{act}": TUNE for act in ("share", "delete")},
    f"POST {STUDY}:share": TUNE,
    "GET /v1/events": READ,
    **{f"GET /v1/webhooks{path}": READ for path in ("", "/{webhook_id}", "/{webhook_id}/deliveries")},
    **{f"POST /v1/webhooks{path}": TUNE for path in ("", *(f"/{{webhook_id}}:{act}" for act in WEBHOOK_ACTS))},
    **dict.fromkeys(("POST /v1/pseudonyms/{pseudonym}:reveal", "GET /v1/audit"), ADMIN),
}


class Needs:
    """Finds what the route of a request requires, before anything of the request's body is read."""

    def __init__(self, needs: Mapping[str, Need | None] = NEEDS) -> None:
        by_method: dict[str, list[tuple[str, Need | None]]] = {}
        for route, need in needs.items():
            method, _, path = route.partition(" ")
            by_method.setdefault(method, []).append((_pattern(path), need))
        self._declared = frozenset(needs)
        self._by_method = {method: (_any_of(pairs), [need for _, need in pairs]) for method, pairs in by_method.items()}

    def check(self, routes: Iterable[Route]) -> None:
        """Refuse routes whose need is declared nowhere. Raises: LookupError."""
        for route in routes:
            for method in methods(route):
                if f"{method} {route.path}" not in self._declared:
                    raise LookupError(f"{method} {route.path}: declare the scope that it requires in {__name__}.NEEDS")

    def of(self, method: str, path: str) -> Need | None:
        """Return what the route requires that would answer; READ where there is none, which only a caller may know."""
        pattern, needs = self._by_method.get("GET" if method == "HEAD" else method, (None, []))
        match = pattern.match(path) if pattern else None
        return READ if match is None or match.lastindex is None else needs[match.lastindex - 1]


def methods(route: Route) -> list[str]:
    """Return the methods that a route declares; whoever may GET may ask for the HEAD."""
    return sorted((route.methods or set()) - {"HEAD"})


def _pattern(path: str) -> str:
    """Return the router's own pattern, without names: it must match exactly the paths that the router matches."""
    return re.sub(r"\(\?P<\w+>", "(?:", compile_path(path)[0].pattern)


def _any_of(pairs: Sequence[tuple[str, object]]) -> re.Pattern[str]:
    return re.compile("|".join(f"({pattern})" for pattern, _ in pairs))
