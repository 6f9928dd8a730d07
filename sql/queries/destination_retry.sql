-- The seconds until a destination may be tried again; infinite for a paused one. Parameters: its kind, its name.
select case state when 'paused' then 'inf'
            else greatest(0, coalesce(extract(epoch from retry_at - clock_timestamp()), 0)) end::double precision
from pgcombine_internal.require_destination(%s, %s)
