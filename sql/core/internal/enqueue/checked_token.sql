-- pgcombine_internal.checked_token(queue, token [, kind]) → text
-- Returns the token.
--   kind  what the error calls it
-- Errors: PC004 the token is null, empty or too long.
create or replace function pgcombine_internal.checked_token(queue text, token text, kind text default 'token')
returns text
language plpgsql immutable
as $$
begin
    if coalesce(octet_length(token), 0) not between 1 and 1024 then
        raise exception 'a % for queue "%" is %', kind, queue,
            case when token is null then 'null' when token = '' then 'empty' else format(
                'too long: %s… has %s bytes', left(token, 60), octet_length(token)) end
            using errcode = 'PC004',
                hint = 'give 1 to 1024 bytes that name the input, such as the id of its event, or a hash of it';
    end if;
    return token;
end
$$;
