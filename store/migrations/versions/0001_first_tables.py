"""First tables.

Revision: 0001; after: ; made: 2026-11-30 21:31:54.372292
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "benchmark_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("revision", sa.String(), nullable=False),
        sa.Column("headline", sa.String(), nullable=False),
        sa.Column("parents", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("queries", sa.Integer(), nullable=True),
        sa.Column("tools", sa.Integer(), nullable=True),
        sa.Column("subqueries", sa.Integer(), nullable=True),
        sa.Column("equivalents", sa.Integer(), nullable=True),
        sa.Column("combinations", sa.Integer(), nullable=True),
        sa.Column("domains", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("sources", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("statistics", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("ks", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("artifacts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("compiled_key", sa.String(), nullable=True),
        sa.Column("citation", sa.Text(), nullable=False),
        sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("is_demo", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("headline IN ('macro', 'micro')", name=op.f("ck_benchmark_version_headline")),
        sa.CheckConstraint("kind IN ('tool', 'skill')", name=op.f("ck_benchmark_version_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark_version")),
        sa.UniqueConstraint("slug", "version", name=op.f("uq_benchmark_version_slug_version")),
    )
    with op.batch_alter_table("benchmark_version") as batch_op:
        batch_op.create_index(batch_op.f("ix_benchmark_version_content_hash"), ["content_hash"], unique=False)

    op.create_table(
        "published_figure",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("paper", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("figure", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("numbers", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("printed", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("derived", sa.Boolean(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column("retriever", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_published_figure")),
        sa.UniqueConstraint("key", name=op.f("uq_published_figure_key")),
    )
    op.create_table(
        "retriever",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_folded", sa.String(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("parameters", sa.BigInteger(), nullable=True),
        sa.Column("dimension", sa.Integer(), nullable=True),
        sa.Column("fine_tuned", sa.Boolean(), nullable=True),
        sa.Column("base_key", sa.String(), nullable=True),
        sa.Column("open_weights", sa.Boolean(), nullable=True),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("link", sa.String(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_retriever")),
        sa.UniqueConstraint("key", name=op.f("uq_retriever_key")),
    )
    with op.batch_alter_table("retriever") as batch_op:
        batch_op.create_index(batch_op.f("ix_retriever_base_key"), ["base_key"], unique=False)
        batch_op.create_index(batch_op.f("ix_retriever_name_folded"), ["name_folded"], unique=False)

    op.create_table(
        "run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("retriever_id", sa.Integer(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("contract_hash", sa.String(), nullable=True),
        sa.Column("provenance", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("private_token", sa.String(), nullable=True),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("ranking_artifact", sa.String(), nullable=True),
        sa.Column("ranking_hash", sa.String(), nullable=True),
        sa.Column("per_query_artifact", sa.String(), nullable=True),
        sa.Column("raw_artifact", sa.String(), nullable=True),
        sa.Column("raw_name", sa.String(), nullable=True),
        sa.Column("scorer_version", sa.String(), nullable=True),
        sa.Column("benchmark_hash", sa.String(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=True),
        sa.Column("queries_total", sa.Integer(), nullable=True),
        sa.Column("queries_answered", sa.Integer(), nullable=True),
        sa.Column("missing", sa.Integer(), nullable=True),
        sa.Column("flags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("trained_on_benchmark", sa.String(), nullable=False),
        sa.Column("link", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("level IN ('query', 'sub-query')", name=op.f("ck_run_level")),
        sa.CheckConstraint("provenance = 'reported' OR ranking_artifact IS NOT NULL", name=op.f("ck_run_ranking")),
        sa.CheckConstraint("provenance IN ('reported', 'uploaded', 'measured')", name=op.f("ck_run_provenance")),
        sa.CheckConstraint("state <> 'published' OR published_at IS NOT NULL", name=op.f("ck_run_published_at")),
        sa.CheckConstraint(
            "state IN ('validated', 'scored', 'in_review', 'published', 'withdrawn')", name=op.f("ck_run_state")
        ),
        sa.CheckConstraint(
            "trained_on_benchmark IN ('yes', 'no', 'unknown')", name=op.f("ck_run_trained_on_benchmark")
        ),
        sa.CheckConstraint("visibility <> 'private' OR private_token IS NOT NULL", name=op.f("ck_run_private_token")),
        sa.CheckConstraint("visibility IN ('public', 'private')", name=op.f("ck_run_visibility")),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_run_benchmark_version_id_benchmark_version"),
        ),
        sa.ForeignKeyConstraint(["retriever_id"], ["retriever.id"], name=op.f("fk_run_retriever_id_retriever")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("private_token", name=op.f("uq_run_private_token")),
    )
    with op.batch_alter_table("run") as batch_op:
        batch_op.create_index("ix_run_board", ["benchmark_version_id", "state", "visibility"], unique=False)
        batch_op.create_index("ix_run_ranking", ["benchmark_version_id", "ranking_hash"], unique=False)
        batch_op.create_index(batch_op.f("ix_run_retriever_id"), ["retriever_id"], unique=False)
        batch_op.create_index(
            "uq_run_reported",
            ["benchmark_version_id", "place", "retriever_id", "method", "level", "contract"],
            unique=True,
            sqlite_where=sa.text("provenance = 'reported'"),
            postgresql_where=sa.text("provenance = 'reported'"),
        )

    op.create_table(
        "metric_summary",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("average", sa.String(), nullable=False),
        sa.Column("domain", sa.String(), nullable=False),
        sa.Column("view", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("printed", sa.String(), nullable=True),
        sa.Column("note", sa.String(), nullable=True),
        sa.CheckConstraint("average IN ('domain', 'source') OR domain = ''", name=op.f("ck_metric_summary_domain")),
        sa.CheckConstraint("average IN ('macro', 'micro', 'domain', 'source')", name=op.f("ck_metric_summary_average")),
        sa.CheckConstraint("view IN ('old', 'new')", name=op.f("ck_metric_summary_view")),
        sa.CheckConstraint("k >= 1", name=op.f("ck_metric_summary_k")),
        sa.CheckConstraint("value >= 0 AND value <= 1", name=op.f("ck_metric_summary_value")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_metric_summary_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "metric", "k", "average", "domain", "view", name=op.f("pk_metric_summary")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "submission",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("benchmark_version_id", sa.Integer(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("contact", sa.String(), nullable=False),
        sa.Column("link", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("file_name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.Column("declared_order", sa.String(), nullable=True),
        sa.Column("part", sa.String(), nullable=True),
        sa.Column("report", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "state IN ('received', 'validated', 'scored', 'refused', 'failed')", name=op.f("ck_submission_state")
        ),
        sa.ForeignKeyConstraint(
            ["benchmark_version_id"],
            ["benchmark_version.id"],
            name=op.f("fk_submission_benchmark_version_id_benchmark_version"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_submission_run_id_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submission")),
        sa.UniqueConstraint("run_id", name=op.f("uq_submission_run_id")),
    )
    with op.batch_alter_table("submission") as batch_op:
        batch_op.create_index("ix_submission_person_created_at", ["person", "created_at"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("submission") as batch_op:
        batch_op.drop_index("ix_submission_person_created_at")

    op.drop_table("submission")
    op.drop_table("metric_summary")
    with op.batch_alter_table("run") as batch_op:
        batch_op.drop_index(
            "uq_run_reported",
            sqlite_where=sa.text("provenance = 'reported'"),
            postgresql_where=sa.text("provenance = 'reported'"),
        )
        batch_op.drop_index(batch_op.f("ix_run_retriever_id"))
        batch_op.drop_index("ix_run_ranking")
        batch_op.drop_index("ix_run_board")

    op.drop_table("run")
    with op.batch_alter_table("retriever") as batch_op:
        batch_op.drop_index(batch_op.f("ix_retriever_name_folded"))
        batch_op.drop_index(batch_op.f("ix_retriever_base_key"))

    op.drop_table("retriever")
    op.drop_table("published_figure")
    with op.batch_alter_table("benchmark_version") as batch_op:
        batch_op.drop_index(batch_op.f("ix_benchmark_version_content_hash"))

    op.drop_table("benchmark_version")
