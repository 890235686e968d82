"""Code lists: files that say which codes a column of categories has, and what each is called.

A code list is a csv file of one column (the codes) or two (the codes and their labels), in UTF-8, delimited by commas,
semicolons or tabs. A first line such as ``code,label`` is a header and not a code.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from idios.errors import InvalidInput

HEADERS = ("code", "codes", "value", "values")
"""What the first field of a header is, in any case."""


def read_code_lists(columns: Any, folder: Path | None) -> Any:
    """Replace the names of code lists, relative to ``folder``, by what they list; whatever else is given stays."""
    if not isinstance(columns, Mapping):
        return columns
    return {name: _read_column(str(name), column, folder or Path()) for name, column in columns.items()}


def _read_column(name: str, column: Any, folder: Path) -> Any:
    if not isinstance(column, Mapping) or not isinstance(column.get("values"), str):
        return column
    try:
        return {**column, "values": read_code_list(folder / column["values"])}
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from None


def read_code_list(path: Path) -> dict[str, str] | list[str]:
    """Codes with their labels, or codes alone."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = next((each for each in ";\t" if each in first), ",")
            lines = [line for line in csv.reader(file, delimiter=delimiter, strict=True) if line]
    except OSError:
        raise InvalidInput(f"there is no code list {path.name!r}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"the code list {path.name!r} is no csv file in UTF-8") from None
    if lines and lines[0][0].strip().lower() in HEADERS:
        del lines[0]
    widths = {len(line) for line in lines}
    if widths not in ({1}, {2}):
        raise InvalidInput(f"the code list {path.name!r} must have one column, the codes, or two, with their labels")
    codes = [line[0] for line in lines]
    if len(set(codes)) < len(codes):
        raise InvalidInput(f"the code list {path.name!r} has a code twice")
    return codes if widths == {1} else dict(lines)
