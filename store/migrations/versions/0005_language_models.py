"""Answers of language models, calls to them and what was spent.

Revision: 0005; after: 0004; made: 2026-12-01 00:56:00.000000
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "llm_answer",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('answer', 'failure')", name=op.f("ck_llm_answer_state")),
        sa.CheckConstraint("(state = 'answer') = (value IS NOT NULL)", name=op.f("ck_llm_answer_value")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_llm_answer")),
    )
    op.create_table(
        "llm_call",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reserved_nano", sa.BigInteger(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('sent', 'done', 'refused', 'lost', 'batch')", name=op.f("ck_llm_call_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_llm_call")),
    )
    op.create_index("ix_llm_call_scope", "llm_call", ["scope", "purpose", "model"])
    op.create_table(
        "llm_scope",
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("spent_nano", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_llm_scope")),
    )


def downgrade() -> None:
    op.drop_table("llm_scope")
    op.drop_table("llm_call")
    op.drop_table("llm_answer")
