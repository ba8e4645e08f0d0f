"""Reviews of accepted combinations, and disputed verdicts.

Revision: 0009; after: 0008; made: 2026-12-01 09:00:00.000000
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dispute",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("query_id", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("tool_ids", sa.JSON(), nullable=False),
        sa.Column("claimed_valid", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("resolution", sa.Text(), nullable=False),
        sa.Column("resolved_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(subject = 'equivalent') = (position IS NOT NULL)", name=op.f("ck_dispute_position")),
        sa.CheckConstraint("state IN ('open', 'upheld', 'rejected')", name=op.f("ck_dispute_state")),
        sa.CheckConstraint("subject IN ('equivalent', 'combination')", name=op.f("ck_dispute_subject")),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_dispute_benchmark_version_id_benchmark_version"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dispute")),
    )
    op.create_index(op.f("ix_dispute_benchmark_version_id"), "dispute", ["benchmark_version_id"], unique=False)
    op.create_table(
        "validation_sample",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("lead_hash", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_validation_sample_benchmark_version_id_benchmark_version"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_validation_sample")),
        sa.UniqueConstraint("lead_hash", name=op.f("uq_validation_sample_lead_hash")),
    )
    op.create_index(
        op.f("ix_validation_sample_benchmark_version_id"), "validation_sample", ["benchmark_version_id"], unique=False
    )
    op.create_table(
        "validation_item",
        sa.Column("sample_id", sa.String(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("query_id", sa.String(), nullable=False),
        sa.Column("tool_ids", sa.JSON(), nullable=False),
        sa.Column("domain", sa.String(), nullable=False),
        sa.Column("subqueries", sa.Integer(), nullable=False),
        sa.Column("stratum_items", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("judge", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sample_id"],
            ["validation_sample.id"],
            name=op.f("fk_validation_item_sample_id_validation_sample"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("sample_id", "item", name=op.f("pk_validation_item")),
    )
    op.create_table(
        "validation_reviewer",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("sample_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("secret_hash", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role IN ('reviewer', 'adjudicator')", name=op.f("ck_validation_reviewer_role")),
        sa.ForeignKeyConstraint(
            ["sample_id"], ["validation_sample.id"], name=op.f("fk_validation_reviewer_sample_id_validation_sample")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_validation_reviewer")),
        sa.UniqueConstraint("sample_id", "name", name=op.f("uq_validation_reviewer_sample_id_name")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_validation_reviewer_secret_hash")),
    )
    op.create_index(op.f("ix_validation_reviewer_sample_id"), "validation_reviewer", ["sample_id"], unique=False)
    op.create_table(
        "validation_review",
        sa.Column("sample_id", sa.String(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("slot", sa.String(), nullable=False),
        sa.Column("reviewer_id", sa.String(), nullable=False),
        sa.Column("valid", sa.Boolean(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("bucket", sa.String(), nullable=True),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("slot IN ('first', 'second', 'third')", name=op.f("ck_validation_review_slot")),
        sa.CheckConstraint("valid IS NULL OR valid = (bucket IS NULL)", name=op.f("ck_validation_review_bucket")),
        sa.CheckConstraint("(valid IS NULL) = (made_at IS NULL)", name=op.f("ck_validation_review_made")),
        sa.ForeignKeyConstraint(
            ["reviewer_id"],
            ["validation_reviewer.id"],
            name=op.f("fk_validation_review_reviewer_id_validation_reviewer"),
        ),
        sa.ForeignKeyConstraint(
            ["sample_id", "item"],
            ["validation_item.sample_id", "validation_item.item"],
            name=op.f("fk_validation_review_sample_id_item_validation_item"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("sample_id", "item", "slot", name=op.f("pk_validation_review")),
        sa.UniqueConstraint(
            "sample_id", "item", "reviewer_id", name=op.f("uq_validation_review_sample_id_item_reviewer_id")
        ),
    )
    op.create_index(op.f("ix_validation_review_reviewer_id"), "validation_review", ["reviewer_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_validation_review_reviewer_id"), table_name="validation_review")
    op.drop_table("validation_review")
    op.drop_index(op.f("ix_validation_reviewer_sample_id"), table_name="validation_reviewer")
    op.drop_table("validation_reviewer")
    op.drop_table("validation_item")
    op.drop_index(op.f("ix_validation_sample_benchmark_version_id"), table_name="validation_sample")
    op.drop_table("validation_sample")
    op.drop_index(op.f("ix_dispute_benchmark_version_id"), table_name="dispute")
    op.drop_table("dispute")
