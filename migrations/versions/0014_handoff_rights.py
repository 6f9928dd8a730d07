"""Rights to hand on writes are granted anew: those granted before let a role register servers and reach all hints.

Revision ID: 0014
Revises: 0013
"""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# as pgcombine.grant_handoff did, from everybody who isn't the owner
UPGRADE = """
do $$
declare
    _granted record;
begin
    for _granted in
        select distinct c.relname, r.rolname
        from pg_class c cross join lateral aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
        where c.relnamespace = 'pgcombine'::regnamespace and a.grantee <> c.relowner
          and c.relname in ('destination_state', 'handoff', 'handoff_delivery', 'handoff_hint', 'handoff_partial',
                            'handoff_quarantine', 'handoff_queue', 'handoff_replica', 'handoff_server',
                            'handoff_token', 'hint')
    loop
        execute format('revoke all on pgcombine.%I from %I', _granted.relname, _granted.rolname);
    end loop;
end
$$
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(UPGRADE, execution_options={"no_parameters": True})


def downgrade() -> None:
    pass
