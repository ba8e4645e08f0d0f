"""Workers' heartbeats, and what a measured run cost.

Revision: 0002; after: 0001; made: 2026-12-01 22:04:11.518204
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "worker",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("queues", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
    )
    # A plain ADD COLUMN: batch mode would copy the table, and SQLite adds a nullable column in place.
    op.add_column("run", sa.Column("efficiency", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("run") as batch_op:
        batch_op.drop_column("efficiency")
    op.drop_table("worker")
