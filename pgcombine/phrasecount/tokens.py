r"""Tokens and phrases of a text.

Tokens are those of ``re.split(r"[\W_]+", text.lower())``, empties dropped; a phrase is :data:`WIDTH` of them
in a row, joined by one space. A text is worked in *chunks*: bounded strings of tokens, each starting with the
last ``WIDTH - 1`` tokens of the one before, so that every phrase lies in exactly one chunk and neither a task
nor a table row ever holds a whole document.

A phrase of more than :data:`MAX_PHRASE_BYTES` can't be a queue's key and isn't counted. A token longer than
that is cut in the chunk, to a length that still keeps every phrase with it out; the document's hash is of
the whole token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WIDTH = 4
MAX_PHRASE_BYTES = 2600
CHUNK_CHARACTERS = 32 * 1024

_LONG = (MAX_PHRASE_BYTES - WIDTH) // (4 * WIDTH)  # no phrase of shorter tokens is too long: 4 bytes a character
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass
class Document:
    """A text's chunks, to be read once; the other members hold when they have been read to the end.

    ``tokens`` counts them, ``left_out`` the phrases too long to be a key.
    """

    text: str
    tokens: int = 0
    left_out: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def chunks(self, size: int = CHUNK_CHARACTERS) -> Iterator[str]:
        """Strings of tokens joined by a space, from about ``size`` characters of the text each."""
        text = self.text.lower()  # as a whole: the lower case of a final sigma depends on what follows
        self.text = ""
        start = 0
        overlap: list[str] = []
        while start < len(text):
            separator = _SEPARATORS.search(text, start + size)
            end = separator.start() if separator else len(text)
            found = [token for token in _SEPARATORS.split(text[start:end]) if token]
            start = end
            if not found:
                continue
            self.tokens += len(found)
            self._hash.update((" ".join(found) + " ").encode())
            chunk = overlap + [token[: MAX_PHRASE_BYTES + 1] for token in found]
            overlap = chunk[-(WIDTH - 1) :]
            joined = " ".join(chunk)
            if max(map(len, chunk)) >= _LONG:  # seldom
                self.left_out += sum(len(phrase.encode()) > MAX_PHRASE_BYTES for phrase in phrases(joined))
            yield joined

    def hash(self) -> str:
        """SHA-256 (hex) over the tokens: documents with the same tokens are one document."""
        return self._hash.hexdigest()


def phrases(chunk: str) -> Iterator[str]:
    """The phrases of a chunk, too long ones included."""
    tokens = chunk.split(" ")
    return map(" ".join, zip(*(tokens[offset:] for offset in range(WIDTH)), strict=False))
