grant select on pgcombine.hint_stat to public; -- the view has rows only for roles that monitor or replay
