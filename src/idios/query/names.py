"""Names: case-insensitive unless a name is quoted.

Only the letters A to Z have a case here. Folding the others would let two different declared names meet.
"""

from __future__ import annotations

import difflib
import string
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sqlglot import exp

from idios.query.text import Text
from idios.query.whitelist import offset, only

_FOLD = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_RAISE = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_MOST_LISTED = 12


def fold(name: str) -> str:
    """A name folded for case-insensitive comparison."""
    return name.translate(_FOLD)


def capitals(name: str) -> str:
    """A name of the language, such as a function's, in the letters it is listed by.

    >>> capitals("Median"), capitals("mın")
    ('MEDIAN', 'MıN')
    """
    return name.translate(_RAISE)


def resolve(text: Text, node: exp.Expression, declared: Iterable[str], what: str) -> str:
    """The declared name that an identifier means, or a refusal that says which there are."""
    if type(node) is not exp.Identifier:
        raise text.refuse(f"a name of a {what} is expected here", offset(node))
    only(text, node, "this", "quoted")
    written, names = str(node.this), tuple(declared)
    found = _spelt_alike(names).get(fold(written), ())
    if node.args.get("quoted"):
        found = tuple(name for name in found if name == written)
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f'"{name}"' for name in sorted(found))
        raise text.refuse(f"{written!r} could be any of {listed}: write the name in double quotes", offset(node))
    raise text.refuse(f"there is no {what} {written!r}. {_offered(written, names, what)}", offset(node))


@lru_cache(maxsize=64)
def _spelt_alike(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The names by their folded form: a long condition names columns thousands of times."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        found[fold(name)] = (*found.get(fold(name), ()), name)
    return found


def column_node(text: Text, node: exp.Expression) -> exp.Expression | None:
    """The identifier of a bare column name; None if the node is anything else."""
    if type(node) is not exp.Column:
        return None
    only(text, node, "this")
    name: exp.Expression = node.this
    return name


def _offered(written: str, names: Sequence[str], what: str) -> str:
    close = difflib.get_close_matches(fold(written), [fold(name) for name in names], n=1)
    if close:
        meant = next(name for name in names if fold(name) == close[0])
        return f"Did you mean {meant}?"
    listed = sorted(names)
    more = f" and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
    return f"Declared: {', '.join(listed[:_MOST_LISTED])}{more}" if listed else f"No {what} is declared"
