"""Settings: which database, which home directory.

``resolve_dsn`` decides in one place where a command works: its argument, else ``PGCOMBINE_DSN``, else libpq's
``PG*`` variables, else the embedded server of ``PGCOMBINE_HOME``. :class:`ConfigError` says what is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from platformdirs import user_data_dir
from psycopg.conninfo import conninfo_to_dict

from pgcombine.errors import ConfigError

LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
_QUOTED = re.compile(r'".*"', re.DOTALL)
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


def _unreadable(reason: str) -> ConfigError:
    return ConfigError(
        f"the DSN can't be read ({reason}); give a URI such as postgresql://user@host:5432/database "
        "or 'host=… dbname=…'"
    )


def _misread(dsn: str, parts: Mapping[str, Any]) -> bool:
    """Whether a part of a password may stand in another's place, where errors show it."""
    if any(not port.strip().isdigit() for port in str(parts.get("port") or "0").split(",") if port):
        return True
    scheme, mark, rest = dsn.partition("://")
    if not mark or scheme not in ("postgres", "postgresql"):
        return False
    authority, slash, path = rest.partition("/")
    host = authority.partition("@")[2] or authority
    return "@" in (host + slash + path).partition("?")[0]


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
    except (psycopg.ProgrammingError, UnicodeError) as error:
        raise _unreadable(_QUOTED.sub("…", str(error).strip())) from None  # its message quotes the DSN
    if _misread(chosen, parts):
        raise _unreadable("is the password right? there it is %40 for @, %3A for :, %2F for /")
    if parts.get("password") == "***":
        raise ConfigError(
            "the password in the DSN is ***: str() of a SQLAlchemy URL hides it; "
            "use url.render_as_string(hide_password=False)"
        )
    return chosen
