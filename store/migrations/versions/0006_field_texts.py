"""Texts in fields, learned parameters, and what a run's method was set to.

Revision: 0006; after: 0005; made: 2026-12-01 00:55:00.000000
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "field_texts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("prompts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("rules_version", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("filled", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("counts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('tools', 'queries')", name=op.f("ck_field_texts_kind")),
        sa.CheckConstraint(
            "source IN ('rule-based', 'llm', 'imported', 'original query')", name=op.f("ck_field_texts_source")
        ),
        sa.CheckConstraint(
            "filled >= 0 AND filled <= items AND failures >= 0 AND failures <= items",
            name=op.f("ck_field_texts_counts"),
        ),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_field_texts_benchmark_version_id_benchmark_version"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_field_texts")),
    )
    op.create_index("ix_field_texts_board", "field_texts", ["benchmark_version_id", "kind"])
    op.create_table(
        "learned_parameters",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("set_id", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("contract_hash", sa.String(), nullable=False),
        sa.Column("tools", sa.String(), nullable=False),
        sa.Column("queries", sa.String(), nullable=False),
        sa.Column("settings_hash", sa.String(), nullable=False),
        sa.Column("settings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("fold", sa.Integer(), nullable=False),
        sa.Column("folds", sa.Integer(), nullable=False),
        sa.Column("weights", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("bias", sa.Float(), nullable=False),
        sa.Column("tau", sa.Float(), nullable=False),
        sa.Column("alpha", sa.Float(), nullable=False),
        sa.Column("required_penalty", sa.Float(), nullable=False),
        sa.Column("optional_penalty", sa.Float(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("source IN ('learned', 'imported')", name=op.f("ck_learned_parameters_source")),
        sa.CheckConstraint("fold >= 0 AND fold < folds", name=op.f("ck_learned_parameters_fold")),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_learned_parameters_benchmark_version_id_benchmark_version"),
        ),
        sa.ForeignKeyConstraint(["tools"], ["field_texts.id"], name=op.f("fk_learned_parameters_tools_field_texts")),
        sa.ForeignKeyConstraint(
            ["queries"], ["field_texts.id"], name=op.f("fk_learned_parameters_queries_field_texts")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_learned_parameters")),
        sa.UniqueConstraint("set_id", "fold", name=op.f("uq_learned_parameters_set_id_fold")),
    )
    op.create_index("ix_learned_parameters_board", "learned_parameters", ["benchmark_version_id", "contract_hash"])
    op.add_column("run", sa.Column("method_settings", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("run") as batch_op:
        batch_op.drop_column("method_settings")
    op.drop_table("learned_parameters")
    op.drop_table("field_texts")
