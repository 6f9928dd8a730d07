-- pgcombine.unseen_sql(mark [, new]) → text
-- The condition that an update isn't combined by this mark, and is what a pass with the mark new takes (null: all that is
-- visible). The mark has its ids in progress by name, so that a transaction which stays open for long costs nothing else.
create or replace function pgcombine.unseen_sql(mark txid_snapshot, new txid_snapshot default null)
returns text
language sql stable
as $$
    select format('(pgcombine_tx >= %s%s)', txid_snapshot_xmax(mark),
               ' or pgcombine_tx = any (' || quote_literal(nullif(array(select txid_snapshot_xip(mark))::text, '{}')) || ')')
           || case when new is null then '' else format(' and pgcombine_tx < %s%s', txid_snapshot_xmax(new),
               ' and pgcombine_tx <> all (' || quote_literal(nullif(array(select txid_snapshot_xip(new))::text, '{}')) || ')') end
$$;
