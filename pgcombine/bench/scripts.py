"""The compared transactions, as scripts for pgbench over a run of ``:k`` keys from ``bench.zipf``."""

from __future__ import annotations

from pgcombine.bench.scratch import SAMPLE

_RUN = f"\\set i random(0, {SAMPLE} - :k)\n"
_KEYS = "from bench.zipf where i >= :i and i < :i + :k::int"

ENQUEUE = f"{_RUN}insert into pgcombine.bench_updates (word, n) select word, 1 {_KEYS};\n"
ENQUEUE_ARRAYS = (
    f"{_RUN}select pgcombine.bench_enqueue(array(select word {_KEYS}), array_fill(1::bigint, array[:k::int]));\n"
)
SORTED_UPSERT = (
    f"{_RUN}insert into bench.total as t (word, n) select word, count(*) {_KEYS} group by word order by word "
    "on conflict (word) do update set n = t.n + excluded.n;\n"
)
RANDOM_UPSERT = (
    f"{_RUN}insert into bench.total as t (word, n) select word, count(*) {_KEYS} group by word order by random() "
    "on conflict (word) do update set n = t.n + excluded.n;\n"
)
SLOTTED_UPSERT = (
    f"{_RUN}\\set s random(0, 15)\n"
    f"insert into bench.slot as t (word, slot, n) select word, :s::int, count(*) {_KEYS} group by word order by word "
    "on conflict (word, slot) do update set n = t.n + excluded.n;\n"
)
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
