-- The schema phrasecount: what the example application stores. pgcombine phrasecount applies this file, and then the
-- functions beside it, in one transaction: at its first use in a database, and again when one of these files has
-- changed. So each statement can be repeated. A change of a table that exists is a statement after the table, such as
-- alter table … add column if not exists …. A function whose parameters or result change is dropped here: drop function
-- if exists ….
do $$
begin
    if to_regnamespace('phrasecount') is null then
        create schema phrasecount;
    end if;
exception when duplicate_schema or unique_violation then null; -- another run has made it meanwhile
end
$$;
comment on schema phrasecount is ''; -- locks out other runs that do this; any role could take an advisory lock
drop function if exists phrasecount.keep_search(text, boolean),
    phrasecount.note(uuid, integer[], bytea[], bytea[], bigint[], text[], text[]);

create table if not exists phrasecount.directory (
    id   integer generated always as identity primary key,
    path text not null unique
);
comment on table phrasecount.directory is 'Directories that were counted, by real path.';

create table if not exists phrasecount.document (
    hash bytea primary key,
    refs bigint not null check (refs > 0)
);
comment on table phrasecount.document is
    'Live documents, by SHA-256 of their tokens; refs is the number of URIs, over all directories.';

create table if not exists phrasecount.document_chunk (
    document bytea not null,
    seq      integer not null,
    tokens   text not null,
    primary key (document, seq)
);
comment on table phrasecount.document_chunk is
    'Tokens of a document in bounded rows; each starts with the last three tokens of the one before.';

create table if not exists phrasecount.uri (
    directory    integer not null references phrasecount.directory on delete cascade,
    path         text not null,
    content_hash bytea not null,
    document     bytea not null references phrasecount.document,
    primary key (directory, path)
);
create index if not exists uri_document on phrasecount.uri (document);
comment on table phrasecount.uri is
    'Files that were counted: path below the directory, SHA-256 of the content, and the document it holds.';

create table if not exists phrasecount.kept (
    document bytea primary key
);
comment on table phrasecount.kept is
    'Documents whose chunks were written by a run that has not committed; the next run removes those of a dead one.';

-- Work tables. The rows of a run have its load; the next run removes the rows of a run that died. They are unlogged,
-- since a crash of the server ends the run.
create unlogged table if not exists phrasecount.listed (
    load    uuid not null,
    n       integer not null,
    path    text not null,
    counted boolean not null,
    primary key (load, n)
);
comment on table phrasecount.listed is 'Work: files found; not counted are those beyond --limit.';

create unlogged table if not exists phrasecount.scanned (
    load         uuid not null,
    n            integer not null,
    content_hash bytea,
    document     bytea,
    left_out     bigint not null default 0,
    problem      text,
    detail       text,
    primary key (load, n)
);
comment on table phrasecount.scanned is
    'Work: of each new or edited file its hashes and how many phrases are too long to be a key, or its problem.';

create unlogged table if not exists phrasecount.move (
    load         uuid not null,
    n            integer,
    path         text not null,
    content_hash bytea,
    document     bytea,
    old_document bytea
);
comment on table phrasecount.move is 'Work: URIs that are new, edited or gone (document is null).';

create unlogged table if not exists phrasecount.delta (
    load     uuid not null,
    position bigint,
    document bytea not null,
    refs     bigint not null,
    sign     integer not null,
    n        integer
);
create index if not exists delta_position on phrasecount.delta (load, position);
comment on table phrasecount.delta is
    'Work: documents whose references change; sign 1 becomes live, -1 dies; n is a file that holds it.';
