-- Records that the destination has deleted the keys that the full state of an epoch lacks. Parameters: the export's
-- name, the epoch.
update pgcombine.export set sweep = null where export = %s and epoch = %s
