-- pgcombine_internal.checked_token(queue, token) → text
-- Returns the token.
-- Errors: PC004 the token is null, empty or too long.
create or replace function pgcombine_internal.checked_token(queue text, token text)
returns text
language plpgsql immutable
as $$
begin
    if coalesce(octet_length(checked_token.token), 0) not between 1 and 1024 then
        raise exception 'a token for queue "%" is %', checked_token.queue,
            case when checked_token.token is null then 'null' when checked_token.token = '' then 'empty' else format(
                'too long: %s… has %s bytes', left(checked_token.token, 60), octet_length(checked_token.token)) end
            using errcode = 'PC004',
                hint = 'give 1 to 1024 bytes that name the input, such as the id of its event, or a hash of it';
    end if;
    return checked_token.token;
end
$$;
