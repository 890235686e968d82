"""Which columns are keys by their names, and which of these tell people apart by how often their values occur.

A person may have several rows. Where a column tells people apart, a record is not a person, and what is promised to a
record is not promised to them until ``unit`` is declared.
"""

from __future__ import annotations

import re

KEY = re.compile(r"_?(id|key|nr|no|code)$")
CERTAIN = re.compile(r"(?i:(^|[ _.-])(id|key|nr|no|uuid)[.]?$|^serial)|[a-z](Id|ID)$")
"""What nothing but a key is called."""
PREFIX = re.compile(r"^[a-z]{1,2}_")
FEWEST = 10
"""A column with fewer values tells kinds apart rather than people."""
MOST_ROWS = 1000
"""And so does one whose values have more rows than this, on average."""
MOST_MISSING = 20
"""At most one row in this many may have no key."""
LEAST_MATCHED = 10
"""Of a link at least one row in this many leads to a row, of those that have a key."""


def is_called_key(column: str, table: str = "") -> bool:
    """Whether a column is called like a key.

    >>> is_called_key("Customer ID"), is_called_key("customer", "customers"), is_called_key("income")
    (True, True, False)
    """
    named = bool(KEY.search(column.lower()) or CERTAIN.search(column))
    return named or (bool(table) and find_subject(column, table) == to_singular(table))


def find_subject(column: str, table: str) -> str:
    """What a key is of, by its name.

    >>> find_subject("customer_id", "orders"), find_subject("id", "customers"), find_subject("o_custkey", "orders")
    ('customer', 'customer', 'cust')
    """
    return KEY.sub("", PREFIX.sub("", column.lower())) or to_singular(table)


def to_singular(table: str) -> str:
    """What one row of a table is, by the table's name."""
    return table.lower().removesuffix("s")


def tells_people_apart(values: int, owned: int, unowned: int) -> bool:
    """Whether the distinct values of a key could be people; ``owned`` rows have one, ``unowned`` rows have none.

    >>> tells_people_apart(500, 2000, 0), tells_people_apart(2000, 2000, 0), tells_people_apart(4, 2000, 0)
    (True, False, False)
    """
    repeated = FEWEST <= values < owned <= MOST_ROWS * values
    return repeated and MOST_MISSING * unowned <= owned + unowned
