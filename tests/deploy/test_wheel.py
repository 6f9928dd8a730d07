"""The wheel holds its files, and an installed wheel works outside the checkout.

The environment ``core`` has the wheel, its dependencies and the extra ``binary``. The environment ``full`` has the
wheel, and imports the packages of the tests' environment. The wheel's commands run in the directory ``elsewhere``.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import shutil
import subprocess
import sys
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.cli import environment
from support.readme import PAGES, fences
from support.servers import embedded_only

ROOT = Path(__file__).parents[2]
VERBS = ROOT / "tests" / "support" / "verbs.py"
CHECKOUT = ("pgcombine", "sql", "migrations")

Cli = Callable[..., subprocess.CompletedProcess[str]]


def call(*args: object, cwd: Path) -> str:
    done = subprocess.run([*map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{args}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The source distribution, and the wheel built from it. The build writes nothing into the checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("pgcombine", "sql", "migrations"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    call(sys.executable, "-m", "build", "--no-isolation", cwd=source)
    return sorted((source / "dist").iterdir())


@pytest.fixture(scope="module")
def wheel(distributions: list[Path]) -> Path:
    (wheel,) = (path for path in distributions if path.suffix == ".whl")
    return wheel


def make_environment(directory: Path, wheel: Path | str, *options: str) -> Path:
    """Make a virtual environment with the wheel in it, and return the path of its Python."""
    venv.create(directory, with_pip=False, symlinks=True)
    python = directory / "bin" / "python"
    install = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *options)
    call(*install, wheel, cwd=directory)
    return python


def cli_of(python: Path, elsewhere: Path) -> Cli:
    """Return a function that runs the console script of an environment in the directory ``elsewhere``."""

    def cli(*args: object, input: str | None = None, **env: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python.parent / "pgcombine"), *map(str, args)],
            cwd=elsewhere,
            env=environment({"PYTHONPATH": None, **env}),
            input=input or "",
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return cli


def verbs_of(python: Path, elsewhere: Path) -> list[list[str]]:
    return [line.split() for line in call(python, "-I", VERBS, cwd=elsewhere).splitlines()]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the wheel runs. It looks like a checkout, but importing its sources fails."""
    directory = tmp_path_factory.mktemp("elsewhere")
    for name in CHECKOUT:
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        for file in (directory / name).rglob("*.py"):
            file.write_text(f"raise ImportError('{name} was imported from the working directory')\n")
    return directory


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with the wheel, its dependencies and the extra ``binary``."""
    return make_environment(tmp_path_factory.mktemp("core"), f"{wheel}[binary]")


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment that has the wheel, and imports the packages of the tests' environment.

    A .pth file appends the directory of those packages. Python ignores .pth files in an appended directory, so the
    editable install of the checkout stays out.
    """
    python = make_environment(tmp_path_factory.mktemp("full"), wheel, "--no-deps")
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=ROOT).strip())
    directories = [entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    (site / "extras.pth").write_text("\n".join(directories), encoding="utf-8")
    return python


@pytest.mark.parametrize(
    ("directory", "package", "patterns"),
    [
        ("pgcombine", "pgcombine", ["*.py", "*.yml", "*.json", "*.service", "py.typed"]),
        ("pgcombine/docs", "pgcombine/docs", ["*.md", "*.svg"]),
        ("sql", "pgcombine/sql", ["*.py", "*.sql"]),
        ("migrations", "pgcombine/migrations", ["*.py", "*.sql"]),
        ("pgcombine/spark/discovery", "pyspark_pgcombine", ["*.py"]),
        ("pgcombine/web", "pgcombine/web", ["*.py", "*.html", "*.css", "*.js", "*.svg"]),
    ],
)
def test_wheel_holds_every_file(wheel: Path, directory: str, package: str, patterns: list[str]) -> None:
    here = {
        f"{package}/{path.relative_to(ROOT / directory).as_posix()}"
        for pattern in patterns
        for path in (ROOT / directory).rglob(pattern)
    }
    assert len(here) > 2 or package == "pyspark_pgcombine"
    with zipfile.ZipFile(wheel) as archive:
        assert here - set(archive.namelist()) == set()


def test_distributions_have_complete_metadata(distributions: list[Path]) -> None:
    checked = call(sys.executable, "-m", "twine", "check", "--strict", *distributions, cwd=ROOT)
    assert checked.count("PASSED") == len(distributions) == 2


@pytest.mark.slow
def test_plain_wheel_says_how_to_get_the_client_library(wheel: Path, elsewhere: Path, tmp_path: Path) -> None:
    """The printed pip command works although no index has pgcombine, because pgcombine is already installed."""
    python = make_environment(tmp_path, wheel)
    hidden = {"PSYCOPG_IMPL": "binary"}  # psycopg must not use a libpq of this machine
    refused = cli_of(python, elsewhere)("status", PGCOMBINE_DSN="postgresql://127.0.0.1:1/none", **hidden)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    command = [python, "-P", "-c", "from pgcombine import CombineQueue"]
    raised = subprocess.run(command, cwd=elsewhere, env=environment(hidden), capture_output=True, text=True)
    assert raised.stderr.splitlines()[-1] == line.replace("pgcombine:", "ImportError:", 1)
    (requirement,) = re.findall(r"pip install '(.*)'", line)
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", requirement, cwd=elsewhere)
    call(*command, cwd=elsewhere)


@pytest.mark.slow
def test_wheel_is_imported_from_its_environment(core: Path, full: Path, elsewhere: Path) -> None:
    for python in (core, full):
        code = "import pgcombine, pgcombine.sql, pgcombine.migrations as m; print(pgcombine.__file__, m.__file__)"
        for file in call(python, "-P", "-c", code, cwd=elsewhere).split():
            assert Path(file).is_relative_to(python.parents[1])


# Names that the Python on the pages uses without defining them, with their types.
GIVEN = {
    **dict.fromkeys(("dsn", "dsn_a", "dsn_b", "dsn_c", "checkpoint"), "str"),
    **dict.fromkeys(("lines", "events", "changes", "clicks", "right", "wrong", "stream"), "pyspark.sql.DataFrame"),
    "connection": "psycopg.Connection",
    "copy": "dict[str, int | None]",
    "order": "object",
}


def program(page: Path) -> str:
    """The Python of a page as one module, after declarations of the names in GIVEN."""
    text = "\n".join(fences(page, "python"))
    nodes = list(ast.walk(ast.parse(text)))
    bound = {alias.asname or alias.name.partition(".")[0] for node in nodes for alias in getattr(node, "names", [])}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler))}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)} | set(dir(builtins))
    free = sorted({node.id for node in nodes if isinstance(node, ast.Name)} - bound)
    modules = sorted({GIVEN[name].rpartition(".")[0] for name in free} - {""})
    return "\n".join([f"import {name}" for name in modules] + [f"{name}: {GIVEN[name]}" for name in free] + [text])


@pytest.mark.slow
def test_mypy_accepts_the_pages(full: Path, tmp_path: Path) -> None:
    """mypy checks each page as a program of a user who has installed the wheel but no types for Django.

    Alembic has no types for operations that a program adds.
    """
    for page in (page for page in PAGES if fences(page, "python")):
        (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text(program(page), encoding="utf-8")
    (tmp_path / "wrong.py").write_text("import pgcombine\npgcombine.CombineQueue(7)\n", encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("""[mypy]
strict = true
[mypy-django.*]
ignore_missing_imports = true
[mypy-counters,switching]
disallow_subclassing_any = false
disallow_untyped_defs = false
warn_return_any = false
[mypy-from_python]
disable_error_code = attr-defined
""")
    mypy = [sys.executable, "-m", "mypy", "--python-executable", full, "--cache-dir", tmp_path / "cache", "."]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    (refused,) = [line for line in done.stdout.splitlines() if ": error: " in line] or [done.stderr]
    assert refused.startswith("wrong.py:2: error: Argument 1 to"), done.stdout


UPDATES = '{"word": "fluo", "n": 1}\n{"word": "spark", "n": 2}\n'

# Calls in this order, with UPDATES on stdin: the arguments, the exit status, and a text in the output.
CORE_CALLS: list[tuple[list[str], int, str]] = [
    (["db", "upgrade"], 0, "upgraded"),
    (["db", "check"], 0, "current"),
    (["db", "roles"], 0, "pgcombine_work"),
    (["dsn"], 0, "postgresql://"),
    (["queue", "create", "wc", "--key", "word text", "--value", "n bigint sum"], 0, "created: wc"),
    (["queue", "ls"], 0, "wc"),
    (["queue", "show", "wc"], 0, "n bigint sum"),
    (["queue", "create-tier", "lengths", "--source", "wc", "--key", "length(word) as length"], 0, "created: lengths"),
    (["initialize", "wc", "-"], 0, "2"),
    (["enqueue", "wc", "-"], 0, "2 updates"),
    (["status"], 0, "wc"),
    (["doctor", "wc"], 0, "0 errors"),
    (["docs"], 0, "reference/commands"),
    (["docs", "rights"], 0, "# Rights"),
    (["queue", "pause", "wc"], 0, "paused"),
    (["queue", "resume", "wc"], 0, "resumed"),
    (["get", "wc", "spark"], 0, "4"),
    (["drain", "wc", "--timeout", "60"], 0, "2 updates"),
    (["worker", "--drain"], 0, "2 updates"),
    (["wait", "wc", "--timeout", "60"], 0, "combined: wc"),
    (["queue", "rebucket", "wc", "4"], 0, "rebucketed: wc"),
    (["queue", "move-shard", "wc", "0", "n1"], 1, 'there is no front "wc"'),
    (["verify", "wc"], 0, "verified: wc"),
    (["top", "wc", "--by", "n", "-n", "1"], 0, "spark"),
    (["values", "wc", "--format", "csv"], 0, "spark,4"),
    (["quarantine", "ls"], 0, "attempts"),
    (["quarantine", "show", "wc", "fluo"], 1, "isn't quarantined"),
    (["quarantine", "retry", "wc", "--all"], 0, "0 updates"),
    (["quarantine", "drop", "wc", "--all", "--yes"], 0, "0 updates"),
    (["spark", "clean"], 0, "0 loads"),
    (["replicas", "add", "b", "host=127.0.0.1 port=1 user=nobody"], 0, "registered: b"),
    (["replicas", "ls"], 0, "host=127.0.0.1 port=1"),
    (["replicas", "show", "b"], 0, "needs_repair"),
    (["replicas", "pause", "b"], 0, "paused: b"),
    (["replicas", "resume", "b"], 0, "resumed: b"),
    (["replicas", "replay", "b"], 0, "delivered: 0 writes"),
    (["replicas", "quarantine", "ls"], 0, "destination"),
    (["replicas", "quarantine", "show", "b", "01890a5d-ac96-774b-bcce-b302099a8057"], 1, "refused no updates"),
    (["replicas", "quarantine", "retry", "b", "--all"], 0, "0 updates"),
    (["replicas", "quarantine", "drop", "b", "--all", "--reason", "a test", "--yes"], 0, "0 updates"),
    (["replicas", "truncate", "b", "--reason", "a test", "--yes"], 0, "0 updates"),
    (["replicas", "verify", "b"], 1, "hasn't been named"),
    (["replicas", "repair"], 1, "hasn't been named"),
    (["replicas", "rebuild", "b", "--yes"], 1, "hasn't been named"),
    (["replicas", "run", "--once"], 0, "delivered: 0 writes"),
    (["replicas", "rm", "b", "--yes"], 0, "removed: b"),
    (["export", "create", "out", "--queue", "wc", "--exporter", "files", "--target", "/nowhere"], 0, "created: out"),
    (["export", "run", "out", "--drain"], 0, "0 entries"),
    (["export", "pause", "out"], 0, "paused: out"),
    (["export", "ls"], 0, "paused"),
    (["export", "own", "out"], 0, "owned: out"),
    (["export", "verify", "out"], 1, "read back"),
    (["export", "resync", "out"], 0, "keys"),
    (["export", "resume", "out"], 0, "resumed: out"),
    (["export", "quarantine", "ls", "out"], 0, "error"),
    (["export", "quarantine", "show", "out", "7"], 1, "no quarantined entry 7"),
    (["export", "quarantine", "retry", "out", "7"], 1, "no quarantined entry 7"),
    (["export", "quarantine", "drop", "out", "--all", "--yes"], 0, "0 entries"),
    (["export", "drop", "out", "--force", "--yes"], 0, "dropped: out"),
    (["feed", "create", "told", "--queue", "wc"], 0, "created: told"),
    (["feed", "ls"], 0, "told"),
    (["feed", "show", "told"], 0, "retention"),
    (["feed", "tail", "told"], 0, ""),
    (["feed", "drop", "told", "--yes"], 0, "dropped: told"),
    (["rollup", "create", "docs", "--source", "doc", "--key", "word", "--value", "count(*) as n"], 0, "created: docs"),
    (["rollup", "ls"], 0, "not backfilled"),
    (["rollup", "backfill", "docs"], 0, "backfilled: docs"),
    (["rollup", "show", "docs"], 0, "ready"),
    (["rollup", "verify", "docs"], 0, "verified: docs"),
    (["rollup", "drop", "docs", "--yes"], 0, "dropped: docs"),
    (["budget", "create", "seats", "--key", "show int"], 0, "created: seats"),
    (["budget", "ls"], 0, "seats"),
    (["budget", "show", "seats"], 0, "available"),
    (["budget", "verify", "seats"], 0, "verified: seats"),
    (["budget", "drop", "seats", "--yes"], 0, "dropped: seats"),
    (["queue", "drop", "lengths", "--yes"], 0, "dropped"),
    (["queue", "drop", "wc", "--yes"], 0, "dropped"),
    (["db", "remove", "--yes"], 0, "removed"),
]
# These commands need extras that ``core`` lacks. Other tests call them.
FULL_CALLS = [
    ["server", "start"],
    ["server", "status"],
    ["phrasecount"],
    ["bench"],
    ["quickstart"],
    ["web"],
    ["server", "stop"],
    ["server", "remove"],
]


@pytest.mark.slow
@embedded_only
def test_every_verb_answers_from_the_core(core: Path, elsewhere: Path, empty_dsn: str) -> None:
    cli = cli_of(core, elsewhere)
    with psycopg.connect(empty_dsn) as conn:
        conn.execute("create table doc (word text)")
    for args, status, expected in CORE_CALLS:
        answer = cli(*args, input=UPDATES, PGCOMBINE_DSN=empty_dsn)
        assert answer.returncode == status, (args, answer.stdout, answer.stderr)
        assert expected in (answer.stderr if status else answer.stdout), args


@pytest.mark.slow
def test_tests_call_every_verb(core: Path, elsewhere: Path) -> None:
    verbs = verbs_of(core, elsewhere)
    groups = [verb[:-1] for verb in verbs]
    leaves = {" ".join(verb) for verb in verbs if verb not in groups}
    calls = [args for args, _, _ in CORE_CALLS] + FULL_CALLS
    called = {" ".join(next(args[:n] for n in (1, 2, 3) if args[:n] not in groups)) for args in calls}
    assert sorted(leaves - called) == [], "verbs that no test of the wheel calls: add them to CORE_CALLS or FULL_CALLS"
    assert sorted(called - leaves) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "extra"),
    [
        (["dsn"], "embedded"),
        (["phrasecount"], "spark"),
        (["bench", "--figure", "spark"], "spark"),
        (["web"], "web"),
        (["worker", "--metrics-port", "0"], "metrics"),
        (["replicas", "run", "--metrics-port", "0"], "metrics"),
    ],
)
def test_core_names_the_missing_extra(core: Path, elsewhere: Path, args: list[str], extra: str) -> None:
    # Nothing listens at this address: the missing extra is reported before the connection fails.
    dsn = "postgresql://127.0.0.1:1/none" if extra != "embedded" else None
    answer = cli_of(core, elsewhere)(*args, PGCOMBINE_DSN=dsn)
    assert answer.returncode == 1
    assert f"pgcombine[{extra}]" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.slow
def test_core_names_the_extra_of_several_servers(core: Path, elsewhere: Path) -> None:
    code = "import pgcombine; pgcombine.ReplicatedQueue({'a': 'dbname=none'}, 'wc')"
    raised = subprocess.run([core, "-P", "-c", code], cwd=elsewhere, env=environment(), capture_output=True, text=True)
    assert raised.stderr.splitlines()[-1].endswith(": pip install 'pgcombine[replicas]'")


@pytest.fixture
def own_server(full: Path, elsewhere: Path, home: Path) -> Iterator[Path]:
    """A PGCOMBINE_HOME with a server that the wheel's command started."""
    cli = cli_of(full, elsewhere)
    started = cli("server", "start", PGCOMBINE_HOME=home)
    assert started.returncode == 0, started.stderr
    yield home
    stopped = cli("server", "stop", PGCOMBINE_HOME=home)
    assert stopped.returncode == 0, stopped.stderr
    removed = cli("server", "remove", "--yes", PGCOMBINE_HOME=home)
    assert removed.returncode == 0, removed.stderr


@pytest.fixture(scope="module")
def documents(elsewhere: Path) -> str:
    """The name of a directory with two documents, in the directory in which the wheel runs."""
    directory = elsewhere / "documents"
    directory.mkdir()
    (directory / "foo1").write_text("This is only a test. Do not panic. This is only a test.", encoding="utf-8")
    (directory / "foo2").write_text("This is only a test", encoding="utf-8")
    return directory.name


@pytest.mark.slow
@pytest.mark.spark
def test_wheel_counts_phrases_on_its_own_server(full: Path, elsewhere: Path, own_server: Path, documents: str) -> None:
    cli = cli_of(full, elsewhere)
    running = cli("server", "status", "--json", PGCOMBINE_HOME=own_server)
    assert json.loads(running.stdout)["running"] is True
    counted = cli("phrasecount", documents, "--json", PGCOMBINE_HOME=own_server)
    assert counted.returncode == 0, counted.stderr
    assert json.loads(counted.stdout)["documents"] == 2
    top = cli("top", "phrases", "--by", "total", "-n", "1", "--json", PGCOMBINE_HOME=own_server)
    assert [(row["docs"], row["total"]) for row in json.loads(top.stdout)] == [(2, 3)]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_finds_the_source_of_the_wheel(full: Path, elsewhere: Path, own_server: Path, tmp_path: Path) -> None:
    """Spark finds the data source without registration. Tasks import modules from the program's directory."""
    (tmp_path / "beside.py").write_text("def twice(n): return 2 * n")
    (tmp_path / "program.py").write_text("""if True:
        import sys
        from beside import twice
        from pgcombine import CombineQueue
        from pgcombine.database.connect import connect
        from pgcombine.spark import session
        with connect(sys.argv[1]) as connection:
            CombineQueue("wc", key=["word text"], value=["n bigint sum"]).create(connection)
        spark = session(master="local[1]")
        frame = spark.createDataFrame([("a", 1), ("a", 2)], "word string, n bigint")
        frame.write.format("pgcombine").option("queue", "wc").option("dsn", sys.argv[1]).mode("append").save()
        with connect(sys.argv[1]) as connection:
            print("pgcombine.spark.discovery" in sys.modules, CombineQueue("wc").get(connection, ["a"]))
        print(spark.sparkContext.parallelize([1, 2], 1).map(twice).collect())
        """)
    dsn = cli_of(full, elsewhere)("dsn", PGCOMBINE_HOME=own_server).stdout.strip()
    answer = call(full, tmp_path / "program.py", dsn, cwd=elsewhere)
    assert answer.splitlines()[-2:] == ["False {'a': 3}", "[2, 4]"]


@pytest.mark.slow
@pytest.mark.spark
def test_any_session_uses_the_installed_source(full: Path, elsewhere: Path, own_server: Path) -> None:
    """In a plain Spark session, Python processes search the working directory first, yet use the installed source."""
    code = """if True:
        import os, sys
        from pathlib import Path
        from pgcombine import CombineQueue
        from pgcombine.database.connect import connect
        from pgcombine.spark.java import find_java, java_home
        from pyspark.sql import SparkSession
        dsn, scratch = sys.argv[1], Path(sys.argv[2])
        with connect(dsn) as connection:
            CombineQueue("own", key=["word text"], value=["n bigint sum"]).create(connection)
        os.environ.update(JAVA_HOME=str(java_home(find_java(), scratch)), PYSPARK_PYTHON=sys.executable)
        quiet = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.local.dir": str(scratch)}
        spark = SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
        frame = spark.createDataFrame([("a", 1), ("a", 2)], "word string, n bigint").repartition(2)
        frame.write.format("pgcombine").options(queue="own", dsn=dsn).mode("append").save()
        (scratch / "lines").mkdir()
        (scratch / "lines" / "1.txt").write_text("a\\na\\n")
        words = spark.readStream.text(str(scratch / "lines")).selectExpr("value as word", "1L as n")
        stream = words.writeStream.option("checkpointLocation", str(scratch / "checkpoint")).trigger(availableNow=True)
        stream.format("pgcombine").options(queue="own", dsn=dsn).start().awaitTermination()
        with connect(dsn) as connection:
            for _ in iter(lambda: connection.execute("select from pgcombine.combine('own')").fetchone(), None):
                pass
        print(*spark.read.format("pgcombine").options(queue="own", dsn=dsn).load().collect())
        """
    dsn = cli_of(full, elsewhere)("dsn", PGCOMBINE_HOME=own_server).stdout.strip()
    answer = call(full, "-P", "-c", code, dsn, own_server / "scratch", cwd=elsewhere)
    assert answer.splitlines()[-1] == "Row(word='a', n=5)"


@pytest.mark.slow
@embedded_only
def test_wheel_serves_the_page(full: Path, elsewhere: Path, dsn: str) -> None:
    """The wheel includes the templates and the static files."""
    command = [str(full.parent / "pgcombine"), "web", "--port", "0", "--dsn", dsn]
    env = environment({"PYTHONPATH": None})
    with subprocess.Popen(command, cwd=elsewhere, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            (url,) = re.findall(r"http://\S+/", process.stderr.readline())
            for path in ("", "doctor", "static/page.css", "static/page.js", "static/icon.svg"):
                with urllib.request.urlopen(url + path, timeout=60) as answer:
                    assert answer.status == 200
        finally:
            process.terminate()


@pytest.mark.slow
def test_wheel_leaves_no_files_in_its_directory(elsewhere: Path) -> None:
    # Spark tends to leave a metastore and a warehouse in its working directory.
    assert {path.name for path in elsewhere.iterdir()} <= {"documents", *CHECKOUT}
