"""Helpers for the tests: servers and databases, the command line as a subprocess, waiting for a condition.

Import from here: ``from support import run_cli, start_cli, eventually``.
"""

from __future__ import annotations

from support.cli import run_cli, start_cli
from support.wait import eventually

__all__ = ["eventually", "run_cli", "start_cli"]
