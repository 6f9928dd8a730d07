-- Records that the keys that an epoch's full state lacks are now marked as deleted at the destination (see
-- export_sweep). Parameters: the name of the export; the epoch.
update pgcombine.export set sweep = false where export = %s and epoch = %s
