"""Fixtures: PostgreSQL servers, a fresh database for each test, and an environment without the user's settings.

Tests that use ``dsn``, ``conn``, ``empty_dsn`` or ``server`` run on the embedded PostgreSQL 18. In the slow tier one
case of each fast test also runs on PostgreSQL 15 in a container, but of each file in ``ONE_SERVER`` only one case of
one test. The marks ``embedded_only`` and ``with_contrib`` of ``support.servers`` leave a test one of the two servers.
``PGCOMBINE_TEST_DSN``, the URI of a superuser, replaces both servers. ``support/test_servers.py`` checks the settings
that the given server needs.

``tests/README.md`` lists the programs that tests need, and the tiers.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from packaging.specifiers import SpecifierSet
from support import homes, run_cli
from support.fronts import make_front
from support.needs import require_compose, require_docker, require_java, require_jdbc, require_root
from support.servers import Server, Servers, names
from xdist.scheduler.loadfile import LoadFileScheduling

NEEDS = {
    "docker": require_docker,
    "compose": require_compose,
    "spark": require_java,
    "jdbc": require_jdbc,
    "root": require_root,
}

# These folders and files test Python, or sessions that run the statements of other tests at the same time. Neither
# depends on the server's version.
ONE_SERVER = {
    *(
        "bench",
        "budget",
        "chaos",
        "cli",
        "concurrency",
        "deploy",
        "doctor",
        "examples",
        "export",
        "feed",
        "metrics",
        "programs",
    ),
    "queue",
    *("rollup", "runtime", "spark", "support", "web", "worker"),
    *("test_advisory_locks", "test_move_shard", "test_monitoring", "test_upgrade_waits"),
    *("test_alembic", "test_callers", "test_daemon", "test_fairness", "test_initialize_callers", "test_pgbouncer"),
    *("test_python_observers", "test_reference_big_update", "test_reference_get", "test_reference_tree"),
    *("test_upgrade_meets_daemons", "test_worker", "test_workers_seen"),
}

# Only the slow tests in these folders run on PostgreSQL 15: its privileges and the files of a dump differ.
SLOW_THERE = {"migration", "rights"}

SPARK = "tests/spark/"
# Folders with the longest tests run first, so that no process begins a long test at the end.
LONGEST = ("spark", "chaos", "model", "programs", "deploy", "doctor", "handoff", "examples", "embedded")
# Spark's Java processes end soon, so the optimizing compiler wouldn't pay.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# How long a test of the fast tier takes, on average, when two idle cores run them all.
SECONDS_EACH = 0.185
# The key in the checkout's pytest cache under which the list of passed tests is stored.
PASSED = "pgcombine/passed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--except-passed",
        metavar="CHECKOUT",
        type=Path,
        help="leave out what passed in the last run in another checkout of the same commit",
    )


@pytest.hookimpl(tryfirst=True)  # the hook adds the mark slow, so it must run before pytest applies -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    passed = set(passed_in(config.getoption("--except-passed")))
    others = [item for item in items if item.nodeid in passed or not for_this_pyspark(item)]
    left_out = {*others, *repeated(items)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (*(part != folder_of(item) for part in LONGEST), -tests[item.path], item.path))
    for item in items:
        if on_second_server(item):
            item.add_marker("slow")


class OneSpark(LoadFileScheduling):
    """Schedules as ``--dist=loadfile``, but sends all tests in tests/spark to one process, so one Java is enough."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)  # with -p no:xdist pytest doesn't know the hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    config.option.loadscopereorder = False  # keep the order of the collection: the longest tests first
    return OneSpark(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Start one process more than there are processors, since tests spend much of their time waiting.

    The variable PYTEST_XDIST_AUTO_NUM_WORKERS overrides this number.
    """
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    if node.gateway.id == "gw0":  # all processes collect the same tests
        node.config.get_terminal_writer().line("\n" + announced(node.config, ids))


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> str:
    return announced(config, [item.nodeid for item in items])


def announced(config: pytest.Config, ids: list[str]) -> str:
    """How many tests run, on which servers, and how long they take if they are of the fast tier alone."""
    versions = [name.rpartition("-")[2] for name in names() if any(name in one for one in ids)]
    minutes = round(len(ids) * SECONDS_EACH / 60)
    line = f"{len(ids):,} tests" + (f" on PostgreSQL {' and '.join(versions)}" if versions else "")
    known = config.option.markexpr == "not slow" and minutes > 0
    return line + (f", about {minutes} minutes on two idle cores" if known else "")


def folder_of(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath).parts[1]


def passed_in(checkout: Path | None) -> list[str]:
    return [] if checkout is None else json.loads((checkout / ".pytest_cache" / "v" / PASSED).read_text())


def for_this_pyspark(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("pyspark")
    return mark is None or version("pyspark") in SpecifierSet(*mark.args)


def on_second_server(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("server") in names()[1:]


def repeated(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the cases to leave out on PostgreSQL 15, since another case of the same function runs there.

    In a file of ``ONE_SERVER``, a case of any function suffices. Only in ``SLOW_THERE`` may it be marked slow. A
    function that runs only there keeps all its cases.
    """
    found = set()
    on_first = {item.nodeid.partition("[")[0] for item in items if not on_second_server(item)}
    for item in items:
        if on_second_server(item) and item.nodeid.partition("[")[0] in on_first:
            one_server = ONE_SERVER & {item.path.stem, folder_of(item)}
            stands_for = item.path if one_server else item.nodeid.partition("[")[0]
            slow = item.get_closest_marker("slow") and folder_of(item) not in SLOW_THERE
            if slow or stands_for in found:
                yield item
            else:
                found.add(stands_for)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, require in NEEDS.items():
        if item.get_closest_marker(name):
            require()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Store the list of passed tests for ``--except-passed``, and print how many tests each reason has skipped."""
    # --lf runs only a part of the tests, so the list would be incomplete
    if config.pluginmanager.hasplugin("cacheprovider") and not config.getoption("lf"):
        config.cache.set(PASSED, [report.nodeid for report in terminalreporter.getreports("passed")])
    reports = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    if reasons:
        terminalreporter.section("skipped")
    for reason, tests in reasons.most_common():
        terminalreporter.write_line(f"{tests:6}  {reason}")


@pytest.fixture(scope="session", autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Remove ``PG`` variables that aren't meant for tests. Yields a temporary directory, set as ``PGCOMBINE_HOME``.

    Also sets ``SPARK_CONF_DIR`` to a directory with Java's options. A server in the yielded directory is stopped at the
    end.
    """
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("PG") and not name.startswith(("PGCOMBINE_TEST_", "PGCOMBINE_JDBC_JAR")):
                patch.delenv(name)
        patch.setenv("PGCOMBINE_HOME", str(home))
        patch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")  # Ryuk isn't needed, since fixtures stop the containers
        spark = tmp_path_factory.mktemp("spark")
        (spark / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {JAVA_OPTIONS}\n")
        patch.setenv("SPARK_CONF_DIR", str(spark))
        yield home
        stop_server(home)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """Let Ctrl-C interrupt again when pytest is a shell's background job, which ignores SIGINT.

    Otherwise the programs that tests start would inherit the ignored signal, and no test could interrupt them.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of a new home, set as ``PGCOMBINE_HOME``. A server that a test starts in it is stopped at the end."""
    home = tmp_path / "home"
    monkeypatch.setenv("PGCOMBINE_HOME", str(home))
    yield home
    stop_server(home)


@pytest.fixture(scope="session")
def filled(memory: Path) -> homes.Filled:
    """``filled(home)`` fills a new home with files of a stopped server that has the schema, and returns ``home``."""
    source = memory / "filled"
    homes.make(source)
    return partial(homes.copy, source)


def stop_server(home: Path) -> None:
    if any(home.rglob("postmaster.pid")):
        stopped = run_cli("server", "stop", env={"PGCOMBINE_HOME": home})
        assert stopped.returncode == 0, stopped.stderr


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in /dev/shm, where copying a database is fast, or on disk if /dev/shm lacks room."""
    if homes.fits(homes.MEMORY):
        with TemporaryDirectory(prefix="pgcombine-tests-", dir=homes.MEMORY, ignore_cleanup_errors=True) as directory:
            yield Path(directory)
    else:
        yield tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="session")
def servers(own_environment: Path, memory: Path) -> Iterator[Servers]:
    servers = Servers(memory / "server")
    yield servers
    servers.close()


@pytest.fixture(scope="session", params=names())
def server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    """A PostgreSQL server that tests share."""
    if request.param.startswith("container"):
        require_docker()
    return servers.get(request.param)


@pytest.fixture
def dsn(request: pytest.FixtureRequest, server: Server) -> Iterator[str]:
    """The URI of a fresh database with pgcombine's schema, and the queue ``wc`` if the test has the mark ``wc``."""
    mark = request.node.get_closest_marker("wc")
    with server.migrated(mark and mark.kwargs) as dsn:
        yield dsn


@pytest.fixture
def empty_dsn(server: Server) -> Iterator[str]:
    """The URI of a fresh, empty database."""
    with server.database() as dsn:
        yield dsn


@pytest.fixture
def conn(request: pytest.FixtureRequest, dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to ``dsn``."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        if request.node.get_closest_marker("wc"):  # the copied queue is as old as its template
            conn.execute("update pgcombine.tick set at = clock_timestamp()")
        yield conn


@pytest.fixture
def nodes(server: Server) -> Iterator[list[str]]:
    """The URIs of two databases with pgcombine's schema."""
    with ExitStack() as stack:
        yield [stack.enter_context(server.migrated()) for _ in range(2)]


@pytest.fixture
def front(conn: psycopg.Connection, nodes: list[str]) -> psycopg.Connection:
    """An autocommit connection to a database with the front wc, which has two shards on each of two nodes."""
    make_front(conn, nodes)
    return conn
