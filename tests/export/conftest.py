"""A second database on the test's server as the destination of exports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.servers import Server


@pytest.fixture
def target(server: Server) -> Iterator[str]:
    """The URI of an empty database beside that of ``dsn``."""
    with server.database() as dsn:
        yield dsn
