"""Destinations of exports: a second database on the test's server, and a receiver of webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.receiver import Receiver, receiving
from support.servers import Server


@pytest.fixture
def target(server: Server) -> Iterator[str]:
    """The URI of an empty database on the server of ``dsn``."""
    with server.database() as dsn:
        yield dsn


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
