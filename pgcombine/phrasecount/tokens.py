r"""Tokens and phrases of a text.

Tokens are the non-empty parts of ``re.split(r"[\W_]+", text.lower())``. A phrase is :data:`WIDTH` tokens in a row,
joined by one space. A text is split into *chunks*, which are bounded strings of tokens. Each chunk starts with the last
``WIDTH - 1`` tokens of the chunk before. So an occurrence of a phrase is in exactly one chunk. Each chunk is stored in
a table row, so a long document makes no large row.

A phrase of more than :data:`MAX_PHRASE_BYTES` bytes isn't counted, since it could be too long for a queue's key. In a
chunk, a token is cut after ``MAX_PHRASE_BYTES + 1`` characters. A cut token is still too long for a phrase. The
document's hash covers the whole token.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

WIDTH = 4
MAX_PHRASE_BYTES = 2600
CHUNK_CHARACTERS = 32 * 1024
_COUNTED_CHARACTERS = 512 * 1024  # how much text is counted at once, which limits the memory

# characters; a phrase of shorter tokens is never too long, since a character has at most 4 bytes
_LONG = (MAX_PHRASE_BYTES - WIDTH) // (4 * WIDTH)
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass
class Document:
    """A text, and the iterator of its chunks.

    ``tokens`` is the number of tokens. ``left_out`` is the number of occurrences of phrases that are too long for a
    key. Both, and the hash, are final when all chunks were read.
    """

    text: str
    tokens: int = 0
    left_out: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def chunks(self, size: int = CHUNK_CHARACTERS) -> Iterator[str]:
        """Yield strings of tokens joined by a space, each from about ``size`` characters of the text.

        The first call uses up the text, so a second one yields nothing.
        """
        # The whole text is converted at once, since the lower case of a final sigma depends on the next character.
        text = self.text.lower()
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
            if max(map(len, chunk)) >= _LONG:
                self.left_out += sum(len(phrase.encode()) > MAX_PHRASE_BYTES for phrase in phrases(joined))
            yield joined

    def hash(self) -> str:
        """Return the SHA-256 (hex) of the tokens. Texts with the same tokens are one document."""
        return self._hash.hexdigest()


def phrases(chunk: str) -> Iterator[str]:
    """Return the phrases of a chunk, including those that are too long."""
    tokens = chunk.split(" ")
    return map(" ".join, zip(*(tokens[offset:] for offset in range(WIDTH)), strict=False))


def counted(chunks: Sequence[str]) -> Iterator[Counter[str]]:
    """Count the phrases in the chunks of one document. Phrases that are too long for a key are left out.

    A large document yields several counters. Each phrase is in one of them.
    """
    parts = 1 + sum(map(len, chunks)) // _COUNTED_CHARACTERS
    for part in range(parts):
        found: Counter[str] = Counter()
        for chunk in chunks:
            every = phrases(chunk)
            found.update(every if parts == 1 else (phrase for phrase in every if hash(phrase) % parts == part))
        for phrase in [one for one in found if len(one) > MAX_PHRASE_BYTES // 4]:
            if len(phrase.encode()) > MAX_PHRASE_BYTES:
                del found[phrase]
        yield found


def summed(
    documents: Iterable[tuple[int, Counter[str]]], most: float = math.inf
) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Add up the counters of documents. The sign is 1 for a document that is added, and -1 for one that is removed.

    Yields two counters with the same keys in the same order: in how many documents a phrase is, and how often it
    occurs. If there are more than ``most`` phrases, several pairs are yielded, and a phrase may be in each of them.
    """
    docs: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for sign, found in documents:
        if sign > 0:
            docs.update(found.keys())
            total.update(found)
        else:
            docs.subtract(found.keys())
            total.subtract(found)
        if len(docs) > most:
            yield docs, total
            docs, total = Counter(), Counter()
    yield docs, total
