"""The file ``privileges.txt`` lists privileges, row security policies and functions that run with their owner's rights.

So a change of these is visible in a diff.

With ``PGCOMBINE_TEST_WRITE_PRIVILEGES=1``, the test writes the file if the server is PostgreSQL 18 or newer.
"""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest
from support.queues import one

GOLDEN = Path(__file__).with_name("privileges.txt")

FOUND = """
    -- privileges of all roles
    select 'public: ' || lower(a.privilege_type) || coalesce(' (' || o.attname || ')', '') || ' on ' || o.relation
    from (select c.oid::regclass as relation, null::name as attname, c.relacl as acl
          from pg_class c where c.relnamespace = 'pgcombine'::regnamespace
          union all
          select c.oid::regclass, t.attname, t.attacl
          from pg_class c join pg_attribute t on t.attrelid = c.oid where c.relnamespace = 'pgcombine'::regnamespace) o
    cross join lateral aclexplode(o.acl) a
    where a.grantee = 0
    union all
    select 'public: ' || lower(a.privilege_type) || ' on schema ' || n.nspname
    from pg_namespace n cross join lateral aclexplode(n.nspacl) a
    where n.nspname = 'pgcombine' and a.grantee = 0
    union all
    -- row security policies
    select format('policy %s on %s for %s: %s', p.policyname, p.tablename, lower(p.cmd),
                  concat_ws('; check ', regexp_replace(p.qual, '\\s+', ' ', 'g'),
                            regexp_replace(p.with_check, '\\s+', ' ', 'g')))
    from pg_policies p where p.schemaname = 'pgcombine'
    union all
    select 'by policies alone: ' || c.relname from pg_class c
    where c.relnamespace = 'pgcombine'::regnamespace and c.relrowsecurity
    union all
    -- security definer functions, and functions that PUBLIC may not execute
    select 'owner''s rights: ' || p.oid::regprocedure from pg_proc p
    where p.pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace) and p.prosecdef
    union all
    select 'not for everybody: ' || p.oid::regprocedure from pg_proc p
    where p.pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace) and p.proacl is not null
      and not exists (select from aclexplode(p.proacl) a where a.grantee = 0 and a.privilege_type = 'EXECUTE')
    union all
    -- privileges that grant_right grants
    select distinct 'right ' || r."right" || ': ' || p.privileges || ' on ' || p.object
    from pgcombine.right_privilege r, unnest('{NULL,wc}'::text[]) s (queue),
         pgcombine_internal.right_privileges(r."right", s.queue) p
"""


@pytest.mark.wc(buckets=2)
def test_privileges_equal_the_file(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.create_export('words', 'wc')")
    conn.execute("select pgcombine.create_feed('words', 'wc')")
    found = sorted(line for (line,) in conn.execute(FOUND))
    version = one(conn, "select current_setting('server_version_num')::integer")
    if "PGCOMBINE_TEST_WRITE_PRIVILEGES" in os.environ and version >= 180000:
        GOLDEN.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    expected = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert found == [line for line in expected if version >= 170000 or ": maintain on " not in line]
