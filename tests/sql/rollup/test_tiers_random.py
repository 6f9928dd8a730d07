"""A queue and its two tiers under random writers, with late, early and expired rows, expiry, and killed workers.

Each of the three must equal a recount of all input without the expired keys.
"""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack

import psycopg
import pytest
from support import eventually, start_cli
from support.queues import combine_all, make_queue, one
from support.sessions import in_background

from pgcombine.worker.drain import drain

MINUTES, HOURS = "90 minutes", "2 days"  # the ages at which keys of the queues minute and hour expire
TIERS = {
    "minute": f"at < timezone('UTC', now()) - interval '{MINUTES}'",
    "hour": f"at < timezone('UTC', now()) - interval '{HOURS}'",
    "day": "false",
}
WRITE = """
    with written as (
        insert into public.input
        select timezone('UTC', now()) + shift * interval '1 minute', page, n, n, n, array[chr(97 + n + 9)]
        from unnest(%s::int[], %s::text[], %s::int[]) as row (shift, page, n)
        returning *)
    insert into pgcombine.minute_updates (at, page, n, low, high, seen)
    select date_trunc('minute', at), page, n, low, high, seen from written
"""
# ``<tier>_current`` hides expired keys, so the recount leaves them out.
DIFFER = """
    with recount as (
        select date_trunc('{tier}', at) as at, page, sum(n) as n, min(low) as low, max(high) as high,
               array(select distinct s from unnest(string_to_array(string_agg(seen[1], ','), ',')) s order by s) as seen
        from public.input group by 1, 2),
    clear as (select * from recount r where not ({condition}))
    select coalesce(c.at, v.at)::text, coalesce(c.page, v.page), c.n, v.n, c.low, v.low, c.high, v.high, c.seen, v.seen
    from clear c full join (select * from pgcombine.{tier}_current) v using (at, page)
    where (c.n, c.low, c.high, c.seen) is distinct from (v.n, v.low, v.high, v.seen)
"""


def make_tiers(conn: psycopg.Connection) -> None:
    conn.execute(
        "create function public.unite(a text[], b text[]) returns text[] immutable strict language sql "
        "as 'select array(select distinct s from unnest(a || b) s order by s)'"
    )
    conn.execute("create table public.input (at timestamp, page text, n int, low int, high int, seen text[])")
    value = ["n bigint sum", "low int min", "high int max", "seen text[] public.unite"]
    make_queue(
        conn,
        "minute",
        key=["at timestamp", "page text"],
        value=value,
        delete_when=None,
        buckets=2,
        expire_when=TIERS["minute"],
        expire_every="1 second",
    )
    for tier, source in (("hour", "minute"), ("day", "hour")):
        conn.execute(
            "select pgcombine.create_tier(%s, %s, array[format('date_trunc(%%L, at) as at', %s::text), 'page'], "
            "buckets => 2, expire_when => nullif(%s, 'false'), expire_every => '1 second')",
            (tier, source, tier, TIERS[tier]),
        )


def write(conn: psycopg.Connection, dice: random.Random) -> None:
    """Write random rows in one transaction: present, late, expired and early ones."""
    rows = [
        (
            dice.choice([0, 0, -1, -dice.randrange(80), -dice.randrange(7000), dice.randrange(3000)]),
            dice.choice("abc"),
            dice.randrange(-9, 10),
        )
        for _ in range(dice.randrange(1, 30))
    ]
    conn.execute(WRITE, [list(column) for column in zip(*rows, strict=True)])


def differences(conn: psycopg.Connection) -> dict[str, list[object]]:
    """The keys whose values differ from a recount, by tier. Tiers without such keys are left out.

    The comparisons share a transaction, and so a snapshot and ``now()``.
    """
    with conn.transaction():
        conn.execute("set transaction isolation level repeatable read")
        found = {
            tier: conn.execute(DIFFER.format(tier=tier, condition=condition).encode()).fetchall()
            for tier, condition in TIERS.items()
        }
    return {tier: keys for tier, keys in found.items() if keys}


def feed_by_differences(conn: psycopg.Connection) -> None:
    """Make a mutant: a tier gets the changes of its source's values instead of the source's updates."""
    for tier, source in (("hour", "minute"), ("day", "hour")):
        conn.execute("select pgcombine.drop_observer(%s, 'tier ' || %s)", (source, tier))
        conn.execute(
            "select pgcombine.add_observer(%s, 'tier ' || %s::text, format("
            "'insert into pgcombine.%%I (at, page, n, low, high, seen) select date_trunc(%%L, at), page, "
            "coalesce(new_n, 0) - coalesce(old_n, 0), new_low, new_high, new_seen from changes', "
            "%s::text || '_updates', %s::text))",
            (source, tier, tier, tier),
        )


def run(conn: psycopg.Connection, dice: random.Random) -> None:
    """Write, run passes, and remove expired keys, in random order. Then combine what is left."""
    make = [lambda: write(conn, dice)]
    make += [
        lambda tier=tier: conn.execute("select pgcombine.combine(%s, %s)", (tier, dice.randrange(2))) for tier in TIERS
    ]
    for _ in range(150):
        dice.choice(make)()
        if dice.random() < 0.05:
            conn.execute("call pgcombine.expire(%s)", (dice.choice(["minute", "hour"]),))
    for tier in TIERS:
        combine_all(conn, tier)


def test_tiers_equal_a_recount(conn: psycopg.Connection) -> None:
    seed = random.randrange(10**6)
    make_tiers(conn)
    run(conn, random.Random(seed))
    assert differences(conn) == {}, seed
    # No key of the last tier expires, so the tier counts each row of the input.
    assert one(conn, "select sum(n) from pgcombine.day_values") == one(conn, "select sum(n) from public.input")
    assert one(conn, "select count(*) from pgcombine.minute_values") < one(conn, "select count(*) from public.input")


def test_tiers_that_differences_feed_differ_from_a_recount(conn: psycopg.Connection) -> None:
    make_tiers(conn)
    feed_by_differences(conn)
    run(conn, random.Random(1))
    assert {*differences(conn)} == {"hour", "day"}


@pytest.mark.slow
def test_tiers_equal_a_recount_after_kill_9(conn: psycopg.Connection, dsn: str) -> None:
    make_tiers(conn)
    stop = threading.Event()
    seed = random.randrange(10**6)
    dice = random.Random(seed)

    def load(number: int) -> None:
        mine = random.Random(seed + number)
        with psycopg.connect(dsn, autocommit=True) as session:
            while not stop.is_set():
                write(session, mine)

    def passes() -> int:
        return one(
            conn, "select sum(pass) from (select max(pass) as pass from pgcombine.pass group by queue, bucket) p"
        )

    with in_background(lambda: load(1), lambda: load(2)):
        try:
            for number in range(6):
                with ExitStack() as stack:
                    start = ("worker", "--concurrency", 3, "--poll", 0.05, "--dsn", dsn)
                    process = stack.enter_context(start_cli(*start))
                    before = passes() or 0
                    eventually(lambda before=before: (passes() or 0) > before + 5, what="at work")
                    # wait for a random time, so that the kill may come in a pass or between two passes
                    for _ in range(dice.randrange(1, 60)):
                        conn.execute("select 1")
                    process.kill()
                    assert process.wait(timeout=30) == -9, number
        finally:
            stop.set()
    for tier in TIERS:
        drain(dsn, tier, timeout=120)
    assert one(conn, "select count(*) from pgcombine.failure") == 0
    assert differences(conn) == {}, seed
    assert one(conn, "select sum(n) from pgcombine.day_values") == one(conn, "select sum(n) from public.input")
