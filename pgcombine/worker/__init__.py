"""Workers: they poll for pending updates, run passes, quarantine failing keys, and clean up."""
