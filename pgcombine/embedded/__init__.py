"""A private PostgreSQL server for the user, run from the programs in a Python wheel.

Most callers need only :func:`ensure`, which starts the server of a home directory if it doesn't run, and returns the
server's URI. Failures raise :class:`~pgcombine.errors.ConfigError`, or :class:`~pgcombine.errors.OperationalError` if
another program starts or stops the server for too long.
"""

from __future__ import annotations

from pgcombine.embedded.server import EmbeddedServer, ServerStatus, ensure

__all__ = ["EmbeddedServer", "ServerStatus", "ensure"]
