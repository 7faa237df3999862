"""Jobs go to the lake; pseudonyms of their users; files that were read, and how far."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pseudonyms",
        sa.Column("pseudonym", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pseudonym", name=op.f("pk_pseudonyms")),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )
    op.create_table(
        "read_files",
        sa.Column("context", sa.String(length=64), nullable=False),
        sa.Column("content", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.JSON(), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("context", "content", name=op.f("pk_read_files")),
    )
    op.create_index(op.f("ix_read_files_context_path"), "read_files", ["context", "path"])
    if op.get_bind().execute(sa.text("select count(*) from jobs")).scalar_one():
        op.rename_table("jobs", "jobs_in_catalog")  # opening the store moves them to the lake
        op.drop_index(op.f("ix_jobs_started_ns"), "jobs_in_catalog")
    else:
        op.drop_table("jobs")
