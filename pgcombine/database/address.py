"""Addresses of other servers that come from a table.

libpq may log in at such an address with this program's password. So the address may set only the parameters in
``ADDRESS``. Unless ``PGREQUIREAUTH`` is in the environment, the server must use SCRAM, which doesn't reveal the
password. Unless ``PGSSLMODE`` is in the environment, a server on another host must prove its host name by its
certificate.
"""

from __future__ import annotations

import ipaddress
import os
from typing import Any

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.config import libpq_dsn
from pgcombine.errors import ConfigError, pip_install

# the parameters that a registered address may set; a check in SQL has the same list
ADDRESS = {
    *("host", "port", "dbname", "user", "application_name", "connect_timeout", "target_session_attrs"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
}
_LIBPQ = 160000  # the first version of libpq that has the parameter require_auth


def refused(dsn: str) -> list[str]:
    """Return the parameters that an address sets, but must not set."""
    return sorted(conninfo_to_dict(libpq_dsn(dsn)).keys() - ADDRESS)


def guarded(dsn: str, *, anonymous: bool = False) -> str:
    """Return the connection string for an address, as this module describes.

    With ``anonymous``, and over a Unix socket, the server may also ask for no password. Raises ConfigError if ``dsn``
    isn't a connection string, or if libpq is too old for ``require_auth``.
    """
    parts: dict[str, Any] = dict(conninfo_to_dict(libpq_dsn(dsn)))
    hosts = str(parts.get("host") or os.environ.get("PGHOST") or "/").split(",")
    if "PGREQUIREAUTH" not in os.environ:
        if pq.version() < _LIBPQ:
            raise ConfigError(
                f"libpq {pq.version() // 10000} can't demand SCRAM of servers: {pip_install('binary')}, or set "
                "PGREQUIREAUTH if any server that answers may get the password"
            )
        sockets = all(host.startswith(("/", "@")) for host in hosts)  # with peer authentication, no password is sent
        parts["require_auth"] = "scram-sha-256,none" if anonymous or sockets else "scram-sha-256"
    if "PGSSLMODE" not in os.environ and not all(map(_is_local, hosts)):
        parts["sslmode"] = "verify-full"
    return make_conninfo("", **parts)


def _is_local(host: str) -> bool:
    if host.startswith(("/", "@")) or host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
