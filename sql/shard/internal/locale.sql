-- pgcombine_internal.locale() → text
-- Returns how the database encodes and orders text: encoding, provider, collation, character type, locale.
create or replace function pgcombine_internal.locale()
returns text
language sql stable
as $$
    select concat_ws(' ', pg_encoding_to_char(d.encoding), d.datlocprovider, d.datcollate, d.datctype,
        to_jsonb(d) ->> 'daticulocale', to_jsonb(d) ->> 'datlocale') -- daticulocale until PostgreSQL 16
    from pg_database d where d.datname = current_database()
$$;
