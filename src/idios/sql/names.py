"""Names: how they are written in SQL, and which declared name a written one means.

Names are case-insensitive unless quoted. Only the letters A to Z have a case: folding others would let two different
declared names meet.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Mapping, Sequence

from idios.sql.lexer import RESERVED, QuestionText, is_word
from idios.sql.parser import Name, SyntaxNode
from idios.sql.suggestions import find_nearest, list_some

_FOLD = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_RAISE = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


def fold_case(name: str) -> str:
    """A name folded for case-insensitive comparison."""
    return name.translate(_FOLD)


def to_upper(name: str) -> str:
    """A name of the language, such as a function's, in the letters it is listed by.

    >>> to_upper("Median"), to_upper("mın")
    ('MEDIAN', 'MıN')
    """
    return name.translate(_RAISE)


def quote(name: str) -> str:
    """A name as it is written in SQL.

    >>> quote("income"), quote("odd name"), quote("limit")
    ('income', '"odd name"', '"limit"')
    """
    return name if is_word(name) and to_upper(name) not in RESERVED else '"' + name.replace('"', '""') + '"'


def find_spelt(text: QuestionText, name: Name, declared: Iterable[str]) -> tuple[str, ...]:
    """The declared names that a written one can mean."""
    alike = _index(text, declared).get(fold_case(name.text), ())
    return tuple(known for known in alike if known == name.text) if name.quoted else alike


def resolve_name(text: QuestionText, node: SyntaxNode, declared: Collection[str], what: str) -> str:
    """The declared name that a written one means, or a refusal that says which there are."""
    if not isinstance(node, Name):
        raise text.refusal(f"a name of a {what} is expected here", node.start)
    if node.meaning is not None and node.meaning in declared:
        return node.meaning
    if node.prefix is not None and node.meaning is None:
        raise text.refusal(f"a {what} is named without a prefix here", node.start)
    matching = find_spelt(text, node, declared)
    if len(matching) == 1:
        return matching[0]
    if matching:
        listed = ", ".join(f'"{name}"' for name in sorted(matching))
        raise text.refusal(f"{node.text!r} could be any of {listed}: write the name in double quotes", node.start)
    written = node.text if node.prefix is None else f"{node.prefix.text}.{node.text}"
    absent = f"the column {written!r} is not declared" if what == "column" else f"there is no {what} {written!r}"
    refused = text.refusal(f"{absent}. {_offer(node.text, tuple(declared), what)}", node.start)
    refused.undeclared = node.text if what == "column" else ""
    raise refused


def _index(text: QuestionText, declared: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The declared names by their folded form, kept with the text: a condition may name columns thousands of times."""
    known = text.indexed.get(id(declared))
    if known is not None:
        return known[1]
    index: dict[str, tuple[str, ...]] = {}
    for name in declared:
        index[fold_case(name)] = (*index.get(fold_case(name), ()), name)
    if isinstance(declared, Mapping):
        text.indexed[id(declared)] = declared, index  # kept too, so that its id stays its own
    return index


def _offer(written: str, names: Sequence[str], what: str) -> str:
    if meant := find_nearest(written, names):
        return f"Did you mean {quote(meant)}?"
    listed = [quote(name) for name in sorted(names)]
    return f"Declared: {list_some(listed)}" if listed else f"No {what} is declared"
