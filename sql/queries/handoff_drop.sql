-- Deletes a hint that can't be delivered, since its updates are in the quarantine. Parameters: server, token.
delete from pgcombine.handoff_hint where destination = %s and token = %s
