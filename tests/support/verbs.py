"""The verbs of the command line: ``python tests/support/verbs.py`` prints them."""

from __future__ import annotations

from typing import Any


def verbs() -> list[tuple[str, ...]]:
    """All commands and groups of commands, including hidden ones, such as ``("db",)`` and ``("db", "upgrade")``."""
    import typer

    from pgcombine.cli.app import app

    return list(_below(typer.main.get_command(app), ()))


def _below(command: Any, path: tuple[str, ...]) -> Any:
    if path:
        yield path
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _below(inner, (*path, name))


if __name__ == "__main__":
    for path in verbs():
        print(*path)
