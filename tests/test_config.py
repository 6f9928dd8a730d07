"""Which database a command uses (an argument comes first, then variables), and which home."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgcombine import config
from pgcombine.errors import ConfigError

VARIABLES = ("PGCOMBINE_DSN", *config.LIBPQ_VARIABLES)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_argument_precedes_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.given_dsn() is None
    assert config.given_dsn("") is None
    monkeypatch.setenv("PGHOST", "from-libpq")
    assert config.given_dsn() == ""
    monkeypatch.setenv("PGCOMBINE_DSN", "host=from-environment")
    assert config.given_dsn() == "host=from-environment"
    assert config.given_dsn("host=from-argument") == "host=from-argument"


@pytest.mark.parametrize("name", config.LIBPQ_VARIABLES)
def test_libpq_variables_are_left_to_libpq(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "something")
    assert config.given_dsn() == ""
    monkeypatch.setenv(name, "")
    assert config.given_dsn() is None


def test_empty_variables_count_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCOMBINE_DSN", "")
    assert config.given_dsn() is None
    monkeypatch.setenv("PGHOST", "h")
    assert config.given_dsn() == ""


@pytest.mark.parametrize("dsn", ["nonsense", "postgresql://[::1/db", "host=a hots=b"])
def test_malformed_dsn_is_refused(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    with pytest.raises(ConfigError):
        config.given_dsn(dsn)
    monkeypatch.setenv("PGCOMBINE_DSN", dsn)
    with pytest.raises(ConfigError):
        config.given_dsn()


def test_home_comes_from_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGCOMBINE_HOME", str(tmp_path))
    assert config.home() == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGCOMBINE_HOME", "~/there")
    assert config.home() == tmp_path / "there"
    monkeypatch.setenv("PGCOMBINE_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert config.home().name == "pgcombine"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PGCOMBINE_DNS", "PGCOMBINE_DSN"),
        ("pgcombine_dsn", "PGCOMBINE_DSN"),
        ("PGCOMBINE_HOMES", "PGCOMBINE_HOME"),
        ("PGCOMBINE_JDBCJAR", "PGCOMBINE_JDBC_JAR"),
    ],
)
def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    """If the misspelt variable were ignored, a command might use another database."""
    monkeypatch.setenv(name, "something")
    for call in (config.given_dsn, config.home):
        with pytest.raises(ConfigError, match=f"{name} .*{meant}"):
            call()
    assert config.given_dsn("host=given") == "host=given"


def test_variables_of_other_programs_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes (for a service named pgcombine), compose.yaml and the tests set these variables."""
    for name in (
        *("SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_5432_TCP", "PORT_5432_TCP_PROTO", "PORT_5432_TCP_ADDR"),
        *("PASSWORD", "POSTGRES_IMAGE", "PYTHON_IMAGE", "TEST_DSN", "TEST_IMAGE", "TEST_CHAOS_SECONDS"),
    ):
        monkeypatch.setenv(f"PGCOMBINE_{name}", "something")
    assert config.given_dsn() is None
