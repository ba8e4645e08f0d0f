"""Alembic migrations; ``store.database.Database.migrate`` runs them."""
