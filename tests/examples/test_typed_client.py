"""mypy --strict over a user's program: it accepts the right calls, and refuses the wrong ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.packages import ROOT

CLIENT = Path(__file__).parent / "typed_client.py"
WRONG = """
import pgcombine
from pgcombine import CombineQueue, ExportQueue, ExportWorker, Worker

queue = CombineQueue("sales")
Worker(7)
queue.enqueue("no connection", [])
ExportQueue("sales").backlog(7)
ExportWorker("dbname=shop", "sales", exporter=CombineQueue)
queue.on_change(lambda tx: None)
pgcombine.SchemaError
"""


def checked(directory: Path, client: str) -> list[str]:
    """The errors that mypy reports for a user's program that has the package's sources on its path."""
    (directory / "client.py").write_text(client, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "client.py"]
    environment = os.environ | {"MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(directory / "cache")}
    done = subprocess.run(mypy, cwd=directory, capture_output=True, text=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_mypy_accepts_a_users_program(tmp_path: Path) -> None:
    assert checked(tmp_path, CLIENT.read_text(encoding="utf-8")) == []


def test_mypy_refuses_wrong_calls(tmp_path: Path) -> None:
    lines = WRONG.splitlines()
    wrong = lines[lines.index('queue = CombineQueue("sales")') + 1 :]
    assert {lines[int(line.split(":")[1]) - 1] for line in checked(tmp_path, WRONG)} == set(wrong)
