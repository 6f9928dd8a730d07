"""Rights of hinted handoff: what writers, replayers and other roles may do, and what they may not."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import psycopg
import pytest
from support.exports import make_export
from support.queues import called, make_queue, one, rows
from support.roles import Login
from support.states import raises_state

from pgcombine.handoff.replicated import new_token

PAYLOAD = '{"{fluo}","{1}"}'
DIGEST = uuid.UUID(int=7)


@dataclass
class Roles:
    """Connections to one of three servers, as its owner, a writer of wc, a replayer, and a role without rights."""

    owner: psycopg.Connection
    writer: psycopg.Connection
    replayer: psycopg.Connection
    nobody: psycopg.Connection
    id: uuid.UUID


@pytest.fixture
def roles(conn: psycopg.Connection, login: Login) -> Roles:
    make_queue(conn)
    make_queue(conn, "secret")
    server = one(conn, "select id from pgcombine_internal.handoff_handshake('a')")
    conn.execute(
        "select pgcombine_internal.handoff_register(n, 'host=' || n || ' user=app') from unnest('{b,c}'::text[]) n"
    )
    writer, replayer, nobody = login(), login(), login()
    conn.execute("select pgcombine.grant_right('handoff', %s, 'wc')", (writer.info.user,))
    conn.execute("select pgcombine.grant_right('work', %s)", (replayer.info.user,))
    return Roles(conn, writer, replayer, nobody, server)


def accept(conn: psycopg.Connection, server: uuid.UUID, queue: str = "wc", token: uuid.UUID | None = None) -> uuid.UUID:
    """Accept on this server a write that is meant for all three servers, and return the write's token."""
    token = token or new_token()
    conn.execute(
        "select pgcombine_internal.handoff_accept(%s, %s, %s, pgcombine_internal.handoff_shape(%s), %s, '{a,b,c}', 3)",
        (server, token, queue, queue, PAYLOAD),
    )
    return token


def hinted(conn: psycopg.Connection) -> dict[str, int]:
    return dict(conn.execute("select queue, count(*) from pgcombine.handoff_hint group by queue").fetchall())


def test_tables_that_a_writer_makes_are_in_the_default_tablespace(roles: Roles) -> None:
    """Functions with their owner's rights make a stage and a partition. The writer may not create in the tablespace."""
    space = f"pgcombine_test_{uuid.uuid4().hex[:12]}"
    roles.owner.execute("set allow_in_place_tablespaces = on")
    roles.owner.execute(f"create tablespace {space} location ''".encode())
    try:
        roles.writer.execute(f"set default_tablespace = {space}".encode())
        accept(roles.writer, roles.id)
        roles.owner.execute("select pgcombine.grant_right('work', %s)", (roles.writer.info.user,))
        one(roles.writer, "select pgcombine_internal.begin_load(%s, 'wc', 'r')", uuid.uuid4())
        elsewhere = roles.owner.execute("select oid::regclass::text from pg_class where reltablespace not in (0, 1664)")
        assert elsewhere.fetchall() == []
    finally:
        roles.owner.execute(f"drop tablespace {space}".encode())


def refused(conn: psycopg.Connection, statement: str, *parameters: object) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(statement, parameters)  # type: ignore[arg-type]


def test_writer_may_write_and_acknowledge(roles: Roles) -> None:
    token = accept(roles.writer, roles.id)
    assert hinted(roles.owner) == {"wc": 2}
    assert accept(roles.writer, roles.id, token=token) == token  # a retry with the same token
    assert len(rows(roles.owner, "wc_pending")) == 1
    assert one(roles.writer, "select lags from pgcombine_internal.handoff_status('wc')") == {"b": 1, "c": 1}
    assert (
        one(roles.writer, "select pgcombine_internal.handoff_known('wc', array[%s::uuid, %s])", token, new_token())
        == token
    )
    assert one(roles.writer, "select pgcombine_internal.handoff_acknowledge('b', array[%s::uuid], 0)", token) == 1
    assert hinted(roles.owner) == {"wc": 1}
    assert one(roles.owner, "select delivered from pgcombine.handoff where destination = 'b'") == 1
    statuses = roles.writer.execute(
        "select status "
        "from pgcombine_internal.handoff_apply(%s, 'wc', pgcombine_internal.handoff_shape('wc'), %s, %s, "
        "'{null,null}', %s)",
        (roles.id, [token, new_token()], [DIGEST, DIGEST], [PAYLOAD, PAYLOAD]),
    ).fetchall()
    assert statuses == [("conflict",), ("applied",)]


def test_writer_cannot_affect_another_queue(roles: Roles) -> None:
    token = accept(roles.owner, roles.id, "secret")
    before = hinted(roles.owner)
    shape = "pgcombine_internal.handoff_shape('secret')"
    for call in (
        f"handoff_accept('{roles.id}', '{new_token()}', 'secret', {shape}, '{PAYLOAD}', '{{a,b,c}}', 3)",
        f"handoff_apply('{roles.id}', 'secret', {shape}, '{{{new_token()}}}', '{{{DIGEST}}}', '{{null}}', '{{null}}')",
        f"handoff_store_tokens('secret', '{{{new_token()}}}', '{{{DIGEST}}}', '{{null}}')",
        f"handoff_put('secret', '{new_token()}', {shape}, '{DIGEST}', null, '{{b}}', '{PAYLOAD}')",
        "handoff_set_topology('secret', '{a}', 1)",
        "handoff_status('secret')",
        f"handoff_known('secret', '{{{token}}}')",
        f"handoff_retained_of('secret', '{{{DIGEST}}}', 1)",
        f"handoff_check('{roles.id}', 'secret', {shape})",
        f"handoff_payloads('secret', '{{{token}}}')",
        f"handoff_quarantine_updates('b', '{token}', '{{0}}', '{{x}}', '{{x}}')",
    ):
        refused(roles.writer, called(call))
    for table in ("hint", "retained", "token", "delivery", "quarantine", "partial"):
        for what in ("select *", "delete"):
            refused(roles.writer, what + " from pgcombine.handoff_" + table)
    refused(roles.writer, "select * from pgcombine.hint")
    refused(roles.writer, "select dsn from pgcombine.handoff_replica")
    assert one(roles.writer, "select pgcombine_internal.handoff_acknowledge('b', array[%s::uuid], 0)", token) == 0
    assert hinted(roles.owner) == before == {"secret": 2}


def test_writer_may_not_move_keys(roles: Roles) -> None:
    """If a topology moves keys, the other servers need repair, so the call also needs the right to replay."""
    note = "select pgcombine_internal.handoff_set_topology('wc', %s, %s)"
    roles.writer.execute(note, (list("abc"), 3))
    roles.writer.execute(note, (list("ab"), 2))  # allowed: each key stays on all servers
    roles.writer.execute(note, (list("abc"), 3))
    for servers, replicas in (("abc", 2), ("ab", 1)):
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            roles.writer.execute(note, (list(servers), replicas))
        assert "{a, b, c} with 3 replicas" in str(refused.value.diag.message_hint)
    marked = "select array_agg(name order by name) from pgcombine.handoff_replica where needs_repair is not null"
    assert one(roles.owner, marked) == ["c"]  # writes may have had no hints for the server that wasn't named
    roles.owner.execute("update pgcombine.handoff_replica set needs_repair = null")
    roles.owner.execute("select pgcombine.grant_right('handoff', %s, 'wc')", (roles.replayer.info.user,))
    roles.replayer.execute(note, (list("abc"), 2))
    assert one(roles.owner, marked) == ["b", "c"]


@pytest.mark.parametrize(("named", "replicas"), [(None, None), (None, 3), ("abc", None), ([None, "a"], 2), ("", 1)])
def test_null_topology_is_refused(roles: Roles, named: str | list[str | None] | None, replicas: int) -> None:
    """A comparison with null would find no moved keys, so the call would need no further right."""
    note = "select pgcombine_internal.handoff_set_topology('wc', %s::text[], %s::integer)"
    roles.writer.execute(note, (list("abc"), 1))
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        roles.writer.execute(note, (named if named is None else list(named), replicas))
    refused(roles.writer, note, list("abc"), 2)
    roles.writer.execute(note, (list("abc"), 1))


def test_view_of_old_tokens_does_not_stop_clean_up(roles: Roles) -> None:
    """A role without rights has a view of a partition of old tokens. The clean-up keeps that partition meanwhile."""
    for days in (20, 21):
        old = uuid.UUID(int=new_token().int - (days * 86_400_000 << 80))
        roles.owner.execute("select pgcombine_internal.handoff_partition(%s)", (old,))
    count = "select count(*) from pg_inherits where inhparent = 'pgcombine.handoff_token'::regclass"
    oldest = one(
        roles.owner,
        "select min(c.relname) from pg_inherits join pg_class c on c.oid = inhrelid "
        "where inhparent = 'pgcombine.handoff_token'::regclass",
    )
    view = psycopg.sql.SQL("create temporary view v as select * from {}")
    roles.nobody.execute(view.format(psycopg.sql.Identifier("pgcombine", oldest)))
    roles.replayer.execute("select pgcombine_internal.handoff_clean_up()")
    assert one(roles.owner, count) == 4  # the partitions of three days, and the one with a view
    roles.nobody.execute("drop view v")
    roles.replayer.execute("select pgcombine_internal.handoff_clean_up()")
    assert one(roles.owner, count) == 3


def test_writer_cannot_change_servers(roles: Roles) -> None:
    """A writer's calls can't change a server's identity, address, state or last acknowledged write."""
    token = accept(roles.writer, roles.id)
    roles.writer.execute("select pgcombine_internal.handoff_acknowledge('b', array[%s::uuid], 0)", (token,))
    roles.writer.execute(
        "select pgcombine_internal.handoff_apply(%s, 'wc', pgcombine_internal.handoff_shape('wc'), %s, "
        "%s, '{null}', %s, coordinator => 'c')",
        (roles.id, [new_token()], [DIGEST], [PAYLOAD]),
    )
    for server in "bc":
        assert one(roles.owner, "select pgcombine_internal.handoff_last(%s)", server) is None
        assert one(roles.writer, "select pgcombine_internal.handoff_last(%s)", server) is None
        roles.writer.execute(
            "select pgcombine_internal.handoff_verify_identity(%s, gen_random_uuid(), 1000)", (server,)
        )
    assert roles.owner.execute("select distinct id, epoch from pgcombine.handoff_replica").fetchall() == [(None, None)]
    for call in (
        "handoff_register('b', 'host=evil')",
        "handoff_register('d', 'host=d')",
        "handoff_unregister('b')",
        "handoff_require_repair('b', 'for fun')",
        "handoff_forget('b')",
        f"handoff_compare_begin('{DIGEST}')",
        f"handoff_compare_end('{DIGEST}', '{{b}}', '{{}}')",
        "handoff_identify('z')",
        "handoff_discard('b', 'for fun')",
        "handoff_discard('b', 'for fun', hints => true)",
        "pause_destination('server', 'b')",
        "resume_destination('server', 'b')",
        "report_destination('server', 'b', null, 'for fun')",
        "report_destination('server', 'b')",
        "try_destination('server', 'b')",
        "add_destination('server', 'b')",
        "handoff_clean_up()",
        "handoff_partition('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')",
    ):
        refused(roles.writer, called(call))
    roles.writer.execute("select pgcombine_internal.handoff_register_missing('{b,d}', '{host=evil,host=evil}')")
    registered = roles.owner.execute("select name, dsn from pgcombine.handoff_replica order by 1").fetchall()
    assert registered == [("b", "host=b user=app"), ("c", "host=c user=app")]
    assert set(roles.owner.execute("select state from pgcombine.destination").fetchall()) == {("up",)}


def test_invalid_hints_are_refused(roles: Roles) -> None:
    for payload in ("no array", '{"{fluo}"}', '{"{a,b}","{1}"}', None):
        with pytest.raises(psycopg.DataError):
            roles.writer.execute(
                "select pgcombine_internal.handoff_put('wc', %s, %s, %s, null, '{b}', %s)",
                (new_token(), DIGEST, DIGEST, payload),
            )
    assert hinted(roles.owner) == {}


def test_only_the_owner_names_a_server(roles: Roles) -> None:
    roles.owner.execute("delete from pgcombine.handoff_server")
    with raises_state("PC042"):
        roles.writer.execute("select pgcombine_internal.handoff_handshake('evil')")
    assert one(roles.owner, "select id from pgcombine_internal.handoff_handshake('a')")


def test_writes_obey_row_security_and_column_privileges(roles: Roles) -> None:
    """``handoff_accept`` inserts updates with the rights of the role that calls it."""
    roles.owner.execute("alter table pgcombine.wc_updates enable row level security")
    roles.owner.execute("create policy mine on pgcombine.wc_updates for insert with check (word like 'my %')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        accept(roles.writer, roles.id)
    roles.owner.execute("drop policy mine on pgcombine.wc_updates; revoke insert on pgcombine.wc_updates from public")
    user = psycopg.sql.Identifier(roles.writer.info.user)
    roles.owner.execute(psycopg.sql.SQL("revoke insert on pgcombine.wc_updates from {}").format(user))
    roles.owner.execute(psycopg.sql.SQL("grant insert (word) on pgcombine.wc_updates to {}").format(user))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        accept(roles.writer, roles.id)


def test_role_without_rights_is_refused(roles: Roles) -> None:
    token = accept(roles.owner, roles.id)
    make_export(roles.owner)
    put = f"handoff_put('wc', '{new_token()}', '{DIGEST}', '{DIGEST}', null, '{{b}}', '{PAYLOAD}')"
    topology = "handoff_set_topology('wc', '{a}', 1)"
    for call in (
        f"handoff_store_tokens('wc', '{{{new_token()}}}', '{{{DIGEST}}}', '{{null}}')",
        put,
        topology,
        "handoff_status('wc')",
        f"handoff_known('wc', '{{{token}}}')",
        f"handoff_retained_of('wc', '{{{DIGEST}}}', 1)",
        f"handoff_remembers('{token}')",
        f"handoff_acknowledge('b', '{{{token}}}', 0)",
        "handoff_clean_up()",
        "handoff_handshake('a')",
        "try_destination('server', 'b')",
        "report_destination('export', 'search', null, 'for fun')",
        "report_destination('export', 'search')",
        "pause_destination('export', 'search')",
    ):
        refused(roles.nobody, called(call))
    # the privilege to insert isn't the right ``handoff``
    user = psycopg.sql.Identifier(roles.nobody.info.user)
    roles.owner.execute(psycopg.sql.SQL("grant insert on pgcombine.wc_updates to {}").format(user))
    for call in (put, topology):
        refused(roles.nobody, called(call))
    assert hinted(roles.owner) == {"wc": 2}


ELSEWHERE = [
    "host=b hostaddr=192.0.2.1",
    "host=b service=x",
    "host=b options='-c search_path=evil'",
    "host=b passfile=/etc/passwd",
    "host=b sslmode=disable",
    "host=b require_auth=password",
    "host=b sslrootcert=/tmp/evil",
    "host=b\tsslkey = '/tmp/x y'",
    "application_name=x' hostaddr=192.0.2.1 port='1",
    "application_name=x\u00a0y='  hostaddr=192.0.2.1 port='5432'",
    r"application_name=a\' hostaddr=192.0.2.1 user=\'b",
    "postgresql://b/db?hostaddr=192.0.2.1",
    "postgresql://b/db?host%61ddr=192.0.2.1",
    "postgresql://b?user=x&sslmode=disable",
    "postgresql://b/db?dbname=x&%6fptions=-cfsync%3doff",
    "postgres://b/db?connect_timeout=2&service=x",
]


@pytest.mark.parametrize("address", ELSEWHERE)
def test_address_with_other_settings_is_refused(conn: psycopg.Connection, address: str) -> None:
    with raises_state("PC045"):
        conn.execute("select pgcombine_internal.handoff_register('b', %s)", (address,))


@pytest.mark.parametrize(
    "address",
    [
        "host=b.example port=5432 dbname='my db' user=app target_session_attrs=read-write",
        "postgresql://app@b.example:5432,c.example/db?connect_timeout=5&keepalives_idle=10",
        "postgresql:///db?host=/var/run/postgresql",
        "user=hostaddr dbname='a=b' host=b",
        "",
    ],
)
def test_valid_addresses_are_accepted(conn: psycopg.Connection, address: str) -> None:
    conn.execute("select pgcombine_internal.handoff_register('b', %s)", (address,))


def test_open_write_does_not_block_other_queues(roles: Roles) -> None:
    """An open write doesn't lock a day's partition of tokens, or a server's row, against writes to other queues."""
    roles.replayer.execute("select pgcombine_internal.handoff_clean_up()")  # creates the partitions in advance
    roles.owner.execute("update pgcombine.handoff_replica set measured_at = measured_at - interval '1 minute'")
    roles.owner.execute(
        "insert into pgcombine.handoff_delivery select 'b', now() - n * interval '1 s', %s, 1, 0 "
        "from generate_series(1, 3) n",
        (new_token(),),
    )
    claim = "select status from pgcombine_internal.handoff_store_tokens(%s, %s, %s, '{null}')"
    tomorrow = uuid.UUID(int=new_token().int + (23 * 3_600_000 << 80))
    with roles.writer.transaction(force_rollback=True):
        assert one(roles.writer, claim, "wc", [tomorrow], [DIGEST]) == "applied"
        accept(roles.writer, roles.id)
        for conn in (roles.owner, roles.replayer):
            conn.execute("set lock_timeout = '3s'")
        accept(roles.owner, roles.id, "secret")
        assert one(roles.owner, claim, "secret", [uuid.UUID(int=tomorrow.int + 1)], [DIGEST]) == "applied"
        roles.replayer.execute("select pgcombine_internal.handoff_clean_up()")
    roles.replayer.execute("select pgcombine_internal.handoff_clean_up()")
    assert one(roles.owner, "select count(*) from pgcombine.handoff_delivery where destination = 'b'") == 1


FORGED = {
    "null": "('wc', null, {shape}, {digest}, null, '{{b}}', {payload})",
    "no digest": "('wc', {token}, {shape}, null, null, '{{b}}', {payload})",
    "no shape": "('wc', {token}, null, {digest}, null, '{{b}}', {payload})",
    "no write": "('wc', {unknown}, {shape}, {digest}, null, '{{b}}', {payload})",
    "another queue's write": "('wc', {foreign}, {shape}, {digest}, null, '{{b}}', {payload})",
    "another's digest": "('wc', {token}, {shape}, {other_digest}, null, '{{b}}', {payload})",
    "another text": "('wc', {token}, {shape}, {digest}, null, '{{b}}', {other_payload})",
    "another write's text": "('wc', {token}, {shape}, {other_digest}, null, '{{b}}', {other_payload})",
    "no payload": "('wc', {token}, {shape}, {digest}, null, '{{b}}', null)",
    "huge": "('wc', {token}, {shape}, {digest}, null, '{{b}}', {huge})",
    "no server": "('wc', {token}, {shape}, {digest}, null, '{{nowhere}}', {payload})",
    "two dimensions": "('wc', {token}, {shape}, {digest}, null, '{{b}}', '{{{{fluo}},{{1}}}}')",
}


@pytest.mark.parametrize("arguments", FORGED.values(), ids=FORGED)
def test_forged_hints_are_refused(roles: Roles, arguments: str) -> None:
    """A hint must match a stored write. Otherwise a writer could use the token of another queue's write."""
    token = accept(roles.writer, roles.id)
    foreign = accept(roles.owner, roles.id, "secret")
    roles.owner.execute("delete from pgcombine.handoff_hint")
    other = '{"{fluo}","{2}"}'
    digest = "pgcombine_internal.handoff_digest('{}')"
    values = {
        "shape": "pgcombine_internal.handoff_shape('wc')",
        "token": f"'{token}'",
        "foreign": f"'{foreign}'",
        "unknown": f"'{new_token()}'",
        "payload": f"'{PAYLOAD}'",
        "other_payload": f"'{other}'",
        "digest": digest.format(PAYLOAD),
        "other_digest": digest.format(other),
        "huge": "format('{%s,%s}', to_json(array_fill('a'::text, '{100000}')::text), "
        "to_json(array_fill('1'::text, '{100000}')::text))",
    }
    with pytest.raises(psycopg.Error) as caught:
        roles.writer.execute("select pgcombine_internal.handoff_put" + arguments.format(**values))  # type: ignore[call-overload]
    assert caught.value.sqlstate in ("22023", "PC045", "22004", "23502")
    assert hinted(roles.owner) == {}


def test_writer_cannot_forge_counters(roles: Roles) -> None:
    """``handoff_acknowledge`` counts only hints that the call deletes, whatever number the writer gives."""
    token = accept(roles.writer, roles.id)
    acknowledge = "select pgcombine_internal.handoff_acknowledge('b', %s, %s)"
    assert one(roles.writer, acknowledge, [token, *(new_token() for _ in range(9))], 2**62) == 1
    assert one(roles.writer, acknowledge, [token], -(2**62)) == 0
    token = accept(roles.writer, roles.id)
    assert one(roles.writer, acknowledge, [token], None) == 1
    counts = "select delivered, deduplicated from pgcombine.handoff where destination = 'b'"
    assert roles.owner.execute(counts).fetchone() == (1, 1)


def test_writer_records_refusals_of_its_queue_only(roles: Roles) -> None:
    token, foreign = accept(roles.writer, roles.id), accept(roles.owner, roles.id, "secret")
    refuse = "select pgcombine_internal.handoff_refuse(%s, %s, '{1}', %s, '{x}', '{x}')"
    for payload in ("{}", "no array", None):
        with pytest.raises(psycopg.DataError):
            roles.writer.execute(refuse, ("wc", token, [payload]))
    roles.writer.execute(refuse, ("wc", foreign, [PAYLOAD]))
    for call in (
        f"handoff_refuse('secret', '{foreign}', '{{1}}', array['{PAYLOAD}'], '{{x}}', '{{x}}')",
        f"handoff_accepts('secret', '{foreign}', 1)",
        f"handoff_retry_refused('{token}', 1)",
    ):
        refused(roles.writer, called(call))
    assert one(roles.owner, "select count(*) from pgcombine.handoff_refused") == 0
    roles.writer.execute(refuse, ("wc", token, [PAYLOAD]))
    assert one(roles.owner, "select array_agg(token) from pgcombine.handoff_refused") == [token]
    assert one(roles.writer, "select pgcombine_internal.handoff_accepts('wc', %s, 1)", token) is True
