"""The moves on a selection, against changing records of a table one by one."""

from __future__ import annotations

import pytest

from idios.core.neighbours import Exchange, Moves, Neighbours
from idios.errors import InvalidInput
from tests.oracle import Space, Table, small_tables


def test_names() -> None:
    assert Neighbours.named("add-remove") is Neighbours.ADD_REMOVE
    with pytest.raises(InvalidInput, match='"replace" or "add-remove", got'):
        Neighbours.named("swap")
    with pytest.raises(InvalidInput):
        Moves(Neighbours.REPLACE, -1)


def exchange_between(one: Table, other: Table) -> Exchange:
    """How many values must leave and come to get from one selection to the other."""
    kept, rest = 0, list(other.values)
    for value in one.values:
        if value in rest:
            rest.remove(value)
            kept += 1
    return Exchange(len(one.values) - kept, len(rest))


@pytest.mark.parametrize(
    ("notion", "selection", "size", "outside"),
    [
        ("replace", False, 3, 0),
        ("replace", False, 1, 0),
        ("replace", True, 3, 0),
        ("replace", True, 2, 1),
        ("replace", True, 0, 2),
        ("replace", True, 1, 3),
        ("add-remove", False, 3, 0),
        ("add-remove", False, 0, 0),
        ("add-remove", False, 1, 0),
    ],
)
def test_sizes_and_exchanges_are_enumeration(notion: str, selection: bool, size: int, outside: int) -> None:
    start = Table((0,) * size, outside)  # new values are 1, so every exchange can be told
    space = Space([start], notion=notion, selection=selection, domain=(0, 1), bounded=True, reach=1)
    moves = Moves(Neighbours(notion), size, outside if selection else None)
    reached = {start}
    for distance in range(5):
        sizes = {len(table.values) for table in reached}
        assert moves.sizes(distance) == (min(sizes), max(sizes))
        furthest: dict[int, Exchange] = {}
        for table in reached:
            found = exchange_between(start, table)
            change = found.placed - found.dropped
            furthest[change] = max(furthest.get(change, found), found)
        assert {e.placed - e.dropped: e for e in moves.exchanges(distance)} == furthest
        assert set(moves.extreme_exchanges(distance)) <= {exchange_between(start, table) for table in reached}
        reached |= {other for table in reached for other in space.neighbours(table)}


def test_small_tables_are_all_multisets() -> None:
    assert len(small_tables((0, 2), [2], [0])) == 6
