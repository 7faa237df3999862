"""Run by Alembic, not imported: migrates the connection that data/catalog/database.py hands over."""

from alembic import context

from crosswind.data.catalog.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
