"""Alembic revisions of the pgcombine schema; shipped as ``pgcombine.migrations``."""
