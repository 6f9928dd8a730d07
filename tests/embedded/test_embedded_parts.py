"""Parts of the embedded server that are tested without a server: pid files, ports, directories, programs, the log."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgcombine.embedded import EmbeddedServer, network, postmaster, processes, programs
from pgcombine.embedded.account import Account
from pgcombine.embedded.cluster import Cluster, environment, failure
from pgcombine.embedded.postmaster import Postmaster
from pgcombine.embedded.processes import PidFile
from pgcombine.errors import ConfigError

READY = "4711\n/home/data\n1700000000\n25432\n/home/run\n127.0.0.1\n  123 456\nready   \n"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    cluster = Cluster(tmp_path / "postgres")
    cluster.data.mkdir(parents=True)
    return cluster


def test_pid_file_shows_a_ready_server(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(READY)
    assert PidFile.read(tmp_path) == PidFile(4711, 25432, Path("/home/run"), ready=True)


@pytest.mark.parametrize("lines", range(1, 8))
def test_half_written_pid_file_shows_no_ready_server(tmp_path: Path, lines: int) -> None:
    (tmp_path / "postmaster.pid").write_text("".join(READY.splitlines(keepends=True)[:lines]))
    found = PidFile.read(tmp_path)
    assert found is not None
    assert found.pid == 4711
    assert not found.ready
    assert found.port == (25432 if lines > 3 else None)


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n"])
def test_pid_file_without_a_pid_is_ignored(tmp_path: Path, text: str) -> None:
    assert PidFile.read(tmp_path) is None
    (tmp_path / "postmaster.pid").write_text(text)
    assert PidFile.read(tmp_path) is None


def test_another_program_in_the_data_directory_is_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not processes.works_in(os.getpid(), tmp_path)
    assert processes.kill_left_over(tmp_path) == 0


def test_a_port_is_free_until_someone_listens() -> None:
    port = network.free_port()
    assert network.port_is_free(port)
    with socket.create_server((network.HOST, port)):
        assert not network.port_is_free(port)
    assert network.port_is_free(port)


def test_port_answers_only_with_a_reply() -> None:
    with socket.create_server((network.HOST, 0)) as listening:
        port = listening.getsockname()[1]

        def serve(reply: bytes) -> None:
            client, _ = listening.accept()
            with client:
                assert client.recv(8) == network.SSL_REQUEST
                client.sendall(reply)

        for reply in (b"N", b""):
            server = threading.Thread(target=serve, args=(reply,))
            server.start()
            assert network.answers(port) is bool(reply)
            server.join()
    assert not network.answers(port)


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory with a short path, since a path below the tests' directory may be too long for a socket."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pc", dir="/tmp") as directory:
        yield Path(directory)


def test_sockets_are_below_the_home_if_its_path_is_short(short: Path) -> None:
    left = short / "run" / ".s.PGSQL.5432.lock"
    left.parent.mkdir(mode=0o700)
    left.write_text("1\n")
    assert network.socket_directory(short / "run", Account()) == short / "run"
    assert not left.exists()


def test_sockets_of_a_long_home_are_in_a_short_directory(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network.tempfile, "tempdir", str(short))
    home = short / ("x" * 120)
    home.mkdir()
    chosen = network.socket_directory(home / "run", Account())
    assert chosen is not None
    assert chosen.parent == short
    assert chosen == network.socket_directory(home / "run", Account())
    chosen.chmod(0o755)  # now other accounts can enter the directory
    assert network.socket_directory(home / "run", Account()) != chosen


def test_programs_are_found_in_the_wheel() -> None:
    assert {16, 18} <= set(programs.available())
    assert programs.find() == programs.find(18)
    with pytest.raises(ConfigError, match=r"9.*16, 18"):
        programs.find(9)


def test_missing_programs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PACKAGE", "no_such_package")
    programs.available.cache_clear()
    try:
        with pytest.raises(ConfigError, match="embedded"):
            programs.find()
    finally:
        programs.available.cache_clear()


def test_a_copy_of_the_programs_that_others_can_change_is_refused(tmp_path: Path) -> None:
    copied = programs.copy(programs.find(), tmp_path)
    assert programs._version(copied.directory) == 18
    assert programs.copy(programs.find(), tmp_path) == copied
    (place,) = tmp_path.iterdir()
    place.chmod(0o777)
    with pytest.raises(ConfigError):
        programs.copy(programs.find(), tmp_path)


def test_data_of_a_missing_version_are_refused(cluster: Cluster) -> None:
    (cluster.data / "PG_VERSION").write_text("12\n")
    with pytest.raises(ConfigError, match="12"):
        EmbeddedServer(cluster.directory.parent).start()


def test_a_directory_without_a_version_is_no_data_directory(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="PG_VERSION"):
        EmbeddedServer(cluster.directory.parent).start()


def test_lost_password_is_reported(cluster: Cluster) -> None:
    cluster.record("port", 25432)
    with pytest.raises(ConfigError, match="password"):
        EmbeddedServer(cluster.directory.parent).dsn()


def test_home_without_a_server_stays_absent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    server = EmbeddedServer(home)
    status = server.status()
    assert not status.running
    assert (status.pid, status.port, status.version, status.size) == (None, None, None, 0)
    assert not server.stop()
    assert not home.exists()  # stop and status create no directory
    with pytest.raises(ConfigError):
        server.dsn()


def test_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postmaster, "LOG_BYTES", 100)
    server = Postmaster(Cluster(tmp_path / "postgres"))
    server.log.write_text("x" * 100)
    server.trim_log()
    assert server.log.stat().st_size == 100
    server.log.write_text("x" * 1000 + "end")
    server.trim_log()
    assert server.log.stat().st_size == 0
    assert (tmp_path / "server.log.1").read_text() == "x" * 97 + "end"


def test_failure_finds_the_reason_in_the_log() -> None:
    assert failure("12:00 LOG:  starting\n12:01 FATAL:  no\nHINT:  do\n12:02 LOG:  end\n") == "FATAL:  no"
    assert failure("12:00 ERROR:  first\n12:01 FATAL:  worse\n") == "FATAL:  worse"
    assert failure("initdb: error: no space\nremoving\n") == "error: no space"
    assert failure("12:00 LOG:  starting\n") is None
    assert failure("") is None


def test_environment_hides_variables_from_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGDATA": "/x", "PGOPTIONS": "-c x=y", "LC_TIME": "nowhere", "LANG": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    seen = environment()
    assert not {"PGDATA", "PGOPTIONS", "LC_TIME", "LANG"} & seen.keys()
    assert (seen["LC_ALL"], seen["TZ"]) == ("C", "UTC")
