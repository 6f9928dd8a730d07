"""A database that is emptied after each test.

Emptying costs less than a new copy of the template. A new copy replaces a database that can't be emptied.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg

# kind, name and contents of objects that a test may make or change
STATE = """
with schemas as (select * from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema')
select 'schema' as kind, quote_ident(nspname) as name, nspacl::text as contents from schemas
union all
select 'relation', c.oid::regclass::text, concat_ws(' ', relkind, relacl, reloptions, relowner, relrowsecurity)
from pg_class c join schemas s on s.oid = relnamespace where relkind in ('r', 'p', 'v', 'm', 'f')
union all
select 'routine', p.oid::regprocedure::text, concat_ws(' ', md5(prosrc), proacl, proconfig)
from pg_proc p join schemas s on s.oid = pronamespace
union all
select 'type', t.oid::regtype::text, typacl::text
from pg_type t join schemas s on s.oid = typnamespace where typtype <> 'c' and typelem = 0
union all
select 'trigger', tgname, tgrelid::regclass::text from pg_trigger where not tgisinternal
union all
select 'extension', extname, null from pg_extension
union all
select 'publication', pubname, null from pg_publication
union all
select 'event trigger', evtname, null from pg_event_trigger
union all
select 'prepared', gid, null from pg_prepared_xacts where database = current_database()
"""
TABLES = """
select oid::regclass::text from pg_class
where relnamespace = 'pgcombine'::regnamespace and relkind = 'r' and not relispartition
"""

State = dict[tuple[str, str], str | None]


class Emptied:
    """A database that can be emptied.

    ``new`` makes a database and returns its URI. ``dsn`` is the URI of the current database.
    """

    def __init__(self, new: Callable[[], str]) -> None:
        self._new = new
        self._begin()

    def _begin(self) -> None:
        self.dsn = self._new()
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            self._tables = [table for (table,) in conn.execute(TABLES)]
            self._state = self._look(conn)

    def empty(self) -> None:
        """Bring the database back to its first state, or make another one. The test's sessions must have ended."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            try:
                self._drop(conn, self._look(conn))
                emptied = self._look(conn) == self._state
            except psycopg.Error:
                emptied = False
            if not emptied:
                self._begin()

    def _drop(self, conn: psycopg.Connection, found: State) -> None:
        made: dict[str, list[str]] = {}
        for kind, name in found.keys() - self._state.keys():
            made.setdefault(kind, []).append(name)
        conn.execute("set session_replication_role = replica")  # rows are deleted in any order, without triggers
        for trigger in made.get("event trigger", []):
            conn.execute(f"drop event trigger {trigger}")
        if any(name.startswith("pgcombine.") for name in made.get("relation", [])):
            tables = [n for n in made["relation"] if n.startswith("pgcombine.") and found["relation", n][:1] in "rp"]
            conn.execute("drop table if exists " + ", ".join(tables) + " cascade")
        for routine in made.get("routine", []):
            conn.execute(f"drop routine if exists {routine} cascade")
        for schema in made.get("schema", []):
            conn.execute(f"drop schema {schema} cascade")
        if any("." not in name for kind in ("relation", "routine", "type") for name in made.get(kind, [])):
            conn.execute("drop schema public cascade; create schema public authorization pg_database_owner")
            conn.execute("grant usage on schema public to public")
        for (kind, name), contents in found.items():
            before = self._state.get((kind, name))
            if kind == "rows" and contents is not None and before is None:
                conn.execute(f"delete from {name}")  # noqa: S608

    def _look(self, conn: psycopg.Connection) -> State:
        rows = "select 'rows', '{0}', md5(string_agg(t::text, ' ' order by t::text)) from {0} t"
        statement = " union all ".join([STATE, *map(rows.format, self._tables)])
        return {(kind, name): contents for kind, name, contents in conn.execute(statement)}
