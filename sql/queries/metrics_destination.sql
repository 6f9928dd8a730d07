select kind, name as destination, (state = 'up')::integer as up from pgcombine.destination
