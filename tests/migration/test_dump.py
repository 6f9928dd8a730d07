"""A dump that is restored elsewhere goes on: no transaction numbers or snapshots are stored that mean nothing there."""

from __future__ import annotations

import subprocess
from collections import Counter

import psycopg
from support.audit import audit, audited, follow
from support.queues import add, enqueue, make_queue, one, values
from support.servers import Server, embedded_only

from pgcombine import schema
from pgcombine.embedded import programs
from pgcombine.queue import CombineQueue
from pgcombine.worker import drain

WC = CombineQueue("wc")


@embedded_only
def test_a_queue_survives_dump_and_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    make_queue(conn)
    audit(conn)
    add(conn, [(f"w{i}", 1) for i in range(50)])
    drain(dsn, "wc", timeout=60)
    # pending when it is dumped: plain rows, and packed ones
    add(conn, {"w0": 1, "new": 2})
    enqueue(conn, [{"word": f"w{i % 70}", "n": 1} for i in range(700)])
    assert one(conn, "select count(*) < 702 from pgcombine.wc_updates")
    expected = Counter({f"w{i}": 10 + (i < 50) for i in range(70)}) + Counter(w0=1, new=2)
    found = programs.find(server.version)
    dump = subprocess.run([found.path("pg_dump"), "--dbname", dsn], capture_output=True, check=True).stdout
    with server.database() as copy:
        load = [found.path("psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", copy]
        subprocess.run(load, input=dump, capture_output=True, check=True)
        schema.check(copy)
        with psycopg.connect(copy, autocommit=True) as there:
            assert WC.verify(there) == []
            pending = one(there, "select pgcombine.backlog('wc')")
            assert pending == one(conn, "select pgcombine.backlog('wc')") == 702
            assert one(there, "select sum(backlog) from pgcombine.status") == pending
            add(there, {"w0": 1})
            WC.enqueue(there, [("w1", 1)])
            assert drain(copy, "wc", timeout=60).updates == pending + 2
            assert values(there) == expected + Counter(w0=1, w1=1)
            assert follow(audited(there)) == values(there)
            WC.rebucket(there, 3)
            assert WC.verify(there) == []
            WC.drop(there)
