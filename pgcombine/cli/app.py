"""Puts the commands of ``pgcombine`` together.

A command's module is imported only when the command is used, so ``--help`` and shell completion are quick.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer

from pgcombine.cli.options import Group, Watching, group

# The sections of the help: for each command the function or group that runs it (module:name, in the package
# pgcombine.cli) and its summary.
PARTS = {
    "Daily": {
        "status": ("status:status", "Backlog, lag, rates, workers; --watch repeats"),
        "top": ("data:top", "The keys with the greatest values; --watch repeats"),
        "get": ("data:get", "The current values of keys"),
        "worker": ("work:worker", "Combine updates until stopped"),
        "drain": ("work:drain", "Combine the updates of a queue, then end"),
        "wait": ("work:wait", "Wait until the present updates are combined"),
        "web": ("web:web", "The figures as web pages"),
        "doctor": ("doctor:doctor", "Say what is wrong, and what to do"),
    },
    "Data": {
        "queue": ("queues:queue", "Make, show, pause, rebucket and drop queues"),
        "rollup": ("rollups:rollup", "Aggregates of tables: make, backfill, verify and drop"),
        "budget": ("budgets:budget", "Amounts to take from: make, show, verify and drop"),
        "enqueue": ("data:enqueue", "Enqueue the updates of a file"),
        "initialize": ("data:initialize", "Load values of a file into an empty queue"),
        "values": ("data:values", "Print or save all combined values"),
        "verify": ("queues:verify", "Check a whole queue"),
        "quarantine": ("quarantine:quarantine", "Show, retry and drop keys that keep failing"),
        "export": ("export:export", "Deliver changes to other systems"),
        "feed": ("feeds:feed", "Keep changes, and print them from where you stopped"),
    },
    "Operate": {
        "db": ("database:db", "Make, upgrade and check the schema"),
        "dsn": ("database:show_dsn", "Print the database's connection string, for psql"),
        "server": ("server:server", "The embedded PostgreSQL server"),
        "spark": ("spark:spark", "Housekeeping for loads from Spark"),
        "docs": ("docs:docs", "The pages of the documentation"),
        "replicas": ("replicas:replicas", "The same queues on several servers"),
    },
    "Tour": {
        "quickstart": ("quickstart:quickstart", "A queue and a rollup at work on a web page, then removed"),
        "phrasecount": ("phrasecount:phrasecount", "The example application: count phrases of files"),
        "bench": ("bench:bench", "Measure on this machine"),
    },
}
_PLACES = {name: place for part in PARTS.values() for name, (place, _) in part.items()}
_WATCHING = ("status", "top")


class Commands(MutableMapping[str, Any]):
    """The commands by name. A command's module is imported at the command's first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, _, attribute = _PLACES[name].partition(":")
            found = getattr(import_module(f"pgcombine.cli.{module}"), attribute)
            if not isinstance(found, typer.Typer):
                function, found = found, group("")
                found.command(cls=Watching if name in _WATCHING else None)(function)
            self._loaded[name] = typer.main.get_command(found)
            self._loaded[name].name = name
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class Top(Group):
    """The command ``pgcombine``. Its help lists all commands by section, without importing their modules."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        formatter.write_paragraph()
        names = [max(param.opts, key=len) for param in self.get_params(ctx)]
        formatter.write_text(f"Options: {', '.join(names)}; pgcombine COMMAND --help has the options of a command.")

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for part, commands in PARTS.items():
            with formatter.section(part):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])


app = typer.Typer(
    name="pgcombine",
    cls=Top,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        import pgcombine

        typer.echo(f"pgcombine {pgcombine.__version__}")
        raise typer.Exit


@app.callback()
def pgcombine(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Contended counters and aggregates in PostgreSQL."""
