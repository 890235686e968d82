"""What to write instead of a name that is not known: the nearest one, or some of those that there are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

ALIKE = 0.6
"""How alike two names are of which one may be a typo."""
MOST_COMPARED = 400_000
"""Pairs of characters that are compared at most: names of ten letters with four thousand others."""
LONGEST_NAME = 128
MOST_LISTED = 12


def find_nearest(written: str, names: Sequence[str], alike: float = ALIKE) -> str | None:
    """The name that was probably meant; None if none is near, or it would take long to tell.

    >>> find_nearest("blak", ["White", "Black"]), find_nearest("7", ["White", "Black"])
    ('Black', None)
    """
    if len(written) > LONGEST_NAME:
        return None
    folded: dict[str, str] = {}
    left = MOST_COMPARED
    for name in names:
        left -= (len(written) + 1) * (len(name) + 1)
        if left < 0:
            break
        folded.setdefault(name.casefold(), name)
    close = difflib.get_close_matches(written.casefold(), folded, n=1, cutoff=alike)
    return folded[close[0]] if close else None


def list_some(names: Sequence[str]) -> str:
    """The first names, and how many more there are.

    >>> list_some([str(i) for i in range(20)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more'
    """
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
