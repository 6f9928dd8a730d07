"""Sinks, reader and streams work over Spark Connect, where client and server are different processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from support.connect import connect_server
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

pytestmark = [pytest.mark.spark, embedded_only, pytest.mark.slow]
CLIENT = Path(__file__).with_name("connect_client.py")


@pytest.mark.wc
@pytest.mark.jdbc
@pytest.mark.timeout(600)
def test_connect_runs_sinks_reader_and_streams(
    conn: psycopg.Connection, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's DSN holds no password; client and server have it in their environments."""
    make_queue(conn, "loaded")
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    password = str(parts.pop("password"))
    monkeypatch.setenv("PGPASSWORD", password)
    for name in ("server", "client"):
        (tmp_path / name).mkdir()
    with connect_server(tmp_path / "server") as remote:
        done = subprocess.run(
            [sys.executable, str(CLIENT), remote, psycopg.conninfo.make_conninfo(**parts), str(tmp_path / "client")],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["session"].startswith("pyspark.sql.connect")
    combine_all(conn)
    # a run written twice, a pre-aggregated write, and a JDBC run written twice: three writes count; a source adds
    # what it wrote last
    written = {f"w{n}": (3 + (n < 5)) * 40 for n in range(10)}
    assert values(conn) == written | {"streamed": 2 if "stream" in seen else 4, "named": 1}
    assert "needs PySpark 4.1" in seen.get("stream", "needs PySpark 4.1")
    assert seen["jdbc"] == [True, False]
    assert "over Spark Connect the query's id isn't known in foreachBatch" in seen["foreach_batch"]
    assert "run_id" in seen["foreach_batch"]
    assert 'it lacks the key column "word"' in seen["missing column"]
    assert "can't be overwritten" in seen["overwrite"]
    assert 'there is no queue "nothing"' in seen["no queue"]
    assert all(len(text.splitlines()) == 1 for name, text in seen.items() if isinstance(text, str))
    assert seen["read"] == [100, 5050, 8]
    assert one(conn, "select count(*) from pgcombine.spark_load") == 0
    assert password not in done.stdout + done.stderr
