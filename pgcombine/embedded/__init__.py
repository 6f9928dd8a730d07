"""A private PostgreSQL server for the user, run from the programs in a Python wheel.

Most callers need only :func:`ensure`: it starts the server of a home directory if it doesn't run, and returns its URI.
All failures raise :class:`~pgcombine.errors.ConfigError`.
"""

from __future__ import annotations

from pgcombine.embedded.server import EmbeddedServer, ServerStatus, ensure

__all__ = ["EmbeddedServer", "ServerStatus", "ensure"]
