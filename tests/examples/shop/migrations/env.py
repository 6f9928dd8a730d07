"""Alembic's environment. The database's URL is the option ``sqlalchemy.url``, else the variable ``SHOP_URL``."""

from __future__ import annotations

import os

from alembic import context
from models import Base
from sqlalchemy import create_engine, pool

from pgcombine import operations

OPTIONS = {
    "target_metadata": Base.metadata,
    "include_schemas": True,  # look at all schemas; the next two options leave out the schemas of pgcombine
    "include_name": operations.include_name,
    "include_object": operations.include_object,
}

url = context.config.get_main_option("sqlalchemy.url") or os.environ["SHOP_URL"]
if context.is_offline_mode():
    context.configure(url=url, literal_binds=True, **OPTIONS)
    with context.begin_transaction():
        context.run_migrations()
else:
    with create_engine(url, poolclass=pool.NullPool).connect() as connection:
        context.configure(connection=connection, **OPTIONS)
        with context.begin_transaction():
            context.run_migrations()
