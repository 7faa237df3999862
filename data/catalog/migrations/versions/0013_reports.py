"""Reports: intermediate values of running trials."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("study_id", sa.String(length=64), nullable=False),
        sa.Column("step", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("trial_id", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], name=op.f("fk_reports_study_id_studies")),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.trial_id"], name=op.f("fk_reports_trial_id_trials")),
        sa.PrimaryKeyConstraint("study_id", "step", "trial_id", name=op.f("pk_reports")),
    )
    op.create_index(op.f("ix_reports_trial_id"), "reports", ["trial_id"], unique=False)
