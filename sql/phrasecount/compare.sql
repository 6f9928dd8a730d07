-- phrasecount.compare(load, directory)
-- Finds what the run is to change, first the URIs (table move), then the documents (table delta). A document is live
-- while a URI of some directory refers to it, so only its first and its last reference count. Files with a problem, and
-- files beyond --limit, count as absent.
--   load       the run
--   directory  real path of the directory; it has no stored documents before its first run
--   documents  number of files counted
--   added, edited, removed  numbers of URIs
--   live, dead  numbers of documents that get their first reference, and that lose their last one
--   left_out   number of occurrences of phrases that are too long to be a key, in the documents that become live
--   bytes      size of the documents of live and dead
-- Tables written: phrasecount.move, delta.
create or replace function phrasecount.compare(load uuid, directory text,
    out documents bigint, out added bigint, out edited bigint, out removed bigint, out live bigint, out dead bigint,
    out left_out bigint, out bytes bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    _directory constant integer := (select d.id from phrasecount.directory d where d.path = compare.directory);
begin
    insert into phrasecount.move (load, n, path, content_hash, document, old_document)
    select l.load, l.n, l.path, s.content_hash, s.document, u.document
    from phrasecount.listed l
    join phrasecount.scanned s on s.load = l.load and s.n = l.n and s.content_hash is not null
    left join phrasecount.uri u on u.directory = _directory and u.path = l.path
    where l.load = compare.load and l.counted;

    insert into phrasecount.move (load, path, old_document)
    select compare.load, u.path, u.document
    from phrasecount.uri u
    where u.directory = _directory
      and not exists (
          select from phrasecount.listed l
          where l.load = compare.load and l.path = u.path and l.counted
            and not exists (
                select from phrasecount.scanned s
                where s.load = l.load and s.n = l.n and s.problem is not null));

    insert into phrasecount.delta (load, position, document, refs, sign, n)
    select compare.load, case when s.sign <> 0 then row_number() over (partition by s.sign <> 0) end,
        c.document, c.refs, s.sign, c.n
    from (
        select x.document, sum(x.refs) as refs, min(x.n) as n
        from (
            select m.document, 1 as refs, m.n from phrasecount.move m
            where m.load = compare.load and m.document is not null
            union all
            select m.old_document, -1, null from phrasecount.move m
            where m.load = compare.load and m.old_document is not null
        ) x
        group by x.document
    ) c
    left join phrasecount.document d on d.hash = c.document
    cross join lateral (
        select case when d.hash is null then 1 when d.refs + c.refs = 0 then -1 else 0 end as sign
    ) s
    where c.refs <> 0;

    select count(*) filter (where m.old_document is null),
           count(*) filter (where m.old_document is not null and m.document is not null),
           count(*) filter (where m.document is null)
    into added, edited, removed
    from phrasecount.move m where m.load = compare.load;
    select count(*) filter (where d.sign = 1), count(*) filter (where d.sign = -1),
           coalesce(sum(s.left_out) filter (where d.sign = 1), 0)
    into live, dead, left_out
    from phrasecount.delta d
    left join phrasecount.scanned s on s.load = d.load and s.n = d.n
    where d.load = compare.load;
    select (select count(*) from phrasecount.listed l where l.load = compare.load and l.counted)
         - (select count(*) from phrasecount.scanned s where s.load = compare.load and s.problem is not null)
    into documents;
    select coalesce(sum(octet_length(c.tokens)), 0)
    into bytes
    from phrasecount.delta d
    join phrasecount.document_chunk c on c.document = d.document
    where d.load = compare.load and d.sign <> 0;
end
$$;
