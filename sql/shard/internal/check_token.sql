-- pgcombine_internal.check_token(queue, token)
-- Raises an error unless a token for a front has 1 to 1024 bytes, as take_token does for a queue.
-- Errors: PC004 the token is null, empty or too long.
create or replace function pgcombine_internal.check_token(queue text, token text)
returns void
language plpgsql immutable
as $$
begin
    if coalesce(octet_length(check_token.token), 0) not between 1 and 1024 then
        raise exception 'a token for queue "%" is %', check_token.queue,
            case when check_token.token is null then 'null' when check_token.token = '' then 'empty'
                else format('too long: %s… has %s bytes', left(check_token.token, 60), octet_length(check_token.token))
            end
            using errcode = 'PC004',
                hint = 'give 1 to 1024 bytes that name the input, such as the id of its event, or a hash of it';
    end if;
end
$$;
