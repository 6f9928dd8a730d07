-- Notes that the destination has deleted the keys from before an epoch's full state. Parameters: the export's name, the
-- epoch.
update pgcombine.export set sweep = null where export = %s and epoch = %s
