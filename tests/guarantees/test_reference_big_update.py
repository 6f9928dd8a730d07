"""Large transactions with a small pass limit and twenty loops of a worker, as in a test of Apache Fluo Recipes.

Three transactions add 1, 2 and 10 to each of many keys, once or twice. In one of the tests, an observer keeps a copy of
the values, and checks that each change's old value is in the copy.
"""

from __future__ import annotations

import psycopg
import pytest
from support.audit import audit, audited, check
from support.queues import add, make_queue, one, values
from support.sessions import workers
from support.wait import eventually

# The function raises if the copy differs from the change's old value. Then the pass fails.
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
def test_large_transactions_are_combined_once(conn: psycopg.Connection, dsn: str, keys: int) -> None:
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
            eventually(
                lambda: one(conn, "select pgcombine.backlog('wc')") == 0, timeout=120, what="no update is pending"
            )
            assert values(conn) == dict.fromkeys(words, total)
            assert dict(conn.execute("select word, n from public.copy").fetchall()) == values(conn)
    check(conn, dict.fromkeys(words, 13))
    # each transaction has one update of each key, and so causes one change of each key
    assert {change.new for change in audited(conn)} == {1, 3, 13}
    assert one(conn, "select count(*) from public.copied") == 3 * keys


@pytest.mark.slow
def test_concurrent_large_transactions_are_combined_once(conn: psycopg.Connection, dsn: str) -> None:
    """Each transaction has two updates of each key, and may begin before earlier updates are combined."""
    make_queue(conn, buckets=2, pass_limit=50)
    audit(conn)
    words = [f"w{i:04}" for i in range(1000)]
    with workers(dsn, "wc", count=20, poll=0.5):
        for n in (1, 2, 10):
            with conn.transaction():
                add(conn, [(word, n) for word in words])
                add(conn, [(word, n) for word in reversed(words)])
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, timeout=120, what="no update is pending")
    check(conn, dict.fromkeys(words, 26))
    assert {change.new for change in audited(conn)} <= {2, 6, 26}
