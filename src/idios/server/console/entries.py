"""An entry of the chain for people: amounts and times as they are read, and what is long folded away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from idios.server.console.wording import amount, moment

AMOUNTS = ("epsilon", "delta", "min_epsilon")
_DIGEST = re.compile("[0-9a-f]{64}")
FOLDED = 72


@dataclass(frozen=True)
class Fact:
    """One field of an entry: how it is shown, and what it is exactly."""

    name: str
    shown: str
    exact: str
    folded: bool = False


def facts(content: dict[str, Any]) -> list[Fact]:
    """The fields of an entry, the long ones last.

    >>> [fact.shown for fact in facts({"epsilon": "1/2", "analyst": None, "digest": "ab" * 32})]
    ['0.5', 'none', 'abababababababab…']
    """
    found = [_fact(name, value) for name, value in content.items()]
    return sorted(found, key=lambda fact: fact.folded)


def _fact(name: str, value: Any) -> Fact:
    exact = "none" if value is None else str(value)
    if value is None:
        return Fact(name, exact, exact)
    if name in AMOUNTS:
        return Fact(name, amount(Fraction(exact)), exact)
    if name == "expires":
        return Fact(name, moment(exact), exact)
    if _DIGEST.fullmatch(exact):
        return Fact(name, exact[:16] + "…", exact)
    return Fact(name, exact, exact, folded=len(exact) > FOLDED)
