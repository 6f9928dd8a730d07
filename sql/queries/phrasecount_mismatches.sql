-- The first phrases whose counts differ from a recount, and how many there are. Parameters: load, examples.
select m.*, count(*) over () from phrasecount.mismatches(%(load)s) m order by m.phrase limit %(examples)s
