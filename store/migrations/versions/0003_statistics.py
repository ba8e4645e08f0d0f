"""Intervals of lifts, random controls, other readings of a run, and what is computed over a whole board.

Revision: 0003; after: 0002; made: 2026-11-30 22:40:12.104512
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lift_summary",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("average", sa.String(), nullable=False),
        sa.Column("domain", sa.String(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("control", sa.Float(), nullable=True),
        sa.Column("control_low", sa.Float(), nullable=True),
        sa.Column("control_high", sa.Float(), nullable=True),
        sa.Column("judged", sa.Float(), nullable=True),
        sa.CheckConstraint("average IN ('macro', 'micro', 'domain', 'source')", name=op.f("ck_lift_summary_average")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_lift_summary_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "metric", "k", "average", "domain", name=op.f("pk_lift_summary")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "board_statistics",
        sa.Column("benchmark_version_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("computed_from", sa.String(), nullable=False),
        sa.Column("tie_groups_artifact", sa.String(), nullable=False),
        sa.Column("gains_artifact", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_board_statistics_benchmark_version_id_benchmark_version"),
        ),
        sa.PrimaryKeyConstraint("benchmark_version_id", name=op.f("pk_board_statistics")),
    )
    # Plain ADD COLUMNs: batch mode would copy the table, and SQLite adds nullable columns in place.
    op.add_column("run", sa.Column("statistics_artifact", sa.String(), nullable=True))
    op.add_column("run", sa.Column("statistics_version", sa.String(), nullable=True))
    op.add_column("run", sa.Column("statistics_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("run") as batch_op:
        batch_op.drop_column("statistics_at")
        batch_op.drop_column("statistics_version")
        batch_op.drop_column("statistics_artifact")
    op.drop_table("board_statistics")
    op.drop_table("lift_summary")
