"""Imports the user's application, which ``module:attribute`` names, and finds its queues with their observers.

The attribute is a :class:`~pgcombine.CombineQueue`, an iterable of them, or an object whose ``queues`` is one of these.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

from pgcombine.errors import ConfigError
from pgcombine.queue.combine_queue import CombineQueue


def load(name: str) -> list[CombineQueue]:
    """Import ``module:attribute``, and return its queues. The current directory is on the search path, too."""
    return queues(attribute(name), name)


def attribute(name: str) -> Any:
    """Import the object ``module:attribute``. The current directory is on the search path, too.

    Raises ConfigError if ``name`` has another form, the module can't be imported, or it has no such attribute.
    """
    module, colon, path = name.partition(":")
    if not module or not colon or not path:
        raise ConfigError(f"the application {name!r} isn't module:attribute, such as shop:queues")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # the module's own code runs, and may raise anything
        raise ConfigError(f"the application {name!r} can't be imported: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"the application {name!r} can't be found: {module} has no {path!r}")
        found = getattr(found, part)
    return found


def queues(app: Any, name: str = "app") -> list[CombineQueue]:
    """Return the queues of an application.

    Raises ConfigError if there is no queue, if an object isn't a queue, or if two queues have the same name.
    """
    app = getattr(app, "queues", app)
    found = [app] if isinstance(app, CombineQueue) else list(app) if isinstance(app, Iterable) else []
    if not found or not all(isinstance(queue, CombineQueue) for queue in found):
        raise ConfigError(f"the application {name!r} must be a CombineQueue or an iterable of them, not {app!r}")
    names = [queue.name for queue in found]
    if len(set(names)) < len(names):
        raise ConfigError(f"the application {name!r} must not have two queues of one name: {', '.join(sorted(names))}")
    return found
