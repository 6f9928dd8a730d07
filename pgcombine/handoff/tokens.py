"""Tokens: UUIDs of version 7 (RFC 9562), which sort by the time at which they were made."""

from __future__ import annotations

import secrets
import time
import uuid

from pgcombine.errors import ConfigError


def new_token() -> uuid.UUID:
    """A new token: 48 bits of milliseconds, 74 random ones."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 0x7 << 76
    return uuid.UUID(int=number & ~(0x3 << 62) | 0x2 << 62)


def as_token(given: uuid.UUID | str | None) -> uuid.UUID:
    """The token given, or a new one. Raises ConfigError for what is no UUID of version 7."""
    if given is None:
        return new_token()
    try:
        token = given if isinstance(given, uuid.UUID) else uuid.UUID(given)
    except ValueError as error:
        raise ConfigError(f"{given!r} is no token; give a UUID of version 7, or none") from error
    if token.version != 7:
        raise ConfigError(
            f"{token} is no token: it is a UUID of version {token.version}; give one of version 7, or none"
        )
    return token
