"""Facts of runs: the system and the software; imports of before had the accelerator and the nodes as tags."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

RUNS = sa.table("runs", sa.column("run_id", sa.String), *(sa.column(name, sa.JSON) for name in ("tags", "facts")))


def upgrade() -> None:
    op.add_column("runs", sa.Column("facts", sa.JSON(), server_default="{}", nullable=False))
    connection = op.get_bind()
    imported = sa.select(RUNS.c.run_id, RUNS.c.tags).where(sa.cast(RUNS.c.tags, sa.Text).like('%"accelerator"%'))
    for run_id, tags in connection.execute(imported).fetchall():
        if "accelerator" in tags:
            connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(facts=_facts(tags)))


def _facts(tags: Mapping[str, Any]) -> dict[str, object]:
    model, nodes = str(tags["accelerator"]).strip()[:1000], str(tags.get("node_count", ""))
    facts: dict[str, object] = {"accelerator": model} if model.isprintable() and model not in ("", "N/A") else {}
    return facts | ({"node_count": int(nodes)} if nodes.isdecimal() and 0 < int(nodes) <= 10_000_000 else {})
