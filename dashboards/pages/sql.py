"""The SQL page: one SELECT over what is stored, its rows, and the tables that it may name."""

from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.pages.page import RUN, SQL, Page, PageQuery, Place
from crosswind.data.schema.answers.sql import SqlAnswer, SqlTable
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.sql.limits import ROWS_MAX

SHOWN = 200
EXAMPLES: Mapping[str, str] = {
    "Runs and hours by workload": """select workload, count(*) as runs, round(sum(run_seconds) / 3600, 2) as hours
from runs where state = 'completed'
group by workload order by hours desc""",
    "Slow runs and their cost": """select run_id, workload, verdict, cause, round(excess_seconds, 1) as excess_seconds
from verdicts join runs using (run_id)
where excess_seconds > 0 order by excess_seconds desc limit 20""",
    "Slowest rank of each run": """select run_id, rank, node, round(median(duration_seconds), 4) as median_seconds
from step join ranks using (run_id, rank) join runs using (run_id)
where step >= 3 and workload = 'nanogpt'
group by run_id, rank, node qualify row_number() over (partition by run_id order by median_seconds desc) = 1""",
    "Best trial of each study": """select name, unit, min(trials.objective) as best,
  arg_min(trials.configuration, trials.objective) as configuration
from trials join studies using (study_id) where trials.state = 'done' group by all""",
    "A parameter out of JSON": """select (configuration ->> '$.batch')::int as batch, count(*) as runs,
  median(run_seconds) as median_seconds
from runs group by all order by batch""",
}


@dataclass(frozen=True)
class Example:
    """A statement to begin with."""

    title: str
    query: str


@dataclass(frozen=True)
class SqlView:
    """The page's contents; without a query no answer, and after one that was refused the reason."""

    query: str
    limit: int
    answer: SqlAnswer | None
    refusal: str
    tables: tuple[SqlTable, ...]
    examples: tuple[Example, ...]
    charts: tuple[Chart, ...] = ()
    next_place: Place | None = None

    title = "SQL"
    is_empty = False


def view(client: Local, query: PageQuery) -> SqlView:
    """Return the rows of the query's statement, and the tables."""
    text = query.word("query") or ""
    limit = query.amount("limit", SHOWN, most=ROWS_MAX)
    tables, examples = client.sql.tables().tables, tuple(Example(*one) for one in EXAMPLES.items())
    answer, refusal = None, ""
    if text:
        try:
            answer = client.sql(text, limit=limit)
        except InvalidInputError as error:
            refusal = str(error).removeprefix("query: ")
    return SqlView(text, limit, answer, refusal, tables, examples)


PAGE = Page("sql", "/sql", "sql.html", view, SQL, label="SQL", table="answer", fill=RUN)
