"""Settings: the database and the home directory.

:func:`given_dsn` chooses the database: the command's argument, else ``PGCOMBINE_DSN``, else libpq's ``PG*`` variables
if one of LIBPQ_VARIABLES is set. If none of these is given, commands use the embedded server in the directory
:func:`home`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import psycopg
from platformdirs import user_data_dir
from psycopg.conninfo import conninfo_to_dict

from pgcombine.errors import ConfigError

VARIABLES = (
    *("PGCOMBINE_DSN", "PGCOMBINE_HOME", "PGCOMBINE_JDBC_JAR", "PGCOMBINE_SPARK_LOG"),
    *("PGCOMBINE_WEBHOOK_SECRETS", "PGCOMBINE_WEB_TOKEN"),
)
LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
_QUOTED = re.compile(r'".*"', re.DOTALL)
_SQLALCHEMY = re.compile(r"^(postgres(?:ql)?)\+\w+://")


def home() -> Path:
    """Return the directory of the embedded server: ``PGCOMBINE_HOME``, else one in the platform's data directory.

    Raises ConfigError if the name of one of pgcombine's variables is misspelt.
    """
    _refuse_misspelt()
    configured = os.environ.get("PGCOMBINE_HOME")
    return Path(configured).expanduser() if configured else Path(user_data_dir("pgcombine"))


def given_dsn(dsn: str | None = None) -> str | None:
    """Return the connection string that the user gave, as the argument or in the environment, or None if there is none.

    If an empty string is returned, libpq uses its ``PG*`` variables. Raises the errors of :func:`libpq_dsn`. Without
    ``dsn``, also raises ConfigError if the name of one of pgcombine's variables is misspelt.
    """
    if not dsn:
        _refuse_misspelt()
    chosen = dsn or os.environ.get("PGCOMBINE_DSN") or None
    if chosen is None and any(os.environ.get(name) for name in LIBPQ_VARIABLES):
        chosen = ""
    return libpq_dsn(chosen) if chosen else chosen


def _refuse_misspelt() -> None:
    """Raise ConfigError for a variable whose name begins with PGCOMBINE_ and resembles one of VARIABLES."""
    for name in os.environ:
        prefix, _, rest = name.upper().partition("PGCOMBINE_")
        if prefix or name in VARIABLES:
            continue
        if near := get_close_matches(rest, [one.removeprefix("PGCOMBINE_") for one in VARIABLES]):
            raise ConfigError(f"the variable {name} isn't known: did you mean PGCOMBINE_{near[0]}?")


def _unreadable(reason: str) -> ConfigError:
    return ConfigError(
        f"the DSN can't be read ({reason}); give a URI such as postgresql://user@host:5432/database "
        "or 'host=… dbname=…'"
    )


def _misread(dsn: str, parts: Mapping[str, Any]) -> bool:
    """Whether libpq may have taken a piece of the password for the host, the port or the database."""
    if any(not port.strip().isdigit() for port in str(parts.get("port") or "0").split(",") if port):
        return True
    scheme, mark, rest = dsn.partition("://")
    if not mark or scheme not in ("postgres", "postgresql"):
        return False
    authority, slash, path = rest.partition("/")
    host = authority.partition("@")[2] or authority
    return "@" in (host + slash + path).partition("?")[0]


def libpq_dsn(dsn: str) -> str:
    """Return ``dsn`` in libpq's form, without the driver in a SQLAlchemy URL (``postgresql+psycopg://…``).

    Raises ConfigError if ``dsn`` can't be read as a libpq connection string, if libpq would misread its password, or if
    SQLAlchemy has hidden the password.
    """
    chosen, is_url = _SQLALCHEMY.subn(r"\1://", dsn)
    if is_url:  # SQLAlchemy doesn't encode a space before the question mark, and writes + for it after the mark
        names, mark, options = chosen.partition("?")
        chosen = names.replace(" ", "%20") + mark + options.replace("+", "%20")
    try:
        parts = conninfo_to_dict(chosen)
    except (psycopg.ProgrammingError, UnicodeError) as error:
        raise _unreadable(_QUOTED.sub("…", str(error).strip())) from None  # the error's message quotes the DSN
    if _misread(chosen, parts):
        raise _unreadable("check the password: write %40 for @, %3A for : and %2F for / in it")
    if parts.get("password") == "***":
        raise ConfigError(
            "the password in the DSN is ***: str() of a SQLAlchemy URL hides it; "
            "use url.render_as_string(hide_password=False)"
        )
    return chosen
