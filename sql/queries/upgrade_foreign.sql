-- Raises an error if the query foreign_objects finds an object.
do $$
declare
    _what text;
    _owner text;
    _role text;
begin
    for _what, _owner, _role in
{foreign_objects}
    loop
        raise exception '% belongs to the role "%", whose code would run as each user of pgcombine', _what, _owner
            using errcode = '42501',
                hint = format('Apply this file as "%s" if that role is to own pgcombine; else drop '
                'the object, or give it to "%s".', _owner, _role);
    end loop;
end
$$
