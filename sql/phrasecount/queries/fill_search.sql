-- Makes the search table in the queue's database, with the current values. The rows get the sequence 0, so that each
-- entry of the export, which has a higher sequence, replaces the row of its key.
drop table if exists phrasecount.search;
create table phrasecount.search as
select phrase collate "C" as phrase, docs, total, 0::bigint as pgcombine_seq, false as pgcombine_deleted
from pgcombine.phrases_values;
alter table phrasecount.search alter pgcombine_seq set not null, alter pgcombine_deleted set not null,
    add primary key (phrase);
