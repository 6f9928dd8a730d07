"""The audit notices lost, doubled and refused writes."""

from __future__ import annotations

import psycopg
import pytest

from support.audit import Ledger, audit, check, problems
from support.queues import add, combine, lose, make_queue
from support.servers import embedded_only


@embedded_only
@pytest.mark.parametrize("fault", ["lost", "doubled", "unreported"])
def test_audit_notices_a_fault(conn: psycopg.Connection, fault: str) -> None:
    make_queue(conn)
    audit(conn)
    combine(conn, {"a": 1, "b": 2})
    check(conn, {"a": 1, "b": 2, "c": 0})
    add(conn, {"a": 3})
    if fault == "lost":
        lose(conn, "word = 'a'")
    elif fault == "doubled":
        add(conn, {"a": 3})
    combine(conn, {"b": 1})
    if fault == "unreported":
        conn.execute("delete from public.wc_audit where old = 1")
    told = "\n".join(problems(conn, {"a": 4, "b": 3}))
    assert ("values of wc" in told, "chain" in told) == (fault != "unreported", True), told


def test_ledger_notices_lost_and_refused_writes() -> None:
    ledger = Ledger()
    ledger.acknowledge([("a", 1), ("a", 2)], 1)
    ledger.acknowledge([], 2)
    ledger.refuse(3)
    assert ledger.sums == {"a": 3}
    assert list(ledger.problems({1, 2, 4})) == []
    assert len(list(ledger.problems({2, 4}))) == 1
    assert len(list(ledger.problems({2, 3}))) == 2
