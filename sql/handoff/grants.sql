grant select on pgcombine.hint_stat to public; -- shows each reader only the rows that it may see
