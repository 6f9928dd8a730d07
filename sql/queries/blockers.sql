-- Describes the sessions and the prepared transactions for which a session waits. If it waits for a prepared
-- transaction, the query may describe other prepared transactions, too.
-- Parameter: pid, the process of the session that waits. pg_blocking_pids returns 0 for a prepared transaction.
select format('session %%s (role "%%s"%%s)', a.pid, a.usename, ', ' || nullif(a.application_name, ''))
from unnest(pg_blocking_pids(%(pid)s)) b (pid) join pg_stat_activity a using (pid)
union
select format('the prepared transaction "%%s" (role "%%s")', p.gid, p.owner)
from pg_locks w
join pg_locks h on h.granted and h.pid is null
    and (h.locktype, h.database, h.relation) is not distinct from (w.locktype, w.database, w.relation)
join pg_locks x on x.locktype = 'transactionid' and x.pid is null and x.virtualtransaction = h.virtualtransaction
join pg_prepared_xacts p on p.transaction = x.transactionid
where w.pid = %(pid)s and not w.granted and 0 = any (pg_blocking_pids(%(pid)s))
order by 1
