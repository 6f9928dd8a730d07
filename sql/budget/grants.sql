-- Every role may see the definitions of budgets.
grant select on pgcombine.budget to public;
