"""Under every plan, functions that raise see only the rows that are meant for them.

The catalog is analyzed, and has queues with different columns. The types of two queues raise when a query about another
queue looks them up by their names: the role may not use the schema of one, and the other has a new name by now. The
main flows run once with each kind of plan switched off.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support import run_cli
from support.servers import embedded_only

from pgcombine import CombineQueue
from pgcombine.database.sqlfiles import query

pytestmark = embedded_only

QUEUES = 30
TYPES = ("text", "integer", "date", "uuid", "bigint", "numeric")
PLANS = ("seqscan", "indexscan", "hashjoin", "nestloop")
VIEWS = r"""
    select format('select * from %s', oid::regclass) from pg_class
    where relkind = 'v' and relnamespace = 'pgcombine'::regnamespace
        and relname !~ '^[qr]\d|^[qr]_|_(current|pending|source)$'
        and has_table_privilege(oid, 'select')
"""
# queries without parameters that change nothing
QUERIES = (
    *("doctor_autovacuum", "doctor_buckets", "doctor_collation", "doctor_connections", "doctor_expiry"),
    *("doctor_exports", "doctor_extensions", "doctor_failures", "doctor_feeds", "doctor_loads", "doctor_queues"),
    *("doctor_role", "doctor_search_path", "doctor_segments", "doctor_servers", "doctor_settings", "doctor_slots"),
    *("failing_buckets", "handoff_replicas", "handoff_servers", "handoff_states", "handoff_waiting"),
    *("metrics_destination", "metrics_export", "metrics_hint", "metrics_queue", "metrics_segment", "metrics_snapshot"),
    *("quarantined_queues", "queue_definitions", "queues", "reclaiming", "shard_nodes"),
    *("status_buckets", "status_queues", "web_destinations", "web_exports", "web_fronts", "web_hints", "web_history"),
    *("web_identity", "web_loads", "web_queues", "workers", "foreign_objects"),
)
SETUP = """
create schema hidden;
create type hidden.kind as enum ('x');
create type renamed as enum ('x');
select pgcombine.create_queue('q_hidden', key => '{h hidden.kind}', value => '{n bigint sum}', buckets => 1);
select pgcombine.create_queue('q_renamed', key => '{g renamed}', value => '{n bigint sum}', buckets => 1);
alter type renamed rename to renamed_again;
create table src (k integer, x bigint);
insert into src select i % 7, i from generate_series(1, 100) i;
select pgcombine.create_rollup('r_first', 'src', '{k}', '{count(*) as n,max(x) as most}', buckets => 1);
select pgcombine.create_feed('f_first', 'q0');
select pgcombine.create_export('e_first', 'q1');
"""
FLOW = """
select pgcombine.create_queue('{q}', key => '{{k_{q} text}}', value => '{{n_{q} bigint sum}}', buckets => 2,
    expire_when => 'n_{q} < 0');
select pgcombine.grant_right(r, '{role}', '{q}') from unnest('{{enqueue,read}}'::text[]) r;
select pgcombine.grant_right('work', '{role}');
select pgcombine.create_feed('f_{q}', '{q}');
select pgcombine.create_export('e_{q}', '{q}');
select pgcombine.enqueue('{q}', '[{{"k_{q}": "a", "n_{q}": 1}}]');
select pgcombine.enqueue_once('{q}', 't', '[{{"k_{q}": "b", "n_{q}": -1}}]');
call pgcombine.drain('{q}');
call pgcombine.expire('{q}');
call pgcombine.reclaim('{q}');
select * from pgcombine.{q}_current;
select problem from pgcombine.verify('{q}');
select * from pgcombine.f_{q}_read();
select pgcombine.rebucket('{q}', 4);
select * from pgcombine_internal.values_tables('{q}');
select pgcombine.create_rollup('r_{q}', 'src', '{{k}}', '{{sum(x) as x_{q}}}', buckets => 1);
call pgcombine.backfill('r_{q}');
select problem from pgcombine.verify_rollup('r_{q}');
insert into src values (1, 1);
select pgcombine_internal.begin_load('{load}', '{q}', 'run', 'stage', false);
select pgcombine_internal.end_load('{load}', '{q}', 'run', null, null, false);
"""
AS_ROLE = """
insert into pgcombine.{q}_updates values ('c', 1);
select pgcombine_internal.begin_load('{other}', '{q}', 'run', 'stage', false);
select pgcombine_internal.end_load('{other}', '{q}', 'run', null, null, true);
call pgcombine.drain('{q}');
"""
END = """
select pgcombine.revoke_right('enqueue', '{role}', '{q}');
select pgcombine.revoke_right('work', '{role}');
select pgcombine.drop_rollup('r_{q}', force => true);
select pgcombine.drop_export('e_{q}', force => true);
select pgcombine.drop_feed('f_{q}');
select pgcombine.drop_queue('{q}', force => true);
"""


@pytest.fixture
def role(conn: psycopg.Connection) -> Iterator[str]:
    """A role without rights on the schema of a queue's type. The catalog is analyzed."""
    role = f"role_{conn.info.backend_pid}"
    for number in range(QUEUES):
        columns = [f"k{number} {TYPES[number % len(TYPES)]}"], [f"n{number} bigint sum"]
        conn.execute("select pgcombine.create_queue(%s, %s, %s, buckets => 1)", (f"q{number}", *columns))
    conn.execute(SETUP)
    conn.execute(f"create role {role}; grant all on schema public to {role}; analyze")
    conn.execute(f"select pgcombine.grant_right('monitor', '{role}')")
    yield role
    conn.execute(f"drop owned by {role}; drop role {role}")


def steps(conn: psycopg.Connection, plan: str, role: str) -> Iterator[str]:
    names = {"q": f"no_{plan}", "role": role, "load": uuid4(), "other": uuid4()}
    yield from (query(name).replace("%%", "%") for name in QUERIES)
    yield from FLOW.format(**names).strip().split(";\n")
    yield from [view for (view,) in conn.execute(VIEWS)]
    yield f"set role {role}"
    yield from AS_ROLE.format(**names).strip().split(";\n")
    yield from [view for (view,) in conn.execute(VIEWS)]
    yield "reset role"
    yield from END.format(**names).strip().split(";\n")


def test_every_plan_gives_results(dsn: str, role: str) -> None:
    failed = []
    for plan in PLANS:
        settings = f"-c statement_timeout=60s -c enable_{plan}=off"
        planned = make_conninfo(dsn, options=settings)
        with psycopg.connect(planned, autocommit=True) as session:
            for step in steps(session, plan, role):
                try:
                    session.execute(step.encode())
                except psycopg.Error as error:
                    failed.append((plan, step, str(error).splitlines()[0]))
            assert CombineQueue("q2").get(session, [date(2024, 2, 29)]) == {}
        for command in ("status", "doctor"):
            told = run_cli(command, "--dsn", planned)
            if told.returncode > 1 or "Traceback" in told.stderr or "permission denied" in told.stdout + told.stderr:
                failed.append((plan, command, told.stderr))
    assert failed == [], "\n".join(map(str, failed))
