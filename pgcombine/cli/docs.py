"""``pgcombine docs``: the pages of the documentation in the package."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

import pgcombine
from pgcombine.cli.options import echo, fail

PAGES = Path(pgcombine.__file__).parent / "docs"


def docs(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of a page. Default: the pages are listed.")
    ] = None,
) -> None:
    """List the pages of the documentation, or print one of them.

    Example: pgcombine docs operations
    """
    pages = {file.relative_to(PAGES).with_suffix("").as_posix(): file for file in sorted(PAGES.rglob("*.md"))}
    if name is None:
        width = max(map(len, pages), default=0)
        for page, file in pages.items():
            title = file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            echo(f"{page:{width}}  {title}")
        return
    wanted = name.removesuffix(".md")
    found = [file for page, file in pages.items() if wanted in (page, page.rpartition("/")[2])]
    if not found:
        near = get_close_matches(wanted, pages, n=1)
        hint = f'did you mean "{near[0]}"?' if near else "pgcombine docs lists the pages"
        fail(f'there is no page "{name}": {hint}')
    typer.echo(found[0].read_text(encoding="utf-8"), nl=False)
