-- phrasecount.mismatches(load)
-- Compares a recount, staged as load, with the values of queue phrases, every row of both.
-- Returns a row for each phrase whose counts differ; null where a side doesn't have the phrase.
create or replace function phrasecount.mismatches(load uuid)
returns table (phrase text, docs bigint, total bigint, recounted_docs bigint, recounted_total bigint)
language sql stable
as $$
    select phrase, v.docs, v.total, r.docs, r.total
    from pgcombine.phrases_values v
    full join (
        select d.phrase, d.docs, d.total from phrasecount.difference_once d
        where d.load = mismatches.load and d.phrase is not null
    ) r using (phrase)
    where (v.docs, v.total) is distinct from (r.docs, r.total)
$$;
