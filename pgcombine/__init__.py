"""pgcombine: combine queues on PostgreSQL, for counters and aggregates that many transactions update at once.

Transactions append updates to a :class:`CombineQueue`. A :class:`Worker`, or :func:`drain`, combines them into new
values. ``pgcombine.errors`` has the exceptions, ``pgcombine.operations`` has operations for Alembic migrations, and
``pgcombine.testing`` has fixtures for pytest.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgcombine.facade import *  # noqa: F403

    __version__: str
else:
    # A name is imported at its first use, so that ``import pgcombine`` is fast.
    def __getattr__(name):
        from importlib import import_module, metadata, util

        if name == "__version__":
            value = metadata.version(__name__)
        elif name == "__all__":
            import_module("pgcombine.errors")  # first, since it says what to do if psycopg finds no libpq
            names = vars(import_module("pgcombine.facade"))
            value = [*sorted(name for name in names if not name.startswith("_")), "__version__"]
        elif not util.find_spec(f"pgcombine.{name}") and name in __getattr__("__all__"):
            value = getattr(import_module("pgcombine.facade"), name)
        else:  # also for a submodule that isn't imported yet: after the error, from … import imports it
            raise AttributeError(f"module 'pgcombine' has no attribute {name!r}")
        globals()[name] = value  # so that the next look-up doesn't call this function
        return value

    def __dir__():
        return __getattr__("__all__")
