"""Identity and signatures of HTTP requests, as in Standard Webhooks 1.0 (https://www.standardwebhooks.com).

The standard's library signs with one secret, and takes the body as a text, so this module signs with :mod:`hmac`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pgcombine.errors import ConfigError

PREFIX = "whsec_"

# secrets with white space between them, or a function that returns them, for example from a file that changes
Secrets: TypeAlias = str | Callable[[], str]


def keys(secrets: Secrets | None) -> list[bytes]:
    """Return the key of each secret. If ``secrets`` is None, there are no keys, and nothing is signed.

    Raises ConfigError for a malformed secret, and for a text without a secret. The error doesn't show the secret.
    """
    if secrets is None:
        return []
    found = (secrets() if callable(secrets) else secrets).split()
    if not found:
        raise ConfigError("no webhook secret is given, but signatures are asked for")
    return [_key(secret, number) for number, secret in enumerate(found, 1)]


def _key(secret: str, number: int) -> bytes:
    text = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise ConfigError(
            f"webhook secret {number} must be {PREFIX} followed by 24 to 64 bytes in base64 "
            f'(echo "{PREFIX}$(openssl rand -base64 32)" makes one)'
        )
    return key


def headers(message: str, body: bytes, keys: Sequence[bytes], now: float) -> dict[str, str]:
    """Return the headers of a request: its id ``message``, its time, and a signature with each key."""
    found = {"webhook-id": message, "webhook-timestamp": str(int(now))}
    if keys:
        head = f"{message}.{found['webhook-timestamp']}.".encode()
        found["webhook-signature"] = " ".join(_signature(key, head, body) for key in keys)
    return found


def _signature(key: bytes, head: bytes, body: bytes) -> str:
    signature = hmac.new(key, head, hashlib.sha256)
    signature.update(body)  # head + body would copy the body
    return f"v1,{base64.b64encode(signature.digest()).decode()}"
