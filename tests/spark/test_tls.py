"""Both sinks and the reader work over TLS with a verified certificate; errors contain no password."""

from __future__ import annotations

import subprocess
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.needs import images, require_program
from support.queues import combine_all, make_queue, values
from support.wait import eventually

from pgcombine import schema
from pgcombine.errors import PgCombineError
from pgcombine.spark import register, write_jdbc
from pgcombine.spark.errors import explained

from .frames import JDBC

pytestmark = [pytest.mark.spark, pytest.mark.docker, pytest.mark.slow]

PASSWORD = "cOrrect-h0rse"
# The server's key becomes readable only for the server's account, and connections over TCP must use TLS.
INSTALL = """
install -o postgres -m 600 /certificates/server.key "$PGDATA" &&
install -o postgres /certificates/server.crt "$PGDATA" &&
sed -i 's/^host /hostssl /' "$PGDATA/pg_hba.conf"
"""


@dataclass
class Secure:
    """A server that requires TLS; its certificate is for ``localhost``."""

    port: int
    certificates: Path

    def dsn(self, *, ca: str = "ca", password: str = PASSWORD, host: str = "localhost") -> str:
        return make_conninfo(
            host=host,
            port=self.port,
            user="postgres",
            password=password,
            dbname="postgres",
            sslmode="verify-full",
            sslrootcert=self.certificates / f"{ca}.crt",
        )


def openssl(directory: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def make_certificates(directory: Path) -> None:
    """Make two certificate authorities, and a certificate for localhost signed by the first."""
    for name in ("ca", "other"):
        openssl(
            directory,
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN=pgcombine tests {name}"),
            *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
        )
    openssl(
        directory,
        *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key"),
        *("-out", "server.csr"),
    )
    (directory / "names").write_text("subjectAltName=DNS:localhost\n")
    openssl(
        directory,
        *("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"),
        *("-extfile", "names", "-out", "server.crt"),
    )


@pytest.fixture(scope="module")
def secure(own_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    from testcontainers.community.postgres import PostgresContainer

    require_program("openssl")
    certificates = tmp_path_factory.mktemp("certificates")
    make_certificates(certificates)
    postgres = PostgresContainer(
        images()["PGCOMBINE_TEST_IMAGE"], username="postgres", password=PASSWORD, dbname="postgres", driver=None
    ).with_volume_mapping(str(certificates), "/certificates")
    with postgres:
        secure = Secure(int(postgres.get_exposed_port(5432)), certificates)
        with psycopg.connect(postgres.get_connection_url(), autocommit=True) as conn:
            code, output = postgres.get_wrapped_container().exec_run(["sh", "-c", INSTALL])
            assert code == 0, output
            conn.execute("alter system set ssl = on")
            conn.execute("select pg_reload_conf()")

        def answers() -> bool:
            try:
                psycopg.connect(secure.dsn()).close()
            except psycopg.OperationalError:
                return False
            return True

        eventually(answers, what="the server takes TLS connections")
        with pytest.raises(psycopg.OperationalError, match="no encryption"):
            psycopg.connect(secure.dsn() + " sslmode=disable")
        schema.upgrade(secure.dsn())
        yield secure


@pytest.fixture
def conn(secure: Secure) -> Iterator[psycopg.Connection]:
    with psycopg.connect(secure.dsn(), autocommit=True) as conn:
        make_queue(conn)
        yield conn
        conn.execute("select pgcombine.drop_queue('wc', force => true)")


def use(spark: Any, way: str, dsn: str) -> Any:
    """Write some words by a sink, or read the values."""
    register(spark)
    frame = spark.createDataFrame([("a", 1), ("b", 2)], "word string, n bigint")
    with explained():
        if way == "jdbc":
            return write_jdbc(frame, "wc", dsn)
        if way == "copy":
            return frame.write.format("pgcombine").options(queue="wc", dsn=dsn).mode("append").save()
        rows = spark.read.format("pgcombine").options(queue="wc", dsn=dsn).load().collect()
        return {row.word: row.n for row in rows}


def test_sinks_and_reader_work_over_tls(spark: Any, secure: Secure, conn: psycopg.Connection) -> None:
    for way in ("jdbc", "copy"):
        use(spark, way, secure.dsn())
    combine_all(conn)
    assert use(spark, "read", secure.dsn()) == values(conn) == {"a": 2, "b": 4}


@pytest.mark.parametrize("way", [JDBC, "copy", "read"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ca": "other"}, "certificate verify failed"),
        ({"password": "wr0ng-pony"}, 'password authentication failed for user "postgres"'),
        ({"host": "127.0.0.1"}, 'does not match host name "127.0.0.1"'),
    ],
    ids=["authority", "password", "host"],
)
def test_errors_hold_no_secrets(
    spark: Any, secure: Secure, conn: psycopg.Connection, way: str, wrong: dict[str, str], message: str
) -> None:
    with pytest.raises(PgCombineError, match=message) as caught:
        use(spark, way, secure.dsn(**wrong))
    assert len(str(caught.value).splitlines()) == 1
    told = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in told
    assert "wr0ng-pony" not in told
