"""Alembic's entry: runs on the connection that ``Database.migrate`` hands over, inside its transaction."""

from alembic import context

# Their tables are part of the metadata.
import store.annotation_models
import store.downstream_models
import store.field_analysis_models
import store.field_text_models
import store.figure_models
import store.llm_models
import store.statistics_models
import store.token_models
import store.validation_models  # noqa: F401
from store.models import Table

target_metadata = Table.metadata

connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("migrations run through store.database.Database.migrate, which holds the lock")

# SQLite's DDL is transactional once the transaction is begun by us; batch mode lets it alter tables.
context.configure(
    connection=connection,
    target_metadata=target_metadata,
    transactional_ddl=True,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
