-- Makes the search table in the queue's own database, with the present values. Their sequence 0 is below that of every
-- entry of the export.
drop table if exists phrasecount.search;
create table phrasecount.search as
select phrase collate "C" as phrase, docs, total, 0::bigint as pgcombine_seq, false as pgcombine_deleted
from pgcombine.phrases_values;
alter table phrasecount.search alter pgcombine_seq set not null, alter pgcombine_deleted set not null,
    add primary key (phrase);
