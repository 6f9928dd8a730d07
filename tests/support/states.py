"""What tests expect of a refusal: its SQLSTATE, and values that its message names. Not its wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest


@contextmanager
def raises_state(sqlstate: str, *values: object) -> Iterator[pytest.ExceptionInfo[psycopg.Error]]:
    """Expect an error of the server with this SQLSTATE, whose text names the values."""
    with pytest.raises(psycopg.Error) as raised:
        yield raised
    assert raised.value.sqlstate == sqlstate, raised.value
    assert [value for value in values if str(value) not in str(raised.value)] == [], raised.value
