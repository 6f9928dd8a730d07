"""``pgcombine doctor``."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Json, counted, echo, fail, print_json, resolve_dsn
from pgcombine.errors import PgCombineError


class Right(StrEnum):
    """The rights that ``pgcombine.grant_right`` grants."""

    enqueue = "enqueue"
    read = "read"
    work = "work"
    handoff = "handoff"
    monitor = "monitor"


def doctor(
    names: Annotated[list[str] | None, typer.Argument(metavar="QUEUE", help="Queues; all if none is named.")] = None,
    role_for: Annotated[
        list[Right] | None,
        typer.Option("--role-for", help="A right that the connection's role must have; repeat for several."),
    ] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Look for what is wrong with the server, the role, this machine and the queues, and say what to do.

    The exit status is 1 if there is an error.

    Example: pgcombine doctor --role-for work --dsn postgresql://worker@db/app
    """
    from dataclasses import replace

    from pgcombine.doctor.examine import examine
    from pgcombine.doctor.findings import Finding, Level, error, worst

    findings: list[Finding]
    try:
        findings = examine(resolve_dsn(dsn), queues=names or (), rights=[right.value for right in role_for or ()])
    except PgCombineError as failure:
        findings = [replace(error(str(failure), "see pgcombine docs operations"), check="connection")]
    if as_json:
        print_json({"level": worst(findings), "findings": [finding.as_dict() for finding in findings]})
    else:
        for finding in findings:
            subject = f" {finding.subject}" if finding.subject else ""
            echo(f"{finding.level:8}{finding.check}{subject}: {finding.found}")
            if finding.advice:
                echo(f"{'':8}→ {finding.advice}")
        counts = Counter(finding.level for finding in findings)
        nouns = (counted(counts[level], level.value) for level in (Level.error, Level.warning))
        typer.echo(", ".join([*nouns, f"{counts[Level.info]} info", f"{counts[Level.ok]} ok"]))
    if count := sum(finding.level is Level.error for finding in findings):
        fail(f"{counted(count, 'error')} found")
