"""The reference's test of big updates: two buckets, a tiny pass limit, twenty workers.

Transactions of 1000 keys, first +1, then +2, then +10 each. An observer that keeps its own copy of the values finds
in every change that ``old`` is what it wrote last.
"""

from __future__ import annotations

import psycopg
import pytest
from support.audit import audit, audited, check
from support.queues import add, make_queue, one, values
from support.sessions import workers
from support.wait import eventually

# raises where the copy isn't what the change says: the pass would be tried for ever
COPY = """
create function public.copy(word text, old bigint, new bigint) returns void language plpgsql as $$
begin
    if old is distinct from (select c.n from public.copy c where c.word = copy.word) then
        raise exception 'old value % of % is not what was written last', old, word;
    end if;
    insert into public.copy values (copy.word, new) on conflict on constraint copy_pkey do update set n = excluded.n;
    insert into public.copied values (copy.word, new);
end
$$
"""


@pytest.mark.parametrize("keys", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_big_update(conn: psycopg.Connection, dsn: str, keys: int) -> None:
    make_queue(conn, buckets=2, pass_limit=50)
    audit(conn)
    conn.execute("create table public.copy (word text primary key, n bigint)")
    conn.execute("create table public.copied (word text, n bigint)")
    conn.execute(COPY)
    conn.execute("select pgcombine.add_observer('wc', 'copy', 'select public.copy(word, old_n, new_n) from changes')")
    words = [f"w{i:04}" for i in range(keys)]
    total = 0
    with workers(dsn, "wc", count=20, poll=0.5):
        for n in (1, 2, 10):
            with conn.transaction():
                for word in words:
                    add(conn, {word: n})
            total += n
            eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, timeout=120, what="drained")
            assert values(conn) == dict.fromkeys(words, total)
            assert dict(conn.execute("select word, n from public.copy").fetchall()) == values(conn)
    check(conn, dict.fromkeys(words, 13))
    # a transaction's updates came all at once, one a key: nobody saw anything in between
    assert {change.new for change in audited(conn)} == {1, 3, 13}
    assert one(conn, "select count(*) from public.copied") == 3 * keys


@pytest.mark.slow
def test_big_updates_on_top_of_each_other(conn: psycopg.Connection, dsn: str) -> None:
    """The same while workers don't keep up: three transactions at once, and keys that repeat within them."""
    make_queue(conn, buckets=2, pass_limit=50)
    audit(conn)
    words = [f"w{i:04}" for i in range(1000)]
    with workers(dsn, "wc", count=20, poll=0.5):
        for n in (1, 2, 10):
            with conn.transaction():
                add(conn, [(word, n) for word in words])
                add(conn, [(word, n) for word in reversed(words)])
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, timeout=120, what="drained")
    check(conn, dict.fromkeys(words, 26))
    assert {change.new for change in audited(conn)} <= {2, 6, 26}
