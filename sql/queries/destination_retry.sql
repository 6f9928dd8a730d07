-- Returns the seconds until a destination may be tried; 0: it may be tried now; infinity: it is paused.
-- Parameters: kind and name of the destination.
select case state when 'paused' then 'inf'
            else greatest(0, coalesce(extract(epoch from retry_at - clock_timestamp()), 0)) end::double precision
from pgcombine_internal.require_destination(%s, %s)
