-- pgcombine_internal.budget_functions(budget) → (name, parameters, result, options, body, comment)
-- Returns the functions of a budget, a row for each (see create_budget). The public ones run with their owner's rights,
-- so that nothing else changes chips. <budget>_gather only takes from chips. Each of its statements has a new snapshot:
--   1. It takes from a free chip. _take and _hold do that first, from a random chip on, so that they pass few chips in
--      use, and few dead versions of a chip. Chips are 1 to 4e18, so some chip almost always follows 3e18. If another
--      session has just made the version that is locked, the update doesn't find its ctid, and the next try does.
--   2. It refuses if all chips as they were committed don't suffice, whatever the transactions in progress do.
--   3. It gathers free chips, the largest first. Two sessions could each get a half, so the second waits for the first
--      at the gate: the chip 0, which nobody sees, since its transaction deletes it. The unique index makes the second
--      session wait. Any role could hold an advisory lock. If no single chip would suffice, it waits for those in use.
--   4. It gives back what it has gathered: the end of the subtransaction unlocks it.
--   5. It waits for a chip that would suffice, and splits it. So there are soon as many as are used at a time.
-- A wait is short, and the next one twice as long, since another chip may become free first. In step 3, where others
-- wait for what it has gathered, it is an eighth of that. Long waits find deadlocks. lock_timeout ends all together.
-- All functions lock chips before holds, and these before updates: truncate_queue and drop_budget do, too.
create or replace function pgcombine_internal.budget_functions(budget pgcombine.budget)
returns table (name text, parameters text, result text, options text, body text, comment text)
language plpgsql stable
as $$
declare
    _queue constant text := (budget).queue;
    _type constant text := (budget).amount;
    _bare constant text := split_part(_type, '(', 1);
    _digits constant integer[] := coalesce(regexp_match(_type, '([0-9]+),([0-9]+)'), '{2000,1000}');
    _keys constant integer := (select count(*) from pgcombine.queue_column c where c.queue = _queue and c.role = 'key');
    _key constant text := pgcombine_internal.column_list(_queue, 'key', '{name} {type}');
    _same constant text := pgcombine_internal.column_list(_queue, 'key', 'c.{name} {equals} $' || '{number}', ' and ');
    -- A cast to the type would round %1$s, or fail.
    _valid constant text := '%1$s > 0' || case _bare when 'numeric' then format(
        ' and %%1$s < 1e%s and %%1$s = round(%%1$s, %s)', _digits[1] - _digits[2], _digits[2]) else '' end;
    _parts constant jsonb := jsonb_build_object(
        'budget', _queue, 'chips', format('pgcombine.%I', _queue || '_chips'),
        'holds', format('pgcombine.%I', _queue || '_holds'), 'updates', format('pgcombine.%I', _queue || '_updates'),
        'gather', format('pgcombine_internal.%I', _queue || '_gather'), 'parts', (budget).chips,
        'take', format('pgcombine.%I', _queue || '_take'), 'settle', format('pgcombine.%I', _queue || '_settle'),
        'type', _type, 'bare', _bare, 'keys', pgcombine_internal.column_list(_queue, 'key'), 'same', _same,
        'given', pgcombine_internal.column_list(_queue, 'key', '$' || '{number}'),
        'held', pgcombine_internal.column_list(_queue, 'key', '_hold.{name}'),
        'numbers', pgcombine_internal.column_list(_queue, 'key', 'k{number}'),
        'picked', pgcombine_internal.column_list(_queue, 'key', '_key.k{number}'),
        'lengths', pgcombine_internal.column_list(_queue, 'key',
            'cardinality($' || format('{number}) = cardinality($%s)', _keys + 1), ' and '),
        'n', '$' || _keys + 1, 'wait', '$' || _keys + 2, 'hold', '$' || _keys + 2, 'limit', '$' || _keys + 3,
        'long', '$' || _keys + 4,
        'settled', format(_valid, '$2'), 'each', format(_valid, 'a'), 'valid', format(_valid, '$' || _keys + 1),
        'above', case _bare when 'integer' then '2147483648' when 'bigint' then '9223372036854775808'
            else format('1e%s', _digits[1] - _digits[2]) end);
    _checked constant text := '
    if ({valid} and num_nulls({given}) = 0) is not true then
        raise exception ''budget "{budget}" can''''t use the key and the amount %'', row({given}, {n})
            using errcode = ''PC004'', hint = ''no column of the key is null, and the amount is a positive {type}'';
    end if;';
    _larger constant text := '
    update {chips} c set amount = c.amount - {n}
    where c.ctid = (
        select c.ctid from {chips} c where {same} and c.amount > {n}{from}
        order by c.chip limit 1 for no key update skip locked)';
    _naming constant text := '
        insert into {holds} (hold, {keys}, amount, expires) values ({hold}, {given}, {n}, clock_timestamp() + {limit})
        on conflict do nothing returning true into _named;';
    _definer constant text := 'security definer set search_path = pg_catalog, pg_temp';
begin
    return query
    select f.name, f.parameters, f.result, f.options, E'\n#variable_conflict use_column' || pgcombine_internal.fill(
        f.body, _parts || jsonb_build_object('checked', pgcombine_internal.fill(_checked, _parts),
        'naming', pgcombine_internal.fill(_naming, _parts),
        'larger', pgcombine_internal.fill(_larger, _parts || '{"from": ""}'),
        'larger_from', pgcombine_internal.fill(_larger, _parts || '{"from": " and c.chip >= _from"}'))), f.comment
    from (values
        ('_add', format('%s, amount %s', _key, _bare), 'void', _definer, '
begin{checked}
    lock table {chips} in row exclusive mode;
    insert into {updates} ({keys}, available) values ({given}, {n}); -- refuses a key that is too long for an index
    insert into {chips} ({keys}, amount)
    select {given}, a from pgcombine_internal.split_amount({n}::{type}, {parts}) a;
end
', 'Adds an amount to a key. Waits for nobody.'),
        ('_take', format('%s, amount %s, wait boolean default true', _key, _bare), 'boolean', _definer, '
declare
    _from constant bigint := (3e18 * random())::bigint;
begin{checked}{larger_from};
    if not found and not {gather}({given}, {n}, {wait}) then
        return false;
    end if;
    insert into {updates} ({keys}, available) values ({given}, - {n});
    return true;
end
', 'Takes an amount from a key. Returns false if the key hasn''t got it.'),
        ('_hold', format('%s, amount %s, hold text, for_at_most interval, wait boolean default true', _key, _bare),
         'boolean', _definer, '
declare
    _from constant bigint := (3e18 * random())::bigint;
    _timeout constant text := current_setting(''lock_timeout'');
    _named boolean;
begin{checked}
    if (length({hold}) between 1 and 200 and {limit} > interval ''0'' and {limit} <= interval ''100 years'') is not true
    then
        raise exception ''budget "{budget}" can''''t hold for % under the name %'', coalesce({limit}::text, ''null''),
            quote_nullable({hold}) using errcode = ''PC004'',
            hint = ''a name has 1 to 200 characters, and the time is positive and at most 100 years'';
    end if;{larger_from};
    if not found and not {gather}({given}, {n}, {long}) then
        return false;
    end if;
    if {long} then{naming}
    else
        begin
            perform set_config(''lock_timeout'', ''10ms'', true);{naming}
            perform set_config(''lock_timeout'', _timeout, true);
        exception when lock_not_available then
            raise exception ''transactions in progress decide whether budget "{budget}" has a hold %'',
                quote_literal({hold}) using errcode = ''PC060'', hint = ''try again, or give wait => true'';
        end;
    end if;
    if _named is null then
        raise exception ''budget "{budget}" has a hold %'', quote_literal({hold}) using errcode = ''PC002'',
            hint = ''settle or release it, or choose another name'';
    end if;
    insert into {updates} ({keys}, available, held) values ({given}, - {n}, {n});
    return true;
end
', 'Takes an amount for some time, until the hold is settled, released or expired. Returns false as _take does.'),
        ('_settle', format('hold text, amount %s', _bare), 'boolean', _definer, '
declare
    _hold {holds};
begin
    lock table {chips} in row exclusive mode;
    delete from {holds} h where h.hold = $1 returning h.* into _hold;
    if not found then
        return false;
    end if;
    if ($2 <= _hold.amount and ($2 = 0 or {settled})) is not true then
        raise exception ''hold % of budget "{budget}" can''''t be settled with %'', quote_literal($1),
            coalesce($2::text, ''null'') using errcode = ''PC004'',
            hint = format(''it holds %s: settle 0 to this, as {type}, and take what it lacks'', _hold.amount);
    end if;
    insert into {chips} ({keys}, amount) select {held}, _hold.amount - $2 where _hold.amount > $2;
    insert into {updates} ({keys}, available, held) values ({held}, _hold.amount - $2, - _hold.amount);
    return true;
end
', 'Ends a hold: takes an amount of it, and gives the rest back. Returns false if there is no such hold.'),
        ('_release', 'hold text', 'boolean', _definer, '
begin
    return {settle}($1, 0);
end
', 'Ends a hold, and gives all of it back. Returns false if there is no such hold.'),
        ('_take_all', format('%s, amounts %s[], wait boolean default true',
            pgcombine_internal.column_list(_queue, 'key', '{name} {type}[]'), _bare), 'boolean', _definer, '
declare
    _key record;
begin
    if ({lengths} and (select every(coalesce({each}, false)) from unnest({n}) a)) is not true then
        raise exception ''budget "{budget}" can''''t take the amounts %'', coalesce({n}::text, ''null'')
            using errcode = ''PC004'',
            hint = ''give each key a positive {type}, in arrays of equal length'';
    end if;
    for _key in
        select {numbers}, sum(a) as amount from unnest({given}, {n}) k ({numbers}, a)
        group by {numbers} order by {numbers}
    loop
        if _key.amount >= {above} or not {take}({picked}, _key.amount::{bare}, {wait}) then
            raise exception using errcode = ''PC098'';
        end if;
    end loop;
    return true;
exception when sqlstate ''PC098'' then
    return false;
end
', 'Takes from several keys, all or nothing: an array for each key column, and one of the amounts.'),
        ('_gather', format('%s, amount %s, wait boolean', _key, _bare), 'boolean', '', '
declare
    _total numeric;
    _most numeric;
    _cursor refcursor;
    _chip record;
    _chips bigint[];
    _sum numeric;
    _seen bigint[];
    _parts integer := 1;
    _timeout constant text := current_setting(''lock_timeout'');
    _until constant timestamptz := clock_timestamp() + nullif(_timeout::interval, ''0'');
    _patience integer := 80; -- ms
    _wait integer;
begin
    loop{larger};
        if found then
            return true;
        end if;
        select sum(c.amount), max(c.amount) into _total, _most from {chips} c where {same};
        if (_total >= {n}) is not true then
            return false;
        end if;
        delete from {chips} c
        where c.ctid = (
            select c.ctid from {chips} c where {same} and c.amount = {n}
            order by c.chip limit 1 for no key update skip locked);
        if found then
            return true;
        end if;
        _wait := greatest(8, least(_patience, 1000 * extract(epoch from _until - clock_timestamp())));
        begin
            _chips := array[]::bigint[];
            _sum := 0;
            if {wait} then -- the gate
                perform set_config(''lock_timeout'', _wait / 8 || ''ms'', true);
                insert into {chips} ({keys}, chip, amount) values ({given}, 0, 0) on conflict do nothing;
                delete from {chips} c where {same} and c.chip = 0;
            end if;
            for _round in 1 .. case when {wait} and _most < {n} then 2 else 1 end loop
                if _round = 1 then
                    open _cursor for select c.chip, c.amount from {chips} c where {same}
                        order by c.amount desc, c.chip for no key update skip locked;
                else
                    open _cursor for select c.chip, c.amount from {chips} c where {same} and c.chip <> all (_chips)
                        order by c.chip for no key update;
                end if;
                while _sum < {n} loop
                    fetch _cursor into _chip;
                    exit when not found;
                    _chips := _chips || _chip.chip;
                    _sum := _sum + _chip.amount;
                end loop;
                close _cursor;
            end loop;
            if _sum < {n} then
                raise exception using errcode = ''PC098'';
            end if;
        exception when sqlstate ''PC098'' or lock_not_available then
            if sqlstate = ''55P03'' then
                if clock_timestamp() >= _until then
                    raise;
                end if;
                _patience := least(2 * _patience, 3600000);
            end if;
            _seen := _chips;
            _chips := null;
        end;
        if _chips is null then
            if {wait} is not true then
                raise exception ''transactions in progress decide whether % of budget "{budget}" has %'', row({given}),
                    {n} using errcode = ''PC060'', hint = ''try again, or give wait => true'';
            end if;
            begin
                perform set_config(''lock_timeout'', _wait || ''ms'', true);
                select array[c.chip], c.amount into strict _chips, _sum from {chips} c
                where {same} and (c.amount >= {n} or c.chip <> all (_seen))
                order by c.amount >= {n} desc, random() limit 1 for no key update;
                if _sum < {n} then
                    raise exception using errcode = ''PC098'';
                end if;
                _parts := case when _sum / 3 >= {n} then 2 else 1 end;
            exception when no_data_found or sqlstate ''PC098'' then
                continue;
            when lock_not_available then
                if clock_timestamp() >= _until then
                    raise;
                end if;
                _patience := least(2 * _patience, 3600000);
                continue;
            end;
        end if;
        perform set_config(''lock_timeout'', _timeout, true);
        delete from {chips} c where {same} and c.chip = any (_chips);
        insert into {chips} ({keys}, amount)
        select {given}, a from pgcombine_internal.split_amount((_sum - {n})::{type}, _parts) a where _sum > {n};
        return true;
    end loop;
end
', 'Takes an amount from the chips of a key.')) f (name, parameters, result, options, body, comment);
end
$$;
