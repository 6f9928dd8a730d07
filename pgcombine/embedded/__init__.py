"""A PostgreSQL server of one's own, from the programs in a Python wheel.

:func:`ensure` is all that most callers need: it starts the server of a home directory unless it runs, and
gives its URI. Everything that can go wrong raises :class:`~pgcombine.errors.ConfigError`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pgcombine.embedded.server import EmbeddedServer, ServerStatus

__all__ = ["EmbeddedServer", "ServerStatus", "ensure"]


def ensure(home: Path | None = None, on_start: Callable[[ServerStatus], None] = lambda status: None) -> str:
    """Start the server of ``home`` (default: :func:`pgcombine.config.home`) unless it runs; its URI.

    The database is not migrated. ``on_start`` is called if the server was started now. Raises ConfigError if it can't
    be started.
    """
    if home is None:
        from pgcombine import config  # config starts the server through this module

        home = config.home()
    return EmbeddedServer(home).start(on_start)
