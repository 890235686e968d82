"""A column that a file has and its declaration leaves out: told to who holds the file, never to an analyst elsewhere.

Which columns a source has is no public fact. The commands that open a configuration's files are their controller's, so
they may look; a server says of such a column what it says of any other name that is not declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from idios.cli.configuration_text import quote_key, write_table
from idios.config import Configuration, read_configuration
from idios.core.domain import Kind
from idios.data.backend import describe_source, is_address
from idios.errors import IdiosError, QuestionRefused
from idios.sql.lexer import Token, TokenKind, tokenize
from idios.sql.names import fold_case
from idios.sql.sql_functions import function_names

_OF_NUMBERS = {*function_names(), "BIN"} - {"COUNT", "MODE"}
"""What is asked of numbers, as far as a name tells."""
_DATE = re.compile(r"'\d{4}-\d\d-\d\d")


@contextmanager
def explain_undeclared(configuration: Path | Configuration) -> Iterator[None]:
    """Where a question names a column that is not declared and the file has, say so, with the line to write."""
    try:
        yield
    except QuestionRefused as refused:
        line = None
        with suppress(IdiosError):  # what cannot be looked at now has no line
            opened = read_configuration(configuration) if isinstance(configuration, Path) else configuration
            line = _find_line(opened, refused) if refused.undeclared else None
        if line is None:
            raise
        message = f"the column {refused.undeclared!r} is not declared. {line}"
        raise QuestionRefused(message, refused.source, refused.offset) from None


def _find_line(configuration: Configuration, refused: QuestionRefused) -> str | None:
    """Which file has the column, and what declares it; of the data sets that the question names."""
    asked = fold_case(refused.source)
    declared = {name: each for name, each in configuration.tables.items() if fold_case(name) in asked}
    for name, dataset in declared.items():
        if is_address(dataset.source):
            continue  # which would be asked, or started, for a message
        for column, kind, decimals in describe_source(dataset.source, dataset.csv_format):
            if fold_case(column) == fold_case(refused.undeclared) and column not in dataset.dataset.columns:
                key, section = quote_key(column), f"[datasets.{quote_key(name)}.columns]"
                has = f"{Path(dataset.source).name} has it: to ask about it, its controller"
                if written := _find_comment(configuration.file, section, key):
                    return (
                        f"{has} takes the # from this line of {configuration.file.name}, where it is right: {written}"
                    )
                table = _read_use(refused) if kind is Kind.CATEGORY else _declare_kind(kind, decimals)
                return f"{has} writes {key} = {write_table(table)} under {section}"
    return None


def _find_comment(file: Path, section: str, key: str) -> str | None:
    """The line that a configuration has for a column as a comment; one without values is still to be written."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    if section not in lines:
        return None
    for line in lines[lines.index(section) + 1 :]:
        if line.startswith("["):
            break
        found = re.match(rf"#\s*({re.escape(key)}\s*=\s*\{{.*\}})", line)
        if found and "…" not in found[1]:
            return found[1]
    return None


def _declare_kind(kind: Kind, decimals: int) -> dict[str, object]:
    return {"type": kind.value, **({"decimals": decimals} if kind is Kind.DECIMAL else {})}


def _read_use(refused: QuestionRefused) -> dict[str, object]:
    """What a column of text may be declared as, by what the question does with it."""
    tokens = tokenize(refused.source).tokens
    named = (i for i, token in enumerate(tokens) if _is_name(token, refused))
    place = next(named, None)
    if place is None:
        return {"values": ["…"]}
    first = place - 2 if place > 1 and tokens[place - 1].text == "." else place
    called = tokens[first - 2].keyword if first > 1 and tokens[first - 1].text == "(" else ""
    compared, value = _read_comparison(tokens[place + 1 : place + 5])
    if value is not None and (value.keyword == "DATE" or _DATE.match(value.text)):
        return {"type": Kind.DATE.value}
    ordered = compared.startswith(("<", ">", "BETWEEN")) and compared != "<>"
    if called in _OF_NUMBERS or (ordered and value is not None and value.kind is TokenKind.NUMBER):
        return {"type": Kind.NUMBER.value}
    return {"values": ["…"]}


def _is_name(token: Token, refused: QuestionRefused) -> bool:
    return token.start >= (refused.offset or 0) and fold_case(token.text.strip('"')) == fold_case(refused.undeclared)


def _read_comparison(following: Sequence[Token]) -> tuple[str, Token | None]:
    """With what a column is compared, if it is: the operator, and what comes after it and a sign."""
    operator = ""
    for token in following:
        if token.text not in (*"<>=!-+", "<=", ">=", "<>", "!=") and token.keyword != "BETWEEN":
            return operator, token if operator else None
        operator += token.keyword
    return operator, None
