"""pytest doesn't collect the tests of the shop here: ``test_shop.py`` runs them in another process."""

collect_ignore = ["shop"]
