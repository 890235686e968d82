"""Rows are trusted only with proof: a writer of the database without the key is refused, whatever they write.

Rules:

1. Every derived row is in a Merkle tree, by its table and primary key, with a digest of all it says. A row
   that was changed, added or removed does not agree with the tree.
2. The tree's root is sealed together with the end of the chain, in the transaction that appends there. An older tree is
   not the one of this end, so that rows that were true once cannot be put back.
3. A process remembers the newest end that it has seen, and follows the chain from there by its signatures. An end that
   lies before it or beside it is refused: that is how a whole older state is found, such as a restored copy.

One case is left, a whole older state before a process that has seen nothing newer; an anchor finds that.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, select

from idios.codec import canonical, field_types
from idios.errors import LedgerTampered
from idios.ledger.chain import BEGINNING, START, Anchor, is_signed, read_entries, read_last
from idios.ledger.key import derive
from idios.ledger.state import ROWS, DerivedRow, PrimaryKey, SomeRow, get_primary_key
from idios.ledger.statements import run, write_marks
from idios.ledger.tables import VERIFY, merkle, read_row
from idios.ledger.values import RECORDS, Plain

# A Merkle tree of two levels: one short root proves what is stored under a tag, and that nothing is.
#
#     root = 64 digests,  node = 64 digests,  leaf = (tag, value) pairs in the order of their tags
#
# A tag says in its first bits which leaf it belongs to. A page that is not there has the digest 0…0. Digests are keyed,
# so only a holder of the key can tell where a tag goes or make another page for a digest. The tree is a function of its
# content, whatever the order of insertion. With a million tags a leaf has six kilobytes.


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


PAGE = 1000
CACHED = 8192
"""How many pages, rows and places a process remembers each: it forgets them all when there is one more."""
ENDS = 64
_COUNT = 8
_SEAL_LENGTH = 32
_ROOT = len(EMPTY) + _COUNT * len(ROWS)

_FETCH = f"SELECT content FROM {merkle.name} WHERE page = ?"
# A new ledger's proof has every page at once; databases take a limited number of parameters in one statement.
_AT_ONCE = 100

End = tuple[Any, Any, Any]
"""The stored root with its seal, and the number and signature of the last entry, as they were read."""


@dataclass(frozen=True, slots=True)
class Root:
    """The tree's root and how many rows each table has."""

    digests: bytes = EMPTY
    counts: tuple[int, ...] = (0,) * len(ROWS)

    @property
    def content(self) -> bytes:
        """The root as it is sealed."""
        return self.digests + b"".join(count.to_bytes(_COUNT) for count in self.counts)

    @classmethod
    def read(cls, content: bytes) -> Root:
        """Read the root behind its content, whatever follows it."""
        counts = (content[at : at + _COUNT] for at in range(len(EMPTY), _ROOT, _COUNT))
        return cls(content[: len(EMPTY)], tuple(int.from_bytes(count) for count in counts))


@dataclass(frozen=True, slots=True)
class _Known:
    columns: tuple[Plain, ...]
    row: DerivedRow
    digest: bytes


K = TypeVar("K")
V = TypeVar("V")


class _Cache(dict[K, V]):
    """A dictionary that forgets everything when it is full, also where nothing but reading fills it."""

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= CACHED:
            self.clear()
        super().__setitem__(key, value)


class Memory:
    """What one process knows for certain: the key, the newest end of the chain it has seen with its root, and pages."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.secret = derive(key, "rows")
        self.pages: dict[bytes, bytes] = _Cache()
        # Rows by their place, with the columns and the digest that were proved; parsing and hashing cost most.
        self.rows: dict[tuple[type[DerivedRow], PrimaryKey], _Known] = _Cache()
        self._tags: dict[tuple[type[DerivedRow], PrimaryKey], bytes] = _Cache()
        self.known: Anchor | None = None
        # The last ends that this process has read or written, with the root that each was sealed with.
        self._roots: dict[Anchor, Root] = {}
        self._lock = Lock()

    def get_tag(self, row: type[DerivedRow], key: PrimaryKey, *, keep: bool = True) -> bytes:
        """Say where the row stands in the tree; the place of one that is not there is not worth keeping."""
        known = self._tags.get((row, key))
        if known is None:
            known = _make_tag(self.secret, row, key)
            if keep:
                self._tags[row, key] = known
        return known

    def get_root(self, head: Anchor) -> Root | None:
        """Return the root that was sealed with this end of the chain, if this process knows it."""
        return self._roots.get(head)

    def keep(self, head: Anchor, root: Root) -> None:
        """Keep the root of an end, which may be about to be committed: others read it at once."""
        with self._lock:
            self._roots[head] = root
            if len(self._roots) > ENDS:
                del self._roots[next(iter(self._roots))]

    def learn(self, head: Anchor) -> None:
        """Remember an end that was committed; another thread may have come further meanwhile."""
        with self._lock:
            if self.known is None or self.known.sequence < head.sequence:
                self.known = head


class Proof:
    """What one transaction may trust. `known` is what the process knew before the transaction began."""

    def __init__(self, connection: Connection, memory: Memory, known: Anchor | None, end: End) -> None:
        self._connection = connection
        self._memory = memory
        self._sealed, sequence, mac = end
        self.head = START if sequence is None else Anchor(sequence, mac)
        self._root = memory.get_root(self.head)
        if self.head != known and (self._root is None or (known is not None and self.head.sequence <= known.sequence)):
            _follow(connection, memory.key, known, self.head)
        self._tree: Tree | None = None

    @property
    def root(self) -> Root:
        """The root that is sealed with this end of the chain."""
        if self._root is None:
            self.check_seal()
            self._root = Root.read(self._sealed)
            self._memory.keep(self.head, self._root)
        return self._root

    @property
    def sealed(self) -> bool:
        """Whether the stored root is the one of this end of the chain."""
        content = self._sealed
        if not isinstance(content, bytes) or len(content) != _ROOT + _SEAL_LENGTH:
            return False
        return hmac.compare_digest(_seal(self._memory.secret, self.head, Root.read(content)), content)

    def check_seal(self) -> None:
        """Refuse a stored root that is not the one of this end of the chain, also where the process remembers it."""
        if not self.sealed:
            raise LedgerTampered(
                f"the proof of the ledger's tables is not the one of entry {self.head.sequence}, its last: the tables "
                f"are older or newer than the chain, or were changed; {VERIFY}"
            )

    def read(self, row: type[SomeRow], key: PrimaryKey, columns: Sequence[Plain] | None) -> SomeRow | None:
        """Return the row behind the columns of its table, or None; refuse what is not what was signed."""
        expected = self._rows.get(self._memory.get_tag(row, key, keep=columns is not None))
        if columns is None:
            if expected is None:
                return None
            raise _make_row_error(row, key, "lacks one that was signed")
        known = self._memory.rows.get((row, key))
        if known is not None and known.digest == expected and known.columns == tuple(columns):
            assert isinstance(known.row, row)
            return known.row
        derived = read_row(row, dict(zip(field_types(row), columns, strict=True)))
        if expected is None:
            raise _make_row_error(row, key, "has one that was not signed")
        if not hmac.compare_digest(_make_digest(self._memory.secret, row, columns), expected):
            raise _make_row_error(row, key, "has one that is not what was signed")
        self._memory.rows[row, key] = _Known(tuple(columns), derived, expected)
        return derived

    def check_count(self, row: type[DerivedRow], count: int) -> None:
        """Refuse a table of which rows were removed; those that are there were checked."""
        expected = self.root.counts[ROWS.index(row)]
        if count != expected:
            raise LedgerTampered(f"the ledger's table of {row.table} has {count} rows of {expected}; {VERIFY}")

    def put(self, row: DerivedRow, columns: Sequence[Plain], *, added: bool) -> None:
        """Let the tree follow a row that is added or changed; `write` makes it durable."""
        key, digest = get_primary_key(row), _make_digest(self._memory.secret, type(row), columns)
        self._rows.put(self._memory.get_tag(type(row), key), digest)
        self._memory.rows[type(row), key] = _Known(tuple(columns), row, digest)
        if added:
            self._root = _count_row(self.root, type(row))

    def write(self, head: Anchor) -> None:
        """Seal the tree as it is now with a new end of the chain."""
        pages = self._rows.flush()
        self.head, self._root = head, Root(self._rows.root, self.root.counts)
        pages[TOP] = _seal(self._memory.secret, self.head, self._root)
        _write(self._connection, pages)
        self._memory.keep(self.head, self._root)

    def learn(self) -> None:
        """Let the process remember this end, once the transaction is over."""
        self._memory.learn(self.head)

    @property
    def _rows(self) -> Tree:
        if self._tree is None:
            self._tree = Tree(self._memory.secret, self.root.digests, self._fetch, self._memory.pages)
        return self._tree

    def _fetch(self, number: int) -> bytes | None:
        content = run(self._connection, _FETCH, (number,))
        # SQLite keeps a text in a column of bytes.
        return content[0][0] if content and isinstance(content[0][0], bytes) else None


def write_proof(connection: Connection, key: bytes, head: Anchor, rows: Iterable[DerivedRow]) -> None:
    """Make the whole proof anew, for rows that were made from the chain up to this end."""
    connection.execute(delete(merkle))
    _write(connection, _build_pages(key, head, rows))


def compare_proof(connection: Connection, key: bytes, head: Anchor, rows: Iterable[DerivedRow]) -> str | None:
    """Say what is wrong with the stored proof of these rows, if anything is."""
    expected = _build_pages(key, head, rows)
    stored = {row.page: row.content for row in connection.execute(select(merkle))}
    differing = [page for page in sorted(expected.keys() | stored.keys()) if expected.get(page) != stored.get(page)]
    if not differing:
        return None
    if differing == [TOP]:
        return (
            "the proof of the tables is not the one of this end of the chain: entries were cut off, or it was changed"
        )
    return f"the proof of the tables is not what the chain says, from page {differing[0]} on"


def _build_pages(key: bytes, head: Anchor, rows: Iterable[DerivedRow]) -> dict[int, bytes]:
    secret, counts = derive(key, "rows"), dict.fromkeys(ROWS, 0)
    tree = Tree(secret, EMPTY, lambda _: None, {})
    for row in rows:
        columns = tuple(RECORDS.to_json(row).values())
        tree.put(_make_tag(secret, type(row), get_primary_key(row)), _make_digest(secret, type(row), columns))
        counts[type(row)] += 1
    pages = tree.flush()
    return pages | {TOP: _seal(secret, head, Root(tree.root, tuple(counts.values())))}


def _write(connection: Connection, pages: dict[int, bytes]) -> None:
    numbered = list(pages.items())
    for start in range(0, len(numbered), _AT_ONCE):
        part = numbered[start : start + _AT_ONCE]
        run(connection, _write_pages(len(part)), [value for page in part for value in page])


@cache
def _write_pages(count: int) -> str:
    return (
        f"INSERT INTO {merkle.name} (page, content) VALUES {write_marks(2, count)} "
        "ON CONFLICT (page) DO UPDATE SET content = excluded.content"
    )


def _make_tag(secret: bytes, row: type[DerivedRow], key: PrimaryKey) -> bytes:
    # A question and the payments for it, which are written together, share a leaf.
    leaf = hmac.digest(secret, b"leaf " + str(key[0]).encode("utf-8", "surrogatepass"), "sha256")[:PLACE]
    own = hmac.digest(secret, b"row " + canonical([row.table, *key]).encode("ascii"), "sha256")
    return leaf + own[: TAG - PLACE]


def _make_digest(secret: bytes, row: type[DerivedRow], columns: Sequence[Plain]) -> bytes:
    content = canonical([row.table, *columns])
    return hmac.digest(secret, b"is " + content.encode("ascii"), "sha256")[:DIGEST]


def _make_row_error(row: type[DerivedRow], key: PrimaryKey, problem: str) -> LedgerTampered:
    named = " ".join(str(part)[:64] for part in key)
    return LedgerTampered(f"the ledger's table of {row.table} {problem}: {named}; {VERIFY}")


def _seal(secret: bytes, head: Anchor, root: Root) -> bytes:
    content = root.content
    return content + hmac.digest(secret, b"root of %s " % str(head).encode("ascii") + content, "sha256")


def _count_row(root: Root, row: type[DerivedRow]) -> Root:
    place = ROWS.index(row)
    counts = (*root.counts[:place], root.counts[place] + 1, *root.counts[place + 1 :])
    return Root(root.digests, counts)


def _follow(connection: Connection, key: bytes, known: Anchor | None, head: Anchor) -> None:
    """Refuse an end of the chain that is not signed with the key or does not follow from one that was seen."""
    if known is None:
        last = read_last(connection, 2)
        if last and not is_signed(key, last[1].mac if len(last) > 1 else BEGINNING, last[0]):
            raise LedgerTampered(
                f"entry {head.sequence}, the ledger's last, is not signed with this key: it was changed, or "
                f"written with another key; {VERIFY}"
            )
        return
    if head.sequence <= known.sequence:
        raise LedgerTampered(
            f"the ledger ends at entry {head.sequence} and lacks the entry {known.sequence} that was there "
            "before: it was cut off or replaced by an older copy; restore the newest one"
        )
    while page := read_entries(connection, after=known.sequence, limit=PAGE):
        for entry in page:
            if entry.sequence != known.sequence + 1 or not is_signed(key, known.mac, entry):
                raise LedgerTampered(
                    f"entry {entry.sequence} of the ledger is not signed as the one after entry {known.sequence} that "
                    f"was there before: it was changed, or the ledger was replaced by another copy; {VERIFY}"
                )
            known = Anchor(entry.sequence, entry.mac)
