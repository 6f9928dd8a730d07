"""``pgcombine web``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

import pgcombine
from pgcombine.cli.loops import LogFormat, LogFormatOption, log_to_stderr, stopped_by_signal
from pgcombine.cli.options import Dsn, echo, resolve_dsn
from pgcombine.errors import ConfigError

TOKEN_VARIABLE = "PGCOMBINE_WEB_TOKEN"


def web(
    host: Annotated[str, typer.Option("--host", help="The address to serve on. Others than loopback need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0: a free one.")] = 8432,
    allow_actions: Annotated[
        bool,
        typer.Option("--allow-actions", help="Let readers pause and resume, and retry and drop quarantined keys."),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help=f"A file whose first line is the token that readers need. Default: {TOKEN_VARIABLE}."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name of the page, as behind a proxy; needs a token."),
    ] = None,
    log_format: LogFormatOption = LogFormat.text,
    dsn: Dsn = None,
) -> None:
    """Show queues, exports, servers, loads and the doctor's findings as web pages, until SIGTERM or Ctrl-C.

    Example: pgcombine web --port 8432 --allow-actions
    """
    try:
        from pgcombine.web.serve import listening, require_token, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"the page needs {error.name}: pip install 'pgcombine[web]'") from error
    token = _token(token_file)
    hosts = allow_host or []
    require_token(host, hosts, token)
    log_to_stderr(log_format)
    database = resolve_dsn(dsn)
    stop = stopped_by_signal()
    with listening(host, port) as sock:
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{sock.getsockname()[1]}/"
        echo(f"pgcombine: {url}", err=True)
        serve(
            database, sock, stop, version=pgcombine.__version__, token=token, hosts=hosts, actions=allow_actions
        )


def _token(file: Path | None) -> str | None:
    """Return the token of the file, else that of the variable, else None. Raises ConfigError for an empty file."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise ConfigError(f"the file of the token, {file}, has no first line")
    return lines[0].strip()
