-- pgcombine.holds_right(right, role [, subject]) → boolean
-- Whether all that a right consists of is granted to a role itself (not to a role that it is a member of).
--   subject  as in right_privileges; null: whether it holds for any subject at all
create or replace function pgcombine.holds_right("right" text, role name, subject text default null)
returns boolean
language sql stable
as $$
    select not exists (select p from pgcombine.right_privileges(holds_right."right") p
                       except select g from pgcombine.granted_privileges(holds_right.role) g)
       and case when holds_right.subject is null and holds_right."right" not in ('monitor', 'replay')
           then exists (select from pgcombine.right_subjects(holds_right."right", '{*}') s
                        where pgcombine.holds_right(holds_right."right", holds_right.role, s))
           else not exists (select p from pgcombine.right_privileges(holds_right."right", holds_right.subject) p
                            except select g from pgcombine.granted_privileges(holds_right.role) g) end
$$;
