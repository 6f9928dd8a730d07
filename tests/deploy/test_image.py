"""The Docker commands on the page about services build the image, upgrade a database and start a worker.

The test runs these commands unchanged but for the image's name, its base image, and the port on this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import httpx2
import psycopg
import pytest
from support import eventually
from support.cli import environment
from support.needs import images
from support.queues import add, make_queue, one, values
from support.readme import ROOT, fences

from pgcombine import schema

_, LINES, _ = fences(ROOT / "pgcombine" / "docs" / "operations" / "service.md", "bash")

pytestmark = [pytest.mark.docker, pytest.mark.slow]


def docker(*args: str) -> str:
    return subprocess.run(["docker", *args], capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture
def image() -> Iterator[str]:
    """A name for an image; the fixture removes the image and its containers at the end."""
    name = f"pgcombine-test-image-{os.getpid()}"
    yield name
    for container in docker("ps", "--all", "--quiet", "--filter", f"ancestor={name}").split():
        docker("rm", "--force", "--volumes", container)
    docker("image", "rm", name)


def renamed(lines: str, image: str) -> str:
    """The commands with this test's image, base image and port."""
    base = images()["PGCOMBINE_TEST_PYTHON_IMAGE"]
    for name, own, times in (
        ("^docker build ", f"docker build --build-arg PYTHON_IMAGE={base} ", 1),
        (r"(?<= )pgcombine(?=\s)", image, 3),
        ("127.0.0.1:9464:9464", "127.0.0.1::9464", 1),
    ):
        lines, found = re.subn(name, own, lines, flags=re.MULTILINE)
        assert found == times, name
    return lines


@pytest.mark.parametrize("server", ["container-15"], indirect=True)  # a server that other containers can reach
def test_commands_of_the_page_start_a_worker(empty_dsn: str, image: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        address = one(conn, "select host(inet_server_addr())")
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", renamed(LINES, image)],
            cwd=ROOT,
            env=environment({"PGCOMBINE_DSN": psycopg.conninfo.make_conninfo(empty_dsn, host=address, port=5432)}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert schema.check(empty_dsn) == schema.head()
        make_queue(conn)
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combined")
    metrics = docker("port", done.stdout.split()[-1], "9464").splitlines()[0]
    assert httpx2.get(f"http://{metrics}/healthz", trust_env=False).status_code == 200
