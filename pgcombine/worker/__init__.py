"""Workers look for pending updates, run passes, quarantine failing keys, and keep the database tidy."""
