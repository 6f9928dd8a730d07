-- pgcombine.create_budget(budget, key [, amount, chips, buckets, notify, if_not_exists])
-- Creates a budget: amounts by key, from which transactions take without waiting for each other, and never more than
-- there is. The call makes these functions:
--   <budget>_add(key, amount)           adds an amount. Waits for nobody
--   <budget>_take(key, amount [, wait]) returns true if it has taken the amount, and false if the key hasn't got it.
--                                       Waits only if transactions in progress decide; with wait => false it then
--                                       raises PC060
--   <budget>_take_all(keys, amounts [, wait])  takes from several keys, all or nothing. Takes an array for each key
--                                       column. Two such calls can't deadlock. Transactions that take by several calls
--                                       can, unless all take in the same order of keys. The one that PostgreSQL ends
--                                       (40P01) has taken nothing, so run it again
--   <budget>_hold(key, amount, hold, for_at_most [, wait])  takes an amount for some time, under a name
--   <budget>_settle(hold, amount)       takes this much of a hold, and gives the rest back; false: the hold has ended
--   <budget>_release(hold)              gives all of a hold back
-- They raise PC004 for what isn't valid, PC002 for a hold that exists, and above read committed 40001 after a conflict.
-- An amount with more decimals than its type isn't valid. In numeric, it has at most 1000 digits on each side.
-- The view pgcombine.<budget> shows what each key has: available and held. A queue with the budget's name combines both
-- columns. Its rights enqueue and read include the functions and the view.
--   budget   lower-case name of at most 40 characters
--   key      key columns, such as 'show integer' (see create_queue)
--   amount   bigint, integer, or numeric with or without precision and scale. The sum for a key must fit
--   chips    into how many chips (rows of <budget>_chips) an added amount is divided: about as many transactions as
--            take from a key at a time. Takes that had to wait divide chips further; workers and drain merge them
--   notify   null: unless the server allows prepared transactions. See create_queue for this and for buckets. There is
--            no max_backlog, since a full queue would refuse settles, releases, and the return of expired holds
--   if_not_exists  whether the same budget may exist already
-- Tables written: pgcombine.budget, component_table; those of create_queue.
-- Errors: PC002 the name is taken, or the budget exists with another definition; PC003 an invalid definition; 42501 the
-- caller doesn't own the schema.
create or replace function pgcombine.create_budget(budget text, key text[], amount text default 'bigint',
    chips integer default 16, buckets integer default 1, notify boolean default null,
    if_not_exists boolean default false)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _name constant text := budget;
    _budget pgcombine.budget;
    _taken text;
begin
    perform pgcombine_internal.require(r.holds, 'PC003', r.problem, r.hint)
    from (values
        (chips between 1 and 1000, format('invalid number of chips: %s', coalesce(chips::text, 'null')),
         'give 1 to 1000'),
        (amount ~* '^(bigint|integer|numeric( *\( *[0-9]+ *(, *[0-9]+ *)?\))?)$',
         format('amounts of a budget can''t be of type %s', coalesce(amount, 'null')),
         'give bigint, integer, numeric or numeric(14,2)'),
        (coalesce(cardinality(key), 0) < 32, format('a budget can''t have %s key columns', cardinality(key)),
         'give at most 31')) r (holds, problem, hint);
    select b.* into _budget from pgcombine.budget b where b.queue = _name;
    perform pgcombine.create_queue(_name, key, array['available ' || amount || ' sum', 'held ' || amount || ' sum'],
        buckets => create_budget.buckets, if_not_exists => create_budget.if_not_exists and found,
        notify => coalesce(create_budget.notify, current_setting('max_prepared_transactions')::integer = 0));
    if _budget.queue is not null then
        perform pgcombine_internal.require(_budget.chips = create_budget.chips, 'PC002',
            format('budget "%s" has %s chips', _name, _budget.chips), 'drop it first, or choose another name');
        return;
    end if;
    select n.name into _taken
    from unnest(array['', '_chips', '_holds', '_add', '_take', '_take_all', '_hold', '_settle', '_release', '_gather'])
        s (suffix)
    cross join lateral (select _name || s.suffix as name) n
    where to_regclass(format('pgcombine.%I', n.name)) is not null
       or exists (select from pg_proc p where p.proname = n.name
                  and p.pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace));
    perform pgcombine_internal.require(not found, 'PC002',
        format('a relation or function %s of pgcombine exists', _taken), 'choose another name');
    perform pgcombine_internal.require(not exists (
            select from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
            where c.queue = _name and c.role = 'key' and (t.typcategory = 'A' or c.name ~ '^[_$]' or c.name in (
                'amount', 'amounts', 'chip', 'expires', 'hold', 'for_at_most', 'since', 'wait'))), 'PC003',
        format('budget "%s" can''t have this key: %s', _name, array_to_string(key, ', ')), 'no column may be an array, '
        'begin with _ or $, or be named amount, amounts, chip, expires, hold, for_at_most, since or wait');
    insert into pgcombine.budget (queue, amount, chips)
    select _name, c.type, create_budget.chips from pgcombine.queue_column c where c.queue = _name and c.name = 'held'
    returning * into _budget;
    execute pgcombine_internal.fill('
        create table pgcombine.{chips} ({columns}, chip bigint not null default 1 + 4e18 * random(),
            amount {type} not null, primary key ({keys}, chip)) with (fillfactor = 50);
        create table pgcombine.{holds} (hold text collate "C" primary key, {columns}, amount {type} not null,
            since timestamptz not null default now(), expires timestamptz not null);
        create index on pgcombine.{holds} ({keys});
        create index on pgcombine.{holds} (expires)', jsonb_build_object(
        'chips', quote_ident(_name || '_chips'), 'holds', quote_ident(_name || '_holds'), 'type', amount,
        'keys', pgcombine_internal.column_list(_name, 'key'),
        'columns', pgcombine_internal.column_list(_name, 'key', '{name} {type}{collate} not null')));
    execute format('comment on table pgcombine.%I is %L; comment on table pgcombine.%I is %L',
        _name || '_chips', format('What is available in budget %s, divided into chips.', _name),
        _name || '_holds', format('The holds of budget %s that haven''t ended.', _name));
    insert into pgcombine.component_table (name, queue) values (_name || '_chips', _name), (_name || '_holds', _name);
    perform pgcombine_internal.regenerate_budget(_budget);
    perform pgcombine_internal.keep_rights();
end
$$;
