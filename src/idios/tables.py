"""Small tables as plain text for terminals and as HTML for notebooks.

The HTML uses no colours and no style sheet: a notebook's own, light or dark, applies. Everything in it is escaped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from idios.core.exact import text

ROWS = 100
"""How many rows of a table are shown; the rest is counted."""


def shown(value: Any) -> str:
    """One value for people; NULL where there is none, no line breaks or control characters."""
    if value is None:
        return "NULL"
    written = str(text(value)) if isinstance(value, Fraction) else str(value)
    return "".join(c if c.isprintable() else " " for c in written)


def amount(value: Fraction | None) -> str:
    """An amount of a budget; None means that there is no limit."""
    return "no limit" if value is None else str(text(value))


def as_text(head: Sequence[str], rows: Sequence[Sequence[Any]], right: Collection[int] = ()) -> str:
    """A table whose columns are aligned; those in ``right`` to the right.

    >>> print(as_text(["region", "n"], [["north", 12], ["south", 7]], right=[1]))
    region   n
    north   12
    south    7
    """
    lines = [[shown(name) for name in head], *([shown(value) for value in row] for row in rows[:ROWS])]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    written = [
        "  ".join(
            value.rjust(width) if i in right else value.ljust(width)
            for i, (value, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*written, *_rest(len(rows))])


def as_html(head: Sequence[str], rows: Sequence[Sequence[Any]], right: Collection[int] = ()) -> str:
    """The same table for a notebook."""

    def line(tag: str, values: Sequence[Any]) -> str:
        sides = ("right" if i in right else "left" for i in range(len(values)))
        cells = (
            f'<{tag} style="text-align: {side}">{escape(shown(value))}</{tag}>'
            for value, side in zip(values, sides, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line("td", row) for row in rows[:ROWS])
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>" + "".join(
        paragraph(said) for said in _rest(len(rows))
    )


def facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and what they are, one below the other, for a notebook."""
    lines = (
        f'<tr><th style="text-align: left">{escape(shown(name))}</th>'
        f'<td style="text-align: left">{escape(shown(value))}</td></tr>'
        for name, value in pairs
    )
    return f"<table><tbody>{''.join(lines)}</tbody></table>"


def paragraph(said: str) -> str:
    """A paragraph for a notebook."""
    return f"<p>{escape(shown(said))}</p>"


def _rest(rows: int) -> list[str]:
    return [f"… and {rows - ROWS} more rows"] if rows > ROWS else []
