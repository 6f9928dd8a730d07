"""``pgcombine web``."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

import pgcombine
from pgcombine.cli.loops import LogFormat, LogFormatOption, log_to_stderr, stopped_by_signal, supervised
from pgcombine.cli.options import Dsn, resolve_dsn, seconds
from pgcombine.errors import ConfigError, pip_install

TOKEN = "PGCOMBINE_WEB_TOKEN"


def web(
    host: Annotated[
        str, typer.Option("--host", help="The address to serve on. An address other than loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0: a free one.")] = 8432,
    allow_actions: Annotated[
        bool,
        typer.Option(
            "--allow-actions",
            help="Let readers pause and resume queues and exports, and retry and drop quarantined keys.",
        ),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help=f"The file whose first line is the token. Default: the variable {TOKEN}."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Another host name of the pages, such as a proxy's; needs a token."
        ),
    ] = None,
    statement_timeout: Annotated[
        float,
        typer.Option(
            "--statement-timeout", min=0.1, callback=seconds, help="Seconds after which a statement is cancelled."
        ),
    ] = 5,
    log_format: LogFormatOption = LogFormat.text,
    dsn: Dsn = None,
) -> None:
    """Show queues, exports, servers, loads and the doctor's findings as web pages, until SIGTERM or Ctrl-C.

    Example: pgcombine web --port 8432 --allow-actions
    """
    server = serving()
    log_to_stderr(log_format)
    token = _token(token_file)
    hosts = allow_host or []
    server.require_token(host, hosts, token)
    database = resolve_dsn(dsn)
    stop = stopped_by_signal()
    sock = server.listening(host, port)
    with supervised():  # tells systemd that the pages are ready
        server.serve(
            database,
            sock,
            stop,
            version=pgcombine.__version__,
            token=token,
            hosts=hosts,
            actions=allow_actions,
            seconds=statement_timeout,
        )


def serving() -> ModuleType:
    """Return the module ``pgcombine.web.serve``. Raises ConfigError if the extra ``web`` isn't installed."""
    try:
        from pgcombine.web import serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"the web pages need {error.name}: {pip_install('web')}") from error
    return serve


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN) or None
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise ConfigError(f"the file {file} has no token in its first line (openssl rand -base64 24 makes one)")
    return lines[0].strip()
