"""Things that tests need, such as Docker or Java. If one is missing, ``require`` skips the test, or fails it in CI."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import warnings
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
MAKE_IMAGES = Path(__file__).with_name("make_images.sh")


def require(what: str, *, there: object) -> None:
    """Skip the test if ``what`` isn't ``there``; in CI fail it."""
    if not there:
        (pytest.fail if CI else pytest.skip)(f"{what} is needed")


def does_not_apply(why: str) -> NoReturn:
    """Skip the test, in CI too: it can't run on this server or with this account."""
    pytest.skip(why)


def require_docker() -> None:
    require("a Docker engine", there=docker_answers())
    require("a PostgreSQL image (bash tests/support/make_images.sh says why there is none)", there=images())


def require_compose() -> None:
    require_docker()
    require("Docker Compose", there=compose_answers())


def require_java() -> None:
    require("Java", there=java_found())


def require_jdbc() -> None:
    require_java()
    require("PostgreSQL's JDBC driver", there=driver_found())


def require_program(name: str) -> str:
    """Require a program, which may be in an sbin directory, and return its path."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    require(f"the program {name}", there=found)
    assert found is not None
    return found


def require_root() -> None:
    """Skip the test, in CI too, if the account isn't root."""
    if os.geteuid() != 0:
        does_not_apply("only root can do that")


@cache
def docker_answers() -> bool:
    """Whether a Docker engine answers."""
    import docker
    from docker.errors import DockerException

    with warnings.catch_warnings():
        # Without an engine the library leaves its socket open. The warning about that would fail a test.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            client = docker.from_env(timeout=10)
            try:
                answers = bool(client.ping())
            finally:
                client.close()
        except DockerException:
            answers = False
        gc.collect()
    return answers


@cache
def images() -> dict[str, str]:
    """The container images by environment variable, such as ``PGCOMBINE_TEST_IMAGE``. Empty if none can be had."""
    names = ("PGCOMBINE_TEST_IMAGE", "PGCOMBINE_TEST_PYTHON_IMAGE")
    if all(name in os.environ for name in names):
        return {name: os.environ[name] for name in names}
    made = subprocess.run(["bash", MAKE_IMAGES], capture_output=True, text=True, check=False)
    settings = [line.removeprefix("export ").split("=", 1) for line in made.stdout.splitlines()]
    return dict(settings) if made.returncode == 0 else {}


@cache
def compose_answers() -> bool:
    """Whether the docker command has the plugin Compose 2."""
    try:
        return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@cache
def java_found() -> bool:
    """Whether there is a Java that Spark can use."""
    from pgcombine.errors import ConfigError
    from pgcombine.spark.java import find_java

    try:
        find_java()
    except ConfigError:
        return False
    return True


@cache
def driver_found() -> bool:
    """Whether PostgreSQL's JDBC driver is installed or can be downloaded."""
    from pgcombine.spark.jdbc_driver import find_driver

    return find_driver() is not None
