"""What was analysed beside runs over fields.

Revision: 0007; after: 0006; made: 2026-12-01 01:40:00.000000
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "field_analysis",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("computed_from", sa.String(), nullable=False),
        sa.Column("artifact", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('fields', 'variants', 'masking', 'tests')", name=op.f("ck_field_analysis_kind")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_field_analysis_run_id_run")),
        sa.PrimaryKeyConstraint("run_id", "kind", name=op.f("pk_field_analysis")),
    )


def downgrade() -> None:
    op.drop_table("field_analysis")
