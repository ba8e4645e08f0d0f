"""Downstream studies.

Revision: 0010; after: 0009; made: 2026-12-01 09:00:00.000000
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "downstream_study",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=True),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_downstream_study_benchmark_version_id_benchmark_version"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_downstream_study")),
        sa.UniqueConstraint("label", name=op.f("uq_downstream_study_label")),
    )
    op.create_index(
        op.f("ix_downstream_study_benchmark_version_id"), "downstream_study", ["benchmark_version_id"], unique=False
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_downstream_study_benchmark_version_id"), table_name="downstream_study")
    op.drop_table("downstream_study")
