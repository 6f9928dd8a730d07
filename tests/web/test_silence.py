"""The database accepts packets and sends none.

Readers of the pages soon get an error page, the process can be stopped, and the doctor ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from support import eventually
from support.page import started
from support.proxy import through_proxy
from support.servers import embedded_only
from support.site import read, served

from pgcombine.doctor import database, examine
from pgcombine.doctor.findings import Check, Context, Finding, Limits, ok

READERS = 45  # fewer than guard.MOST_OF_CLIENT, so that none is refused

pytestmark = embedded_only


@pytest.mark.slow
def test_every_reader_is_answered(busy: None, dsn: str) -> None:
    with through_proxy(f"{dsn}?connect_timeout=2") as (proxy, there), served(there, seconds=1) as client:
        eventually(lambda: client.get("/exports").status_code == 200)
        eventually(lambda: client.get("/").status_code == 200)
        proxy.black_hole()
        with ThreadPoolExecutor(READERS) as pool:
            readers = [pool.submit(client.get, "/" if number % 2 else "/queues/wc") for number in range(READERS)]
            assert client.get("/healthz").status_code == 200
            answers = [reader.result() for reader in readers]
        assert {answer.status_code for answer in answers} == {503}
        assert all("The database doesn't answer" in read(answer).text for answer in answers)
        assert client.get("/static/page.css").status_code == 200
        silent = client.get("/exports")
        assert silent.status_code == 503
        assert "The database doesn't answer" in read(silent).text
        proxy.heal()
        eventually(lambda: client.get("/").status_code == 200)


@pytest.mark.slow
def test_process_ends_when_it_is_stopped(busy: None, dsn: str) -> None:
    with (
        through_proxy(f"{dsn}?connect_timeout=2") as (proxy, there),
        started("--dsn", there, "--statement-timeout", 1) as (url, process),
    ):
        eventually(lambda: httpx2.get(url, trust_env=False, timeout=60).status_code == 200)
        proxy.black_hole()
        eventually(lambda: httpx2.get(url, trust_env=False, timeout=60).status_code == 503)
        process.terminate()
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in rest


@pytest.mark.parametrize("check", [database.extensions, database.notifications])
def test_doctor_ends_without_answers(dsn: str, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    with through_proxy(f"{dsn}?connect_timeout=2") as (proxy, there):

        def goes(_: Context) -> Iterator[Finding]:
            proxy.black_hole()
            yield ok("it goes")

        monkeypatch.setattr(examine, "SERVER", (goes, check))
        found = examine.examine(there, limits=Limits(answer=1.0))
    assert found[-1].check == "connection"
    assert "didn't answer in time" in found[-1].found
