"""``polling`` reads all views but two kinds: those that read each row, and three without figures of this server.

The page on monitoring names the views that read each row.
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
    # the last three have no figures of this server
    dear = {*re.findall(r"`(\w+)`", named), "rights", "front_stat", "shard_definition"}
    assert sorted({*VIEWS} | dear) == re.findall(r"^### (\w+)$", views, re.MULTILINE)
    assert not {*VIEWS} & dear
