"""Expansions and their chunks.

Revision: 0008; after: 0007; made: 2026-12-01 09:00:00.000000
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "annotation",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("settings_hash", sa.String(), nullable=False),
        sa.Column("max_cost", sa.Float(), nullable=True),
        sa.Column("max_calls", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("made_version_id", sa.Integer(), nullable=True),
        sa.Column("artifacts", sa.JSON(), nullable=False),
        sa.Column("batched", sa.Boolean(), nullable=False),
        sa.Column("retry_failed", sa.Boolean(), nullable=False),
        sa.Column("batch", sa.JSON(), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(state = 'done') = (made_version_id IS NOT NULL)", name=op.f("ck_annotation_made")),
        sa.CheckConstraint("state IN ('open', 'done')", name=op.f("ck_annotation_state")),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_annotation_benchmark_version_id_benchmark_version"),
        ),
        sa.ForeignKeyConstraint(
            ["made_version_id"], ["benchmark_version.id"], name=op.f("fk_annotation_made_version_id_benchmark_version")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotation")),
    )
    op.create_index(op.f("ix_annotation_benchmark_version_id"), "annotation", ["benchmark_version_id"], unique=False)
    op.create_table(
        "annotation_chunk",
        sa.Column("annotation_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.Column("artifacts", sa.JSON(), nullable=False),
        sa.Column("failures", sa.JSON(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["annotation_id"],
            ["annotation.id"],
            name=op.f("fk_annotation_chunk_annotation_id_annotation"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("annotation_id", "number", name=op.f("pk_annotation_chunk")),
    )


def downgrade() -> None:
    op.drop_table("annotation_chunk")
    op.drop_index(op.f("ix_annotation_benchmark_version_id"), table_name="annotation")
    op.drop_table("annotation")
