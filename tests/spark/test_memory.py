"""A small measurement of the driver's memory gives a plausible number of bytes."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import combine_all, values
from support.servers import embedded_only

from pgcombine.bench.spark_memory import peak

pytestmark = [pytest.mark.spark, embedded_only, pytest.mark.slow]


def test_memory_of_a_driver_is_measured(own_environment: object, dsn: str, conn: psycopg.Connection) -> None:
    taken = peak("pgcombine", dsn, 1000, 10)
    assert taken > 100_000_000  # more than 100 MB, since the Java process counts
    combine_all(conn, "bench")
    assert values(conn, "bench") == {f"w{n}": 100 for n in range(10)}
