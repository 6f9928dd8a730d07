"""Settings: which database, which home directory.

``resolve_dsn`` decides in one place where a command works: its argument, else ``PGCOMBINE_DSN``, else libpq's
``PG*`` variables, else the embedded server of ``PGCOMBINE_HOME``. :class:`ConfigError` says what is missing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import psycopg
from platformdirs import user_data_dir
from psycopg.conninfo import conninfo_to_dict

from pgcombine.errors import ConfigError

LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
_SQLALCHEMY = re.compile(r"^(postgres(?:ql)?)\+\w+://")


def home() -> Path:
    """Directory of the embedded server: ``PGCOMBINE_HOME``, else the platform's data directory."""
    configured = os.environ.get("PGCOMBINE_HOME")
    return Path(configured).expanduser() if configured else Path(user_data_dir("pgcombine"))


def given_dsn(dsn: str | None = None) -> str | None:
    """The connection string the user gave (argument or environment); None means the embedded server.

    Raises ConfigError if it is not a libpq connection string.
    """
    chosen = dsn or os.environ.get("PGCOMBINE_DSN") or None
    if chosen is None and any(os.environ.get(name) for name in LIBPQ_VARIABLES):
        chosen = ""  # libpq takes everything from the environment
    return libpq_dsn(chosen) if chosen else chosen


def libpq_dsn(dsn: str) -> str:
    """``dsn`` as libpq reads it: a SQLAlchemy URL (``postgresql+psycopg://…``) loses its driver.

    Raises ConfigError if it is no libpq connection string, or if SQLAlchemy has hidden the password in it.
    """
    chosen, is_url = _SQLALCHEMY.subn(r"\1://", dsn)
    if is_url:  # SQLAlchemy writes spaces as such in names, as + after the ?
        names, mark, options = chosen.partition("?")
        chosen = names.replace(" ", "%20") + mark + options.replace("+", "%20")
    try:
        parts = conninfo_to_dict(chosen)
    except psycopg.ProgrammingError as error:
        raise ConfigError(
            f"the DSN can't be read ({str(error).strip()}); give a URI such as "
            "postgresql://user@host:5432/database or 'host=… dbname=…'"
        ) from error
    if parts.get("password") == "***":
        raise ConfigError(
            "the password in the DSN is ***: str() of a SQLAlchemy URL hides it; "
            "use url.render_as_string(hide_password=False)"
        )
    return chosen
