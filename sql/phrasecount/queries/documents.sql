-- How many documents are recorded.
select count(*) from phrasecount.document
