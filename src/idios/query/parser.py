"""The parser: from tokenized text to a syntax tree, and the names in that tree resolved against declared ones.

Rules:

1. sqlglot parses with a dialect of Idios' own, which knows the few keywords of a question and not one function: any
   other word is a plain name, and every call is an ``Anonymous`` node that carries the name as written.
2. The reader takes nothing from a node without ``allow_only``, which refuses any argument that the reader does not
   list. So the reader cannot ignore a clause that it does not know.
3. Names are case-insensitive unless quoted. Only the letters A to Z have a case: folding others would let two
   different declared names meet.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.parser import Parser as BaseParser
from sqlglot.tokens import Tokenizer as BaseTokenizer

from idios.errors import QuestionRefused
from idios.query.lexer import RESERVED, SHAPE, QuestionText, TokenKind, is_word
from idios.query.suggestions import find_nearest, list_some

LONGEST_NUMBER = 30
"""How far from an unreadable place the rest of a number is looked for."""

_MARKED_NUMBER = re.compile(r"[0-9][0-9.]*,[0-9][0-9.,]*")
_NO_SIGNS = {"==": "=", "=<": "<=", "=>": ">="}
_BEFORE_A_CONDITION = ("WHERE", "HAVING", "AND", "OR", "NOT")
_END = "end of the text"
_AFTER_A_CONDITION = (_END, ")", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "AND", "OR")
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
MISSPELT = 0.7
"""How alike a word and a clause are of which it may be a typo: FORM and FROM."""
_FOLD = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_RAISE = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
TRUTHS = (*COMPARISONS, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Escape)
"""What is true, false or unknown, and is not joined from such."""


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
            "DESC": TokenType.DESC,
            "HAVING": TokenType.HAVING,
            "LIMIT": TokenType.LIMIT,
            "OFFSET": TokenType.OFFSET,
            "CASE": TokenType.CASE,
            "WHEN": TokenType.WHEN,
            "THEN": TokenType.THEN,
            "ELSE": TokenType.ELSE,
            "END": TokenType.END,
            "LIKE": TokenType.LIKE,
            "ILIKE": TokenType.ILIKE,
            "ESCAPE": TokenType.ESCAPE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
        }

    class Parser(BaseParser):
        """No function is known, so none is rewritten or renamed; only EXTRACT and CASE have a syntax of their own."""

        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {"EXTRACT": lambda self: self._parse_extract()}
        NO_PAREN_FUNCTIONS: ClassVar = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": lambda self: self._parse_case()}


class JoinDialect(QuestionDialect):
    """The SQL of a question that has a JOIN: where there is none, its words are plain names."""

    class Tokenizer(QuestionDialect.Tokenizer):
        """The keywords, and those of joins."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = QuestionDialect.Tokenizer.KEYWORDS | {
            "JOIN": TokenType.JOIN,
            "INNER": TokenType.INNER,
            "LEFT": TokenType.LEFT,
            "OUTER": TokenType.OUTER,
            "ON": TokenType.ON,
            "USING": TokenType.USING,
        }

    Parser = QuestionDialect.Parser


def parse(text: QuestionText) -> exp.Select:
    """The tree of the one SELECT statement in a text."""
    joins = any(token.keyword == "JOIN" for token in text.tokens)
    try:
        statements = sqlglot.parse(text.plain, dialect=JoinDialect if joins else QuestionDialect)
    except ParseError as error:
        raise _misread(text, error) from None
    except Exception:
        # Hostile text: every error of a parser of so large a language is a refusal, never a failure.
        raise text.refusal(f"the text cannot be read. {SHAPE}") from None
    given = [statement for statement in statements if statement is not None]
    if len(given) != 1 or type(given[0]) is not exp.Select:
        raise text.refusal(SHAPE, 0)
    return given[0]


def allow_only(text: QuestionText, node: exp.Expression, *allowed: str) -> None:
    """Refuse any argument of a node that is set and not allowed."""
    for name, value in node.args.items():
        if name not in allowed and value:
            raise text.refusal(_REFUSED.get(name, f"this form is not supported. {SHAPE}"), offset_of(node))


def list_chain(text: QuestionText, node: exp.Expression) -> list[exp.Expression]:
    """The parts of a AND b AND c …, which the parser nests to the left as deep as the chain is long."""
    kind, parts = type(node), []
    while type(node) is kind:
        allow_only(text, node, "this", "expression")
        parts.append(node.args["expression"])
        node = node.this
    return [node, *reversed(parts)]


def refuse_bare_conditions(text: QuestionText, node: exp.Expression) -> None:
    """Refuse a condition within another without parentheses: x = y IS NULL has two readings, and SQL's is the other."""
    inner = node.this if type(node) is exp.Escape else node
    parts = [inner.args.get(name) for name in ("this", "expression", "low", "high")]
    for part in (*parts, *(inner.args.get("expressions") or [])):
        if type(part) in (*TRUTHS, exp.Not):
            raise text.refusal("a condition within another stands in parentheses", offset_of(part))


def is_unknown(node: exp.Expression) -> bool:
    """Whether this is the word that follows IS."""
    return type(node) is exp.Column and not node.this.args.get("quoted") and to_upper(str(node.this.this)) == "UNKNOWN"


def offset_of(node: exp.Expression) -> int | None:
    """Where a node starts in the text, as far as the parser has kept it: its own place or its first part's."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


_REFUSED = {
    "joins": "JOIN stands in the innermost SELECT, between declared data sets",
    "alias": "the data set is named without an alias here",
    "db": "the data set is named without a prefix",
    "table": "columns are named without a prefix here",
}


def _misread(text: QuestionText, error: ParseError) -> QuestionRefused:
    """Place the parser's complaint; its own message shows terminal codes, so it is not repeated."""
    place: int | None = None
    if error.errors:
        line, column = error.errors[0].get("line"), error.errors[0].get("col")
        highlight = error.errors[0].get("highlight") or ""
        if line and column:
            # the parser names the last character of the word that it did not expect
            lines = text.source.split("\n")
            place = sum(len(before) + 1 for before in lines[: line - 1]) + max(0, column - max(1, len(highlight)))
    if (slip := _find_slip(text, place)) is not None:
        return slip
    hint = "A name that is also an SQL word is written in double quotes, a string in single quotes"
    if place is not None and _is_in_marked_number(text.source, place):
        hint = "A number is written without marks for thousands and with a decimal point, such as 1500 or 1500.75"
    return text.refusal(f"the text cannot be read from here. {SHAPE}. {hint}", place)


def _find_slip(text: QuestionText, place: int | None) -> QuestionRefused | None:
    """What to write in place of what other languages have, or of a clause that is misspelt or not finished."""
    words = text.tokens
    for before, token, after in zip((None, *words), words, (*words[1:], None), strict=False):
        word, then, following = token.keyword, after.text if after else "", after.keyword if after else _END
        if word == "=" and (sign := _NO_SIGNS.get(word + then)):
            return text.refusal(f"{word}{then} is no comparison: write {sign}", token.start)
        if word == "TOP" and before and before.keyword == "SELECT" and then.isdecimal():
            return text.refusal(f"TOP is not supported: end the question with LIMIT {then}", token.start)
        if word in _BEFORE_A_CONDITION and following in _AFTER_A_CONDITION:
            return text.refusal(f"a condition is missing after {word}: write one, or leave {word} out", token.start)
        near = place is not None and place in (token.start, after.start if after else None)
        ended = before and (before.text == ")" or not (before.kind is TokenKind.SIGN or before.keyword in RESERVED))
        misspelt = near and ended and token.kind is TokenKind.WORD and word not in RESERVED
        if misspelt and (meant := find_nearest(token.text, _CLAUSES, MISSPELT)):
            return text.refusal(f"{token.text} has no meaning here. Did you mean {meant}? {SHAPE}", token.start)
    return None


def _is_in_marked_number(source: str, place: int) -> bool:
    """Whether the place is in a number such as 1,500 or 1.500,75, which SQL does not read; only near text is looked at.

    >>> [_is_in_marked_number("WHERE x > 1.500,75", place) for place in (4, 10, 15)]
    [False, True, True]
    """
    first = max(0, place - LONGEST_NUMBER)
    near = _MARKED_NUMBER.finditer(source[first : place + LONGEST_NUMBER])
    return any(found.start() <= place - first <= found.end() for found in near)


def fold_case(name: str) -> str:
    """A name folded for case-insensitive comparison."""
    return name.translate(_FOLD)


def quote(name: str) -> str:
    """A name as it is written in SQL.

    >>> quote("income"), quote("odd name"), quote("limit")
    ('income', '"odd name"', '"limit"')
    """
    return name if is_word(name) and to_upper(name) not in RESERVED else '"' + name.replace('"', '""') + '"'


def to_upper(name: str) -> str:
    """A name of the language, such as a function's, in the letters it is listed by.

    >>> to_upper("Median"), to_upper("mın")
    ('MEDIAN', 'MıN')
    """
    return name.translate(_RAISE)


def resolve_name(text: QuestionText, node: exp.Expression, declared: Iterable[str], what: str) -> str:
    """The declared name that an identifier means, or a refusal that says which there are."""
    if type(node) is not exp.Identifier:
        raise text.refusal(f"a name of a {what} is expected here", offset_of(node))
    allow_only(text, node, "this", "quoted")
    written, names = str(node.this), tuple(declared)
    matching = _spelt_alike(names).get(fold_case(written), ())
    if node.args.get("quoted"):
        matching = tuple(name for name in matching if name == written)
    if len(matching) == 1:
        return matching[0]
    if matching:
        listed = ", ".join(f'"{name}"' for name in sorted(matching))
        raise text.refusal(f"{written!r} could be any of {listed}: write the name in double quotes", offset_of(node))
    absent = f"the column {written!r} is not declared" if what == "column" else f"there is no {what} {written!r}"
    refused = text.refusal(f"{absent}. {_offered(written, names, what)}", offset_of(node))
    refused.undeclared = written if what == "column" else ""
    raise refused


@lru_cache(maxsize=64)
def _spelt_alike(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The names by their folded form: a long condition names columns thousands of times."""
    spelt_alike: dict[str, tuple[str, ...]] = {}
    for name in names:
        spelt_alike[fold_case(name)] = (*spelt_alike.get(fold_case(name), ()), name)
    return spelt_alike


def column_identifier(text: QuestionText, node: exp.Expression) -> exp.Expression | None:
    """The identifier of a bare column name; None if the node is anything else."""
    if type(node) is not exp.Column:
        return None
    allow_only(text, node, "this")
    name: exp.Expression = node.this
    return name


def _offered(written: str, names: Sequence[str], what: str) -> str:
    if meant := find_nearest(written, names):
        return f"Did you mean {quote(meant)}?"
    listed = [quote(name) for name in sorted(names)]
    return f"Declared: {list_some(listed)}" if listed else f"No {what} is declared"
