"""compose.yaml is valid, and its services work.

The tests build and run the stack with the commands of the page about services. Environment variables set the project's
name, the secrets, the ports and the images.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
import yaml
from support import eventually
from support.needs import does_not_apply, images
from support.promql import promtool
from support.readme import ROOT, fences

*_, LINES = fences(ROOT / "pgcombine" / "docs" / "operations" / "service.md", "bash")
UP, SCALE, MONITORING, FOLLOW = LINES.splitlines()

pytestmark = pytest.mark.compose

Compose = Callable[..., str]
SECRETS = {"PGCOMBINE_PASSWORD": "a pass:word/@%", "PGCOMBINE_WEB_TOKEN": "a token of some length"}


def run(line: str, **settings: str) -> str:
    """Run a shell line in the directory of compose.yaml and return its output."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        env={**os.environ, **SECRETS, **settings},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{line}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """Environment variables for compose.yaml: a project and an image of the tests' own, base images, free ports."""
    name = f"pgcombine-test-{os.getpid()}"
    return {
        "COMPOSE_PROJECT_NAME": name,
        "PGCOMBINE_IMAGE": name,
        "PGCOMBINE_PORT": "0",
        "PGCOMBINE_WEB_PORT": "0",
        "PGCOMBINE_GRAFANA_PORT": "0",
        "PGCOMBINE_PROMETHEUS_PORT": "0",
        "PGCOMBINE_POSTGRES_IMAGE": images()["PGCOMBINE_TEST_IMAGE"],
        "PGCOMBINE_PYTHON_IMAGE": images()["PGCOMBINE_TEST_PYTHON_IMAGE"],
    }


@pytest.fixture(scope="module")
def compose(settings: dict[str, str]) -> Iterator[Compose]:
    """Runs ``docker compose ARGS`` on the running stack; the fixture removes the stack at the end."""

    def compose(*args: str) -> str:
        return run(shlex.join(["docker", "compose", *args]), **settings)

    try:
        run(UP, **settings)
        yield compose
    finally:
        compose("--profile", "monitoring", "down", "--volumes", "--timeout", "5")
        run(f"docker image rm {settings['PGCOMBINE_IMAGE']}")


def connect(compose: Compose) -> psycopg.Connection:
    address = compose("port", "postgres", "5432").strip()
    host, port = address.split(":")
    given = {"host": host, "port": port, "user": "pgcombine_owner", "dbname": "pgcombine"}
    return psycopg.connect(**given, password=SECRETS["PGCOMBINE_PASSWORD"], autocommit=True)


def state(compose: Compose, service: str) -> dict[str, Any]:
    """What ``docker compose ps`` says about the container of a service: State, Health, ExitCode."""
    found: dict[str, Any] = json.loads(compose("ps", "--all", "--format", "json", service))
    return found


def test_services_start_in_order() -> None:
    config = json.loads(run("docker compose config --format json"))
    services = config["services"]
    assert services["postgres"]["image"] == "postgres:18"
    assert services["postgres"]["healthcheck"]["test"][0] == "CMD"
    assert services["migrate"]["command"] == ["db", "upgrade"]
    assert {services[name]["image"] for name in ("migrate", "worker", "web")} == {"pgcombine"}
    # one service builds the image that all three use
    assert [name for name, service in services.items() if "build" in service] == ["migrate"]
    assert services["role"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["migrate"]["depends_on"]["role"]["condition"] == "service_completed_successfully"
    assert services["worker"]["command"] == ["worker", "--metrics-port", "9464", "--metrics-host", "0.0.0.0"]
    assert services["worker"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert {services[name]["ports"][0]["host_ip"] for name in ("postgres", "web")} == {"127.0.0.1"}
    # PostgreSQL's images before 18 declare an anonymous volume at …/data. The data must be elsewhere, since a new
    # container wouldn't find the files of that volume.
    (volume,) = [volume for volume in services["postgres"]["volumes"] if volume["source"] == "postgres"]
    data = Path(services["postgres"]["environment"]["PGDATA"])
    assert Path(volume["target"]) in data.parents
    assert data != Path(volume["target"], "data")


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_has_a_default(name: str) -> None:
    with pytest.raises(AssertionError, match=f"variable {name} is missing a value: set it"):
        run("docker compose config", **{name: ""})
    config = run("docker compose --profile monitoring config --format json")
    secrets = [
        value
        for service in json.loads(config)["services"].values()
        for name, value in service.get("environment", {}).items()
        if name.endswith(("PASSWORD", "TOKEN"))
    ]
    assert len(secrets) >= 6
    assert {value.replace("$$", "$") for value in secrets} == set(SECRETS.values())


def test_monitoring_reads_existing_files(tmp_path: Path) -> None:
    """The files mounted by the profile exist. Prometheus accepts its files. Grafana's settings name the dashboard."""
    without = json.loads(run("docker compose config --format json"))["services"]
    config = json.loads(run("docker compose --profile monitoring config --format json"))
    added = {name: service for name, service in config["services"].items() if name not in without}
    assert added.keys() == {"prometheus", "grafana"}
    mounted = {
        Path(volume["target"]): Path(volume["source"])
        for service in added.values()
        for volume in service["volumes"]
        if volume["type"] == "bind"
    }
    assert len(mounted) == 5
    assert [source for source in mounted.values() if not source.is_file()] == []
    assert {port["host_ip"] for service in added.values() for port in service["ports"]} == {"127.0.0.1"}
    for target, source in mounted.items():
        if target.parent == Path("/etc/prometheus"):
            shutil.copy(source, tmp_path / target.name)
    promtool("check", "config", tmp_path / "prometheus.yml")
    (scraped,) = yaml.safe_load((tmp_path / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    (workers,) = scraped["dns_sd_configs"]
    assert workers["names"] == ["worker"]
    assert str(workers["port"]) in config["services"]["worker"]["command"]
    ((provider,),) = (
        yaml.safe_load(source.read_text("utf-8"))["providers"]
        for target, source in mounted.items()
        if target.parts[-2] == "dashboards" and source.suffix == ".yml"
    )
    assert any(target.parent == Path(provider["options"]["path"]) for target in mounted)
    home = added["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert json.loads(mounted[Path(home)].read_text("utf-8"))["uid"] == "pgcombine"


@pytest.mark.slow
def test_worker_combines_on_a_migrated_database(compose: Compose) -> None:
    assert state(compose, "postgres")["Health"] == "healthy"
    migrate = state(compose, "migrate")
    assert (migrate["State"], migrate["ExitCode"]) == ("exited", 0)
    compose("run", "--rm", "--no-deps", "migrate", "db", "check")
    with connect(compose) as conn:
        conn.execute("select pgcombine.create_queue('wc', array['word text'], array['n bigint sum'])")
        conn.execute("insert into pgcombine.wc_updates (word, n) select 'fluo', 1 from generate_series(1, 20)")
        total = "select n from pgcombine.wc_values where word = 'fluo'"
        eventually(lambda: conn.execute(total).fetchone() == (20,), what="the worker combined 20 updates")


@pytest.mark.slow
def test_worker_is_no_superuser(compose: Compose) -> None:
    with connect(compose) as conn:
        assert conn.execute("select rolsuper from pg_roles where rolname = current_user").fetchone() == (False,)
    assert "worker.superuser" not in compose("logs", "worker")
    address = compose("port", "postgres", "5432").strip()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://pgcombine:pgcombine@{address}/pgcombine")


@pytest.mark.slow
def test_worker_reconnects_after_a_server_restart(compose: Compose) -> None:
    with connect(compose) as conn:
        conn.execute("select pgcombine.create_queue('away', array['word text'], array['n bigint sum'])")
    compose("restart", "--timeout", "5", "postgres")
    eventually(lambda: state(compose, "postgres")["Health"] == "healthy", what="PostgreSQL is healthy again")
    with connect(compose) as conn:
        conn.execute("insert into pgcombine.away_updates (word, n) values ('fluo', 7)")
        total = "select n from pgcombine.away_values where word = 'fluo'"
        eventually(lambda: conn.execute(total).fetchone() == (7,), what="the worker combined after a restart")


@pytest.mark.slow
def test_data_outlive_the_containers(compose: Compose) -> None:
    with connect(compose) as conn:
        conn.execute("select pgcombine.create_queue('kept', array['word text'], array['n bigint sum'])")
        conn.execute("select pgcombine.pause('kept')")
        conn.execute("insert into pgcombine.kept_updates (word, n) values ('fluo', 3)")
    compose("down", "--timeout", "5")
    compose("up", "--detach")
    with connect(compose) as conn:
        conn.execute("select pgcombine.resume('kept')")
        total = "select n from pgcombine.kept_values where word = 'fluo'"
        eventually(lambda: conn.execute(total).fetchone() == (3,), what="the worker combined what was kept")


@pytest.mark.slow
def test_worker_is_healthy_and_not_root(compose: Compose) -> None:
    assert compose("exec", "-T", "worker", "id", "-u").strip() == "65534"
    eventually(lambda: state(compose, "worker")["Health"] == "healthy", timeout=120, what="the worker is healthy")
    # The same check against a port where nothing listens must fail.
    check = json.loads(inspect(compose, "worker", "{{json .Config.Healthcheck.Test}}"))[1:]
    compose("exec", "-T", "worker", *check)
    with pytest.raises(AssertionError):
        compose("exec", "-T", "worker", *(part.replace("9464", "1") for part in check))


@pytest.mark.slow
def test_worker_restarts_after_an_upgrade(compose: Compose) -> None:
    """The schema gets another version's revision while the worker runs, and then its own revision again."""
    with connect(compose) as conn:
        (revision,) = conn.execute("select version_num from pgcombine.schema_version").fetchone() or ("",)
        conn.execute("update pgcombine.schema_version set version_num = '9999'")
        eventually(lambda: int(inspect(compose, "worker", "{{.RestartCount}}")) > 0, what="the worker is started again")
        assert "newer than this program (revision 9999" in compose("logs", "worker")
        conn.execute("update pgcombine.schema_version set version_num = %s", (revision,))
        conn.execute("select pgcombine.create_queue('upgraded', array['word text'], array['n bigint sum'])")
        conn.execute("insert into pgcombine.upgraded_updates (word, n) values ('fluo', 5)")
        total = "select n from pgcombine.upgraded_values where word = 'fluo'"
        eventually(lambda: conn.execute(total).fetchone() == (5,), timeout=90, what="the worker combines again")


@pytest.mark.slow
def test_page_requires_its_token(compose: Compose) -> None:
    address = f"http://{compose('port', 'web', '8432').strip()}"
    eventually(lambda: state(compose, "web")["Health"] == "healthy", timeout=120, what="the page is healthy")

    def answer(token: str) -> httpx2.Response:
        return httpx2.get(address, headers={"Authorization": f"Bearer {token}"}, trust_env=False)

    assert "Sign in" in httpx2.get(address, follow_redirects=True, trust_env=False).text
    assert answer("pgcombine-elsewhere").status_code == 401
    assert answer(SECRETS["PGCOMBINE_WEB_TOKEN"]).status_code == 200


@pytest.mark.slow
def test_each_scaled_worker_logs(compose: Compose, settings: dict[str, str], tmp_path: Path) -> None:
    run(SCALE, **settings)
    workers = [f"worker-{number}" for number in (1, 2, 3)]
    log = tmp_path / "log"
    with log.open("w") as out:
        env = {**os.environ, **SECRETS, **settings}
        follower = subprocess.Popen(["bash", "-c", f"exec {FOLLOW}"], cwd=ROOT, env=env, stdout=out)
        try:
            eventually(lambda: all(f"{worker} " in log.read_text() for worker in workers), what="each worker logs")
            assert follower.poll() is None
        finally:
            follower.kill()
            follower.wait()
    compose("up", "--detach")
    assert len(compose("ps", "--quiet", "worker").split()) == 1


@pytest.mark.slow
def test_monitoring_finds_the_worker(compose: Compose, settings: dict[str, str]) -> None:
    """Prometheus scrapes the worker, and Grafana has the dashboard. The test needs both images, local or pulled."""
    pull = ["docker", "compose", "--profile", "monitoring", "pull", "--policy=missing", "prometheus", "grafana"]
    try:
        subprocess.run(
            pull, cwd=ROOT, env={**os.environ, **SECRETS, **settings}, capture_output=True, timeout=180, check=True
        )
    except subprocess.SubprocessError:
        does_not_apply("no registry has the images of Prometheus and Grafana")
    run(MONITORING, **settings)

    def scraped() -> bool:
        address = compose("port", "prometheus", "9090").strip()
        try:
            found = httpx2.get(f"http://{address}/api/v1/targets", trust_env=False).json()
        except (httpx2.TransportError, ValueError):  # Prometheus is still starting
            return False
        return [target["health"] for target in found["data"]["activeTargets"]] == ["up"]

    def shown() -> bool:
        address = compose("port", "grafana", "3000").strip()
        try:
            return httpx2.get(f"http://{address}/api/dashboards/uid/pgcombine", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False

    eventually(scraped, timeout=120, what="Prometheus has the worker's metrics")
    eventually(shown, timeout=120, what="Grafana has the dashboard")


def inspect(compose: Compose, service: str, form: str) -> str:
    """What ``docker inspect`` says about the container of a service."""
    container = compose("ps", "--all", "--quiet", service).strip()
    done = subprocess.run(
        ["docker", "inspect", "--format", form, container], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
