"""``pgcombine web`` as a process."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from support.cli import start_cli


@contextmanager
def started(*args: object, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run ``pgcombine web`` on a free port during the block. Yields the page's address and the process."""
    with start_cli("web", "--port", 0, *args, env=env) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not (found := re.search(r"(http://[^/]+)/", "".join(lines[-1:]))):
            lines.append(process.stdout.readline())
            assert lines[-1], "".join(lines)
        yield found[1], process
