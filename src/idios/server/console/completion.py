"""The words that a question can be made of, for the script that completes them."""

from __future__ import annotations

import json

from idios.query.functions import FUNCTIONS
from idios.server.catalogue import TWINS, identifier
from idios.server.console.visiting import Visit

KEYWORDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "IN",
    "IS NULL",
    "IS NOT NULL",
    "AS",
    "DISTINCT",
)


def words_for(visit: Visit) -> str:
    """As JSON, for each word: what is inserted, what kind of word it is, and a hint."""
    found: dict[str, list[str]] = {}
    for name in visit.party.holdings:
        described = visit.service.catalogue[name]
        found.setdefault(identifier(name), [identifier(name), "data set", described.level])
        for column in described.columns:
            text = identifier(column.name)
            found.setdefault(text, [text, "column", column.type])
            for value in column.values or ():
                quoted = "'" + value.replace("'", "''") + "'"
                found.setdefault(quoted, [quoted, "value", column.name])
    functions = [
        [name, "function", function.signature(name).partition(" or ")[0]]
        for name, function in FUNCTIONS.items()
        if name not in TWINS
    ]
    return json.dumps(
        [*found.values(), *functions, *([keyword, "keyword", ""] for keyword in KEYWORDS)], ensure_ascii=False
    )
