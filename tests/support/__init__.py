"""Helpers for the tests, such as servers, queues and proxies.

The most common ones can be imported from the package: ``from support import run_cli, start_cli, eventually``.
"""

from __future__ import annotations

from support.cli import run_cli, start_cli
from support.wait import eventually

__all__ = ["eventually", "run_cli", "start_cli"]
