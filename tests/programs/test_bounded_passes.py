"""``bounded_passes`` at a moderate size: drained in bounded memory, each key reported once with its total."""

from __future__ import annotations

import psycopg
import pytest

from .bounded_passes import SHAPES, WORKER_MIB, drain

pytestmark = pytest.mark.slow

UPDATES = 120_000
PASS_LIMIT = 8_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_backlog_far_beyond_the_limit(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    done = drain(conn, dsn, shape, UPDATES, PASS_LIMIT)
    assert done.right, done
    assert done.worker_mib < WORKER_MIB, done
    assert done.temp_mib < 64, done
    # a fold makes at least half of what it takes disappear, and a slice that isn't nearly empty takes whole keys
    assert done.passes <= 4 * UPDATES / PASS_LIMIT, done
