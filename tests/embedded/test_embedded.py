"""Embedded servers start and stop, also after kills, and with taken ports and stale files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.homes import Filled
from support.needs import does_not_apply
from support.queues import add, combine_all, make_queue, values
from support.tiers import each_nth

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer, ensure, processes, programs
from pgcombine.embedded import account as accounts
from pgcombine.embedded import postmaster as postmaster_module
from pgcombine.errors import ConfigError

FAST = {"fsync": "off"}
START = """
import sys
from pathlib import Path
from pgcombine.embedded import EmbeddedServer
print(EmbeddedServer(Path(sys.argv[1])).start(), flush=True)
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., EmbeddedServer]]:
    """Makes servers below the test's directory; the fixture stops them at the end."""
    made: list[EmbeddedServer] = []

    def make(home: str = "home", **options: object) -> EmbeddedServer:
        made.append(EmbeddedServer(tmp_path / home, **({"settings": FAST} | options)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for server in made:
        server.stop("immediate")


@pytest.fixture
def unmade(make: Callable[..., EmbeddedServer]) -> EmbeddedServer:
    """A server that never ran."""
    return make()


@pytest.fixture
def embedded(make: Callable[..., EmbeddedServer], filled: Filled, tmp_path: Path) -> EmbeddedServer:
    """A stopped server whose data directory exists."""
    filled(tmp_path / "home")
    return make()


def starter(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", START, str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def value(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute(statement).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return row[0]


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(statement)  # type: ignore[arg-type]


SPINNING = "select count(*) = 1 from pg_stat_activity where state = 'active' and query like 'do %'"


def spin(conn: psycopg.Connection) -> None:
    """Keep a server process busy in a loop that doesn't notice the end of its server."""
    with contextlib.suppress(psycopg.OperationalError):
        conn.execute("do $$ begin loop null; end loop; end $$")


def postmaster(server: EmbeddedServer) -> psutil.Process:
    pid = server.status().pid
    assert pid is not None
    return psutil.Process(pid)


def postmasters(server: EmbeddedServer) -> list[int]:
    """The pids of the data directory's processes whose parents aren't processes of this directory."""
    found = [process.pid for process in processes.left_over(server.status().data_directory)]
    return [pid for pid in found if psutil.Process(pid).ppid() not in found]


def test_server_restarts_with_its_port_and_data(unmade: EmbeddedServer) -> None:
    dsn = unmade.start()
    assert unmade.start() == dsn == unmade.dsn()
    execute(dsn, "create table kept as select 42 as n")
    assert value(dsn, "show server_encoding") == "UTF8"
    assert value(dsn, "select lower('ÄÖ') || case when 'a' > 'B' then ' bytes' end") == "äö bytes"
    assert value(dsn, "show jit") == "off"
    status = unmade.status()
    assert status.running
    assert status.version == 18
    assert status.port == urlsplit(dsn).port
    assert status.size > 20_000_000
    assert (status.data_directory / "PG_VERSION").exists()
    assert unmade.stop()
    assert not unmade.stop()
    assert not unmade.status().running
    assert postmasters(unmade) == []
    assert unmade.start() == dsn  # the URI, and so the port, is the same
    assert value(dsn, "select n from kept") == 42


def test_home_is_closed_to_others(unmade: EmbeddedServer) -> None:
    unmade.start()
    for name in ("password", "owner-password"):
        assert (unmade.home / "postgres" / name).stat().st_mode & 0o777 == 0o600
    assert unmade.home.stat().st_mode & 0o777 == 0o700
    status = unmade.status()
    assert status.data_directory.stat().st_mode & 0o077 == 0
    assert status.socket_directory is not None
    assert status.socket_directory.stat().st_mode & 0o077 == 0
    assert unmade.log.stat().st_mode & 0o777 == 0o600


def test_tcp_and_socket_require_the_password(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    right = urlsplit(dsn)
    sockets = embedded.status().socket_directory
    assert right.password
    assert sockets is not None
    wrong = right._replace(netloc=f"{right.username}:wrong@{right.hostname}:{right.port}").geturl()
    options = {"host": str(sockets), "port": right.port, "user": right.username, "dbname": "pgcombine"}
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(password="wrong", **options)
    with psycopg.connect(password=right.password, **options) as conn:
        assert conn.execute("select inet_client_addr()").fetchone() == (None,)
    assert value(dsn, "show listen_addresses") == "127.0.0.1"
    stored = "select bool_and(rolpassword like 'SCRAM-SHA-256$%') from pg_authid where rolcanlogin"
    assert value(embedded.superuser_dsn(), stored)


def test_server_outlives_its_starter(embedded: EmbeddedServer) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{START}\nsys.stdin.read()", str(embedded.home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        dsn = process.stdout.readline().strip()
        server = postmaster(embedded)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends SIGINT to the whole process group
        process.communicate(timeout=60)  # returns while the server runs, since the server inherited no pipe
    assert process.returncode == -signal.SIGINT
    assert value(dsn, "select 1") == 1
    assert postmaster(embedded) == server
    assert server.ppid() not in (process.pid, os.getpid())
    assert server.terminal() is None


def test_concurrent_starters_get_one_server(unmade: EmbeddedServer) -> None:
    started = [starter(unmade.home) for _ in range(4)]
    answers = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 4, answers
    assert len({out for out, _ in answers}) == 1
    assert len(postmasters(unmade)) == 1
    assert value(answers[0][0].strip(), "select 1") == 1


def test_data_survive_kill_9(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    execute(dsn, "create table kept as select generate_series(1, 1000) as n")
    for _ in range(3):
        postmaster(embedded).kill()
        assert embedded.start() == dsn
        assert value(dsn, "select count(*) from kept") == 1000
        execute(dsn, "insert into kept values (0)")
        execute(dsn, "delete from kept where n = 0")
    assert len(postmasters(embedded)) == 1


@pytest.mark.slow
def test_server_starts_beside_left_over_processes(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    connected = psycopg.connect(dsn, autocommit=True)

    thread = threading.Thread(target=spin, args=(connected,))
    thread.start()
    backend = psutil.Process(connected.info.backend_pid)
    eventually(lambda: value(dsn, SPINNING))
    postmaster(embedded).kill()
    assert embedded.start() == dsn
    assert backend.pid not in [process.pid for process in processes.left_over(embedded.status().data_directory)]
    thread.join(timeout=60)
    assert not thread.is_alive()
    connected.close()
    assert value(dsn, "select 1") == 1


def test_stop_after_kill_9_leaves_nothing(embedded: EmbeddedServer) -> None:
    embedded.start()
    postmaster(embedded).kill()
    embedded.stop()
    assert not embedded.status().running
    assert postmasters(embedded) == []


@pytest.mark.parametrize("pid", each_nth(3, ["mine", "1", "gone", "nonsense"]))
def test_stale_pid_file_does_not_prevent_a_start(embedded: EmbeddedServer, pid: str) -> None:
    dsn = embedded.start()
    pid_file = embedded.status().data_directory / "postmaster.pid"
    lines = pid_file.read_text().splitlines(keepends=True)
    embedded.stop("immediate")
    with subprocess.Popen(["true"]) as gone:
        pass
    lines[0] = {"mine": f"{os.getpid()}\n", "gone": f"{gone.pid}\n"}.get(pid, f"{pid}\n")
    # as in a restarted container, the pid in the file isn't a server's
    pid_file.write_text("".join(lines))
    assert not embedded.status().running
    assert embedded.start() == dsn
    assert value(dsn, "select 1") == 1


def test_stale_socket_lock_does_not_prevent_a_start(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    sockets = embedded.status().socket_directory
    embedded.stop()
    assert sockets is not None
    sockets.mkdir(exist_ok=True)
    (sockets / f".s.PGSQL.{urlsplit(dsn).port}.lock").write_text(f"{os.getpid()}\n/elsewhere\n")
    assert embedded.start() == dsn


def test_a_server_started_by_pg_ctl_is_found(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    data = embedded.status().data_directory
    embedded.stop()
    account, runs = accounts.choose(data, programs.find())
    command = [*account.prefix, runs.path("postgres"), "-D", account.directory(data), "-p", str(urlsplit(dsn).port)]
    command += ["-c", "unix_socket_directories="]
    # This program may be denied a look at the working directory (-D) of another account's process. Then it finds the
    # server by its cluster name.
    if account.uid is not None:
        command += ["-c", f"cluster_name={processes.mark(data)}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **account.options(data)) as own:
        try:
            eventually(lambda: embedded.status().running)
            assert embedded.start() == dsn
            assert embedded.status().pid == own.pid
            assert embedded.stop()
            own.wait(timeout=60)
        finally:
            own.kill()
    assert own.returncode == 0


def test_taken_port_is_replaced(embedded: EmbeddedServer) -> None:
    before = embedded.start()
    execute(before, "create table kept as select 42 as n")
    embedded.stop()
    with socket.create_server(("127.0.0.1", urlsplit(before).port or 0)):
        after = embedded.start()
        assert urlsplit(after).port != urlsplit(before).port
        assert value(after, "select n from kept") == 42
    embedded.stop()
    assert embedded.start() == after  # the server keeps the new port, although the old port is free again


MOMENTS = {
    "initdb at work": "postgres.new-*/data/global",
    "directory made": "postgres/data",
    "server starting": "postgres/data/postmaster.pid",
}


@pytest.mark.parametrize(
    "moment", ["initdb at work", *(pytest.param(one, marks=pytest.mark.slow) for one in [*MOMENTS][1:])]
)
def test_server_starts_after_its_starter_was_killed(unmade: EmbeddedServer, moment: str) -> None:
    with starter(unmade.home) as process:
        eventually(lambda: any(unmade.home.glob(MOMENTS[moment])))
        process.kill()
    dsn = unmade.start()
    assert value(dsn, "select current_database()") == "pgcombine"
    assert len(postmasters(unmade)) == 1
    unmade.stop()
    assert unmade.start() == dsn
    assert list(unmade.home.glob("postgres.new-*")) == []


def test_server_starts_in_a_home_with_a_long_path(make: Callable[..., EmbeddedServer], filled: Filled) -> None:
    embedded = make("long/" + "x" * 120)
    filled(embedded.home)
    dsn = urlsplit(embedded.start())
    sockets = embedded.status().socket_directory
    assert sockets is not None
    assert embedded.home not in sockets.parents
    with psycopg.connect(
        host=str(sockets), port=dsn.port, user=dsn.username, password=dsn.password, dbname="pgcombine"
    ) as conn:
        assert conn.execute("select 1").fetchone() == (1,)
    embedded.stop()
    assert not sockets.exists()


@pytest.mark.slow
def test_server_starts_in_a_home_with_an_odd_path(make: Callable[..., EmbeddedServer]) -> None:
    embedded = make("a home, with \"quotes\" 'and' ünïcode $x %d")
    assert value(embedded.start(), "select 1") == 1
    assert embedded.stop()


@pytest.mark.slow
def test_start_reports_a_setting_that_postgresql_refuses(make: Callable[..., EmbeddedServer], filled: Filled) -> None:
    embedded = make(settings={"fsync": "off", "work_mem": "many"})
    filled(embedded.home)
    with pytest.raises(ConfigError, match=r"work_mem.*many"):
        embedded.start()
    assert value(make().start(), "show work_mem") == "4MB"


def test_data_of_another_version_are_kept(make: Callable[..., EmbeddedServer]) -> None:
    old = make(version=16)
    dsn = old.start()
    assert str(value(dsn, "show server_version_num")).startswith("16")
    assert make().start() == dsn  # without a given version, the server has the version of its data directory
    with pytest.raises(ConfigError, match=r"16.* 18"):
        make(version=18).start()


@pytest.mark.slow
def test_a_server_in_another_container_is_not_disturbed(
    embedded: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.start()
    data = embedded.status().data_directory
    embedded.stop()
    with subprocess.Popen(["true"]) as gone:
        pass
    pid_file = data / "postmaster.pid"
    pid_file.write_text(f"{gone.pid}\n{data}\n0\n1\n\n127.0.0.1\n\nready\n")
    monkeypatch.setattr(postmaster_module, "GRACE", 0.01)
    monkeypatch.setattr(postmaster_module, "ELSEWHERE", 0.05)
    # Processes in another container are invisible, but their lock on the shared volume is visible.
    with postmaster_module.locking.exclusive(embedded.home / "postgres" / "alive.lock", timeout=5):
        with pytest.raises(ConfigError):
            embedded.start()
        assert pid_file.exists()
    assert value(embedded.start(), "select 1") == 1


def test_stop_smart_waits_for_clients_and_fast_does_not(
    embedded: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postmaster_module, "STOP_TIMEOUT", 0.2)
    with psycopg.connect(embedded.start()) as conn:
        with pytest.raises(ConfigError):
            embedded.stop("smart")
        monkeypatch.undo()
        assert embedded.stop("fast")
        with pytest.raises(psycopg.OperationalError):
            conn.execute("select 1")
        conn.close()


def test_ensure_starts_the_configured_home(tmp_path: Path, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCOMBINE_HOME", str(filled(tmp_path / "configured")))
    try:
        assert ensure() == ensure(tmp_path / "configured")
    finally:
        EmbeddedServer(tmp_path / "configured").stop()


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let root find no program that makes a user namespace."""
    found = shutil.which("id")
    assert found
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "id").symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.root
def test_root_runs_the_server_below_a_closed_directory(make: Callable[..., EmbeddedServer]) -> None:
    embedded = make("closed/home", settings={})
    embedded.home.parent.mkdir(mode=0o700)
    dsn = embedded.start()
    assert postmaster(embedded).uids().real != 0
    assert embedded.status().data_directory.stat().st_uid == postmaster(embedded).uids().real
    assert (embedded.home / "postgres" / "password").stat().st_uid == 0
    execute(dsn, "create table kept as select 42 as n")
    assert embedded.status().socket_directory is not None
    postmaster(embedded).kill()
    assert embedded.start() == dsn
    assert value(dsn, "select n from kept") == 42
    assert embedded.stop()
    assert embedded.start() == dsn


@pytest.mark.root
def test_root_gives_another_account_programs_that_it_can_run(
    make: Callable[..., EmbeddedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = programs.find().directory.parent
    with tempfile.TemporaryDirectory() as closed:  # 0700
        copied = programs.copy(programs.find(), Path(closed))
        Path(closed).chmod(0o700)
        assert copied.directory.parent.name == package.name
        monkeypatch.setattr(programs, "find", lambda version=None: copied)
        monkeypatch.setattr(programs, "available", lambda: {copied.version: copied})
        embedded = make()
        dsn = embedded.start()
        server = postmaster(embedded)
        assert server.uids().real != 0
        assert closed not in server.exe()
        assert value(dsn, "select 1") == 1
        embedded.stop()


def elsewhere(*_: object) -> tuple[accounts.Account, programs.Programs]:
    raise ConfigError("root can't become another user here")


@pytest.mark.root
def test_root_gives_data_of_its_own_to_another_account(
    make: Callable[..., EmbeddedServer], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Earlier versions, and this version without another account, run the server as root in a user namespace.

    If another account can run the server later, the next start makes that account the data's owner.
    """
    monkeypatch.setattr(accounts, "_other", elsewhere)
    embedded = make()
    dsn = embedded.start()
    if postmaster(embedded).uids().real != 0:
        does_not_apply("without user namespaces the data are never root's")
    assert "embedded.root reason=postgres: root can't become" in caplog.text or "nobody: root can't" in caplog.text
    execute(dsn, "create table kept as select 42 as n")
    embedded.stop()
    monkeypatch.undo()
    assert embedded.start() == dsn
    assert postmaster(embedded).uids().real != 0
    assert value(dsn, "select n from kept") == 42
    assert embedded.stop()
    assert embedded.start() == dsn
    assert value(dsn, "select n from kept") == 42


@pytest.mark.root
def test_a_superuser_of_roots_server_is_not_root(make: Callable[..., EmbeddedServer], tmp_path: Path) -> None:
    """The processes of a server, and the programs that they start, have the rights of an ordinary account."""
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    for name in ("one", "two"):
        server = make(name)
        server.start()
        tree = [postmaster(server), *postmaster(server).children(recursive=True)]
        assert len(tree) > 4
        assert [uid for process in tree for uid in process.uids() if uid == 0] == []
        with psycopg.connect(server.superuser_dsn(), autocommit=True) as conn:
            conn.execute("create temporary table seen (line text)")
            conn.execute("copy seen from program 'id -u'")
            assert value(server.superuser_dsn(), "select 1") == 1
            assert conn.execute("select line from seen where line = '0'").fetchall() == []
            for file in (Path("/etc/shadow"), secret, server.home / "postgres" / "password"):
                with pytest.raises(psycopg.errors.ExternalRoutineException):
                    conn.execute(f"copy seen from program 'cat {file}'".encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute("select pg_read_file('/etc/shadow')")


@pytest.mark.root
def test_root_does_not_follow_links_of_the_account(embedded: EmbeddedServer, tmp_path: Path) -> None:
    """When root gives the data directory to the server's account again, root follows no link that this account made."""
    embedded.start()
    data = embedded.status().data_directory
    embedded.stop()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (data / "link").symlink_to(outside)
    (data / "file").symlink_to(outside / "file")
    embedded.start()
    assert {path.stat().st_uid for path in (outside, outside / "file")} == {0}


@pytest.mark.root
def test_root_runs_an_ordinary_users_server_as_that_user(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    data = embedded.status().data_directory
    embedded.stop()
    accounts.Account(uid=4242, gid=4242).give(data)
    assert embedded.start() == dsn
    assert postmaster(embedded).uids().real == 4242


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.usefixtures("no_namespaces")
def test_root_runs_the_server_with_the_rights_of_a_container(tmp_path: Path) -> None:
    """With these rights root can't inspect other accounts' processes, and yet finds, restarts and stops its server."""
    rights = "chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot"
    setpriv = next(path for path in ("/usr/bin/setpriv", "/bin/setpriv") if Path(path).exists())
    limited = [setpriv, "--inh-caps=-all", f"--bounding-set=-all,+{rights}"]
    home = tmp_path / "home"

    def run(call: str) -> str:
        program = f"from pathlib import Path\nfrom pgcombine.embedded import EmbeddedServer\nprint({call})"
        command = [*limited, sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    server = f"EmbeddedServer(Path({str(home)!r}))"
    dsn = run(f"{server}.start()")
    embedded = EmbeddedServer(home)
    try:
        first = postmaster(embedded)
        assert first.uids().real != 0
        connected = psycopg.connect(dsn, autocommit=True)
        spinning = threading.Thread(target=spin, args=(connected,))
        spinning.start()
        eventually(lambda: value(dsn, SPINNING))
        first.kill()
        assert run(f"{server}.start()") == dsn
        spinning.join(timeout=60)
        connected.close()
        assert value(dsn, "select 1") == 1
        assert run(f"{server}.stop()") == "True"
        assert postmasters(embedded) == []
    finally:
        embedded.stop("immediate")


def test_commands_start_show_and_stop_the_server(tmp_path: Path) -> None:
    env = {"PGCOMBINE_HOME": tmp_path / "home"}
    assert json.loads(run_cli("server", "status", "--json", env=env).stdout)["running"] is False
    try:
        started = run_cli("server", "start", "--json", env=env)
        assert started.returncode == 0, started.stderr
        figures = json.loads(started.stdout)
        assert figures["running"] is True
        assert figures["version"] == 18
        shown = run_cli("server", "status", env=env).stdout
        assert f"pid               {figures['pid']}\n" in shown
        assert f"port              {figures['port']}\n" in shown
    finally:
        stopped = run_cli("server", "stop", "--json", env=env)
    assert json.loads(stopped.stdout) == {"stopped": True}
    assert run_cli("server", "stop", env=env).stdout == "the server didn't run\n"
    assert run_cli("server", "stop", "--mode", "never", env=env).returncode == 2


@pytest.mark.slow
def test_command_reports_the_server_it_starts(tmp_path: Path, filled: Filled) -> None:
    home = tmp_path / "home"
    env = {"PGCOMBINE_HOME": home}
    assert run_cli("server", "remove", env=env).stdout == f"there is no server in {home}\n"
    assert not home.exists()
    filled(home)
    try:
        first, second = (run_cli("dsn", env=env) for _ in range(2))
        assert first.stdout == second.stdout
        told = rf"pgcombine: started PostgreSQL 18 in {home} \(\d\d+ MiB on disk\); it keeps running; "
        assert re.fullmatch(f"{told}pgcombine server stop stops it\n", first.stderr)
        assert second.stderr == ""
        assert re.search(r"^disk use +\d\d+ MiB$", run_cli("server", "status", env=env).stdout, re.MULTILINE)

        refused = run_cli("server", "remove", env=env)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert f"the server in {home} will be lost with all its databases" in refused.stderr
        assert value(first.stdout.strip(), "select 1") == 1
        (home / "server.log.1").touch()
        (home / "mine").touch()
        removed = run_cli("server", "remove", "--yes", "--json", env=env)
        assert json.loads(removed.stdout) == {"removed": True}
        assert sorted(path.name for path in home.iterdir()) == ["mine", "server.lock"]
        assert json.loads(run_cli("server", "remove", "--yes", "--json", env=env).stdout) == {"removed": False}
    finally:
        run_cli("server", "stop", "--mode", "immediate", env=env)


def test_command_reconnects_after_its_first_session_ends(home: Path, filled: Filled) -> None:
    filled(home)
    with psycopg.connect(ensure(home), autocommit=True) as conn, psycopg.connect(ensure(home)) as blocker:
        blocker.execute("lock table pgcombine.schema_version in access exclusive mode")
        with start_cli("queue", "ls", env={"PGCOMBINE_DSN": None}) as command:
            ended = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'"
            eventually(lambda: conn.execute(ended).rowcount > 0, what="the command reads the schema's version")
            blocker.rollback()
            assert command.wait(timeout=60) == 0


def test_start_reports_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    failed = run_cli("server", "start", env={"PGCOMBINE_HOME": tmp_path / "file"})
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
    assert "choose another with PGCOMBINE_HOME" in failed.stderr


ATTRIBUTES = "select rolsuper, rolcreaterole, rolreplication, rolbypassrls from pg_roles where rolname = current_user"


def truncates(conn: psycopg.Connection) -> bool:
    """Whether the role sees other sessions' snapshots, without which reclaiming truncates no segment of the log."""
    seen = "select pg_has_role('pg_read_all_stats', 'usage') and pgcombine_internal.oldest_snapshot() is not null"
    return bool((conn.execute(seen).fetchone() or [False])[0])


def test_the_database_belongs_to_an_ordinary_role(embedded: EmbeddedServer) -> None:
    dsn = embedded.start()
    with psycopg.connect(dsn) as conn:
        assert conn.execute(ATTRIBUTES).fetchone() == (False, False, False, False)
    schema.upgrade(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)
        add(conn, {"fluo": 1})
        combine_all(conn)
        assert values(conn) == {"fluo": 1}
        conn.execute("create database another")
        conn.execute("checkpoint")
        assert truncates(conn)
    with psycopg.connect(embedded.superuser_dsn()) as conn:
        assert conn.execute(ATTRIBUTES).fetchone() == (True, True, True, True)
