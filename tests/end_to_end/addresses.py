"""Addresses of every page and of the states that show something else, over one of the stores."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from tests.end_to_end.stores import LIVE, SLOW_NODE, TRACED
from tests.end_to_end.visits import json_of

from crosswind.dashboards.pages.listed import LISTED

NEED_A_STATE = ("run", "trace", "selection")  # pages that have no address without a run or a cohort
PLAIN = tuple(page.path for page in LISTED if page.name not in NEED_A_STATE)
OF_A_RUN = ("/runs/{run}", "/runs/{run}/trace", "/compare?a={run}", "/predict?like={run}")
OF_RUNS = (*OF_A_RUN, "/compare?a={run}&b={other}", "/selection?cohort={cohort}&slower=1.01")
SCRIPT = "/predict?script=%23SBATCH+-N+1+-n+2%0Asrun+python+train.py"
QUERY = "/sql?query=select+*+from+runs&limit=30"
OF_A_NODE = f"/stragglers?node={SLOW_NODE}"
OF_THE_SAMPLE = (f"/runs/{LIVE}", f"/runs/{TRACED}/trace", OF_A_NODE, "/checks?check=C1&system=lab")
STATES: Mapping[str, tuple[str, ...]] = {
    "sample": (*OF_RUNS, *OF_THE_SAMPLE, "/?part=all", "/runs?verdict=slow&sort=-excess", SCRIPT, QUERY),
    "empty": ("/?part=all", SCRIPT, QUERY),
    "one": (*OF_A_RUN, "/stragglers?node=n0", "/?part=all", SCRIPT),
    "many": (*OF_RUNS, "/?part=all", "/stragglers?node=n001", "/runs?verdict=slow&sort=-excess"),
    "hostile": (*OF_RUNS, "/?part=all", "/studies?study={name}", "/stragglers?node={name}", "/runs?q={name}"),
}


def addresses_of(store: str, top: str) -> Mapping[str, str]:
    """Return the addresses over this store, with the names that a server of it has for them."""
    states = (*PLAIN, *STATES[store])
    words = names(top) if any("{" in state for state in states) else {}
    return {state: state.format(**words) if "{" in state else state for state in states}


@cache
def names(top: str) -> Mapping[str, str]:
    """Return the slowest run, another of its cohort, and what they are of, each as a part of an address."""
    run = json_of(top, "/runs.json?sort=-excess&limit=1")["rows"][0]["run"]
    of = urlencode({"workload": run["workload"], "system": run["system"]})
    alike = [row["run"] for row in json_of(top, f"/runs.json?{of}&limit=50")["rows"]]
    other = next((one for one in alike if _is_like(one, run)), run)
    cohort = json_of(top, f"/runs/{quote(run['run_id'], safe='')}.json")["cohort_id"]
    words = {"run": run["run_id"], "other": other["run_id"], "cohort": cohort, "name": run["workload"]}
    return {name: quote(word, safe="") for name, word in words.items()}


def _is_like(one: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    return one["run_id"] != run["run_id"] and one["configuration"] == run["configuration"]
