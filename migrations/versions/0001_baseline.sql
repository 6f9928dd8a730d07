-- The schema's tables, types and indexes at its first release, in the order of the components. The functions, views,
-- triggers, policies and privileges are in sql/. A queue's own tables are made by pgcombine.create_queue.
-- A table without a foreign key to bucket has none since its check would wait for passes over the bucket.

create schema if not exists pgcombine_internal;
comment on schema pgcombine_internal is 'Combine queues: what pgcombine''s own functions call.';
comment on table pgcombine.schema_version is 'The revision of the schema''s tables; Alembic writes it.';

-- the core ------------------------------------------------------------------------------------------------------------

create table pgcombine.repeatable (
    one    boolean primary key default true check (one),
    digest text not null
);
comment on table pgcombine.repeatable is 'Digest of the functions, triggers and views that were applied last.';

create table pgcombine.cluster_identity (
    place smallint primary key check (place in (1, 2)),
    id    xid not null
);
comment on table pgcombine.cluster_identity is
    'As long as the xmin of each row is its id, this is the database in which the ids of transactions were given.';

-- two rows of two (sub)transactions: a restore writes both in one, whose id may happen to be that of one of them
do $$
begin
    insert into pgcombine.cluster_identity values (1, '0');
    update pgcombine.cluster_identity set id = xmin;
    begin
        insert into pgcombine.cluster_identity values (2, '0');
        update pgcombine.cluster_identity set id = xmin where place = 2;
    exception when division_by_zero then null; -- what makes it a subtransaction
    end;
end
$$;

create table pgcombine.restoring (
    tx bigint primary key default txid_current()
);
comment on table pgcombine.restoring is 'Transactions that write updates with the ids that they had: rebucket.';

-- The name is the message: a function that raises a better one would cost each statement of a writer 0.4 µs.
create domain pgcombine.key_text as text
    constraint "a key has at most 2600 bytes: shorten it, or use its hash" check (octet_length(value) <= 2600);
comment on domain pgcombine.key_text is
    'A text that fits into a primary key. A check of the table would cost each statement more.';

-- own_tx needs a function of this name; sql/core has its text, with which the upgrade replaces this one
create function pgcombine_internal.restoring() returns boolean language sql stable return false;
create domain pgcombine.own_tx as bigint
    constraint updates_bear_the_id_of_their_transaction
        check (value = txid_current() or pgcombine_internal.restoring());
comment on domain pgcombine.own_tx is 'The id of the transaction that writes the row.';

create table pgcombine.queue (
    queue            text primary key,
    buckets          integer not null check (buckets between 1 and 1024),
    partitions       integer not null,
    segments         integer not null default 4 check (segments between 2 and 16),
    segment_bits     integer not null default 12 check (segment_bits between 4 and 30),
    tablespaces      text[],
    delete_when      text,
    expire_when      text,
    expire_silently  boolean not null default false,
    expire_every     interval not null default '10 min',
    notify           boolean not null default true,
    paused           boolean not null default false,
    pass_limit       integer not null default 1000000 check (pass_limit > 0),
    quarantine_after integer not null default 5 check (quarantine_after > 0),
    max_backlog      bigint check (max_backlog > 0),
    pass             jsonb not null default '{}',
    statements       text[] not null default '{}',
    created_at       timestamptz not null default now(),
    check (buckets % partitions = 0)
);
alter table pgcombine.queue enable row level security;
comment on table pgcombine.queue is
    'One row a combine queue; pass and statements have what its passes need of its definition.';
comment on column pgcombine.queue.statements is 'The statements of its passes: for few updates, and for many.';
comment on column pgcombine.queue.partitions is
    'Pairs of tables; bucket b is in number b modulo this, as a hash range of it where there are more buckets.';
comment on column pgcombine.queue.segments is
    'A bucket''s updates are in so many tables, in turn: those of 2 ^ segment_bits transaction ids in one.';
comment on column pgcombine.queue.expire_when is 'Keys for which this condition is true are removed.';
comment on column pgcombine.queue.expire_silently is 'Whether observers and exports don''t see that.';
comment on column pgcombine.queue.expire_every is 'How often workers look through a bucket for such keys.';
comment on column pgcombine.queue.pass_limit is 'How many updates a pass takes at once, about.';
comment on column pgcombine.queue.quarantine_after is
    'After how many failed passes in a row the keys at fault are looked for and quarantined.';

create table pgcombine.queue_column (
    queue       text not null references pgcombine.queue on delete cascade,
    position    integer not null,
    role        text not null check (role in ('key', 'value')),
    name        text not null,
    type        text not null,
    "collation" text,
    combiner    text check ((combiner is null) = (role = 'key')),
    ordered_by  text,
    primary key (queue, position),
    unique (queue, name)
);
comment on table pgcombine.queue_column is 'Key and value columns of the queues, keys first.';
comment on column pgcombine.queue_column.ordered_by is 'The value column that orders last and first.';

create table pgcombine.combiner (
    combiner text primary key,
    fold     text not null,
    merge    text not null,
    initial  text,
    types    text[],
    function text,
    type     text
);
comment on table pgcombine.combiner is
    'Built-in combiners; and functions and aggregates that queues use, for one type each.';

create table pgcombine.bucket (
    queue  text not null references pgcombine.queue on delete cascade,
    bucket integer not null check (bucket between 0 and 1023),
    primary key (queue, bucket)
);
alter table pgcombine.bucket enable row level security;
comment on table pgcombine.bucket is 'One row a bucket, which a pass locks and never writes: no dead rows.';

create table pgcombine.pass (
    queue    text not null,
    bucket   integer not null,
    pass     bigint not null,
    mark     txid_snapshot not null,
    range_mask bigint,
    hash_range bigint,
    tx       bigint not null default txid_current(),
    began    timestamptz not null,
    ended    timestamptz not null default clock_timestamp(),
    updates  bigint not null,
    keys     bigint not null,
    changes  bigint not null,
    inserted bigint,
    primary key (queue, bucket, pass),
    foreign key (queue, bucket) references pgcombine.bucket on delete cascade,
    check ((range_mask is null) = (hash_range is null)),
    constraint pass_sane check (
        pass between 0 and 4000000000000000000 and isfinite(began) and isfinite(ended)
        and (range_mask between 1 and 65535 and range_mask & (range_mask + 1) = 0
             and hash_range between 0 and range_mask) is not false
        and updates between 0 and 1000000000000000 and keys between 0 and 1000000000000000
        and changes between 0 and 1000000000000000
        and (inserted between -4000000000000000 and 4000000000000000) is not false)
) with (autovacuum_vacuum_insert_scale_factor = 1);
create index pass_ended on pgcombine.pass (queue, ended);
alter table pgcombine.pass enable row level security;
comment on table pgcombine.pass is
    'The journal of passes. The mark of the last pass over a key sees the key''s combined updates.';
comment on column pgcombine.pass.range_mask is
    'The pass covered the keys with hash & range_mask = hash_range. Null: all keys.';
comment on column pgcombine.pass.inserted is
    'With max_backlog: how many rows the statistics had counted into the bucket''s tables, less those left pending.';

create table pgcombine.pass_minute (
    queue   text not null references pgcombine.queue on delete cascade,
    minute  timestamptz not null,
    passes  bigint not null,
    updates bigint not null,
    keys    bigint not null,
    changes bigint not null,
    seconds double precision not null,
    primary key (queue, minute)
);
comment on table pgcombine.pass_minute is
    'Sums of the journal: what the passes that ended in a minute took, and how long they took. Kept for a day.';

create type pgcombine.plan as (
    queue text, bucket integer, pass bigint, began timestamptz, mark txid_snapshot, marks txid_snapshot[],
    marks_mask bigint, reads boolean[], range_mask bigint, hash_range bigint, pending bigint, more boolean,
    has_quarantined boolean, first_page bigint
);
comment on type pgcombine.plan is 'What a pass is to do: see pgcombine_internal.plan_pass.';

create table pgcombine.observer (
    queue     text not null references pgcombine.queue on delete cascade,
    observer  text not null,
    position  integer not null generated always as identity,
    language  text not null default 'sql' check (language in ('sql', 'python')),
    statement text,
    primary key (queue, observer),
    check ((statement is null) = (language = 'python'))
);
comment on table pgcombine.observer is
    'What runs inside every pass: SQL statements over the relation changes, and functions of Python workers.';

create table pgcombine.failure (
    queue    text not null references pgcombine.queue on delete cascade,
    bucket   integer not null,
    attempts integer not null,
    sqlstate text,
    error    text not null,
    since    timestamptz not null default now(),
    last     timestamptz not null default now(),
    retry_at timestamptz not null default now(),
    pass_limit bigint check (pass_limit between -8 and 1000000000000000),
    page     bigint check (page between 0 and 4294967295),
    primary key (queue, bucket),
    constraint failure_sane check (
        attempts between 0 and 2000000 and isfinite(since) and isfinite(last) and isfinite(retry_at))
);
alter table pgcombine.failure enable row level security;
comment on table pgcombine.failure is
    'Buckets whose pass failed last, and how often in a row: written apart from the pass, which rolls back.';
comment on column pgcombine.failure.pass_limit is
    'After passes that took too long: how many updates the next pass takes at most. Null: as many as any pass.';
comment on column pgcombine.failure.page is 'The first of the pages whose expired keys the pass removed, too.';

create table pgcombine.quarantined_key (
    id       bigint primary key generated always as identity,
    queue    text not null references pgcombine.queue on delete cascade,
    key      jsonb not null,
    updates  bigint not null,
    attempts integer not null,
    sqlstate text,
    error    text not null,
    since    timestamptz not null default now(),
    constraint quarantined_key_sane check (
        updates between -1 and 1000000000000000 and attempts between 0 and 2000000 and isfinite(since))
);
create index quarantined_key_queue_idx on pgcombine.quarantined_key (queue);
alter table pgcombine.quarantined_key enable row level security;
comment on table pgcombine.quarantined_key is
    'Keys that no pass takes; <queue>_quarantine_keys has their values, <queue>_quarantine their updates.';

create table pgcombine.expiry (
    queue       text not null references pgcombine.queue on delete cascade,
    bucket      integer not null,
    page        bigint not null check (page between 0 and 4294967295),
    due         timestamptz not null,
    sqlstate    text,
    error       text,
    failed_at   timestamptz,
    failed_page bigint,
    primary key (queue, bucket)
) with (fillfactor = 50);
alter table pgcombine.expiry enable row level security;
comment on table pgcombine.expiry is
    'How far workers have looked through the pages of a bucket''s values for expired keys, and when they go on.';
comment on column pgcombine.expiry.error is
    'Why expired keys of 1024 pages from failed_page on weren''t removed; null: nothing failed.';

create table pgcombine.tick (
    at      timestamptz primary key,
    next_id bigint not null
);
create index tick_next_id on pgcombine.tick (next_id, at);
comment on table pgcombine.tick is
    'When no transaction with this id or a higher one was over: by this pending updates are dated.';

create table pgcombine.sample (
    queue   text not null references pgcombine.queue on delete cascade,
    kind    text not null check (kind in ('pending', 'sizes')),
    at      timestamptz not null,
    figures jsonb not null,
    seconds double precision not null default 0,
    primary key (queue, kind)
) with (fillfactor = 50);
comment on table pgcombine.sample is
    'Figures of queues that take too long to find for each look: what is pending, about, and sizes of tables.';
comment on column pgcombine.sample.seconds is 'How long it took to find these figures.';

create table pgcombine.granted_right (
    "right" text not null,
    role    name not null,
    subject text not null,
    primary key (role, "right", subject)
);
comment on table pgcombine.granted_right is
    'What grant_right granted, on a queue or what else a right is about, for revoke_right. It grants nothing itself.';

-- components register themselves in these four (sql/<component>/component.sql)
create table pgcombine.right_kind (
    "right"  text primary key,
    subject  text,
    optional boolean not null,
    standing text,
    act      text not null,
    proof    text
);
comment on table pgcombine.right_kind is
    'The rights that grant_right grants. subject: what a right is about, queue or a table of a component with a column '
    'of the same name, and a function require_<subject>; null: nothing. optional: whether it can be granted without '
    'one. standing: the view that stands for later subjects. act: what it permits, in words. proof: who may delete '
    'from this relation (_…: its name after that of the subject) has the right; null: has_right knows.';
create table pgcombine.right_privilege (
    "right"    text not null references pgcombine.right_kind,
    relation   text not null,
    privileges text[] not null,
    partitions boolean not null,
    primary key ("right", relation)
);
comment on table pgcombine.right_privilege is
    'What grant_right grants. relation: _…: its name after that of the subject. privileges: insert (*): on each of '
    'the queue''s own columns. partitions: whether on these, too.';
create table pgcombine.component_table (
    name   text primary key,
    queue  text references pgcombine.queue on delete cascade,
    marked text
);
comment on table pgcombine.component_table is
    'Tables that grow. queue: the table belongs to this queue, and passes insert into it; null: all queues share it. '
    'marked: a condition for rows that delete_flagged deletes.';
create table pgcombine.hook (
    event text not null
        check (event in ('close', 'closed', 'generated', 'recount', 'regenerate', 'clean_up', 'verify')),
    query text not null
);
comment on table pgcombine.hook is
    'What components do when something happens to a queue, $1. close, closed: see close_queue. verify, recount: verify '
    'returns their rows. regenerate: makes what is generated anew. generated: names of functions that no file makes, '
    'which an upgrade keeps. clean_up: workers run it now and then, and log its rows: what was removed, and how many.';

-- exports -------------------------------------------------------------------------------------------------------------

create table pgcombine.destination_state (
    kind            text not null check (kind in ('export', 'server')),
    name            text not null,
    state           text not null default 'up' check (state in ('up', 'suspect', 'down', 'paused')),
    ticket          bigint not null default 0,
    failures        integer not null default 0,
    retry_at        timestamptz,
    reason          text,
    since           timestamptz not null default now(),
    last_success    timestamptz,
    last_failure    timestamptz,
    down_after      integer not null default 5 check (down_after > 0),
    backoff         interval not null default '0.5 s' check (backoff > '0'),
    longest_backoff interval not null default '1 min' check (longest_backoff > '0'),
    primary key (kind, name),
    constraint destination_state_sane check (
        ticket between 0 and 4000000000000000000 and failures between 0 and 2000000000
        and isfinite(retry_at) and isfinite(since))
);
alter table pgcombine.destination_state enable row level security;
comment on table pgcombine.destination_state is
    'Destinations of exports and of hinted handoff. Rows change with the state, not with deliveries.';
comment on column pgcombine.destination_state.ticket is
    'Grows with every change of the state and every probe: what an older attempt reports isn''t counted twice.';

create sequence pgcombine.export_sequence;

create table pgcombine.export (
    export       text primary key,
    queue        text not null references pgcombine.queue,
    exporter     text not null check (exporter in ('python', 'postgres', 'files', 'webhook')),
    target       text,
    target_table text,
    buckets      integer not null check (buckets between 1 and 1024),
    batch        integer not null check (batch > 0),
    compact      boolean not null,
    created_at   timestamptz not null default now(),
    owner        text,
    epoch        bigint not null default 0,
    sweep        bigint
);
alter table pgcombine.export enable row level security;
comment on table pgcombine.export is
    'One row an export: changes of which queue are delivered, by which exporter, to where (without a password).';
comment on column pgcombine.export.owner is
    'The server that delivers it, as this one knows; null: whichever holds it (there is but one).';
comment on column pgcombine.export.epoch is 'Grows with each change of owner; a destination obeys the highest.';
comment on column pgcombine.export.sweep is
    'Up to this sequence a full state is on its way: then what it lacks is deleted at the destination.';

create table pgcombine.export_bucket (
    export       text not null references pgcombine.export on delete cascade,
    bucket       integer not null,
    delivered    bigint not null default 0,
    delivered_at timestamptz,
    primary key (export, bucket),
    constraint export_bucket_sane check (delivered between 0 and 4000000000000000000 and isfinite(delivered_at))
);
alter table pgcombine.export_bucket enable row level security;
comment on table pgcombine.export_bucket is
    'One row a bucket of an export, locked by who delivers from it; and how many entries were delivered.';

create table pgcombine.export_quarantine (
    export text not null references pgcombine.export on delete cascade,
    seq    bigint not null,
    entry  jsonb not null,
    error  text not null,
    since  timestamptz not null default now(),
    primary key (export, seq)
);
alter table pgcombine.export_quarantine enable row level security;
comment on table pgcombine.export_quarantine is
    'Entries that a destination refused for their data: they wait for somebody to retry or to drop them.';

-- hinted handoff ------------------------------------------------------------------------------------------------------

create table pgcombine.handoff_server (
    one               boolean primary key default true check (one),
    name              text not null,
    id                uuid not null default gen_random_uuid(),
    epoch             integer not null default 1,
    system_identifier bigint not null,
    retention         interval not null default '14 days' check (retention >= '1 hour'),
    replay_rate       integer check (replay_rate > 0),
    needs_repair      text,
    repairing         uuid,
    max_retained_bytes    bigint not null default 4294967296 check (max_retained_bytes >= 0),
    not_retained_at         timestamptz
);
comment on table pgcombine.handoff_server is
    'Who this server is to the others that hold the same queues: one row, made at the first contact.';
comment on column pgcombine.handoff_server.epoch is 'Grows when the server''s data were replaced (rebuild).';
comment on column pgcombine.handoff_server.retention is
    'How long tokens are kept, and how old a token may be: longer than any hint may live.';
comment on column pgcombine.handoff_server.replay_rate is
    'How many updates a second a replayer may deliver to this server; null: no limit.';
comment on column pgcombine.handoff_server.needs_repair is 'Why this server may lack writes; null: it doesn''t.';
comment on column pgcombine.handoff_server.repairing is 'A comparison that began after needs_repair was set.';
comment on column pgcombine.handoff_server.max_retained_bytes is
    'Quota of handoff_retained; beyond it nothing is retained.';
comment on column pgcombine.handoff_server.not_retained_at is 'When a write was not kept, because of the quota.';

create table pgcombine.handoff_queue (
    queue      text primary key,
    servers    text[],
    replicas   integer,
    former     text[] not null default '{}',
    placed     text[],
    generation integer not null default 0,
    dropped_at timestamptz
);
comment on table pgcombine.handoff_queue is
    'Queues that other servers hold as well; all the servers and how many hold a key, as a writer told last.';
comment on column pgcombine.handoff_queue.former is 'Servers that writers named before, and name no more.';
comment on column pgcombine.handoff_queue.placed is
    'The servers that the last writer named, those among them that were removed included: keys are placed by them.';
comment on column pgcombine.handoff_queue.generation is
    'How many replicated queues of this name were dropped before; alike on all servers.';

create table pgcombine.handoff_token (
    token   uuid primary key,
    queue   text not null,
    digest  uuid not null,
    servers text[]
) partition by range (token);
comment on table pgcombine.handoff_token is
    'Writes that are in this server''s queues; a partition a day, dropped when it is older than the retention.';
comment on column pgcombine.handoff_token.servers is 'Which servers hold updates of it; null: all.';

create table pgcombine.handoff_replica (
    name         text primary key,
    dsn          text not null,
    id           uuid,
    epoch        integer,
    max_rows     bigint not null default 10000000 check (max_rows > 0),
    max_bytes    bigint not null default 4294967296 check (max_bytes > 0),
    when_full    text not null default 'backpressure' check (when_full in ('backpressure', 'require_repair')),
    rows         bigint not null default 0,
    bytes        bigint not null default 0,
    measured_at  timestamptz not null default '-infinity',
    needs_repair text,
    repairing    uuid,
    by_tokens    boolean not null default false,
    delivered    bigint not null default 0,
    deduplicated bigint not null default 0
);
comment on table pgcombine.handoff_replica is
    'The other servers as this one, as a coordinator, knows them: where (no password), who, quota, totals.';
comment on column pgcombine.handoff_replica.rows is 'Updates in hints, as of measured_at; so are bytes.';
comment on column pgcombine.handoff_replica.needs_repair is 'Why hints alone can''t make it complete.';
comment on column pgcombine.handoff_replica.repairing is 'A rebuild that began after what needs_repair tells of.';
comment on column pgcombine.handoff_replica.by_tokens is
    'Whether needs_repair ends when the servers'' tokens are equal; else the server has to be rebuilt.';

create table pgcombine.handoff_hint (
    destination text not null references pgcombine.handoff_replica,
    token       uuid not null,
    queue       text not null,
    shape       uuid not null,
    digest      uuid not null,
    servers     text[],
    updates     integer not null,
    payload     text not null,
    since       timestamptz not null default now(),
    origin      uuid,
    number      integer,
    primary key (destination, token)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_threshold = -1);
comment on table pgcombine.handoff_hint is
    'What another server has not acknowledged yet: written with the updates, deleted after its commit.';
comment on column pgcombine.handoff_hint.origin is 'The write of which the server refused this; null: none.';
comment on column pgcombine.handoff_hint.number is
    'The place of the update in the write origin; the server has it in handoff_refused. Null: it hasn''t.';

create table pgcombine.handoff_retained (
    token    uuid primary key,
    queue    text not null,
    shape    uuid not null,
    digest   uuid not null,
    servers  text[],
    placed   text[],
    replicas integer,
    coordinator uuid not null,
    updates  integer not null,
    payload  text not null,
    since    timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_threshold = -1);
create index handoff_retained_coordinator on pgcombine.handoff_retained (queue, coordinator, since);
comment on table pgcombine.handoff_retained is
    'Writes that came from another server, until all servers that hold them are known to have them.';
comment on column pgcombine.handoff_retained.placed is 'All servers; replicas of them hold a key.';
comment on column pgcombine.handoff_retained.coordinator is 'The id of the server whose hint this was.';

create table pgcombine.handoff_partial (
    token uuid primary key,
    slots integer[] not null
);
comment on table pgcombine.handoff_partial is
    'Writes whose updates of these slots of keys came with a rebuild from several servers; the others are to come.';

create table pgcombine.handoff_delivery (
    destination  text not null references pgcombine.handoff_replica on delete cascade,
    at           timestamptz not null default clock_timestamp(),
    token        uuid not null,
    delivered    bigint not null,
    deduplicated bigint not null,
    queue        text,
    witness      uuid
);
create index handoff_delivery_last on pgcombine.handoff_delivery (destination, at);
comment on table pgcombine.handoff_delivery is
    'Acknowledgements, one row a page: the last tells whether a server has forgotten what it acknowledged.';
comment on column pgcombine.handoff_delivery.witness is
    'A write to the queue that the server has, as any caller says; token says it only if a replayer does.';

create table pgcombine.handoff_quarantine (
    destination text not null references pgcombine.handoff_replica on delete cascade,
    token       uuid not null,
    number      integer not null,
    queue       text not null,
    shape       uuid not null,
    payload     text not null,
    sqlstate    text,
    error       text not null,
    since       timestamptz not null default now(),
    primary key (destination, token, number)
);
comment on table pgcombine.handoff_quarantine is
    'Updates that a server refused for their data; number is the place in the write, 0: the whole write.';

create table pgcombine.handoff_refused (
    token    uuid not null,
    number   integer not null,
    queue    text not null,
    payload  text not null,
    sqlstate text,
    error    text,
    since    timestamptz not null default now(),
    primary key (token, number)
);
comment on table pgcombine.handoff_refused is
    'Updates that this server lacks although it has their write''s token: it refused them for their data.';

-- Spark ---------------------------------------------------------------------------------------------------------------

create table pgcombine.spark_run (
    queue   text not null references pgcombine.queue on delete cascade,
    run_id  text not null,
    updates bigint not null,
    at      timestamptz not null default now(),
    stream  text generated always as (substring(run_id from '^stream:(.+):[0-9]{1,18}$')) stored,
    batch   bigint generated always as (substring(run_id from '^stream:.+:([0-9]{1,18})$')::bigint) stored,
    role    text not null default current_user,
    primary key (queue, role, run_id)
);
create index spark_run_stream on pgcombine.spark_run (queue, role, stream, batch) where stream is not null;
alter table pgcombine.spark_run enable row level security;
comment on table pgcombine.spark_run is
    'Runs whose updates are in the queue: a run of the same id changes nothing. The batches of a stream are runs.';
comment on column pgcombine.spark_run.role is 'The role whose run it is: other roles may use the same id.';

create table pgcombine.spark_load (
    load       uuid primary key,
    number     bigint not null generated always as identity,
    queue      text not null references pgcombine.queue on delete cascade,
    run_id     text not null,
    kind       text not null check (kind in ('stage', 'values')),
    role       text not null default current_user,
    started_at timestamptz not null default now(),
    seen_at    timestamptz not null default now(),
    ended_at   timestamptz,
    attempts   xid8[],
    expected   bigint
);
alter table pgcombine.spark_load enable row level security;
comment on table pgcombine.spark_load is
    'Loads from Spark under way. Their rows wait in the unlogged table spark_stage_<number>.';
comment on column pgcombine.spark_load.role is 'The role that began it, and that alone may go on with it.';
comment on column pgcombine.spark_load.seen_at is 'When a writer was last heard of, to the minute.';
comment on column pgcombine.spark_load.ended_at is 'Ended while somebody was at the stage: it is to be dropped.';
comment on column pgcombine.spark_load.attempts is
    'Attempts that succeeded, if the load is prepared: only its end is missing. See also expected, their rows.';

create unlogged table pgcombine.spark_alive (
    load uuid primary key
);
alter table pgcombine.spark_alive enable row level security;
comment on table pgcombine.spark_alive is
    'Loads under way. A crash of the server empties it together with the stages: so that loss is noticed.';

create table pgcombine.spark_limit (
    role  text primary key,
    loads integer not null check (loads >= 0)
);
comment on table pgcombine.spark_limit is
    'How many loads from Spark a role may have under way. The row of the role '''' is for all that have none.';
insert into pgcombine.spark_limit (role, loads) values ('', 100);

-- attached tables -----------------------------------------------------------------------------------------------------

create table pgcombine.attachment (
    id      integer primary key generated always as identity,
    queue   text not null references pgcombine.queue on delete cascade,
    source  regclass not null,
    alias   text not null,
    mapping text not null,
    columns name[] not null,
    reads   name[] not null,
    path    name[] not null,
    unique (queue, source)
);
alter table pgcombine.attachment enable row level security;
comment on table pgcombine.attachment is 'Tables whose changes are enqueued; see pgcombine.attach.';
comment on column pgcombine.attachment.alias is 'The name of a row of the table in the mapping.';
comment on column pgcombine.attachment.columns is 'The columns of the queue that the mapping gives.';
comment on column pgcombine.attachment.reads is 'The columns of the table that the mapping reads.';
comment on column pgcombine.attachment.path is 'The search path of the mapping.';

-- comments on all other columns; the last ones are for columns of several tables --------------------------------------

do $$
declare
    _tables text[];
    _columns text[];
    _meaning text;
    _column record;
begin
    for _tables, _columns, _meaning in values
        ('{attachment}'::text[], '{id}'::text[], 'Number of the attachment.'),
        ('{attachment}', '{source}', 'The attached table.'),
        ('{attachment}', '{mapping}', 'The select that makes an update of a row.'),
        ('{combiner}', '{combiner}', 'Name of the combiner.'),
        ('{combiner}', '{fold}', 'Expression that combines the updates of a key.'),
        ('{combiner}', '{merge}', 'Expression that combines two values.'),
        ('{combiner}', '{initial}', 'Default of the updates'' column.'),
        ('{combiner}', '{types}', 'Types that it takes; null: every type.'),
        ('{combiner}', '{function}', 'The function or aggregate that it calls; null: a built-in one.'),
        ('{combiner}', '{type}', 'The type for which the function is used.'),
        ('{component_table}', '{name}', 'Name of the table.'),
        ('{component_table}', '{marked}', 'Condition for rows that delete_flagged deletes.'),
        ('{destination_state}', '{down_after}', 'Number of failures in a row after which it is down.'),
        ('{destination_state}', '{backoff}', 'Wait after the first failure; it doubles with each further one.'),
        ('{destination_state}', '{longest_backoff}', 'Longest wait between two attempts.'),
        ('{destination_state}', '{last_success}', 'When an attempt last succeeded.'),
        ('{destination_state}', '{last_failure}', 'When an attempt last failed.'),
        ('{export}', '{exporter}', 'What delivers: python, postgres, files or webhook.'),
        ('{export}', '{target}', 'Where entries go, without a password.'),
        ('{export}', '{target_table}', 'Table at the target, of the exporter postgres.'),
        ('{export}', '{batch}', 'Largest number of entries in a delivery.'),
        ('{export}', '{compact}', 'Whether waiting entries of a key are delivered as one.'),
        ('{export_bucket}', '{delivered}', 'Number of entries delivered.'),
        ('{export_bucket}', '{delivered_at}', 'When a delivery last succeeded.'),
        ('{export_quarantine}', '{seq}', 'Number of the entry.'),
        ('{export_quarantine}', '{entry}', 'The entry, as a JSON object.'),
        ('{failure}', '{last}', 'When a pass last failed.'),
        ('{granted_right}', '{right}', 'Name of the right.'),
        ('{granted_right}', '{subject}', 'The queue, or what else the right is about; empty: nothing.'),
        ('{handoff_delivery}', '{at}', 'When it was acknowledged.'),
        ('{handoff_delivery}', '{token}', 'Last token of the page.'),
        ('{handoff_delivery,handoff_replica}', '{delivered}', 'Number of writes that the server took.'),
        ('{handoff_delivery,handoff_replica}', '{deduplicated}', 'Number of writes that the server had already.'),
        ('{handoff_hint,handoff_retained,handoff_token}', '{digest}', 'Hash of the write''s updates.'),
        ('{handoff_hint,handoff_retained,handoff_token,handoff_partial,handoff_quarantine,handoff_refused}', '{token}',
         'Token of the write.'),
        ('{handoff_hint,handoff_retained,handoff_quarantine}', '{shape}', 'Hash of the queue''s columns and types.'),
        ('{handoff_hint,handoff_retained,handoff_quarantine,handoff_refused}', '{payload}', 'The updates, as text.'),
        ('{handoff_hint,handoff_retained}', '{servers}', 'Names of the servers that hold updates of it; null: all.'),
        ('{handoff_queue}', '{servers}', 'Names of all servers.'),
        ('{handoff_queue,handoff_retained}', '{replicas}', 'Number of servers that hold a key.'),
        ('{handoff_queue}', '{dropped_at}', 'When the queue was dropped.'),
        ('{handoff_quarantine,handoff_refused}', '{number}', 'Place of the update in the write.'),
        ('{handoff_partial}', '{slots}', 'Slots of keys whose updates are here.'),
        ('{handoff_replica}', '{name}', 'Name of the server.'),
        ('{handoff_replica}', '{dsn}', 'Its address, without a password.'),
        ('{handoff_replica}', '{epoch}', 'Its epoch at the last contact.'),
        ('{handoff_replica,handoff_server}', '{id}', 'Identity of the server; null: not known yet.'),
        ('{handoff_replica}', '{max_rows}', 'Quota of its hints in updates.'),
        ('{handoff_replica}', '{max_bytes}', 'Quota of its hints in bytes.'),
        ('{handoff_replica}', '{when_full}', 'Beyond the quota: writers wait, or it needs a repair.'),
        ('{handoff_replica}', '{bytes}', 'Bytes in hints, as of measured_at.'),
        ('{handoff_replica}', '{measured_at}', 'When rows and bytes were measured.'),
        ('{handoff_server}', '{name}', 'Name of this server.'),
        ('{handoff_server}', '{system_identifier}', 'The cluster''s, which tells a copy from the original.'),
        ('{hook}', '{event}', 'What happens.'),
        ('{hook}', '{query}', 'What then runs.'),
        ('{cluster_identity}', '{place}', '1 or 2.'),
        ('{cluster_identity}', '{id}', 'The row''s xmin, unless it was restored.'),
        ('{observer}', '{observer}', 'Name of the observer.'),
        ('{observer}', '{position}', 'Observers run in this order.'),
        ('{observer}', '{language}', 'sql or python.'),
        ('{observer}', '{statement}', 'The statement in SQL; null: a Python function.'),
        ('{pass}', '{pass}', 'Number of the pass in its bucket.'),
        ('{pass}', '{mark}', 'Snapshot that tells combined updates from pending ones.'),
        ('{pass}', '{hash_range}', 'See range_mask.'),
        ('{pass}', '{tx}', 'Id of the pass''s transaction.'),
        ('{pass}', '{began}', 'When the pass began.'),
        ('{pass}', '{ended}', 'When the pass ended.'),
        ('{pass_minute}', '{minute}', 'When the minute began.'),
        ('{pass_minute}', '{passes}', 'Number of passes that ended in it and took updates.'),
        ('{pass_minute}', '{seconds}', 'Sum of their durations.'),
        ('{quarantined_key}', '{id}', 'pgcombine_key of its updates in <queue>_quarantine.'),
        ('{quarantined_key}', '{key}', 'The key, as a JSON object.'),
        ('{queue}', '{segment_bits}', 'See segments.'),
        ('{queue}', '{tablespaces}', 'Tablespaces of the partitions, in turn; null: the default one.'),
        ('{queue}', '{delete_when}', 'Condition over the values under which a key is deleted.'),
        ('{queue}', '{notify}', 'Whether enqueues wake workers by NOTIFY.'),
        ('{queue}', '{paused}', 'Whether no pass runs over the queue.'),
        ('{queue}', '{max_backlog}', 'About how many updates may be pending before enqueues fail; null: no limit.'),
        ('{queue}', '{pass}', 'Parts of the statement of a pass.'),
        ('{queue_column}', '{position}', 'Place of the column, from 0.'),
        ('{queue_column}', '{role}', 'key or value.'),
        ('{queue_column}', '{name}', 'Name of the column.'),
        ('{queue_column}', '{type}', 'Type of the column.'),
        ('{queue_column}', '{collation}', 'Collation of the column; null: that of the type.'),
        ('{queue_column}', '{combiner}', 'Combiner of a value; null: a key.'),
        ('{repeatable,handoff_server}', '{one}', 'True: there is one row.'),
        ('{repeatable}', '{digest}', 'SHA-256 of the files.'),
        ('{restoring}', '{tx}', 'Id of the transaction.'),
        ('{expiry}', '{page}', 'The next page to look at.'),
        ('{expiry}', '{due}', 'When workers go on.'),
        ('{expiry}', '{failed_at}', 'When keys weren''t removed.'),
        ('{expiry}', '{failed_page}', 'See error.'),
        ('{right_kind,right_privilege}', '{right}', 'Name of the right.'),
        ('{right_kind}', '{subject,optional,standing,act,proof}', 'See the comment of the table.'),
        ('{right_privilege}', '{relation,privileges,partitions}', 'See the comment of the table.'),
        ('{sample}', '{kind}', 'pending or sizes.'),
        ('{sample}', '{at}', 'When the figures were found.'),
        ('{sample}', '{figures}', 'The figures, as JSON.'),
        ('{schema_version}', '{version_num}', 'The revision.'),
        ('{spark_alive,spark_load}', '{load}', 'Identity of the load.'),
        ('{spark_limit}', '{role}', 'Name of the role; empty: all others.'),
        ('{spark_limit}', '{loads}', 'Largest number of unfinished loads.'),
        ('{spark_load}', '{number}', 'Number of its stage.'),
        ('{spark_load,spark_run}', '{run_id}', 'Name of the run.'),
        ('{spark_load}', '{kind}', 'stage: updates. values: initial values.'),
        ('{spark_load}', '{started_at}', 'When it began.'),
        ('{spark_load}', '{expected}', 'See attempts.'),
        ('{spark_run}', '{at}', 'When it was committed.'),
        ('{spark_run}', '{stream}', 'Name of the stream; null: no stream.'),
        ('{spark_run}', '{batch}', 'Number of the batch in the stream.'),
        ('{tick}', '{at}', 'The time.'),
        ('{tick}', '{next_id}', 'The id.'),
        (null, '{queue}', 'Name of the queue.'),
        (null, '{export}', 'Name of the export.'),
        (null, '{bucket}', 'Number of the bucket, from 0.'),
        (null, '{buckets}', 'Number of buckets.'),
        (null, '{destination}', 'Name of the server for which it waits, or that it is about.'),
        (null, '{kind}', 'export or server.'),
        (null, '{name}', 'Name of the export or of the server.'),
        (null, '{state}', 'up, suspect, down or paused.'),
        (null, '{failures,attempts}', 'Number of failures in a row.'),
        (null, '{retry_at}', 'When the next attempt is due.'),
        (null, '{reason}', 'Why the last attempt failed, or why it is paused.'),
        (null, '{since}', 'When this began.'),
        (null, '{created_at}', 'When it was created.'),
        (null, '{updates}', 'Number of updates.'),
        (null, '{keys}', 'Number of their keys.'),
        (null, '{changes}', 'Number of values that changed.'),
        (null, '{role}', 'Name of the role.'),
        (null, '{sqlstate}', 'SQLSTATE of the last error.'),
        (null, '{error}', 'Text of the last error.')
    loop
        for _column in
            select c.oid::regclass as relation, a.attname as name
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            where c.relnamespace = 'pgcombine'::regnamespace and c.relkind in ('r', 'p')
              and (_tables is null or c.relname = any (_tables)) and a.attname = any (_columns)
              and col_description(c.oid, a.attnum) is null
        loop
            execute format('comment on column %s.%I is %L', _column.relation, _column.name, _meaning);
        end loop;
    end loop;
end
$$;
