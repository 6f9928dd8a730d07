"""``polling`` reads the monitoring views.

Exceptions are views without measurements of this server, and the views of which ``monitoring.md`` says that they read
each row.
"""

from __future__ import annotations

import re

from support.readme import ROOT

from .polling import VIEWS

DOCS = ROOT / "pgcombine" / "docs"


def test_polling_reads_all_cheap_views() -> None:
    (named,) = re.findall(
        r"^- The views (.*) read each row", (DOCS / "monitoring.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    views = (DOCS / "reference" / "sql.md").read_text(encoding="utf-8").partition("\n## Views\n")[2]
    # the last three have no measurements of this server
    dear = {*re.findall(r"`(\w+)`", named), "rights", "front_stat", "shard_definition"}
    assert sorted({*VIEWS} | dear) == re.findall(r"^### (\w+)$", views, re.MULTILINE)
    assert not {*VIEWS} & dear
