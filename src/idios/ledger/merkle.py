"""A Merkle tree of two levels: one short root proves what is stored under a tag, and that nothing is.

    root = 64 digests,  node = 64 digests,  leaf = (tag, value) pairs in the order of their tags

A tag says in its first bits which leaf it belongs to. A page that is not there has the digest 0…0. Digests are keyed,
so only a holder of the key can tell where a tag goes or make another page for a digest. The tree is a function of its
content, whatever the order of insertion. With a million tags a leaf has six kilobytes.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, MutableMapping

from idios.errors import LedgerTampered
from idios.ledger.tables import VERIFY

FANOUT = 64
DIGEST = 16
TAG = 10
PLACE = 2
"""How many bytes of a tag say where it belongs; a leaf is named by their first 12 bits."""
# A leaf repeats what its name does not say: the tag without its first byte.
_OWN = 1
_SLOT = TAG - _OWN + DIGEST
_NOTHING = bytes(DIGEST)

EMPTY = _NOTHING * FANOUT
"""The root of a tree with nothing in it."""
TOP = 0
"""The number of the root's page; its nodes follow, then all leaves."""


class Tree:
    """A tree as one transaction sees it: pages are fetched when they are needed, checked, and changed in memory."""

    def __init__(
        self, key: bytes, root: bytes, fetch: Callable[[int], bytes | None], cache: MutableMapping[bytes, bytes]
    ) -> None:
        self.root = root
        self._key = key
        self._fetch = fetch
        # By digest: a page that was right for its digest once always is.
        self._cache = cache
        self._changed: dict[int, bytes] = {}

    def get(self, tag: bytes) -> bytes | None:
        """Return the value under the tag, if there is one."""
        leaf, own = self._leaf(_get_leaf_number(tag)), tag[_OWN:]
        at = _find_slot(leaf, own)
        return leaf[at + len(own) : at + _SLOT] if leaf.startswith(own, at) else None

    def put(self, tag: bytes, value: bytes) -> None:
        """Keep the value under the tag."""
        number, own = _get_leaf_number(tag), tag[_OWN:]
        leaf = self._leaf(number)
        at = _find_slot(leaf, own)
        after = at + _SLOT if leaf.startswith(own, at) else at
        self._changed[number] = leaf[:at] + own + value + leaf[after:]

    def flush(self) -> dict[int, bytes]:
        """Return the pages that changed, without the root, and bring the root up to them."""
        written = self._changed
        nodes: dict[int, bytes] = {}
        for number, leaf in written.items():
            above, place = divmod(number - 1 - FANOUT, FANOUT)
            node = nodes.get(above + 1) or self._node(above)
            nodes[above + 1] = _replace_digest(node, place, self._digest(number, leaf))
        for number, node in nodes.items():
            self.root = _replace_digest(self.root, number - 1, self._digest(number, node))
        self._changed = {}
        return written | nodes

    def _leaf(self, number: int) -> bytes:
        if number in self._changed:
            return self._changed[number]
        above, place = divmod(number - 1 - FANOUT, FANOUT)
        return self._page(number, self._node(above), place, b"")

    def _node(self, above: int) -> bytes:
        return self._page(1 + above, self.root, above, EMPTY)

    def _page(self, number: int, above: bytes, place: int, empty: bytes) -> bytes:
        expected = above[place * DIGEST : (place + 1) * DIGEST]
        if expected == _NOTHING:
            return empty
        known = self._cache.get(expected)
        if known is not None:
            return known
        content = self._fetch(number)
        if content is None or not hmac.compare_digest(self._digest(number, content), expected):
            raise LedgerTampered(f"page {number} of the proof of the ledger's tables is not what was signed; {VERIFY}")
        self._cache[expected] = content
        return content

    def _digest(self, number: int, content: bytes) -> bytes:
        digest = hmac.digest(self._key, b"page %d:" % number + content, "sha256")[:DIGEST]
        self._cache[digest] = content
        return digest


def _get_leaf_number(tag: bytes) -> int:
    return 1 + FANOUT + (int.from_bytes(tag[:PLACE]) >> 4)


def _find_slot(leaf: bytes, own: bytes) -> int:
    """Say where the tag stands or would stand in the leaf."""
    low, high = 0, len(leaf) // _SLOT
    while low < high:
        middle = (low + high) // 2
        if leaf[middle * _SLOT : middle * _SLOT + len(own)] < own:
            low = middle + 1
        else:
            high = middle
    return low * _SLOT


def _replace_digest(page: bytes, place: int, digest: bytes) -> bytes:
    return page[: place * DIGEST] + digest + page[(place + 1) * DIGEST :]
