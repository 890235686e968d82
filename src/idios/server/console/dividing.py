"""How a form divides ε unevenly: one line for each statistic, its name and a number."""

from __future__ import annotations

from collections.abc import Mapping

from idios.errors import InvalidInput

LONGEST = 4_000
LINE = "NAME = NUMBER, such as COUNT(*) = 2"


def read_weights(text: str) -> dict[str, str] | None:
    """The weights that a field's lines give, None if it is empty; whether they fit the question is not known here.

    >>> read_weights("MEDIAN(income) = 2\\n\\nCOUNT(*) = 1/3\\n"), read_weights(" ")
    ({'MEDIAN(income)': '2', 'COUNT(*)': '1/3'}, None)
    """
    if len(text) > LONGEST:
        raise InvalidInput(f"how ε is divided has at most {LONGEST} characters, got {len(text)}")
    found: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        name, sign, number = (part.strip() for part in line.rpartition("="))
        if not sign or not name or not number:
            raise InvalidInput(f"to divide ε, write lines of the form {LINE}; this one is not: {line.strip()}")
        if name in found:
            raise InvalidInput(f"to divide ε, name each statistic once; this one is there twice: {name}")
        found[name] = number
    return found or None


def written(weights: Mapping[str, str] | None) -> str:
    """The lines that give these weights.

    >>> written({"MEDIAN(income)": "2", "COUNT(*)": "1/3"})
    'MEDIAN(income) = 2\\nCOUNT(*) = 1/3'
    """
    return "\n".join(f"{name} = {number}" for name, number in (weights or {}).items())
