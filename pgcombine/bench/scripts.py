"""The compared transactions, as scripts for pgbench. Only MERGE_BARE is a plain statement.

Most scripts make ``:k`` updates, one for the key in each of ``:k`` consecutive rows of ``bench.zipf``. Each function
returns a part of a script. The parameter ``source`` is the part of a select from the keyword ``from`` on. The rows of
the select have the keys in the column ``word``.
"""

from __future__ import annotations

from pgcombine.bench.scratch import SAMPLE

_RUN = f"\\set i random(0, {SAMPLE} - :k)\n"
KEYS = "from bench.zipf where i >= :i and i < :i + :k::int"
SLOTS = 16  # rows for each key in the slotted counter


def enqueue(source: str) -> str:
    """Return the statement that appends a row to the queue for each update."""
    return f"insert into pgcombine.bench_updates (word, n) select word, 1 {source};\n"


def upsert(source: str, order: str) -> str:
    """Return the statement that upserts a total for each key, in the order of the expression ``order``."""
    return (
        f"insert into bench.total as t (word, n) select word, count(*) {source} group by word order by {order} "
        "on conflict (word) do update set n = t.n + excluded.n;\n"
    )


def upsert_slots(source: str) -> str:
    """Return the part that upserts a slot of each key: a random one, the same for all keys of the transaction."""
    return (
        f"\\set s random(0, {SLOTS - 1})\n"
        f"insert into bench.slot as t (word, slot, n) select word, :s::int, count(*) {source} group by word "
        "order by word on conflict (word, slot) do update set n = t.n + excluded.n;\n"
    )


ENQUEUE = _RUN + enqueue(KEYS)
SORTED_UPSERT = _RUN + upsert(KEYS, "word")
RANDOM_UPSERT = _RUN + upsert(KEYS, "random()")
SLOTTED_UPSERT = _RUN + upsert_slots(KEYS)
# the rest of a transaction with a hot key: 5 ms of other work, and the commit
_WORK = "select pg_sleep(0.005);\ncommit;\n"
HOT_ENQUEUE = f"begin;\ninsert into pgcombine.bench_updates (word, n) values ('hot', 1);\n{_WORK}"
HOT_UPSERT = (
    "begin;\ninsert into bench.total as t (word, n) values ('hot', 1) "
    f"on conflict (word) do update set n = t.n + 1;\n{_WORK}"
)
MERGE_BARE = (
    "merge into bench.total t using (select word, sum(n)::bigint as n from bench.bare group by word) s "
    "on t.word = s.word when matched then update set n = t.n + s.n when not matched then insert values (s.word, s.n)"
)
