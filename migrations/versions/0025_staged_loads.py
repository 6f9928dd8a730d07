"""Rows from Spark always wait in a stage: the mode that wrote into the queue directly is gone.

Revision ID: 0025
Revises: 0024
"""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "delete from pgcombine.spark_load where kind = 'token'",
    "drop view if exists pgcombine.load_stat",  # the repeatable SQL makes it, without the number of parts
    "drop table pgcombine.spark_part",
    "alter table pgcombine.spark_load drop constraint spark_load_kind_check, "
    "add constraint spark_load_kind_check check (kind in ('stage', 'values'))",
    "comment on table pgcombine.spark_load is "
    "'Loads from Spark under way. Their rows wait in the unlogged table spark_stage_<number>.'",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    for statement in (
        "alter table pgcombine.spark_load drop constraint spark_load_kind_check, "
        "add constraint spark_load_kind_check check (kind in ('stage', 'token', 'values'))",
        "create table pgcombine.spark_part (load uuid not null references pgcombine.spark_load on delete cascade, "
        "part integer not null, primary key (load, part))",
        "alter table pgcombine.spark_part enable row level security",
        "comment on table pgcombine.spark_part is 'Partitions that a token load has written.'",
        "comment on table pgcombine.spark_load is 'Loads from Spark under way. "
        "Their rows wait in the unlogged table spark_stage_<number>, but for token loads.'",
        "drop view if exists pgcombine.load_stat",
    ):
        op.get_bind().exec_driver_sql(statement)
