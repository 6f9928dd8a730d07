"""The baseline: the tables, types and indexes of the first release. ``0001_baseline.sql`` has their DDL.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import hashlib
from importlib import resources

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> list[str]:
    text = (resources.files("pgcombine.migrations.versions") / "0001_baseline.sql").read_text(encoding="utf-8")
    return [text.replace("{digest of this file}", hashlib.sha256(text.encode()).hexdigest())]
