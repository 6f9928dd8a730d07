-- Tables, types and indexes of the schema's first revision, in the order of the components. The functions, views,
-- triggers, policies and privileges are in sql/. The function pgcombine.create_queue makes a queue's own tables.
-- Some tables have a column bucket without a foreign key. The check of a foreign key would wait for passes over the
-- bucket, since a pass locks the bucket's row.

create schema if not exists pgcombine_internal;
comment on schema pgcombine_internal is 'Combine queues: the functions that pgcombine itself calls.';

create table pgcombine.schema_version (
    version_num text primary key,
    baseline    text not null,
    digest      text
);
comment on table pgcombine.schema_version is 'One row: the version of the schema.';
insert into pgcombine.schema_version (version_num, baseline) values ('0001', '{digest of this file}');

-- the core ------------------------------------------------------------------------------------------------------------

create table pgcombine.cluster_identity (
    place smallint primary key check (place in (1, 2)),
    id    xid not null
);
comment on table pgcombine.cluster_identity is
    'If the xmin of each row equals its id, this database assigned the stored transaction ids. It isn''t a copy.';

-- A transaction writes one row, its subtransaction the other, so the two ids differ. A restore writes both rows in one
-- transaction. That transaction's id may by chance equal one of the two ids, but not both.
do $$
begin
    insert into pgcombine.cluster_identity values (1, '0');
    update pgcombine.cluster_identity set id = xmin;
    begin
        insert into pgcombine.cluster_identity values (2, '0');
        update pgcombine.cluster_identity set id = xmin where place = 2;
    exception when division_by_zero then null; -- a block with an exception clause is a subtransaction
    end;
end
$$;

create table pgcombine.restoring (
    tx bigint primary key default txid_current()
);
comment on table pgcombine.restoring is
    'Transactions that may insert updates with the ids of other transactions: rebucket moves updates.';

-- The constraint's name serves as the error message. A function that raises a better message would add 0.4 µs to
-- each statement of a writer.
create domain pgcombine.key_text as text
    constraint "a key has at most 2600 bytes: shorten it, or use its hash" check (octet_length(value) <= 2600);
comment on domain pgcombine.key_text is
    'A text that fits into a primary key. A check constraint of the table would cost each statement more time.';

-- The domain own_tx calls this function. The upgrade then replaces the function with the one in sql/core.
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
    is_full          boolean not null default false,
    computed         jsonb,
    token_retention  interval not null default '14 days' check (token_retention > '0'),
    pass             jsonb not null default '{}',
    statement        text not null default '',
    contribution     text,
    created_at       timestamptz not null default now(),
    check (buckets % partitions = 0)
);
comment on table pgcombine.queue is
    'One row for each queue. The columns pass and statement are made from the definition, for the queue''s passes.';
comment on column pgcombine.queue.computed is
    'Value columns that passes compute by a query instead of combining them; see pgcombine_internal.pass_template.';
comment on column pgcombine.queue.statement is 'The statement of passes, without the number of the bucket.';
comment on column pgcombine.queue.contribution is
    'The end of the statement that replaces a source''s contribution; null: the queue has no contributions yet.';
comment on column pgcombine.queue.partitions is
    'Number of partitions. Bucket b is in partition b modulo this number; several buckets may share a partition.';
comment on column pgcombine.queue.segments is
    'Number of tables for a partition''s updates. Each takes those of 2 ^ segment_bits transaction ids in turn.';
comment on column pgcombine.queue.expire_when is 'The condition on a key''s row under which the key expires.';
comment on column pgcombine.queue.expire_silently is 'Whether expired keys are removed without a change.';
comment on column pgcombine.queue.expire_every is 'How often workers scan a bucket for expired keys.';
comment on column pgcombine.queue.pass_limit is 'About how many updates a pass takes at most.';
comment on column pgcombine.queue.quarantine_after is
    'After how many failed passes in a row a worker searches for the failing keys and quarantines them.';

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
comment on column pgcombine.queue_column.ordered_by is 'The value column by which the combiner last or first chooses.';

create table pgcombine.combiner (
    combiner text primary key,
    fold     text not null,
    merge    text not null,
    initial  text,
    types    text[],
    function text,
    type     text,
    difference text
);
comment on table pgcombine.combiner is
    'Built-in combiners, and the functions and aggregates that queues use as combiners, each for one type.';

comment on column pgcombine.combiner.difference is
    'Expression for the update that makes the value {new} of the value {old}; null: the combiner has none.';

create table pgcombine.bucket (
    queue  text not null references pgcombine.queue on delete cascade,
    bucket integer not null check (bucket between 0 and 1023),
    primary key (queue, bucket)
);
comment on table pgcombine.bucket is
    'One row for each bucket. A pass locks the row and doesn''t write it, so passes leave no dead rows here.';

create table pgcombine.pass (
    queue    text not null,
    bucket   integer not null,
    pass     bigint not null,
    mark     pg_snapshot not null, -- functions read it as txid_snapshot, a type that PostgreSQL is to lose
    range_mask bigint,
    hash_range bigint,
    tx       bigint not null default txid_current(),
    began    timestamptz not null,
    ended    timestamptz not null default clock_timestamp(),
    updates  bigint not null,
    keys     bigint not null,
    changes  bigint not null,
    primary key (queue, bucket, pass),
    foreign key (queue, bucket) references pgcombine.bucket on delete cascade,
    check ((range_mask is null) = (hash_range is null)),
    constraint pass_sane check (
        pass between 0 and 4000000000000000000 and isfinite(began) and isfinite(ended)
        and (range_mask between 1 and 65535 and range_mask & (range_mask + 1) = 0
             and hash_range between 0 and range_mask) is not false
        and updates between 0 and 1000000000000000 and keys between 0 and 1000000000000000
        and changes between 0 and 1000000000000000)
) with (autovacuum_vacuum_insert_scale_factor = 1);
create index pass_ended on pgcombine.pass (queue, ended);
comment on table pgcombine.pass is
    'The journal of passes. The mark of the last pass over a key sees the key''s combined updates.';
comment on column pgcombine.pass.range_mask is
    'The pass covered the keys with hash & range_mask = hash_range. Null: all keys.';

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
    'Sums of the journal: one row for each minute in which passes that took updates ended. Rows are kept for a day.';

create type pgcombine.plan as (
    queue text, bucket integer, pass bigint, began timestamptz, mark txid_snapshot, marks txid_snapshot[],
    marks_mask bigint, reads boolean[], range_mask bigint, hash_range bigint, more boolean,
    has_quarantined boolean, first_page bigint
);
comment on type pgcombine.plan is 'The plan of a pass; pgcombine_internal.plan_pass explains it.';

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
    'Observers: SQL statements over the relation changes, and Python functions. They run in the passes over the queue.';

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
comment on table pgcombine.failure is
    'Buckets with a failed pass since the last pass that took all updates. A failed pass is rolled back, so another '
    'transaction writes the row.';
comment on column pgcombine.failure.pass_limit is
    'After cancelled passes: how many updates the next pass takes at most; 0 or less: as few as possible. Null: the '
    'queue''s pass_limit applies.';
comment on column pgcombine.failure.page is
    'The first page whose expired keys the failed pass removed. Null: it removed none.';

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
comment on table pgcombine.quarantined_key is
    'Keys that passes leave out. <queue>_quarantine_keys has their columns, <queue>_quarantine their updates.';

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
comment on table pgcombine.expiry is
    'How far workers have scanned the pages of a bucket''s values for expired keys, and when the scan continues.';
comment on column pgcombine.expiry.error is
    'Why the expired keys of the 1024 pages from failed_page on weren''t removed; null: no failure.';

create table pgcombine.tick (
    at      timestamptz primary key,
    next_id bigint not null
);
create index tick_next_id on pgcombine.tick (next_id, at);
comment on table pgcombine.tick is
    'Times with transaction ids, which date pending updates.';

create table pgcombine.sample (
    queue   text not null references pgcombine.queue on delete cascade,
    kind    text not null check (kind in ('pending', 'sizes')),
    at      timestamptz not null,
    figures jsonb not null,
    seconds double precision not null default 0,
    primary key (queue, kind)
) with (fillfactor = 50);
comment on table pgcombine.sample is
    'Stored figures of queues: numbers of pending updates, and sizes of tables. Finding them is slow.';
comment on column pgcombine.sample.seconds is 'How many seconds it took to find these figures.';

-- no foreign key to queue: its check would lock the queue's row in each call of enqueue_once
create table pgcombine.token (
    queue   text not null,
    role    text not null default current_user,
    token   text collate "C" not null,
    updates bigint,
    at      timestamptz not null default now(),
    primary key (queue, role, token)
);
create index token_at on pgcombine.token (queue, at) where role = '';
alter table pgcombine.token enable row level security;
comment on table pgcombine.token is 'Tokens: names of input that was enqueued. Input with a stored token is ignored.';
comment on column pgcombine.token.role is
    'The role that stored the token: another role may store an equal one. Empty: all roles share the token.';
comment on column pgcombine.token.updates is 'How many updates came with the token; null: not counted.';

-- no foreign key to queue, as for token
create table pgcombine.contribution (
    id     bigint primary key generated always as identity,
    queue  text not null,
    source text collate "C" not null,
    at     timestamptz not null default now(),
    stream text,
    unique (queue, source)
);
comment on table pgcombine.contribution is
    'Sources that contribute to queues. <queue>_contributions has what each one contributes.';

-- A component registers itself in the next three tables (sql/<component>/component.sql).
create table pgcombine.right_privilege (
    "right"    text not null,
    object     text not null,
    privileges text not null,
    primary key ("right", object)
);
comment on table pgcombine.right_privilege is
    'The privileges that grant_right grants for a right. The right work has all tables, too. object: a name, or what '
    'follows a queue''s name in the name of its table. privileges: (*) means each of the queue''s own columns.';
create table pgcombine.component_table (
    name  text primary key,
    queue text references pgcombine.queue on delete cascade
);
comment on table pgcombine.component_table is
    'Tables that grow. queue: the table belongs to this queue; null: all queues share it.';
create table pgcombine.hook (
    event text not null
        check (event in ('close', 'closed', 'rebucketing', 'rebucket', 'post_restore', 'generated', 'regenerate',
            'clean_up', 'upkeep', 'verify', 'enqueue', 'view', 'drain', 'truncate')),
    query text not null
);
comment on table pgcombine.hook is
    'Queries that components run at events of a queue, $1. close, closed: see close_queue. rebucketing: runs when '
    'rebucket has claimed all buckets, before it locks tables. rebucket: runs when the queue has got other buckets. '
    'post_restore: post_restore runs it. verify: verify returns their rows. regenerate: recreates generated objects. '
    'generated: returns names of functions that no file makes, which an upgrade keeps. clean_up: workers run it every '
    'ten minutes, and log its rows: kind and number of removed objects. upkeep: returns statements. Workers run each '
    'every half second, and repeat it while it returns true. enqueue: enqueue runs it if there is no queue $1, with '
    'the token $2 and the updates $3. It returns the number of appended updates, or null if the component has nothing '
    'of this name. view: returns the name of the view that shows the queue, where it isn''t <queue>_current. drain: '
    'enqueues what is due before drain combines. Drain repeats it while it returns true. truncate: runs when '
    'truncate_queue has claimed all buckets, before it locks tables.';

-- changes: feeds and exports ------------------------------------------------------------------------------------------

create sequence pgcombine.change_sequence;
comment on sequence pgcombine.change_sequence is 'The numbers seq of the changes of all queues.';

create table pgcombine.change_log (
    queue      text primary key references pgcombine.queue,
    number     bigint not null generated always as identity (minvalue 0),
    feed       text unique,
    retention  interval not null default '5 min',
    max_bytes  bigint,
    segment    smallint not null default 0,
    since      timestamptz not null default now(),
    closed     timestamptz[] not null default array_fill(null::timestamptz, '{6}'),
    reclaimed  jsonb not null default '{}',
    turns      jsonb[] not null default '{}',
    created_at timestamptz not null default now()
);
comment on table pgcombine.change_log is
    'One row for each queue whose changes are kept, for a feed, for exports, or for both. Passes read the row, upkeep '
    'writes it.';
comment on column pgcombine.change_log.number is
    'A number that no other log has. Sequences begin at number * 2 ^ 40, so offsets of former feeds are too old.';
comment on column pgcombine.change_log.feed is
    'Name of the feed as which consumers read the changes; null: only exports do.';
comment on column pgcombine.change_log.segment is 'The partition of <queue>_changes into which passes write.';
comment on column pgcombine.change_log.since is 'When passes began to write into the segment.';
comment on column pgcombine.change_log.closed is
    'For each segment when passes stopped writing into it; null: the segment is empty or in use.';
comment on column pgcombine.change_log.reclaimed is
    'For each bucket the last sequence that was truncated. Later changes are kept. No entry: number * 2 ^ 40.';
comment on column pgcombine.change_log.turns is
    'For each rebucket since the first kept change, the last sequences of the buckets before it.';

create table pgcombine.change_bucket (
    queue  text not null references pgcombine.change_log on delete cascade,
    bucket integer not null,
    last   bigint not null,
    primary key (queue, bucket)
) with (fillfactor = 50);
comment on table pgcombine.change_bucket is
    'The sequence of each bucket''s last change. A pass over the bucket raises it, in the statement of the pass.';

create table pgcombine.feed_consumer (
    queue        text not null references pgcombine.change_log on delete cascade,
    consumer     text not null,
    after        jsonb not null,
    committed_at timestamptz not null default now(),
    primary key (queue, consumer)
);
comment on table pgcombine.feed_consumer is 'How far registered consumers have read the feed of a queue.';

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
comment on table pgcombine.destination_state is
    'States of destinations: exports and other servers. While a destination is up, its row is written at most once a '
    'minute.';
comment on column pgcombine.destination_state.ticket is
    'Grows with each failure, change of the state and probe. The report of an attempt with an older ticket is ignored.';

create table pgcombine.export (
    export       text primary key,
    queue        text not null references pgcombine.queue,
    exporter     text not null check (exporter in ('python', 'postgres', 'files', 'webhook')),
    target       text,
    target_table text,
    batch        integer not null check (batch > 0),
    compact      boolean not null,
    created_at   timestamptz not null default now(),
    owner        text,
    epoch        bigint not null default 0,
    sweep        boolean not null default false,
    format       text,
    constraint export_format check (format is null or format = 'cloudevents' and exporter = 'webhook')
);
comment on table pgcombine.export is
    'One row for each export: the queue whose changes it delivers, its exporter, and its target (without a password).';
comment on column pgcombine.export.owner is
    'Name of the server that delivers the export, as far as this server knows; null: this one, as none was chosen.';
comment on column pgcombine.export.epoch is
    'Grows with each change of owner. The exporter postgres delivers only if no higher epoch is at the destination.';
comment on column pgcombine.export.sweep is
    'Whether the exporter is to mark the keys that the full state of a new owner lacks as deleted.';
comment on column pgcombine.export.format is
    'Format of the bodies that the exporter webhook sends: cloudevents; null: one object with all entries.';

create table pgcombine.export_bucket (
    export       text not null references pgcombine.export on delete cascade,
    bucket       integer not null,
    after        bigint,
    full_after   jsonb,
    full_seq     bigint,
    full_end     bigint,
    delivered    bigint not null default 0,
    delivered_at timestamptz,
    primary key (export, bucket),
    constraint export_bucket_sane check (delivered between 0 and 4000000000000000000 and isfinite(delivered_at))
);
comment on table pgcombine.export_bucket is
    'How far an export has delivered each bucket''s changes. The worker that delivers them locks the row.';
comment on column pgcombine.export_bucket.after is
    'The changes up to this sequence are delivered; null: another server delivers the export.';
comment on column pgcombine.export_bucket.full_after is
    'A full state is delivered up to this key, in the order of keys; {}: none of its keys. Null: no full state is due.';
comment on column pgcombine.export_bucket.full_seq is 'The last number that an entry of the full state has got.';
comment on column pgcombine.export_bucket.full_end is 'The last number that an entry of the full state may get.';

create table pgcombine.export_entry (
    id     bigint primary key generated always as identity,
    export text not null references pgcombine.export on delete cascade,
    bucket integer not null,
    seq    bigint not null,
    entry  jsonb not null,
    error  text,
    since  timestamptz not null default now()
);
create index export_entry_bucket on pgcombine.export_entry (export, bucket, seq);
comment on table pgcombine.export_entry is
    'Entries that an export holds itself. Those without an error wait for delivery again. The others are in '
    'quarantine: the destination refused them, or an earlier entry of their key.';

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
    not_retained_at         timestamptz,
    removed            text[] not null default '{}'
);
comment on table pgcombine.handoff_server is
    'This server''s identity for the other servers that hold the same queues: one row, made at the first contact.';
comment on column pgcombine.handoff_server.epoch is 'Grows when the server gets a new identity, as after a rebuild.';
comment on column pgcombine.handoff_server.retention is
    'How long tokens are kept. A hint must be delivered within this time.';
comment on column pgcombine.handoff_server.replay_rate is
    'How many updates a second a replayer may deliver to this server; null: no limit.';
comment on column pgcombine.handoff_server.needs_repair is 'Why this server may lack writes; null: no reason is known.';
comment on column pgcombine.handoff_server.repairing is
    'Id of a comparison that began after needs_repair was set.';
comment on column pgcombine.handoff_server.max_retained_bytes is
    'Quota of the table handoff_retained. At the quota no further write is retained.';
comment on column pgcombine.handoff_server.removed is
    'Servers that were removed here. Writers that still name them don''t register them again.';
comment on column pgcombine.handoff_server.not_retained_at is
    'When a write was last not retained because of the quota.';

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
    'Queues that other servers also hold. servers and replicas are those that a writer named last.';
comment on column pgcombine.handoff_queue.former is 'Servers that writers named before, but no longer name.';
comment on column pgcombine.handoff_queue.placed is
    'The servers that the last writer named, even if they were removed since. They decide the placement of keys.';
comment on column pgcombine.handoff_queue.generation is
    'How many replicated queues of this name were dropped before. The number is the same on all servers.';

create table pgcombine.handoff_token (
    token   uuid primary key,
    queue   text not null,
    digest  uuid not null,
    servers text[]
) partition by range (token);
comment on table pgcombine.handoff_token is
    'Tokens of the writes that this server has. Each day has a partition, which is dropped after the retention.';
comment on column pgcombine.handoff_token.servers is 'Names of the servers that hold updates of the write; null: all.';

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
    'The other servers that this coordinator knows: address (without a password), identity, quota and totals.';
comment on column pgcombine.handoff_replica.rows is 'Number of updates in hints, as of measured_at.';
comment on column pgcombine.handoff_replica.needs_repair is
    'Why hints alone can''t make the server complete; null: they can.';
comment on column pgcombine.handoff_replica.repairing is
    'Id of a rebuild or a comparison that began after needs_repair was set.';
comment on column pgcombine.handoff_replica.by_tokens is
    'True: equal tokens on all servers clear needs_repair. False: the server must be rebuilt.';

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
    'Writes that another server has not acknowledged yet. Its acknowledgement deletes the hint.';
comment on column pgcombine.handoff_hint.origin is
    'Token of the write whose updates the server refused, if this hint retries them; null: it is no retry.';
comment on column pgcombine.handoff_hint.number is
    'Place of the retried update in the write that origin names. Null: the hint retries no single update.';

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
    'Writes that came from another server. A write stays here until all servers that hold its keys have it.';
comment on column pgcombine.handoff_retained.placed is
    'Names of all servers of the queue. The column replicas says how many of them hold a key.';
comment on column pgcombine.handoff_retained.coordinator is 'Id of the server from whose hint the write came.';

create table pgcombine.handoff_partial (
    token uuid primary key,
    slots integer[] not null
);
comment on table pgcombine.handoff_partial is
    'Writes of which a rebuild brought only the updates of some slots of keys. The other updates are still missing.';

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
    'Reports that a server has writes, such as one row for each acknowledged page of hints (those delivered '
    'together). A server that lacks an acknowledged token has lost commits.';
comment on column pgcombine.handoff_delivery.witness is
    'Token of a write that the server has, as reported by any caller. The column token has only tokens that '
    'replayers reported, and otherwise zeros.';

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
    'Updates that another server refused for their data. number is the place in the write; 0: the whole write.';

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
    'Updates that this server refused for their data. It has the token of their write, but not these updates.';

-- Spark ---------------------------------------------------------------------------------------------------------------

-- The id of a Spark run is stored as a token of the role that makes the load. Each batch of a stream is a run, whose id
-- is stream:<query>:<batch>.
alter table pgcombine.token
    add stream text generated always as (
        case when role <> '' then substring(token from '^stream:(.+):[0-9]{1,18}$') end) stored,
    add batch bigint generated always as (
        case when role <> '' then substring(token from '^stream:.+:([0-9]{1,18})$')::bigint end) stored;
create index token_stream on pgcombine.token (queue, role, stream, batch) where stream is not null;
create index token_run_at on pgcombine.token (at) where role <> '';

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
comment on table pgcombine.spark_load is
    'Loads from Spark in progress. Their rows wait in the unlogged table spark_stage_<number>.';
comment on column pgcombine.spark_load.role is 'The role that began the load.';
comment on column pgcombine.spark_load.seen_at is 'When a writer of the load was last active, to the minute.';
comment on column pgcombine.spark_load.ended_at is
    'When the load ended while a session still used its stage. Null: not ended. The stage is dropped later.';
comment on column pgcombine.spark_load.attempts is
    'Transaction ids of the tasks'' attempts that succeeded. Null: the load isn''t prepared yet.';

create unlogged table pgcombine.spark_alive (
    load uuid primary key
);
comment on table pgcombine.spark_alive is
    'Loads in progress. A crash empties this table and the stages: a load without a row here has lost its rows.';


-- rollups -------------------------------------------------------------------------------------------------------------

create table pgcombine.rollup (
    queue      text primary key references pgcombine.queue on delete cascade,
    source     regclass not null,
    key        text[] not null,
    value      text[] not null,
    filter     text,
    keep       text,
    slice_by   text,
    definition jsonb not null,
    slices     integer not null default 1 check (slices between 1 and 65536),
    done       integer not null default 0,
    boundary   text,
    ready_at   timestamptz,
    created_at timestamptz not null default now()
);
comment on table pgcombine.rollup is 'One row for each rollup, whose queue has the same name.';
comment on column pgcombine.rollup.source is 'The table that the rollup aggregates.';
comment on column pgcombine.rollup.key is 'The key columns, as they were given.';
comment on column pgcombine.rollup.value is 'The value columns, as they were given.';
comment on column pgcombine.rollup.filter is 'The condition on rows of the source that count; null: there is none.';
comment on column pgcombine.rollup.keep is
    'The condition on rows of the source that stay counted when they go; null: there are none.';
comment on column pgcombine.rollup.slice_by is 'The column of the source by whose order backfill goes; null: by hash.';
comment on column pgcombine.rollup.definition is
    'What analyze_rollup found: keys, states and columns, with placeholders for expressions.';
comment on column pgcombine.rollup.slices is 'Into how many slices backfill divides the keys by their hash.';
comment on column pgcombine.rollup.done is 'How many of the slices are backfilled.';
comment on column pgcombine.rollup.boundary is
    'With slice_by: the value of that column down to which rows are backfilled; empty: all values.';
comment on column pgcombine.rollup.ready_at is 'When the backfill ended; null: existing rows may be missing.';

create table pgcombine.rollup_part (
    queue text references pgcombine.rollup on delete cascade,
    part  regclass,
    primary key (queue, part)
);
comment on table pgcombine.rollup_part is 'One row for each table whose rows count in a rollup.';
comment on column pgcombine.rollup_part.part is
    'The source of the rollup, one of its partitions, or a table that inherits from it.';

-- budgets -------------------------------------------------------------------------------------------------------------

create table pgcombine.budget (
    queue      text primary key references pgcombine.queue on delete cascade,
    amount     text not null,
    chips      integer not null check (chips between 1 and 1000),
    created_at timestamptz not null default now()
);
comment on table pgcombine.budget is 'One row for each budget, whose queue has the same name.';
comment on column pgcombine.budget.amount is 'Type of the amounts.';
comment on column pgcombine.budget.chips is 'Into how many chips an added amount is divided.';

-- shards --------------------------------------------------------------------------------------------------------------

create table pgcombine.front (
    queue      text primary key,
    shards     integer not null check (shards between 1 and 100),
    columns    jsonb not null,
    rules      jsonb not null,
    created_at timestamptz not null default now()
);
comment on table pgcombine.front is 'One row for each front: a queue whose shards are queues of other databases.';
comment on column pgcombine.front.shards is 'Number of shards.';
comment on column pgcombine.front.columns is 'The columns of each shard''s queue, as in the view shard_definition.';
comment on column pgcombine.front.rules is 'Further settings that the shards'' queues share, as in shard_definition.';

create table pgcombine.front_shard (
    queue  text references pgcombine.front on delete cascade,
    shard  integer,
    node   name not null,
    target name,
    former name,
    primary key (queue, shard)
);
comment on table pgcombine.front_shard is 'One row for each shard of a front.';
comment on column pgcombine.front_shard.shard is 'Number of the shard, from 0.';
comment on column pgcombine.front_shard.node is 'The foreign server whose database has the queue of the shard.';
comment on column pgcombine.front_shard.target is 'The node to which the shard is being moved; null: to none.';
comment on column pgcombine.front_shard.former is
    'The node from which the shard was moved, while that still has the queue; null: no node.';

-- comments on all other columns; a row whose tables are null is for every table with the column -----------------------

do $$
declare
    _tables text[];
    _columns text[];
    _meaning text;
    _column record;
begin
    for _tables, _columns, _meaning in values
        ('{combiner}'::text[], '{combiner}'::text[], 'Name of the combiner.'),
        ('{combiner}', '{fold}', 'Expression that combines the updates of a key.'),
        ('{combiner}', '{merge}', 'Expression that combines two values.'),
        ('{combiner}', '{initial}', 'Default of the updates'' column.'),
        ('{combiner}', '{types}', 'Types that the combiner takes; null: every type.'),
        ('{combiner}', '{function}', 'The function or aggregate that combines; null: the combiner is built in.'),
        ('{combiner}', '{type}', 'The type for which the function is used.'),
        ('{component_table}', '{name}', 'Name of the table.'),
        ('{destination_state}', '{down_after}', 'Number of failures in a row after which the destination is down.'),
        ('{destination_state}', '{backoff}', 'Wait after the first failure; it doubles with each further one.'),
        ('{destination_state}', '{longest_backoff}', 'Longest wait between two attempts.'),
        ('{destination_state}', '{last_success}', 'When an attempt last succeeded.'),
        ('{destination_state}', '{last_failure}', 'When an attempt last failed.'),
        ('{export}', '{exporter}', 'What delivers: python, postgres, files or webhook.'),
        ('{export}', '{target}', 'Where entries go, without a password.'),
        ('{export}', '{target_table}', 'Table at the target, of the exporter postgres.'),
        ('{export}', '{batch}', 'Largest number of entries in a delivery.'),
        ('{export}', '{compact}', 'Whether waiting entries of a key are delivered as one.'),
        ('{export_bucket}', '{delivered}', 'Number of entries delivered or quarantined.'),
        ('{export_bucket}', '{delivered_at}', 'When entries were last delivered or quarantined.'),
        ('{export_entry}', '{seq}', 'Number of the entry.'),
        ('{export_entry}', '{id}', 'Number of the row.'),
        ('{export_entry}', '{entry}', 'The entry, as a JSON object.'),
        ('{export_entry}', '{error}', 'Why it is in quarantine; null: it waits.'),
        ('{failure}', '{last}', 'When a pass last failed.'),
        ('{change_log}', '{retention}', 'How long changes are kept at least.'),
        ('{change_log}', '{max_bytes}', 'Size up to which changes older than the retention stay for registered '
            'consumers; null: none stay.'),
        ('{change_bucket}', '{last}', 'Sequence of the last change.'),
        ('{feed_consumer}', '{consumer}', 'Name of the consumer.'),
        ('{feed_consumer}', '{after}', 'The offset up to which it has read.'),
        ('{feed_consumer}', '{committed_at}', 'When it registered the offset.'),
        ('{handoff_delivery}', '{at}', 'When the page was acknowledged.'),
        ('{handoff_delivery}', '{token}', 'Last token of the page.'),
        ('{handoff_delivery,handoff_replica}', '{delivered}', 'Number of writes that the server took.'),
        ('{handoff_delivery,handoff_replica}', '{deduplicated}', 'Number of writes that the server had already.'),
        ('{handoff_hint,handoff_retained,handoff_token}', '{digest}', 'Hash of the write''s updates.'),
        ('{handoff_hint,handoff_retained,handoff_token,handoff_partial,handoff_quarantine,handoff_refused}', '{token}',
         'Token of the write.'),
        ('{handoff_hint,handoff_retained,handoff_quarantine}', '{shape}', 'Hash of the queue''s columns and types.'),
        ('{handoff_hint,handoff_retained,handoff_quarantine,handoff_refused}', '{payload}', 'The updates, as text.'),
        ('{handoff_hint,handoff_retained}', '{servers}', 'Servers that hold updates of the write; null: all.'),
        ('{handoff_queue}', '{servers}', 'Names of all servers.'),
        ('{handoff_queue,handoff_retained}', '{replicas}', 'Number of servers that hold a key.'),
        ('{handoff_queue}', '{dropped_at}', 'When the queue was dropped.'),
        ('{handoff_quarantine,handoff_refused}', '{number}', 'Place of the update in the write.'),
        ('{handoff_partial}', '{slots}', 'Slots of keys whose updates are here.'),
        ('{handoff_replica}', '{name}', 'Name of the server.'),
        ('{handoff_replica}', '{dsn}', 'Address of the server, without a password.'),
        ('{handoff_replica}', '{epoch}', 'Epoch of the server at the last contact.'),
        ('{handoff_replica,handoff_server}', '{id}', 'Identity of the server; null: not known yet.'),
        ('{handoff_replica}', '{max_rows}', 'Quota of the updates in hints for the server.'),
        ('{handoff_replica}', '{max_bytes}', 'Quota of the bytes in hints for the server.'),
        ('{handoff_replica}', '{when_full}', 'At the quota: writes are refused (backpressure), or have no hint.'),
        ('{handoff_replica}', '{bytes}', 'Bytes in hints, as of measured_at.'),
        ('{handoff_replica}', '{measured_at}', 'When rows and bytes were measured.'),
        ('{handoff_server}', '{name}', 'Name of this server.'),
        ('{handoff_server}', '{system_identifier}', 'System identifier of the cluster; a copy has another one.'),
        ('{hook}', '{event}', 'Name of the event.'),
        ('{hook}', '{query}', 'Query that runs at the event.'),
        ('{contribution}', '{id}', 'pgcombine_source in <queue>_contributions.'),
        ('{contribution}', '{source}', 'Name of the source.'),
        ('{contribution}', '{stream}', 'Query that contributes in batches; null: none.'),
        ('{contribution}', '{at}', 'When the transaction of its last contribution began.'),
        ('{cluster_identity}', '{place}', 'Number of the row, 1 or 2.'),
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
        ('{pass_minute}', '{passes}', 'Number of passes that took updates and ended in the minute.'),
        ('{pass_minute}', '{seconds}', 'Sum of the durations of these passes.'),
        ('{quarantined_key}', '{id}', 'pgcombine_key of its updates in <queue>_quarantine.'),
        ('{quarantined_key}', '{key}', 'The key, as a JSON object.'),
        ('{queue}', '{segment_bits}', 'See segments.'),
        ('{queue}', '{tablespaces}', 'Tablespaces of the partitions, in turn; null: the default one.'),
        ('{queue}', '{delete_when}', 'Condition over the values under which a key is deleted.'),
        ('{queue}', '{notify}', 'Whether enqueues wake workers by NOTIFY.'),
        ('{queue}', '{paused}', 'Whether the queue is paused, so that no pass runs over it.'),
        ('{queue}', '{is_full}', 'Whether as many updates were pending when a worker last looked.'),
        ('{queue}', '{max_backlog}', 'About how many updates may be pending before enqueues fail; null: no limit.'),
        ('{queue}', '{token_retention}', 'How long tokens of enqueue_once are kept.'),
        ('{queue}', '{pass}', 'Parts of the statement of a pass.'),
        ('{queue_column}', '{position}', 'Place of the column, from 0.'),
        ('{queue_column}', '{role}', 'key or value.'),
        ('{queue_column}', '{name}', 'Name of the column.'),
        ('{queue_column}', '{type}', 'Type of the column.'),
        ('{queue_column}', '{collation}', 'Collation of the column; null: that of the type.'),
        ('{queue_column}', '{combiner}', 'Combiner of a value; null: a key.'),
        ('{handoff_server}', '{one}', 'True: there is one row.'),
        ('{restoring}', '{tx}', 'Id of the transaction.'),
        ('{expiry}', '{page}', 'The next page to scan.'),
        ('{expiry}', '{due}', 'When the scan continues.'),
        ('{expiry}', '{failed_at}', 'When the removal of expired keys last failed.'),
        ('{expiry}', '{failed_page}', 'See error.'),
        ('{right_privilege}', '{right}', 'Name of the right.'),
        ('{right_privilege}', '{object,privileges}', 'See the comment of the table.'),
        ('{sample}', '{kind}', 'pending or sizes.'),
        ('{sample}', '{at}', 'When the figures were found.'),
        ('{sample}', '{figures}', 'The figures, as JSON.'),
        ('{schema_version}', '{baseline}', 'SHA-256 of the first revision''s file.'),
        ('{schema_version}', '{digest}', 'SHA-256 of the SQL files that the last upgrade applied.'),
        ('{schema_version}', '{version_num}', 'The revision.'),
        ('{spark_alive,spark_load}', '{load}', 'Identity of the load.'),
        ('{spark_load}', '{number}', 'Number in the name of the table spark_stage_<number>.'),
        ('{spark_load}', '{run_id}', 'Name of the run.'),
        ('{spark_load}', '{kind}', 'stage: updates. values: initial values.'),
        ('{spark_load}', '{started_at}', 'When the load began.'),
        ('{spark_load}', '{expected}', 'Number of rows that the attempts wrote.'),
        ('{tick}', '{at}', 'When next_id was read.'),
        ('{tick}', '{next_id}', 'At that time no transaction with this id or a higher one had ended.'),
        ('{token}', '{token}', 'The token.'),
        ('{token}', '{at}', 'When its transaction began.'),
        ('{token}', '{stream}', 'Name of the stream of Spark; null: no stream.'),
        ('{token}', '{batch}', 'Number of the batch in the stream.'),
        (null, '{queue}', 'Name of the queue.'),
        (null, '{export}', 'Name of the export.'),
        (null, '{feed}', 'Name of the feed.'),
        (null, '{bucket}', 'Number of the bucket, from 0.'),
        (null, '{buckets}', 'Number of buckets.'),
        (null, '{destination}', 'Name of the server that the row concerns.'),
        (null, '{kind}', 'export or server.'),
        (null, '{name}', 'Name of the export or of the server.'),
        (null, '{state}', 'up, suspect, down or paused.'),
        (null, '{failures,attempts}', 'Number of failures in a row.'),
        (null, '{retry_at}', 'When the next attempt is due.'),
        (null, '{reason}', 'Why the last attempt failed, or why the destination is paused.'),
        (null, '{since}', 'When the state that the row describes began.'),
        (null, '{created_at}', 'When it was created.'),
        (null, '{updates}', 'Number of updates.'),
        (null, '{keys}', 'Number of keys of these updates.'),
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
    for _column in
        select d.objid::regclass as relation, a.attname as name, d.refobjid::regclass as owner
        from pg_depend d
        join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid and a.attidentity <> ''
        where d.classid = 'pg_class'::regclass and d.deptype = 'i'
          and (select c.relkind = 'S' and c.relnamespace = 'pgcombine'::regnamespace
               from pg_class c where c.oid = d.objid)
    loop
        execute format('comment on sequence %s is %L', _column.relation,
            format('Numbers for %s.%s.', _column.owner, _column.name));
    end loop;
end
$$;
