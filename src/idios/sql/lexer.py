"""The lexer: the text of a question, cut into tokens before any parser sees it.

Rules:

1. Length and nesting are capped here, so that no text can exhaust the parser.
2. A character or a word that no question needs is refused here, with what to write instead: second statements, casts,
   parameters, and the clauses that are not offered.
3. A comment is no token: the parser never sees it.
4. A name that is one of the refused words is written in double quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from idios.errors import QuestionRefused

MAX_LENGTH = 20_000
MAX_NESTING = 20
MAX_NAME = 128
MAX_DIGITS = 100
MAX_EXPONENT = 400

SHAPE = (
    "A question reads: SELECT statistics FROM data set [WHERE conditions] [GROUP BY keys] [HAVING condition] "
    "[ORDER BY results] [LIMIT number]"
)


class TokenKind(StrEnum):
    """What a token is."""

    SPACE = "space"
    COMMENT = "comment"
    NUMBER = "number"
    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    SIGN = "sign"


@dataclass(frozen=True)
class Token:
    """One word, literal or sign, with the place where it starts."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place after its last character."""
        return self.start + len(self.text)

    @cached_property
    def keyword(self) -> str:
        """The word in capitals, or the sign; a quoted name and a literal are never a keyword."""
        # only ASCII has one upper case: 'ſelect'.upper() would be a keyword too
        return self.text.upper() if self.kind in (TokenKind.WORD, TokenKind.SIGN) and self.text.isascii() else ""


@dataclass(frozen=True)
class QuestionText:
    """A question's text and its tokens, without comments and a closing semicolon."""

    source: str
    tokens: tuple[Token, ...]
    indexed: dict[int, tuple[Mapping[str, object], Mapping[str, tuple[str, ...]]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Declared names by their folded form, as far as this question has asked for them (``names``)."""

    def refusal(self, message: str, offset: int | None = None) -> QuestionRefused:
        """The error for one place of this text, to be raised."""
        return QuestionRefused(message, self.source, offset)


def tokenize(source: object) -> QuestionText:
    """Cut a text into tokens, refusing what no question needs.

    >>> [token.text for token in tokenize("SELECT COUNT(*) FROM people;").tokens]
    ['SELECT', 'COUNT', '(', '*', ')', 'FROM', 'people']
    """
    if not isinstance(source, str):
        raise QuestionRefused(f"a question is text, got {type(source).__name__}. {SHAPE}")
    if len(source) > MAX_LENGTH:
        raise QuestionRefused(
            f"a question has at most {MAX_LENGTH:,} characters, this one has {len(source):,}; "
            "a long list of values may be written with BETWEEN, or asked in parts"
        )
    _refuse_hidden(source)
    tokens = _tokens(source)
    if tokens and tokens[-1].text == ";":
        tokens.pop()
    text = QuestionText(source, tuple(tokens))
    _refuse_words(text)
    _refuse_depth(text)
    return text


_PATTERN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<comment>--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<quoted>"[^"]*")
    |(?P<string>'(?:[^']|'')*')
    |(?P<sign><>|!=|<=|>=|[=<>(),*/+;.-])""",
    re.VERBOSE,
)

_NO_CASTS = "numbers are exact, 1 / 2 is 0.5, and dates are written DATE '2026-01-31'"

_SIGNS = {
    "%": "remainders are not supported: arithmetic has + - * /",
    "|": "text cannot be joined",
    ":": f"casts and parameters are not supported: {_NO_CASTS}",
    "?": "parameters are not supported: write the literal itself",
    "$": "parameters are not supported: write the literal itself",
    "@": "parameters are not supported: write the literal itself",
    "#": "a comment is written -- to the end of the line, or /* … */",
    "'": "the string that begins here does not end: a single quote ends it, and one within it is written twice",
    '"': "the name that begins here does not end: a double quote ends it",
    **dict.fromkeys("‘’“”„«»", "quotes are straight: 'text' is a string, and \"name\" a name"),
    "`": "names are quoted with double quotes",
}

_CLAUSES = {
    "QUALIFY": "QUALIFY is not supported",
    "FETCH": "FETCH is not supported: write LIMIT",
    "WINDOW": "WINDOW is not supported: write OVER (PARTITION BY …) itself",
    "FILTER": "FILTER is not supported: use WHERE, or ask one question for each condition",
    "UNION": "questions cannot be combined; ask one at a time",
    "INTERSECT": "questions cannot be combined; ask one at a time",
    "EXCEPT": "questions cannot be combined; ask one at a time",
    "WITH": "common table expressions and WITH options are not supported: write FROM (SELECT …)",
    "CAST": f"casts are not supported: {_NO_CASTS}",
    "TRY_CAST": f"casts are not supported: {_NO_CASTS}",
    "EXISTS": "subqueries are not supported",
    "ALL": "ALL is not supported",
    "ANY": "ANY is not supported: use IN with literals",
    "SOME": "SOME is not supported: use IN with literals",
    "SYMMETRIC": "BETWEEN is followed by two literals",
    "ASYMMETRIC": "BETWEEN is followed by two literals",
    "INTERVAL": "intervals are not supported: write dates as DATE '2026-01-31'",
}


_REDUCING = ("ANY", "ALL")
"""What is a function too, where it begins an item of SELECT."""


def _refuse_hidden(source: str) -> None:
    """Refuse characters that are not seen or that reorder what is seen (control, format, surrogates).

    The two joiners are part of how some languages are spelt; outside quotes they are no part of a word.
    """
    for offset, character in enumerate(source):
        if character in " \n\r\t\u200c\u200d" or (character.isascii() and character.isprintable()):
            continue
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
            raise QuestionRefused(
                f"the text holds the invisible character U+{ord(character):04X}, which no question needs",
                source,
                offset,
            )


def _tokens(source: str) -> list[Token]:
    """The tokens, without comments."""
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        match = _PATTERN.match(source, at)
        if match is None or match.lastgroup is None:
            raise QuestionRefused(
                _SIGNS.get(source[at], f"the character {source[at]!r} has no meaning here. {SHAPE}"),
                source,
                at,
            )
        token = Token(TokenKind(match.lastgroup), match.group(), at)
        at = match.end()
        if token.kind is TokenKind.SPACE:
            continue
        if token.kind is TokenKind.COMMENT:
            # some parsers nest comments and others do not: what they differ on is not read
            if "/*" in token.text[2:]:
                raise QuestionRefused("a comment stands in a comment", source, token.start)
            continue
        if token.text == "/" and source[at - 1 : at + 1] == "/*":
            raise QuestionRefused("a comment does not end", source, token.start)
        if tokens and _touch(tokens[-1], token):
            ended = ", or the string goes on: a single quote within it is written twice"
            told = "a space or a sign is missing here" + (ended if tokens[-1].kind is TokenKind.STRING else "")
            raise QuestionRefused(told, source, token.start)
        _refuse_form(token, source)
        tokens.append(token)
    return tokens


def _touch(before: Token, after: Token) -> bool:
    """Whether two words or literals touch: 0x1F, 1_000, E'a', 'a'"b" mean different things to different lexers."""
    return before.end == after.start and TokenKind.SIGN not in (before.kind, after.kind)


def is_word(name: str) -> bool:
    """Whether a name is read as one without quotes, unless it is a word of SQL."""
    match = _PATTERN.fullmatch(name)
    return match is not None and match.lastgroup == TokenKind.WORD and name.isidentifier()


def _refuse_form(token: Token, source: str) -> None:
    if token.kind is TokenKind.WORD and not token.text.isidentifier():
        raise QuestionRefused(f"{token.text!r} is neither a name nor a number", source, token.start)
    if token.kind in (TokenKind.WORD, TokenKind.QUOTED) and len(token.text) > MAX_NAME:
        raise QuestionRefused(f"a name has at most {MAX_NAME} characters", source, token.start)
    if token.kind is TokenKind.NUMBER:
        digits, _, exponent = token.text.lower().partition("e")
        # compared as text first: int() of a long exponent is itself expensive
        if len(digits) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_EXPONENT:
            raise QuestionRefused(
                f"a number has at most {MAX_DIGITS} digits and an exponent of at most ±{MAX_EXPONENT}",
                source,
                token.start,
            )


def _refuse_words(text: QuestionText) -> None:
    words = text.tokens
    if not words or words[0].keyword != "SELECT":
        first = words[0] if words else None
        clause = _CLAUSES.get(first.keyword) if first else None
        message = f"{clause}. {SHAPE}" if clause else SHAPE
        raise text.refusal(message, first.start if first else None)
    for i, token in enumerate(words[1:], start=1):
        if token.keyword not in _CLAUSES:
            continue
        before, after = words[i - 1].keyword, words[i + 1].keyword if i + 1 < len(words) else ""
        if token.keyword in _REDUCING and before in ("SELECT", ",") and after == "(":
            continue
        name = f'; a name of that spelling is written "{token.text}"'
        a_name = before in ("(", "AS") or after in _AFTER_A_COLUMN
        raise text.refusal(_CLAUSES[token.keyword] + (name if a_name else ""), token.start)


_AFTER_A_COLUMN = ("=", "<>", "!=", "<", "<=", ">", ">=", "BETWEEN", "IN", "IS")
_NO_NAMES = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS DISTINCT AND OR NOT IN IS BETWEEN LIKE ILIKE CASE WHEN THEN ELSE
NULL TRUE FALSE ASC DESC OVER
"""
KEYWORDS = frozenset(_NO_NAMES.split())
"""The words that are no names unless quoted."""
RESERVED = KEYWORDS | _CLAUSES.keys() | {"JOIN", "INNER", "LEFT", "OUTER", "ON", "USING"}
"""The words that are better quoted as names: those, and the ones that begin what is not supported."""


def _refuse_depth(text: QuestionText) -> None:
    """Count what can nest in what passed so far: parentheses, CASE, and runs of NOT and of signs.

    A word after a dot is the name of a column. Elsewhere, in a text with CASE, the parser reads END as its end alone.
    """
    open_levels: list[tuple[str, int]] = []
    depth = run = 0
    for before, token in zip((None, *text.tokens), text.tokens, strict=False):
        if token.keyword in ("NOT", "-", "+"):
            run += 1
        elif before is None or before.text != "." or token.kind is TokenKind.SIGN:
            if token.keyword in ("(", "CASE"):
                open_levels.append((token.keyword, run + 1))
                depth += run + 1
            elif token.keyword == ")":
                while open_levels and open_levels[-1][0] == "CASE":
                    depth -= open_levels.pop()[1]  # the parser will miss its END
                if not open_levels:
                    raise text.refusal("a parenthesis is closed that was not opened", token.start)
                depth -= open_levels.pop()[1]
            elif token.keyword == "END" and open_levels and open_levels[-1][0] == "CASE":
                depth -= open_levels.pop()[1]
            run = 0
        if depth + run > MAX_NESTING:
            raise text.refusal(f"parentheses, CASE, NOT and signs nest at most {MAX_NESTING} deep", token.start)
    if any(opened == "(" for opened, _ in open_levels):
        raise text.refusal("a parenthesis is not closed", len(text.source.rstrip()))
