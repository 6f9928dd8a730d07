"""Spark loads and ids of runs belong to a role: other ordinary roles can neither see nor change them."""

from __future__ import annotations

from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors, sql
from support.queues import combine_all, make_queue, one, rows, values
from support.roles import Login
from support.states import raises_state

from pgcombine.phrasecount.database import query

ENQUEUE = "insert on pgcombine.wc_updates"


def begin(conn: psycopg.Connection, run: str = "r", kind: str = "stage", load: UUID | None = None) -> tuple[UUID, str]:
    load = load or uuid4()
    return load, one(conn, "select pgcombine_internal.begin_load(%s, 'wc', %s, %s)", load, run, kind)


def stage(conn: psycopg.Connection, table: str, *rows: tuple[str, int]) -> None:
    insert = sql.SQL("insert into {} (word, n, pgcombine_part) values (%s, %s, 0)")
    with conn.transaction(), conn.cursor() as cursor:
        cursor.executemany(insert.format(sql.Identifier("pgcombine", table)), rows)


def end(conn: psycopg.Connection, load: UUID, run: str = "r") -> tuple[int, bool]:
    row = conn.execute("select * from pgcombine_internal.end_load(%s, 'wc', %s)", (load, run)).fetchone()
    assert row is not None
    return row


def test_batches_of_another_role_leave_the_last_batch_of_a_stream(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    first, second = login(ENQUEUE), login(ENQUEUE)
    for role, run in ((first, "stream:q:0"), (first, "stream:q:1"), (second, "stream:q:2")):
        load, table = begin(role, run)
        stage(role, table, ("a", 1))
        end(role, load, run)
    assert one(conn, "select runs from pgcombine_internal.clean_loads(runs_older_than => '0 s')") == 1
    assert begin(first, "stream:q:1")[1] is None
    assert begin(second, "stream:q:2")[1] is None


@pytest.mark.parametrize(
    "call",
    [
        "select pgcombine_internal.hold_load(gen_random_uuid())",
        "select pgcombine_internal.handoff_rebuild_begin()",
        query("no_timeouts"),
    ],
)
def test_long_transactions_have_no_timeouts(conn: psycopg.Connection, call: str) -> None:
    timeouts = ["idle_in_transaction_session_timeout", *["transaction_timeout"] * (conn.info.server_version >= 170000)]
    for timeout in timeouts:
        conn.execute(sql.SQL("set {} = '1min'").format(sql.Identifier(timeout)))
    with conn.transaction():
        conn.execute(call.encode())
        assert [one(conn, "select current_setting(%s)", timeout) for timeout in timeouts] == ["0"] * len(timeouts)
    assert [one(conn, "select current_setting(%s)", timeout) for timeout in timeouts] == ["1min"] * len(timeouts)


def test_roles_cannot_continue_the_loads_of_others(conn: psycopg.Connection, login: Login) -> None:
    """Neither a role without rights nor one that may enqueue can continue, see or lock another role's load."""
    make_queue(conn)
    mine = login(ENQUEUE)
    load, table = begin(mine)
    for other in (login(), login(ENQUEUE)):
        for relation in ("spark_load", "token", "spark_alive"):
            assert rows(other, relation) == []
        for call in (
            "select pgcombine_internal.prepare_load(%s, '{}', 0)",
            "select pgcombine_internal.begin_load(%s, 'wc', 'r')",
            "select pgcombine_internal.end_load(%s, 'wc', 'r')",
            "select pgcombine_internal.open_stage(%s)",
            "select pgcombine_internal.remove_load(%s)",
            "select pgcombine_internal.initialize_load(%s, false)",
        ):
            with pytest.raises(psycopg.Error) as refused:
                other.execute(call, (load,))
            assert refused.value.sqlstate in ("42501", "PC030"), call
        other.execute("select pgcombine_internal.hold_load(%s), pgcombine_internal.give_up_load(%s)", (load, load))
        other.execute("update pgcombine.spark_load set ended_at = now()")
        for command in (
            "lock table pgcombine.spark_load in row exclusive mode",
            "lock table pgcombine.token in row exclusive mode",
            "delete from pgcombine.spark_load",
            "insert into pgcombine.spark_load (load, queue, run_id, kind, role) "
            "values (gen_random_uuid(), 'wc', 'r', 'stage', 'x')",
        ):
            with pytest.raises(errors.InsufficientPrivilege), other.transaction():
                other.execute(command)
    assert table
    stage(mine, table, ("a", 1))
    assert end(mine, load) == (1, True)
    combine_all(conn)
    assert values(conn) == {"a": 1}


def test_load_needs_the_right_to_enqueue(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    make_queue(conn, "own")
    other = login("insert on pgcombine.own_updates")
    with pytest.raises(errors.InsufficientPrivilege):
        begin(other)
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute(
            "insert into pgcombine.spark_load (load, queue, run_id, kind) "
            "values (gen_random_uuid(), 'wc', 'r', 'stage')"
        )
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute("insert into pgcombine.token (queue, role, token, updates) values ('wc', current_user, 'r', 0)")


def test_roles_cannot_use_the_stages_of_others(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    mine, other = login(ENQUEUE), login(ENQUEUE)
    load, table = begin(mine)
    stage(mine, table, ("a", 1))
    for command in ("select from {}", "insert into {} (word) values ('b')", "lock table {} in access share mode"):
        with pytest.raises(errors.InsufficientPrivilege), other.transaction():
            other.execute(sql.SQL(command).format(sql.Identifier("pgcombine", table)))
    with raises_state("PC030"):
        begin(other, load=load)
    assert end(mine, load) == (1, True)


def test_members_of_a_loads_role_may_continue_it(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    mine = login(ENQUEUE)
    member = login(mine.info.user)
    load, table = begin(mine)
    stage(member, table, ("a", 1))
    assert end(member, load) == (1, True)
    assert begin(mine)[1] is None


def test_load_obeys_row_security(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    conn.execute("alter table pgcombine.wc_updates enable row level security")
    conn.execute("create policy tenant on pgcombine.wc_updates for insert with check (word like 'mine%')")
    role = login(ENQUEUE)
    load, table = begin(role, "bad")
    stage(role, table, ("mine", 1), ("theirs", 1))
    for folds in (False, True):
        with pytest.raises(errors.InsufficientPrivilege):
            role.execute("select pgcombine_internal.end_load(%s, 'wc', 'bad', null, null, %s)", (load, folds))
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    load, table = begin(role, "good")
    stage(role, table, ("mine", 1), ("mine too", 1))
    assert end(role, load, "good") == (2, True)
    combine_all(conn)
    assert values(conn) == {"mine": 1, "mine too": 1}


@pytest.mark.parametrize("folds", [False, True])
def test_load_obeys_column_privileges(conn: psycopg.Connection, login: Login, folds: bool) -> None:
    make_queue(conn, value=["n bigint sum", "m bigint sum"], delete_when=None)
    role = login("insert (word, n) on pgcombine.wc_updates")
    load, table = begin(role)
    stage(role, table, ("a", 1), ("a", 2))
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute(sql.SQL("insert into {} (word, m) values ('a', 7)").format(sql.Identifier("pgcombine", table)))
    assert one(role, "select applied from pgcombine_internal.end_load(%s, 'wc', 'r', null, 2, %s)", load, folds)
    combine_all(conn)
    assert rows(conn, "wc_values") == [("a", 3, 0)]


def test_load_fails_after_its_right_is_revoked(conn: psycopg.Connection, login: Login) -> None:
    """If a right is revoked during a load, end_load raises instead of leaving out columns or rows."""
    make_queue(conn)
    role = login("insert (word, n) on pgcombine.wc_updates")
    load, table = begin(role)
    stage(role, table, ("a", 1))
    conn.execute(sql.SQL("revoke insert (n) on pgcombine.wc_updates from {}").format(sql.Identifier(role.info.user)))
    with pytest.raises(errors.InsufficientPrivilege):
        end(role, load)
    conn.execute(sql.SQL("revoke insert (word) on pgcombine.wc_updates from {}").format(sql.Identifier(role.info.user)))
    with pytest.raises(errors.InsufficientPrivilege):
        end(role, load)
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    assert one(role, "select pgcombine_internal.give_up_load(%s)", load)
    assert rows(conn, "spark_load") == []


def test_initial_load_needs_the_right_to_insert_values(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    with pytest.raises(errors.InsufficientPrivilege):
        begin(login(ENQUEUE), kind="values")
    role = login("insert on pgcombine.wc_values")
    load, table = begin(role, kind="values")
    stage(role, table, ("a", 1), ("b", 0))
    assert end(role, load) == (1, True)
    assert values(conn) == {"a": 1}
    load, table = begin(role, "again", "values")
    stage(role, table, ("c", 1))
    with raises_state("PC005"):
        end(role, load, "again")


def test_roles_may_use_the_same_run_ids(conn: psycopg.Connection, login: Login) -> None:
    """A role that may enqueue can't make batches of another role's stream look applied."""
    make_queue(conn)
    mine, other = login(ENQUEUE), login(ENQUEUE)
    stream = "stream:q:{}"
    load, _ = begin(other, stream.format(10**17))
    assert end(other, load, stream.format(10**17))[1]
    for batch in (0, 1):
        load, table = begin(mine, stream.format(batch))
        assert table, "the batch counts as applied"
        stage(mine, table, ("a", 1))
        assert end(mine, load, stream.format(batch)) == (1, True)
    assert begin(mine, stream.format(1))[1] is None
    assert {run for (run,) in mine.execute("select token from pgcombine.token")} == {"stream:q:0", "stream:q:1"}
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute(
            "insert into pgcombine.token (queue, role, token, updates) values ('wc', %s, 'stream:q:9', 0)",
            (mine.info.user,),
        )
    other.execute("update pgcombine.token set updates = 0")
    assert one(conn, "select sum(updates)::int from pgcombine.token where role = %s", mine.info.user) == 2


def test_runs_can_be_reassigned_to_another_role(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    old, new = login(ENQUEUE), login(ENQUEUE)
    for run in ("stream:q:7", "2024-02-29"):
        load, table = begin(old, run)
        stage(old, table, ("a", 1))
        end(old, load, run)
    reassign = (
        "insert into pgcombine.token (queue, role, token, updates) select queue, %s, token, updates "
        "from pgcombine.token where (queue, role) = ('wc', %s) on conflict do nothing"
    )
    roles = (new.info.user, old.info.user)
    assert new.execute(reassign, roles).rowcount == 0  # the new role doesn't see the old role's runs
    with pytest.raises(errors.InsufficientPrivilege):
        old.execute(reassign, roles)
    assert [conn.execute(reassign, roles).rowcount for _ in range(2)] == [2, 0]
    for run, applied in (("stream:q:7", True), ("stream:q:8", False), ("2024-02-29", True)):
        assert (begin(new, run)[1] is None) == applied
    assert begin(old, "stream:q:7")[1] is None


def test_number_of_loads_of_a_role_is_limited(conn: psycopg.Connection, login: Login) -> None:
    """A role may have a limited number of loads. At the limit, a new load replaces one whose job isn't alive."""
    make_queue(conn)
    role, other = login(ENQUEUE), login(ENQUEUE)
    conn.execute("update pgcombine.spark_limit set loads = 3")
    kept = [begin(role, str(n))[0] for n in range(3)]
    for _ in range(2):
        with raises_state("PC032"):
            begin(role, "more")
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute(
            "insert into pgcombine.spark_load (load, queue, run_id, kind) "
            "select gen_random_uuid(), 'wc', 'r', 'stage' from generate_series(1, 9)"
        )
    begin(other)
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute("update pgcombine.spark_load set seen_at = 'infinity'")
    conn.execute("update pgcombine.spark_load set seen_at = now() - interval '2 h' where load <> %s", (kept[2],))
    with role.transaction():
        role.execute("select pgcombine_internal.hold_load(%s)", (kept[0],))  # the job of this load is alive
        with conn.transaction():
            begin(login(role=role.info.user), "more")
    assert {load for (load,) in role.execute("select load from pgcombine.spark_load")} >= {kept[0], kept[2]}
    conn.execute("insert into pgcombine.spark_limit values (%s, 4)", (role.info.user,))
    begin(role, "one more")
    conn.execute("update pgcombine.spark_load set seen_at = now()")
    with raises_state("PC032"):
        begin(role, "too many")
    assert (
        role.execute("select pgcombine_internal.give_up_load(load) from pgcombine.spark_load").fetchall()
        == [(True,)] * 4
    )
    assert {owner for (owner,) in conn.execute("select role from pgcombine.spark_load")} == {other.info.user}


def test_index_function_has_only_its_owners_rights(conn: psycopg.Connection, login: Login) -> None:
    """If a superuser analyzes a table, an index function runs as the table's owner, without a superuser's rights."""
    make_queue(conn)
    role = login("create on schema public", "create on schema pgcombine")
    load, _ = begin(conn)
    role.execute(
        sql.SQL("""
        create table public.trap (n int);
        create function public.spring(n int) returns int language plpgsql immutable as $$
        begin
            if current_user <> session_user then -- only in the session of another role
                perform pgcombine_internal.prepare_load({load}, '{{}}', 0);
            end if;
            return n;
        end $$;
        create function public.forge(n int) returns int language plpgsql immutable as $$
        begin
            if current_user <> session_user then
                perform pgcombine_internal.begin_load(gen_random_uuid(), 'wc', 'forged');
            end if;
            return n;
        end $$;
        insert into public.trap values (1), (2);
        """).format(load=load)
    )
    for function in ("spring", "forge"):
        role.execute(sql.SQL("create index {0} on public.trap ({0}(n))").format(sql.Identifier(function)))
        with pytest.raises(psycopg.Error) as refused:
            conn.execute("analyze public.trap")
        assert refused.value.sqlstate in ("42501", "PC030")
        role.execute(sql.SQL("drop index public.{}").format(sql.Identifier(function)))


def test_security_definer_function_may_load_for_others(conn: psycopg.Connection, login: Login) -> None:
    """A load in a security definer function has the rights of the function's owner, and belongs to the owner."""
    make_queue(conn)
    app = login(ENQUEUE, "create on schema public")
    web = login()
    app.execute(
        """
        create function public.load_words(load uuid) returns bigint language plpgsql security definer
        set search_path = pg_catalog as $$
        begin
            execute format('insert into pgcombine.%I (word, n, pgcombine_part) values (''a'', 1, 0)',
                pgcombine_internal.begin_load(load, 'wc', 'r'));
            return (select updates from pgcombine_internal.end_load(load, 'wc', 'r'));
        end $$
        """
    )
    assert one(web, "select public.load_words(%s)", uuid4()) == 1
    assert one(conn, "select role from pgcombine.token") == app.info.user


def test_search_path_of_the_caller_does_not_affect_checks(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    role = login("create on schema public")
    role.execute(
        """
        create function public.has_any_column_privilege(name, oid, text) returns boolean return true;
        create function public.has_any_column_privilege(name, regclass, text) returns boolean return true;
        create function public.format(text, variadic text[]) returns text return 'pgcombine.queue';
        create temporary table queue (queue text);
        set search_path = public, pg_catalog
        """
    )
    with pytest.raises(errors.InsufficientPrivilege):
        begin(role)
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute(
            "insert into pgcombine.spark_load (load, queue, run_id, kind) "
            "values (gen_random_uuid(), 'wc', 'r', 'stage')"
        )
