-- Closes gates: the state of each, see close_gate. Parameter: the gates.
select gate, pgcombine_internal.close_gate(gate) from unnest(%s::oid[]) gate
