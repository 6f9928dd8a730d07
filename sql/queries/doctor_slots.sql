-- The replication slots. The last column is the size in bytes of the write-ahead log since the slot's restart_lsn, 0 if
-- it has none.
select s.slot_name::text as slot, s.active, coalesce(s.wal_status = 'lost', false) as lost,
       coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn()
           else pg_current_wal_lsn() end, s.restart_lsn), 0)::bigint as bytes
from pg_replication_slots s
order by 1
