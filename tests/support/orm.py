"""Django on a test's database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import psycopg

from support.needs import require


@contextmanager
def django_on(conn: psycopg.Connection) -> Iterator[None]:
    """Let Django's default database be that of ``conn`` during the block. The test needs Django."""
    require("Django", there=find_spec("django"))
    import django
    from django.conf import settings
    from django.db import connections

    info = conn.info
    database = {"NAME": info.dbname, "HOST": info.host, "PORT": info.port, "USER": info.user, "PASSWORD": info.password}
    if not settings.configured:  # Django can be configured once in a process
        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}}, USE_TZ=True)
        django.setup()
    connections.settings["default"].update(database)
    try:
        yield
    finally:
        connections["default"].close()
        del connections["default"]
