"""The command ``pgcombine web``: its start, its options and its end."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from support import eventually, run_cli
from support.page import started
from support.servers import embedded_only

TOKEN = "a token of some length"


@embedded_only
def test_program_serves_until_it_is_stopped(dsn: str) -> None:
    with started("--dsn", dsn) as (url, process):
        assert url.startswith("http://127.0.0.1:")
        answer = httpx2.get(url, trust_env=False, timeout=60)
        assert answer.status_code == 200
        assert "--allow-actions" in answer.text
        eventually(lambda: " ok." in httpx2.get(f"{url}/doctor", trust_env=False, timeout=60).text, timeout=60)
        assert httpx2.get(f"{url}/static/page.js", trust_env=False, timeout=60).status_code == 200
        process.terminate()
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    assert rest.splitlines()[-1].endswith("INFO web.stop")
    assert "Traceback" not in rest


def test_program_starts_without_the_database() -> None:
    with started("--dsn", "postgresql://nobody@127.0.0.1:1/none", "--log-format", "json") as (url, _):
        answer = httpx2.get(url, trust_env=False, timeout=60)
    assert answer.status_code == 503
    assert "The database doesn&#39;t answer" in answer.text
    assert "check --dsn or PGCOMBINE_DSN" in answer.text


@embedded_only
def test_token_comes_from_a_file_or_a_variable(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\nno part of it\n")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with started("--dsn", dsn, "--token-file", tmp_path / "token", PGCOMBINE_WEB_TOKEN="another one, long enough") as (
        url,
        _,
    ):
        assert httpx2.get(url, trust_env=False, timeout=60).status_code == 303
        assert httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code == 200
    with started("--dsn", dsn, "--host", "0.0.0.0", PGCOMBINE_WEB_TOKEN=TOKEN) as (url, _):
        url = url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(url, trust_env=False, timeout=60).status_code == 303
        assert httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--allow-host", "queues.example"], "under the name queues.example can be read from elsewhere"),
        (["--token-file", "{}/empty"], "has no token in its first line"),
        (["--token-file", "{}/nothing"], "No such file or directory"),
    ],
)
def test_program_refuses_wrong_options(tmp_path: Path, args: list[str], message: str) -> None:
    (tmp_path / "empty").write_text("")
    words = [word.format(tmp_path) for word in args]
    refused = run_cli("web", "--dsn", "postgresql://127.0.0.1:1/none", *words)
    assert refused.returncode == 1
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
