-- The export that writes changes to the search table.
select queue, exporter, target, state from pgcombine.export_stat where export = 'phrases_search'
