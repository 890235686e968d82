"""The Merkle tree against a dictionary: what is in it, that nothing else is, and that no page can be another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.errors import LedgerTampered
from idios.ledger.proof import DIGEST, EMPTY, FANOUT, TAG, Tree

KEY = b"k" * 32

# Few of each byte, so that tags share leaves and nodes, and some come twice.
tags = st.binary(min_size=TAG, max_size=TAG) | st.builds(
    lambda place, own: bytes([0, place]) + own * (TAG - 2), st.integers(0, 40), st.sampled_from([b"a", b"b", b"\xff"])
)
values = st.binary(min_size=DIGEST, max_size=DIGEST)


class Store:
    """Pages as a database keeps them."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.root = EMPTY

    def tree(self) -> Tree:
        return Tree(KEY, self.root, self.pages.get, {})

    def commit(self, tree: Tree) -> None:
        self.pages |= tree.flush()
        self.root = tree.root


@given(st.lists(st.dictionaries(tags, values, max_size=12), max_size=6), st.lists(tags, max_size=5))
def test_it_holds_what_was_put_and_nothing_else(transactions: list[dict[bytes, bytes]], others: list[bytes]) -> None:
    store, model = Store(), dict[bytes, bytes]()
    for transaction in transactions:
        tree = store.tree()
        for tag, value in transaction.items():
            tree.put(tag, value)
            assert tree.get(tag) == value
        model |= transaction
        store.commit(tree)
    tree = store.tree()
    for tag in [*model, *others]:
        assert tree.get(tag) == model.get(tag)
    # The order and the transactions make no difference: the tree is a function of what is in it.
    at_once = Store()
    rebuilt = at_once.tree()
    for tag in sorted(model):
        rebuilt.put(tag, model[tag])
    at_once.commit(rebuilt)
    assert (at_once.root, at_once.pages) == (store.root, store.pages)


@given(st.dictionaries(tags, values, min_size=1, max_size=12), st.data())
def test_no_page_can_be_changed_removed_or_exchanged(content: dict[bytes, bytes], data: st.DataObject) -> None:
    store = Store()
    tree = store.tree()
    for tag, value in content.items():
        tree.put(tag, value)
    store.commit(tree)
    number = data.draw(st.sampled_from(sorted(store.pages)))
    kept = store.pages[number]
    other = data.draw(st.sampled_from([None, kept[:-1], b"\x00" * len(kept), EMPTY, b"", *store.pages.values()]))
    if other is None:
        del store.pages[number]
    else:
        store.pages[number] = other
    if other == kept:
        return
    refused = 0
    for tag, value in content.items():
        try:
            assert store.tree().get(tag) == value
        except LedgerTampered:
            refused += 1
    assert refused > 0


def test_an_older_page_is_not_the_page() -> None:
    store, tag = Store(), bytes(TAG)
    for value in (b"1" * DIGEST, b"2" * DIGEST):
        before = dict(store.pages)
        tree = store.tree()
        tree.put(tag, value)
        store.commit(tree)
    store.pages = before
    with pytest.raises(LedgerTampered, match=r"page \d+ of the proof .* is not what was signed"):
        store.tree().get(tag)


def test_only_what_changes_is_written() -> None:
    store = Store()
    tree = store.tree()
    for number in range(FANOUT):
        tree.put(bytes([number << 2, 0]) + bytes(TAG - 2), bytes([1]) * DIGEST)
    store.commit(tree)
    tree = store.tree()
    tree.put(bytes(TAG), bytes([2]) * DIGEST)
    assert len(tree.flush()) == 2  # its leaf and the node above, beside the root
