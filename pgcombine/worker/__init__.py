"""Workers: they look for pending updates, run passes, deal with failing keys, and keep the database tidy."""
