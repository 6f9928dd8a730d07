-- pgcombine_internal.check_attach(queue, source, existing)
-- Raises unless a table can be attached to a queue, whatever the mapping is.
--   source, existing  see attach
-- Errors: PC002 attached already; PC003 a combiner without inverse, a virtual column that a partition generates
-- otherwise, existing rows outside of read committed or hidden by row security.
create or replace function pgcombine_internal.check_attach(queue text, source regclass, existing boolean)
returns void
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require(false, 'PC003', format('queue "%s" can''t be attached: what an old row added can''t be taken back from column %s',
        check_attach.queue, string_agg(format('"%s" (%s)', c.name, c.combiner), ', ' order by c.position)), 'only sum and count have an inverse')
    from pgcombine.queue_column c
    where c.queue = check_attach.queue and c.role = 'value' and pgcombine_internal.inverse_of(c.combiner) is null
    having count(*) > 0;
    perform pgcombine_internal.require(false, 'PC002', format('queue "%s" is attached to %s already', check_attach.queue, t.tgrelid::regclass), 'detach first')
    from pgcombine_internal.descendants(source) d join pg_trigger t on t.tgrelid = d
    where t.tgname = format('pgcombine_%s_insert', check_attach.queue);
    perform pgcombine_internal.require(pg_get_expr(e.adbin, e.adrelid) = pg_get_expr(f.adbin, f.adrelid), 'PC003',
        format('the virtual column %s.%s is generated otherwise than that of %s', d.relation, a.attname, source),
        'generate it by the same expression, or store it')
    from pgcombine_internal.descendants(source) d (relation)
    join pg_attribute a on a.attrelid = d.relation and a.attgenerated = 'v'
    join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
    join pg_attribute o on o.attrelid = source and o.attname = a.attname
    join pg_attrdef f on f.adrelid = o.attrelid and f.adnum = o.attnum;
    perform pgcombine_internal.require(existing is not true or current_setting('transaction_isolation') = 'read committed', 'PC003', -- an older snapshot would miss rows
        format('attach of queue "%s" needs isolation level read committed', check_attach.queue), 'or pass existing => false');
    perform pgcombine_internal.require(existing is not true or not row_security_active(source), 'PC003',
        format('row security hides rows of %s from role "%s"', source, current_user),
        'attach as a role that row security doesn''t bind, or pass existing => false');
end
$$;
