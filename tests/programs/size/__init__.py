"""How large the product is: the counts of the core's budget, from the sources and from a new database.

``python -m tests.programs.size`` counts the working tree, ``python -m tests.programs.size 2da02cb .`` a commit beside
it. ``--verbose`` prints what was counted. What is counted how:

- **Functions**: those of the schemas ``pgcombine`` and ``pgcombine_internal`` after ``db upgrade``, with procedures,
  aggregates and triggers.
- **SQL lines of core**: ``sql/core`` if there is one. Otherwise the folders in ``CORE``, and what there is in the
  folders for all subjects (``public``, ``triggers``, ``views``) without the names in ``COMPONENTS``. Comments count.
  Attached tables are told apart, unless they are in ``sql/core``.
- **On the way of an update**: the functions in ``ROOTS`` (the triggers of an insert, ``enqueue``, a pass, what
  reclaims) and those that are called, by name, from these or from one another; with the modules of the worker's loop,
  which are those of its folder without ``BESIDE``, and ``wakeup``. Names in hints of errors aren't calls.
- **Placeholders**: different ``{names}`` in the functions of the folder ``pass`` on that way. Each such function is a
  stage.
- **Python**: the package without ``bench``. **SQL literals**: strings in it that begin as a statement on data or
  objects does, and are more than a call of one function. Statements about the session or the transaction don't count.
- **Tests**: lines of Python in ``tests``. **Words**: those of ``README.md`` and of the pages in ``pgcombine/docs``.
"""
