"""Count the size of the product, from its sources and from a new database.

``python -m tests.programs.size`` counts the working tree, ``python -m tests.programs.size 2da02cb .`` also a commit.
``--verbose`` lists the counted items. The counts are:

- **Functions**: those of the schemas ``pgcombine`` and ``pgcombine_internal`` after ``db upgrade``, with procedures,
  aggregates and trigger functions.
- **SQL lines of core**: the lines of the files in ``sql/core``, with comments.
- **On the way of an update**: the functions in ``ROOTS`` (such as the triggers of an insert, ``enqueue``, a pass
  and reclaiming) and all functions that they call by name, directly or indirectly. The modules of the worker's loop
  count, too: ``wakeup`` and the worker's folder without ``BESIDE``; in versions without such a folder, the modules in
  ``FLAT``. Names in hints of errors aren't calls.
- **Placeholders**: the different ``{names}`` in those functions on the way that are in the folder ``pass``. Each
  function with a placeholder is a **stage**.
- **Longest line of SQL**: the number of characters of the longest line in the files in ``sql``.
- **Python**: the lines of the package without ``bench``. **SQL literals**: the strings in these lines that begin like a
  statement on data or objects and are more than a call of one function. Statements about the session or the
  transaction don't count.
- **Tests**: lines of Python in ``tests``. **Words**: the words of ``README.md`` and of the pages in ``pgcombine/docs``.
"""
