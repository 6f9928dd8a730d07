"""Options in other spellings, connection strings of several kinds, and writes in other threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.queues import combine_all, one, values
from support.servers import embedded_only

from pgcombine.errors import ConfigError
from pgcombine.spark import register, staged, write_jdbc

pytestmark = [pytest.mark.spark, embedded_only]


def frame(spark: Any) -> Any:
    return spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "word string, n bigint").repartition(2)


COUNTED = {"a": 4, "b": 2}


@pytest.mark.wc
@pytest.mark.jdbc
def test_options_by_other_names_are_used(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    """Options in other cases or with underscores count: without a run id, a repeated write would count again."""
    source = frame(spark).write.format("pgcombine").option("QUEUE", "wc").option("Dsn", dsn)
    for run_id in ("run_id", "RUNID"):
        source.option(run_id, "r").mode("append").save()
    assert one(conn, "select pgcombine.backlog('wc')") == 3
    given: dict[str, Any]
    for given in ({"runId": "s"}, {"run_id": "s"}, {"RunId": "s"}):
        write_jdbc(frame(spark), "wc", dsn, **given)
    assert one(conn, "select pgcombine.backlog('wc')") == 6
    for day in (date(2024, 2, 29), "2024-02-29"):
        write_jdbc(frame(spark), "wc", dsn, day, preAggregate="true")  # type: ignore[arg-type]
    assert one(conn, "select pgcombine.backlog('wc')") == 8
    combine_all(conn)
    assert values(conn) == {word: 3 * n for word, n in COUNTED.items()}


@pytest.mark.wc
def test_options_that_contradict_jdbc_are_refused(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    options: dict[str, Any]
    for options in ({"run_id": ""}, {"run_id": "r", "runId": "s"}, {"mode": "token"}, {"preaggregate": "perhaps"}):
        with pytest.raises(ConfigError):
            write_jdbc(frame(spark), "wc", dsn, **options)
    assert one(conn, "select pgcombine.backlog('wc')") == 0


@pytest.mark.wc
@pytest.mark.jdbc
def test_dsn_is_resolved_on_the_driver(
    spark: Any, conn: psycopg.Connection, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables count even if the program sets them after its session began. Tasks don't see them."""
    given = conninfo_to_dict(dsn)
    service = tmp_path / "services"
    service.write_text("[here]\n" + "".join(f"{name}={given[name]}\n" for name in ("host", "port", "dbname", "user")))
    passwords = tmp_path / "passwords"
    passwords.write_text(f"*:*:*:*:{given['password']}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    for sink in ("copy", "jdbc"):
        with staged(frame(spark), "wc", "service=here", sink=sink) as rows:
            rows.commit()
    monkeypatch.setenv("PGUSER", str(given["user"]))
    monkeypatch.setenv("PGDATABASE", str(given["dbname"]))
    with staged(frame(spark), "wc", f"host={given['host']} port={given['port']}") as rows:
        rows.commit()
    combine_all(conn)
    assert values(conn) == {word: 3 * n for word, n in COUNTED.items()}


@pytest.mark.wc
@pytest.mark.jdbc
def test_host_address_is_used(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    """The address in ``hostaddr`` is used instead of the host name, and of two servers the reachable one is used."""
    there: dict[str, Any] = conninfo_to_dict(dsn)
    named = make_conninfo("", **{**there, "host": "db.invalid", "hostaddr": "127.0.0.1"})
    two = {"host": "a.invalid,b.invalid", "hostaddr": "127.0.0.1,127.0.0.1", "port": f"1,{there['port']}"}
    for given in (named, make_conninfo("", **{**there, **two})):
        write_jdbc(frame(spark), "wc", given)
        frame(spark).write.format("pgcombine").options(queue="wc", dsn=given).mode("append").save()
    combine_all(conn)
    assert values(conn) == {word: 4 * n for word, n in COUNTED.items()}


@pytest.mark.wc
def test_other_threads_write(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    rows = frame(spark)

    def load() -> None:
        with staged(rows, "wc", dsn) as one_load:
            one_load.commit()

    def save() -> None:
        register(spark)
        rows.write.format("pgcombine").options(queue="wc", dsn=dsn).mode("append").save()

    for work in (load, save):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(work).result()
    combine_all(conn)
    assert values(conn) == {word: 2 * n for word, n in COUNTED.items()}
