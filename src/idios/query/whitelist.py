"""From a checked text to a syntax tree in which every node and every argument is accounted for.

sqlglot parses with a dialect of Idios' own: it knows the few keywords of a question and not one function, so that a
word it might give a special meaning is a plain name and every call is an ``Anonymous`` node that carries the name
as written. What the reader takes from the tree it takes through ``only``, which refuses any argument it was not
told of: a clause unknown to the reader cannot be ignored by it.
"""

from __future__ import annotations

from typing import ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.parser import Parser as BaseParser
from sqlglot.tokens import Tokenizer as BaseTokenizer

from idios.errors import QuestionRefused
from idios.query.text import SHAPE, Text


class QuestionDialect(Dialect):
    """The SQL of a question: literals, names, comparisons, AND OR NOT, and calls without meaning."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(BaseTokenizer):
        """The keywords; any other word is a name."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "SELECT": TokenType.SELECT,
            "FROM": TokenType.FROM,
            "WHERE": TokenType.WHERE,
            "GROUP BY": TokenType.GROUP_BY,
            "ORDER BY": TokenType.ORDER_BY,
            "AS": TokenType.ALIAS,
            "DISTINCT": TokenType.DISTINCT,
            "AND": TokenType.AND,
            "OR": TokenType.OR,
            "NOT": TokenType.NOT,
            "IN": TokenType.IN,
            "IS": TokenType.IS,
            "BETWEEN": TokenType.BETWEEN,
            "NULL": TokenType.NULL,
            "TRUE": TokenType.TRUE,
            "FALSE": TokenType.FALSE,
            "DATE": TokenType.DATE,
            "TIMESTAMP": TokenType.TIMESTAMP,
            "ASC": TokenType.ASC,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
        }

    class Parser(BaseParser):
        """No function is known, so none is rewritten, renamed or given a syntax of its own."""

        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {}
        NO_PAREN_FUNCTIONS: ClassVar = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {}


def parse(text: Text) -> exp.Select:
    """The tree of the one SELECT statement in a text."""
    try:
        statements = sqlglot.parse(text.source, dialect=QuestionDialect)
    except ParseError as error:
        raise _misread(text, error) from None
    except Exception:
        # Hostile text: every error of a parser of so large a language is a refusal, never a failure.
        raise text.refuse(f"the text cannot be read. {SHAPE}") from None
    found = [statement for statement in statements if statement is not None]
    if len(found) != 1 or type(found[0]) is not exp.Select:
        raise text.refuse(SHAPE, 0)
    return found[0]


def only(text: Text, node: exp.Expression, *allowed: str) -> None:
    """Refuse any argument of a node that is set and not allowed."""
    for name, value in node.args.items():
        if name not in allowed and value:
            raise text.refuse(_REFUSED.get(name, f"this form is not supported. {SHAPE}"), offset(node))


def offset(node: exp.Expression) -> int | None:
    """Where a node starts in the text, as far as the parser has kept it: its own place or its first part's."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


_REFUSED = {
    "joins": "joins are not supported: FROM names one data set",
    "alias": "the data set is named without an alias",
    "db": "the data set is named without a prefix",
    "table": "columns are named without a prefix",
}


def _misread(text: Text, error: ParseError) -> QuestionRefused:
    """Place the parser's complaint; its own message shows terminal codes, so it is not repeated."""
    place: int | None = None
    if error.errors:
        line, column = error.errors[0].get("line"), error.errors[0].get("col")
        highlight = error.errors[0].get("highlight") or ""
        if line and column:
            # the parser names the last character of the word that it did not expect
            lines = text.source.split("\n")
            place = sum(len(one) + 1 for one in lines[: line - 1]) + max(0, column - max(1, len(highlight)))
    hint = "A name that is also an SQL word is written in double quotes, a string in single quotes"
    return text.refuse(f"the text cannot be read from here. {SHAPE}. {hint}", place)
