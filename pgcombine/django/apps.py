"""The Django app. ``manage.py migrate`` brings pgcombine's schema to this program's version before it migrates apps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import connections, router, transaction
from django.db.models.signals import pre_migrate

from pgcombine import schema
from pgcombine.database import sqlfiles

_DIGEST = "select max(digest) from pgcombine.schema_version"


class PgCombineConfig(AppConfig):
    """The app ``pgcombine``. A database router decides by ``allow_migrate`` which databases get the schema."""

    name = "pgcombine.django"
    label = "pgcombine"
    verbose_name = "pgcombine"

    def ready(self) -> None:
        """Register the check and the upgrade."""
        checks.register(schema_check, checks.Tags.database)
        pre_migrate.connect(upgrade_schema, sender=self)


def upgrade_schema(*, using: str = "default", **_: Any) -> None:
    """Make or upgrade the schema in the database ``using``, unless it is of this program's version already."""
    if is_used(using) and _digest(using) != sqlfiles.digest():
        with transaction.atomic(using), connections[using].cursor() as cursor:
            cursor.execute("set local statement_timeout = 0")  # which would limit the upgrade of all queues
            cursor.execute(schema.upgrade_sql())


def schema_check(*, databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Return a warning for each database whose schema is missing or of another version.

    ``manage.py migrate`` runs the checks before it upgrades the schema, so it gets no warning.
    """
    if sys.argv[1:2] == ["migrate"]:
        return []
    return [
        checks.Warning(
            f"the pgcombine schema of the database '{alias}' is "
            + ("missing" if (found := _digest(alias)) is None else "of another version of pgcombine"),
            hint="run manage.py migrate",
            id="pgcombine.W001" if found is None else "pgcombine.W002",
        )
        for alias in databases or ()
        if is_used(alias) and _digest(alias) != sqlfiles.digest()
    ]


def is_used(alias: str) -> bool:
    """Return whether a database is PostgreSQL and gets the schema."""
    return connections[alias].vendor == "postgresql" and bool(router.allow_migrate(alias, "pgcombine"))


def _digest(alias: str) -> str | None:
    with connections[alias].cursor() as cursor:
        cursor.execute("select to_regclass('pgcombine.schema_version')")
        if cursor.fetchone() == (None,):
            return None
        cursor.execute(_DIGEST)
        (found,) = cursor.fetchone()
        return str(found)
