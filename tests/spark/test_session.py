"""phrasecount uses an existing Spark session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_session_of_another_thread_stays_unchanged(spark: Any) -> None:
    """A thread without an active session uses the existing session, which stays usable afterwards."""
    from pyspark.sql import SparkSession

    from pgcombine.phrasecount.session import borrowed_session

    def work() -> int:
        spark._jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()
        assert SparkSession.getActiveSession() is None
        with borrowed_session("tests") as borrowed:
            return int(borrowed.range(3).count())

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(work).result() == 3
    assert spark.range(4).count() == 4
