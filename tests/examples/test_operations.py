"""The shell fences of three pages about operations run unchanged, each page as one script, on real servers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from support import homes
from support.cli import SCRIPT, environment
from support.needs import require
from support.queues import add, combine_all, current, make_queue, one, values
from support.readme import ROOT, fences
from support.roles import Roles, as_role
from support.servers import SETTINGS, Server, with_database

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer, account, programs
from pgcombine.embedded.cluster import environment as server_environment
from pgcombine.embedded.network import free_port

OPERATIONS = ROOT / "pgcombine" / "docs" / "operations"


def run(
    page: str, directory: Path, dsn: str, *, of: int | None = None, prefix: Sequence[str] = (), **variables: object
) -> str:
    """Run a page's fences in ``directory``, with PostgreSQL's programs of version ``of``; return the output."""
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    path = [str(SCRIPT.parent), str(programs.find(of).directory / "bin"), os.environ["PATH"]]
    env = {variable: given[name] for name, variable in names.items()} | variables | {"PATH": os.pathsep.join(path)}
    done = subprocess.run(
        [*prefix, "bash", "-euxo", "pipefail", "-c", "\n".join(fences(OPERATIONS / page, "bash"))],
        cwd=directory,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.wc
@pytest.mark.slow
def test_page_upgrades_the_schema(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    """Upgrade with ``pgcombine``, and again with psql."""
    add(conn, {"a": 1})
    # the schema has a single revision, so only another digest makes an upgrade necessary
    conn.execute("update pgcombine.schema_version set digest = 'older'")
    run("upgrade.md", tmp_path, dsn)
    assert schema.check(dsn) == schema.head()
    assert current(conn) == {"a": 1}
    assert (tmp_path / "pgcombine.sql").read_text("utf-8") == schema.upgrade_sql()


@pytest.mark.slow
def test_page_restores_a_backup(empty_dsn: str, server: Server, tmp_path: Path) -> None:
    """An administrator runs the page's commands. The schema's owner is another role, which may only create schemas."""
    with psycopg.connect(empty_dsn, autocommit=True) as admin, Roles(admin, empty_dsn) as roles:
        owner = roles.login(f"create on database {admin.info.dbname}")
        backup(owner, as_role(empty_dsn, owner.info.user), empty_dsn, server, tmp_path)


def backup(conn: psycopg.Connection, owner: str, dsn: str, server: Server, tmp_path: Path) -> None:
    schema.upgrade(owner)
    make_queue(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 2, "b": 3})
    passwords = tmp_path / "pgpass"
    given = [psycopg.conninfo.conninfo_to_dict(each) for each in (owner, dsn)]
    passwords.write_text("".join(f"*:*:*:{each['user']}:{each['password']}\n" for each in given))
    passwords.chmod(0o600)
    # A newer pg_restore sets parameters that an older server lacks: use the oldest version that can dump this server.
    oldest = min(version for version in programs.available() if version >= server.version)
    try:
        run("backup.md", tmp_path, dsn, of=oldest, PGPASSWORD="", PGPASSFILE=passwords)
        with psycopg.connect(with_database(dsn, "app_restored"), autocommit=True) as there:
            assert values(there) == {"a": 3, "b": 3}
            assert one(there, "select pgcombine_internal.own_cluster()")
    finally:
        server.execute(sql.SQL("drop database if exists app_restored with (force)"))
    assert values(conn) == {"a": 1}
    assert (tmp_path / "base" / "PG_VERSION").read_text().strip() == str(server.version)


@pytest.mark.slow
def test_page_upgrades_the_major_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending updates of the old server are combined on the new one."""
    homes.stay(monkeypatch, tmp_path)
    versions = sorted(programs.available())
    require("PostgreSQL's programs of two versions", there=len(versions) > 1)
    former = EmbeddedServer(tmp_path / "former", version=versions[0], settings=SETTINGS)
    former.start()
    try:
        dsn = with_database(former.superuser_dsn(), "pgcombine")
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            add(conn, {"a": 1})
            combine_all(conn)
            add(conn, {"a": 2, "b": 3})
        upgraded(tmp_path, dsn)
    finally:
        former.stop()


def upgraded(home: Path, dsn: str) -> None:
    old, new = home / "former" / "postgres" / "data", home / "later"
    new.mkdir()
    user, after = account.choose(new, programs.find())
    before = programs.find(int((old / "PG_VERSION").read_text()))
    owner = psycopg.conninfo.conninfo_to_dict(dsn)["user"]
    options = ["-U", owner, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-data-checksums"]
    control = [*user.prefix, after.path("pg_ctl"), "--pgdata", new]
    subprocess.run(
        [*user.prefix, after.path("initdb"), "--pgdata", new, *options],
        env=environment(server_environment()),
        capture_output=True,
        check=True,
    )
    port = free_port()
    with (new / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(f"port = {port}\nunix_socket_directories = ''\nfsync = off\n")
    later = psycopg.conninfo.make_conninfo(dsn, host="127.0.0.1", port=port)
    programs_of = {"OLD_BIN": before.directory / "bin", "NEW_BIN": after.directory / "bin"}
    try:
        run("major-upgrade.md", home, later, prefix=user.prefix, OLD_DATA=old, NEW_DATA=new, **programs_of)
        with psycopg.connect(later, autocommit=True) as conn:
            assert conn.info.server_version // 10000 == after.version
            add(conn, {"b": 1})
            combine_all(conn)
            assert values(conn) == {"a": 3, "b": 4}
    finally:
        subprocess.run([*control, "--mode=immediate", "stop"], capture_output=True, check=False)


def test_pages_name_existing_files() -> None:
    for page in OPERATIONS.glob("*.md"):
        text = "\n".join(fences(page, "bash"))
        named = re.findall(r"(?<![\w/])pgcombine/[\w./-]+", text)
        assert [name for name in named if not (ROOT / name).exists()] == []
    assert "pgcombine/deploy/Dockerfile" in "\n".join(fences(OPERATIONS / "service.md", "bash"))


def test_each_other_fence_is_run() -> None:
    """Two pages don't run here: one publishes a release, and one needs root and Docker."""
    here = Path(__file__).read_text("utf-8")
    pages = {page.name for page in OPERATIONS.glob("*.md") if fences(page, "bash")}
    assert {name for name in pages if f'run("{name}"' not in here} == {"releasing.md", "service.md"}
    installs, *others = fences(OPERATIONS / "service.md", "bash")
    assert installs.startswith("python3 -m venv /opt/pgcombine\n")
    assert installs.endswith("journalctl --unit=pgcombine-worker --follow\n")
    assert [fence.split()[:2] for fence in others] == [["docker", "build"], ["docker", "compose"]]
