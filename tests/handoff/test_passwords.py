"""A replayer doesn't send its password to an impostor at a registered address."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from support.impostor import ASKED, SECRET, impostor
from support.queues import one
from support.servers import embedded_only
from support.states import raises_state

from pgcombine import Replayer
from pgcombine.errors import ReplicaError
from pgcombine.handoff.connections import address, registered
from pgcombine.handoff.replicated import new_token


@pytest.mark.wc
@embedded_only
@pytest.mark.parametrize("asks", ASKED.values(), ids=ASKED)
def test_impostor_gets_no_password(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch, asks: bytes
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    with impostor(asks) as (port, told):
        conn.execute(
            "select pgcombine_internal.handoff_register('b', %s)", (f"host=127.0.0.1 port={port} user=app dbname=app",)
        )
        conn.execute(
            "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload) values "
            "('b', %s, 'wc', pgcombine_internal.handoff_shape('wc'), gen_random_uuid(), 1, %s)",
            (new_token(), '{"{fluo}","{1}"}'),
        )
        Replayer(dsn, min_age=0, timeout=5).replay(force=True)
    assert told
    assert all(b"user\0app" in start for start in told)  # only startup messages, no passwords
    reason = str(one(conn, "select reason from pgcombine.destination where name = 'b'"))
    assert "authentication method requirement" in reason
    assert one(conn, "select count(*) from pgcombine.handoff_hint") == 1


@pytest.mark.wc
@embedded_only
def test_address_with_other_settings_is_not_opened(conn: psycopg.Connection, dsn: str) -> None:
    """The replayer checks the address again, since another program may have written it into the table."""
    conn.execute(
        "select pgcombine_internal.handoff_handshake('a'), pgcombine_internal.handoff_register('b', 'host=b.example')"
    )
    conn.execute("update pgcombine.handoff_replica set dsn = 'host=b.example hostaddr=192.0.2.1'")
    conn.execute(
        "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload) values "
        "('b', %s, 'wc', pgcombine_internal.handoff_shape('wc'), gen_random_uuid(), 1, '{}')",
        (new_token(),),
    )
    Replayer(dsn, min_age=0, timeout=5).replay(force=True)
    assert 'the address of server "b" must not set hostaddr' in one(conn, "select reason from pgcombine.destination")


@pytest.mark.parametrize(
    ("address", "demands"),
    [
        ("host=127.0.0.1", {"require_auth": "scram-sha-256"}),
        ("host=localhost,::1", {"require_auth": "scram-sha-256"}),
        ("host=/var/run/postgresql", {"require_auth": "scram-sha-256,none"}),
        ("dbname=app", {"require_auth": "scram-sha-256,none"}),
        ("host=b.example", {"require_auth": "scram-sha-256", "sslmode": "verify-full"}),
        ("host=localhost,b.example", {"require_auth": "scram-sha-256", "sslmode": "verify-full"}),
        ("host=/tmp,192.0.2.1", {"require_auth": "scram-sha-256", "sslmode": "verify-full"}),
        ("postgresql://app@localhost.example/db", {"require_auth": "scram-sha-256", "sslmode": "verify-full"}),
    ],
)
def test_remote_address_requires_tls_and_scram(address: str, demands: dict[str, str]) -> None:
    given = conninfo_to_dict(address)
    assert conninfo_to_dict(registered("b", address)) == given | demands


def test_host_from_the_environment_requires_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "b.example")
    assert conninfo_to_dict(registered("b", "dbname=app"))["sslmode"] == "verify-full"


def test_environment_overrides_the_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "require")
    monkeypatch.setenv("PGREQUIREAUTH", "none")
    assert conninfo_to_dict(registered("b", "host=b.example")) == {"host": "b.example"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("host=a port=1 dbname=d user=u password=p sslmode=require service=s", "host=a port=1 dbname=d user=u"),
        ("postgresql://u:p@a:1/d?service=s", "host=a port=1 dbname=d user=u"),
        ("hostaddr=192.0.2.1 dbname=d service=s", "host=192.0.2.1 dbname=d"),
        ("service=s user=u", "service=s user=u"),
    ],
)
def test_registered_address_has_no_option_that_servers_refuse(conn: psycopg.Connection, given: str, kept: str) -> None:
    assert conninfo_to_dict(address(given)) == conninfo_to_dict(kept)
    call = "select pgcombine_internal.handoff_check_address('b', %s)"
    if "host" in kept:
        conn.execute(call, (address(given),))
    else:  # the service's host isn't known here
        with raises_state("PC045", "service"):
            conn.execute(call, (address(given),))


@pytest.mark.parametrize("more", ["hostaddr=192.0.2.1", "service=x", "passfile=/x", "options=-cx=y", "sslmode=disable"])
def test_other_settings_in_an_address_are_refused(more: str) -> None:
    with pytest.raises(ReplicaError):
        registered("b", f"host=b {more}")
