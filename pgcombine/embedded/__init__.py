"""A PostgreSQL server of one's own, from the programs in a Python wheel.

:func:`ensure` is all that most callers need: it starts the server of a home directory unless it runs, and
gives its URI. Everything that can go wrong raises :class:`~pgcombine.errors.ConfigError`.
"""

from __future__ import annotations

from pgcombine.embedded.server import EmbeddedServer, ServerStatus, ensure

__all__ = ["EmbeddedServer", "ServerStatus", "ensure"]
