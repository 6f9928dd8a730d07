"""A user's own Alembic migrations make pgcombine's schema and what is in it, and take it back, online and offline."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from migration.test_schema import dump
from migration.test_sql_file import psql
from support.queues import add, combine_all, one
from support.readme import ROOT, fences
from support.servers import embedded_only

from pgcombine import operations, schema
from pgcombine.errors import QueueError, QueueNotEmptyError, SchemaMissingError

ROLE = "pg_monitor"
OBSERVER = "insert into public.history select word, new_n from changes -- :x %s"
PAGE = ROOT / "pgcombine/docs/howto/from-python.md"
ENVIRONMENT = """
from alembic import context
from sqlalchemy import create_engine, pool

import pgcombine.operations

options = {"include_schemas": True, "include_name": pgcombine.operations.include_name}
url = context.config.attributes["url"]
if context.is_offline_mode():
    context.configure(url=url, transaction_per_migration=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with create_engine(url, poolclass=pool.NullPool).connect() as connection:
        context.configure(connection=connection, transaction_per_migration=True, **options)
        with context.begin_transaction():
            context.run_migrations()
        assert not context.is_offline_mode()  # the operations have left Alembic's global variables alone
"""
MIGRATIONS = {
    "1": """
def upgrade():
    op.upgrade_pgcombine()
    op.create_table("request", sa.Column("customer", sa.Text), sa.Column("tokens", sa.Integer))

def downgrade():
    op.drop_table("request")
    op.remove_pgcombine()
""",
    "2": """
def upgrade():
    op.create_combine_queue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=2)
    op.create_tier("letters", source="wc", key=["left(word, 1) as letter"])
    op.create_rollup("spend", source="request", key=["customer"], value=["sum(tokens) as tokens"])
    op.create_budget("seats", key=["show int"])
    op.execute("create table history (word text, n bigint)")
    op.add_observer("wc", "his:tory %", "{observer}")
    op.add_observer("wc", "told", None)
    op.create_feed("wc_feed", "wc", retention=timedelta(days=2), max_bytes=1_000_000)
    op.invoke(operations.grant_right("enqueue", "{role}", "wc", "letters"))
    op.grant_right("work", "{role}")

def downgrade():
    op.revoke_right("work", "{role}")
    op.revoke_right("enqueue", "{role}", "wc", "letters")
    op.drop_feed("wc_feed")
    op.drop_observer("wc", "his:tory %")
    op.drop_table("history")
    op.drop_budget("seats")
    op.drop_rollup("spend")
    op.drop_combine_queue("letters", force=True)
    op.drop_combine_queue("wc", force=True)
""".replace("{role}", ROLE).replace("{observer}", OBSERVER),
    "3": """
def upgrade():
    op.upgrade_pgcombine()
    op.rebucket("wc", 6, buckets_per_partition=3, timeout=timedelta(minutes=1))
    op.drop_observer("wc", "told")

def downgrade():
    op.rebucket("wc", 2, buckets_per_partition=1)
    op.add_observer("wc", "told", None)
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "versions").mkdir()
    (tmp_path / "env.py").write_text(ENVIRONMENT, encoding="utf-8")
    for number, text in MIGRATIONS.items():
        write(tmp_path, number, text)
    return tmp_path


def write(project: Path, number: str, text: str) -> None:
    head = "from datetime import timedelta\nimport sqlalchemy as sa\nfrom alembic import op\n"
    head += "from pgcombine import operations\n"
    head += f"revision, down_revision = {number!r}, {str(int(number) - 1) if number > '1' else None!r}\n"
    (project / f"versions/{number}.py").write_text(head + text, encoding="utf-8")


def config(project: Path, dsn: str) -> Config:
    made = Config(output_buffer=io.StringIO(), stdout=io.StringIO())
    made.set_main_option("script_location", str(project))
    made.set_main_option("path_separator", "os")
    made.attributes["url"] = dsn.replace("postgresql://", "postgresql+psycopg://", 1)
    return made


def script(project: Path, dsn: str, run: object, revisions: str) -> str:
    """What Alembic prints offline."""
    made = config(project, dsn)
    run(made, revisions, sql=True)  # type: ignore[operator]
    return str(made.output_buffer.getvalue())


def apply(dsn: str, text: str) -> None:
    done = psql(dsn, text)
    assert done.returncode == 0, done.stderr


def state(conn: psycopg.Connection) -> list[list[tuple[Any, ...]]]:
    """What the migrations have made, without times and ids."""
    return [
        conn.execute(statement.encode()).fetchall()
        for statement in (
            "select queue, buckets, partitions, delete_when from pgcombine.queue order by 1",
            "select queue, observer, language, statement from pgcombine.observer order by 1, position",
            "select queue, feed, retention, max_bytes from pgcombine.change_log order by 1",
            'select "right", role, queue from pgcombine.rights order by 1, 2, 3',
            "select version_num, digest from pgcombine.schema_version",
        )
    ]


@embedded_only
def test_offline_scripts_do_what_the_migrations_do(project: Path, dsn: str, empty_dsn: str) -> None:
    """One database is migrated, and psql applies the printed SQL to the other, which has the schema already."""
    with psycopg.connect(empty_dsn, autocommit=True) as conn, psycopg.connect(dsn, autocommit=True) as other:
        bare = dump(empty_dsn)
        for before, number in zip(["base", *MIGRATIONS], MIGRATIONS, strict=False):
            command.upgrade(config(project, empty_dsn), number)
            apply(dsn, script(project, dsn, command.upgrade, f"{before}:{number}"))
            assert state(conn) == state(other)
            assert dump(empty_dsn, "--schema-only") == dump(dsn, "--schema-only")
        queues, observers, feeds, rights, _ = state(conn)
        assert [row[:3] for row in queues] == [("letters", 1, 1), ("seats", 1, 1), ("spend", 1, 1), ("wc", 6, 2)]
        assert ("wc", "his:tory %", "sql", OBSERVER) in observers
        assert feeds == [("wc", "wc_feed", timedelta(days=2), 1_000_000)]
        assert rights == [("work", ROLE, None)]
        for database in (conn, other):
            add(database, {"a": 1, "b": 2})
            combine_all(database)
            letters = database.execute("select * from pgcombine.letters_current order by 1").fetchall()
            assert letters == database.execute("select * from history order by 1").fetchall() == [("a", 1), ("b", 2)]
        for number, before in (("3", "1"), ("1", "base")):
            command.downgrade(config(project, empty_dsn), before)
            apply(dsn, script(project, dsn, command.downgrade, f"{number}:{before}"))
            assert dump(empty_dsn, "--schema-only") == dump(dsn, "--schema-only")
        for database in (conn, other):
            database.execute("drop table if exists alembic_version")
        assert dump(empty_dsn) == dump(dsn) == bare


def test_migration_of_the_page(project: Path, empty_dsn: str) -> None:
    (migration,) = (fence for fence in fences(PAGE, "python") if "op.upgrade_pgcombine" in fence)
    bare = dump(empty_dsn)
    write(project, "1", migration)
    command.upgrade(config(project, empty_dsn), "1")
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        assert one(conn, "select feed from pgcombine.change_log where queue = 'clicks'") == "clicks_feed"
        command.downgrade(config(project, empty_dsn), "base")
        conn.execute("drop table alembic_version")
    assert dump(empty_dsn) == bare


def test_failed_migration_changes_nothing(project: Path, empty_dsn: str) -> None:
    """The schema and what a migration makes in it are of one transaction."""
    write(project, "1", MIGRATIONS["1"].replace("\n\ndef", "\n    op.rebucket('none', 2)\n\ndef"))
    bare = dump(empty_dsn)
    with pytest.raises(QueueError, match='there is no queue "none"'):
        command.upgrade(config(project, empty_dsn), "1")
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute("drop table if exists alembic_version")
    assert dump(empty_dsn) == bare


def test_schema_with_queues_is_kept_unless_forced(project: Path, empty_dsn: str) -> None:
    command.upgrade(config(project, empty_dsn), "2")
    write(project, "3", "def upgrade():\n    op.remove_pgcombine()\n")
    before = dump(empty_dsn)
    with pytest.raises(QueueNotEmptyError, match="Drop the queues first"):
        command.upgrade(config(project, empty_dsn), "3")
    assert dump(empty_dsn) == before
    write(project, "3", "def upgrade():\n    op.remove_pgcombine(force=True)\n")
    command.upgrade(config(project, empty_dsn), "3")
    with psycopg.connect(empty_dsn) as conn:
        assert one(conn, "select to_regnamespace('pgcombine')") is None
        conn.execute("insert into request values ('acme', 1)")  # the rollup's triggers are gone, too


def test_schema_of_a_newer_program_is_refused(project: Path, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.schema_version set version_num = '9999'")
    with pytest.raises(sa.exc.DBAPIError, match="is newer than this file"):
        command.upgrade(config(project, dsn), "1")


@pytest.mark.parametrize(
    "operation",
    [
        "add_observer('wc', 'o', 'select 1 from changes')",
        "create_feed('f', 'wc')",
        "grant_right('work', 'public')",
        "rebucket('wc', 2)",
    ],
)
def test_operation_requires_the_schema(project: Path, empty_dsn: str, operation: str) -> None:
    write(project, "1", f"def upgrade():\n    op.{operation}\n")
    name = operation.partition("(")[0]
    with pytest.raises(SchemaMissingError, match=rf"pgcombine\.{name}: the database has no .*op\.upgrade_pgcombine"):
        command.upgrade(config(project, empty_dsn), "1")


def test_autogenerate_proposes_nothing_for_pgcombine(project: Path, empty_dsn: str) -> None:
    command.upgrade(config(project, empty_dsn), "3")
    engine = sa.create_engine(empty_dsn.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as connection:
        options = {"include_schemas": True, "include_name": operations.include_name}
        found = compare_metadata(MigrationContext.configure(connection, opts=options), sa.MetaData())
    engine.dispose()
    assert sorted(str(change[1]) for change in found) == ["history", "request"]


def test_file_of_the_schema_is_the_one_of_the_command() -> None:
    assert operations.upgrade_pgcombine().text + ";" == schema.upgrade_sql().strip()
