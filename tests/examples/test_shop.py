"""The example application ``shop``: its migrations, and its own tests, run by pytest in another process."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import orm
from support.queues import combine_all, one
from support.servers import Server, embedded_only

from pgcombine import operations
from pgcombine.embedded import programs
from pgcombine.errors import ConfigError, QueueExistsError, SchemaMissingError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain

SHOP = Path(__file__).with_name("shop")


@pytest.fixture
def shop(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Alembic's configuration of the shop on a fresh database."""
    return configured(dsn, monkeypatch)


def configured(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("SHOP_URL", url(dsn))
    monkeypatch.syspath_prepend(SHOP)
    return Config(SHOP / "alembic.ini", output_buffer=io.StringIO(), stdout=io.StringIO())


def url(dsn: str) -> str:
    return dsn.replace("postgresql://", "postgresql+psycopg://", 1)


def relations(conn: psycopg.Connection) -> list[tuple[str, str]]:
    return conn.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname !~ '^pg_|^information_schema$' and c.relname <> 'alembic_version' "
        "and c.relname <> 'alembic_version_pkc' order by 1, 2"
    ).fetchall()


def test_migrations_make_and_drop_the_queue(shop: Config, conn: psycopg.Connection) -> None:
    before = relations(conn)
    command.upgrade(shop, "head")
    assert one(conn, "select buckets from pgcombine.queue where queue = 'sold'") == 4
    assert ("public", "orders") in relations(conn)
    command.downgrade(shop, "base")
    assert relations(conn) == before
    command.upgrade(shop, "head")
    CombineQueue("sold").enqueue(conn, [("tea", 1, 1)])
    command.downgrade(shop, "0001")
    assert one(conn, "select count(*) from pgcombine.queue") == 0


def test_failed_migration_leaves_no_queue(shop: Config, conn: psycopg.Connection) -> None:
    command.upgrade(shop, "0001")
    CombineQueue("sold", key=["product text"], value=["units bigint sum"], buckets=1).create(conn)
    with pytest.raises(QueueExistsError):
        command.upgrade(shop, "head")
    assert one(conn, "select version_num from alembic_version") == "0001"


def test_offline_script_does_the_same(shop: Config, conn: psycopg.Connection) -> None:
    command.upgrade(shop, "head", sql=True)
    script = shop.output_buffer.getvalue()
    assert "select pgcombine.create_queue('sold', key => array['product text']::text[]" in script
    conn.execute(script)
    assert one(conn, "select version_num from alembic_version") == "0002"
    CombineQueue("sold").enqueue(conn, [("tea", 1, 1)])
    down = Config(SHOP / "alembic.ini", output_buffer=io.StringIO())
    command.downgrade(down, "0002:base", sql=True)
    assert "select pgcombine.drop_queue('sold', force => true);" in down.output_buffer.getvalue()
    conn.execute(down.output_buffer.getvalue())
    assert one(conn, "select count(*) from pgcombine.queue") == 0


def test_autogenerate_finds_nothing_to_do(shop: Config, conn: psycopg.Connection) -> None:
    command.upgrade(shop, "head")
    CombineQueue("sold").enqueue(conn, [("tea", 1, 1)])
    command.check(shop)  # raises an error if the models and the database differ


# without include_name, SQLAlchemy also reflects pgcombine's tables, and doesn't know the types of some columns
@pytest.mark.filterwarnings("ignore:Did not recognize type:sqlalchemy.exc.SAWarning")
@pytest.mark.parametrize("include_schemas", [False, True])
@pytest.mark.parametrize("helper", ["include_name", "include_object"])
def test_either_helper_keeps_the_tables(shop: Config, dsn: str, include_schemas: bool, helper: str) -> None:
    from models import Base  # the shop's module

    command.upgrade(shop, "head")
    metadata = sa.MetaData()
    Base.metadata.tables["orders"].to_metadata(metadata)
    if helper == "include_object":
        # the application reads this table through a model, but the queue owns the table
        sa.Table("sold_values", metadata, sa.Column("product", sa.Text, primary_key=True), schema="pgcombine")
    engine = sa.create_engine(url(dsn))
    with engine.connect() as connection:
        options = {"include_schemas": include_schemas, helper: getattr(operations, helper)}
        found = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    engine.dispose()
    ours = [difference for difference in found if "orders" not in str(difference)]
    assert ours == []


@pytest.mark.filterwarnings("ignore:Did not recognize type:sqlalchemy.exc.SAWarning")
def test_autogenerate_without_the_helpers_would_drop_the_tables(shop: Config, dsn: str) -> None:
    command.upgrade(shop, "head")
    engine = sa.create_engine(url(dsn))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_schemas": True})
        found = compare_metadata(context, sa.MetaData())
    engine.dispose()
    assert any(difference[0] == "remove_table" and difference[1].schema == "pgcombine" for difference in found)


MIGRATION = """
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.create_combine_queue(
        "odd",
        key=['"a:b %" text', "label text"],
        value=[{definition!r}],
        delete_when={condition!r},
        buckets=2,
        notify=False,
        pass_limit=1000,
    )
    op.create_tier("odder", source="odd", key=["left(label, 1) || '%:x' as \\"a:b %\\""], buckets=1)
    op.create_rollup(
        "kinds",
        source="orders",
        key=["product || ':x %' as \\"a:b %\\""],
        value=["sum(units) as units"],
        filter="product <> ':no %s'",
        keep="product = ':gone %' and now() is not null",
        slice_by="id",
    )
    op.create_budget("seats", key=['"a:b %" text'], amount="numeric(14,2)")


def downgrade():
    op.drop_budget("seats")
    op.drop_rollup("kinds")
    op.drop_combine_queue("odder")
    op.drop_combine_queue("odd")
"""


@pytest.mark.parametrize("offline", [False, True])
def test_migrations_keep_definitions_unchanged(
    dsn: str, conn: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    """Colons, per cent signs, quotes and backslashes in a definition reach the database unchanged."""
    shutil.copytree(SHOP, tmp_path / "shop")
    monkeypatch.setitem(globals(), "SHOP", tmp_path / "shop")
    definition = '"n :m %s" bigint sum'
    condition = r""""n :m %s" = 0 or "n :m %s" = length('it''s :x, 5 % of \n "all"') - 24 """
    migration = MIGRATION.format(definition=definition, condition=condition)
    (tmp_path / "shop/migrations/versions/0003_odd.py").write_text(migration, encoding="utf-8")
    config = configured(dsn, monkeypatch)
    command.upgrade(config, "head", sql=offline)
    if offline:
        conn.execute(config.output_buffer.getvalue())
    assert conn.execute("select name from pgcombine.queue_column where queue = 'odd' order by position").fetchall() == [
        ("a:b %",),
        ("label",),
        ("n :m %s",),
    ]
    assert conn.execute("select notify, pass_limit from pgcombine.queue where queue = 'odd'").fetchone() == (
        False,
        1000,
    )
    conn.execute("insert into pgcombine.odd_updates values ('x', 'label', 7)")
    combine_all(conn, "odd")
    assert conn.execute("select * from pgcombine.odder_current").fetchall() == [("l%:x", 7)]
    stored = one(conn, "select delete_when from pgcombine.queue where queue = 'odd'")
    assert r"it''s :x, 5 % of \n" in stored
    conn.execute("insert into orders (customer, product, units) values ('ann', 'tea', 2), ('bob', ':no %s', 1)")
    assert conn.execute("select * from pgcombine.kinds").fetchall() == [("tea:x %", 2)]
    assert conn.execute("select pgcombine.seats_take(':x %', 0.01)").fetchall() == [(False,)]
    combine_all(conn, "odder")
    down = configured(dsn, monkeypatch)
    command.downgrade(down, "0003:0002" if offline else "0002", sql=offline)
    if offline:
        conn.execute(down.output_buffer.getvalue())
    assert one(conn, "select count(*) from pgcombine.queue") == 1


@embedded_only
def test_offline_script_runs_in_psql(shop: Config, dsn: str, conn: psycopg.Connection) -> None:
    command.upgrade(shop, "head", sql=True)
    subprocess.run(
        [programs.find().path("psql"), "-X", "-v", "ON_ERROR_STOP=1", "-v", "product=wrong", "-d", dsn],
        input=shop.output_buffer.getvalue(),
        text=True,
        check=True,
        capture_output=True,
    )
    assert one(conn, "select version_num from alembic_version") == "0002"


def test_unknown_option_of_a_queue_is_refused() -> None:
    op = Operations(MigrationContext.configure(dialect_name="postgresql", opts={"as_sql": True}))
    with pytest.raises(ConfigError, match=r"'bucket'.* buckets, "):
        op.create_combine_queue("wc", key=["word text"], value=["n bigint sum"], bucket=4)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"'max_backlog'.* buckets, "):
        op.create_tier("day", source="hour", key=["page"], max_backlog=4)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="'delete_when'"):
        op.create_rollup("r", source="t", key=["k"], value=["sum(n) as n"], delete_when="n = 0")  # type: ignore[attr-defined]


def test_migration_requires_the_schema(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(empty_dsn, monkeypatch)
    with pytest.raises(SchemaMissingError):
        command.upgrade(config, "head")


def test_worker_drains_what_sessions_enqueued(shop: Config, dsn: str, conn: psycopg.Connection) -> None:
    command.upgrade(shop, "head")
    from orders import place  # the shop's module

    engine = sa.create_engine(url(dsn))
    with orm.Session(engine) as session:
        place(session, "ann", "tea", 2)
        session.commit()
        place(session, "bob", "tea", 3)
        session.rollback()
        with session.begin():
            place(session, "ann", "ink", 1)
            with session.begin_nested() as savepoint:
                place(session, "ann", "pen", 7)
                savepoint.rollback()
    engine.dispose()
    assert drain(dsn, "sold", timeout=60).updates == 2
    assert {row[0]: row[1:] for row in conn.execute("select * from pgcombine.sold_values")} == {
        "tea": (2, 1),
        "ink": (1, 1),
    }
    assert one(conn, "select count(*) from orders") == 2


@pytest.mark.slow
@embedded_only
def test_own_tests_pass_on_an_embedded_server(server: Server) -> None:
    run_its_own_tests()


@pytest.mark.slow
def test_own_tests_pass_on_a_given_server(server: Server) -> None:
    pid = run_its_own_tests("--pgcombine-dsn", server.dsn)
    with psycopg.connect(server.dsn) as connection:
        left = connection.execute("select datname from pg_database where datname like %s", (f"%_{pid}_%",)).fetchall()
    assert left == []


def run_its_own_tests(*options: str) -> int:
    """Run the shop's tests with pytest in another process, and return the process id."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PGCOMBINE", "PYTEST"))}
    # Without --confcutdir pytest would search all folders up to the root, and some of them may be unreadable.
    own = ["-c", os.devnull, "--rootdir", SHOP, "--confcutdir", SHOP]
    with subprocess.Popen(
        [*(sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"), *own, *options, SHOP],
        env=environment,
        cwd=SHOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as ran:
        output, _ = ran.communicate()
    assert ran.returncode == 0, output
    assert "5 passed" in output
    return ran.pid
