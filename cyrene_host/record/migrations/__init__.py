"""The steps that bring a database to the schema of this version; alembic runs them."""
