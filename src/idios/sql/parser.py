"""The parser: from tokens to a tree of typed nodes, each with its place in the text.

The file is long because the nodes, the grammar and the code of each rule are read side by side.

Rules:

1. The parser reads each token once, from left to right, and never goes back: its work is linear in the text. Nesting is
   capped by the lexer, and chains of operators are read in a loop, so that recursion is bounded.
2. The grammar below is all there is. What does not fit is refused where it stands.
3. A node knows nothing of data sets: a name is a name, and a call carries its function as written.

    select  = SELECT item {, item} [FROM source {join}] [WHERE truth] [GROUP BY group {, group}] [HAVING truth]
              [ORDER BY order {, order}] [LIMIT sum] [OFFSET sum]
    item    = * | truth [[AS] name]
    source  = name [[AS] name] | ( select ) [[AS] name]
    join    = , source | [INNER | LEFT [OUTER]] JOIN source [ON truth | USING ( name {, name} )]
    group   = truth | (ROLLUP | CUBE | GROUPING SETS) ( keys {, keys} );   keys = truth | ( [truth {, truth}] )
    order   = truth [ASC | DESC] [NULLS FIRST | NULLS LAST]
    truth   = all {OR all};   all = one {AND one};   one = NOT one | test
    test    = sum [sign sum | IS [NOT] state | IS [NOT] DISTINCT FROM sum | [NOT] BETWEEN sum AND sum
              | [NOT] IN ( sum {, sum} ) | [NOT] LIKE string [ESCAPE string]]
    sum     = product {+ product | - product};   product = signed {* signed | / signed};   signed = {+ | -} value
    value   = literal | DATE string | TIMESTAMP string | name [. name] | ( truth ) | * | CASE … END
              | EXTRACT ( name FROM truth ) | name ( [DISTINCT] [truth {, truth}] ) [WITHIN GROUP ( ORDER BY order )
              | OVER ( [PARTITION BY truth {, truth}] )]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, TypeVar

from idios.errors import QuestionRefused
from idios.sql.lexer import KEYWORDS, RESERVED, SHAPE, QuestionText, Token, TokenKind
from idios.sql.suggestions import find_nearest

JOIN_WORDS = frozenset(("JOIN", "INNER", "LEFT", "OUTER", "ON", "USING"))
"""Words that are names where a text has no JOIN; so is END where it has no CASE."""
KINDS = "a join is [INNER] JOIN … ON or LEFT [OUTER] JOIN … ON"
MAX_SETS = 64
"""How many sets of keys GROUP BY may have, such as (region, sex), (region) and () of ROLLUP(region, sex)."""
WHOLE = (
    "OVER () and OVER (PARTITION BY key) are of whole partitions: ranks, running totals and frames are made of the "
    "rows of the answer, in the order of ORDER BY"
)
LONGEST_NUMBER = 30
"""How far from an unreadable place the rest of a number is looked for."""
MISSPELT = 0.7
"""How alike a word and a clause are of which it may be a typo: FORM and FROM."""

_T = TypeVar("_T")
_END = "end of the text"
_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS = frozenset((*_COMPARISONS, "IS", "BETWEEN", "IN", "LIKE", "ILIKE"))
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
_NAMES = (TokenKind.WORD, TokenKind.QUOTED)
_OFFERED = ("HAVING", "LIMIT", "OFFSET", "LIKE", "ILIKE", "CASE", "END", "DESC", "ASC")
_MEANT = {
    ",": "a comma stands between two items of a list",
    "*": "a star stands in COUNT(*) or between two numbers",
    ".": "a dot stands between the prefix of a column and its name",
    ";": "one question at a time: nothing may follow a semicolon",
    "AS": "AS stands between a statistic or a key and its name",
    "DISTINCT": "DISTINCT is supported in COUNT(DISTINCT column) only",
    "SELECT": "a SELECT within another stands in FROM (SELECT …) only",
}
"""What a word means that stands where it cannot be read."""
_MARKED_NUMBER = re.compile(r"[0-9][0-9.]*,[0-9][0-9.,]*")
_NO_SIGNS = {"==": "=", "=<": "<=", "=>": ">="}
_BEFORE_A_CONDITION = ("WHERE", "HAVING", "AND", "OR", "NOT")
_AFTER_A_CONDITION = (_END, ")", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "AND", "OR")


@dataclass(eq=False, slots=True)
class SyntaxNode:
    """A part of a question, by the place where it starts. Two nodes are equal if they are the same node."""

    start: int


@dataclass(eq=False, slots=True)
class Number(SyntaxNode):
    """A number, as it is written."""

    written: str


@dataclass(eq=False, slots=True)
class String(SyntaxNode):
    """Text in single quotes."""

    value: str


@dataclass(eq=False, slots=True)
class Truth(SyntaxNode):
    """TRUE or FALSE."""

    value: bool


@dataclass(eq=False, slots=True)
class Null(SyntaxNode):
    """NULL."""


@dataclass(eq=False, slots=True)
class Moment(SyntaxNode):
    """DATE '…' or TIMESTAMP '…'."""

    kind: str
    written: str


@dataclass(eq=False, slots=True)
class Star(SyntaxNode):
    """The star of COUNT(*) and SELECT *."""


@dataclass(eq=False, slots=True)
class Name(SyntaxNode):
    """A name, with the table before its dot; ``meaning`` is the column that FROM gives it (``join_reader``)."""

    text: str
    quoted: bool
    prefix: Name | None = None
    meaning: str | None = None


@dataclass(eq=False, slots=True)
class Chain(SyntaxNode):
    """a + b - c … or a * b / c …, from left to right: the first value, then a sign and a value each."""

    first: SyntaxNode
    rest: Sequence[tuple[str, SyntaxNode]]


@dataclass(eq=False, slots=True)
class Negative(SyntaxNode):
    """The minus before a value."""

    value: SyntaxNode


@dataclass(eq=False, slots=True)
class CallNode(SyntaxNode):
    """A function by its written name; ``within`` is the order of WITHIN GROUP (ORDER BY …)."""

    function: str
    arguments: Sequence[SyntaxNode]
    distinct: bool = False
    within: Sequence[OrderNode] | None = None


@dataclass(eq=False, slots=True)
class WindowNode(SyntaxNode):
    """A function OVER the rows that are alike in ``partition``."""

    function: str
    arguments: Sequence[SyntaxNode]
    partition: Sequence[SyntaxNode]


@dataclass(eq=False, slots=True)
class Extract(SyntaxNode):
    """EXTRACT(part FROM value)."""

    part: str
    value: SyntaxNode


@dataclass(eq=False, slots=True)
class CaseNode(SyntaxNode):
    """CASE [subject] WHEN … THEN … [ELSE default] END."""

    subject: SyntaxNode | None
    branches: Sequence[tuple[SyntaxNode, SyntaxNode]]
    default: SyntaxNode | None


@dataclass(eq=False, slots=True)
class Junction(SyntaxNode):
    """Conditions joined by AND or by OR."""

    word: str
    conditions: Sequence[SyntaxNode]


@dataclass(eq=False, slots=True)
class Not(SyntaxNode):
    """The opposite of a condition."""

    value: SyntaxNode


@dataclass(eq=False, slots=True)
class ComparisonNode(SyntaxNode):
    """Two values and a sign: = <> < <= > >=, or "is distinct"."""

    sign: str
    left: SyntaxNode
    right: SyntaxNode


@dataclass(eq=False, slots=True)
class Between(SyntaxNode):
    """value BETWEEN low AND high."""

    value: SyntaxNode
    low: SyntaxNode
    high: SyntaxNode


@dataclass(eq=False, slots=True)
class In(SyntaxNode):
    """value IN (…)."""

    value: SyntaxNode
    items: Sequence[SyntaxNode]


@dataclass(eq=False, slots=True)
class Is(SyntaxNode):
    """value IS NULL, TRUE, FALSE or UNKNOWN."""

    value: SyntaxNode
    state: str


@dataclass(eq=False, slots=True)
class Like(SyntaxNode):
    """value LIKE pattern, or ILIKE; the pattern comes with its escape sign, if one is given."""

    function: str
    value: SyntaxNode
    pattern: tuple[str, ...]


Test: TypeAlias = ComparisonNode | Between | In | Is | Like
TESTS = (ComparisonNode, Between, In, Is, Like)
"""What is true, false or unknown, and is not joined from such."""


@dataclass(eq=False, slots=True)
class OrderNode(SyntaxNode):
    """An item of ORDER BY."""

    value: SyntaxNode
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class ListItem:
    """An item of a SELECT list; ``spelling`` is how it is written, spaces evened out, without its name."""

    start: int
    node: SyntaxNode
    alias: Name | None
    spelling: str

    @property
    def label(self) -> str:
        """Its name; empty if it is given none."""
        return "" if self.alias is None else self.alias.text


@dataclass(frozen=True, slots=True)
class TableNode:
    """A table, or a SELECT in parentheses, with its alias; ``named`` where AS stands before the alias."""

    start: int
    content: Name | SelectNode
    alias: Name | None
    named: bool


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A table that is joined: by a comma, INNER or LEFT JOIN."""

    start: int
    kind: str
    table: TableNode
    on: SyntaxNode | None = None
    using: Sequence[Name] = ()


@dataclass(frozen=True, slots=True)
class SelectNode:
    """A SELECT, clause by clause; ``spelt`` has FROM and WHERE as they are written.

    ``group`` lists what GROUP BY names, and ``sets`` the sets of their places where it has several, as ROLLUP makes.
    """

    start: int
    items: Sequence[ListItem]
    source: TableNode | None
    joins: Sequence[JoinNode]
    where: SyntaxNode | None
    group: Sequence[SyntaxNode]
    sets: Sequence[Sequence[int]] | None
    having: SyntaxNode | None
    order: Sequence[OrderNode]
    limit: SyntaxNode | None
    offset: SyntaxNode | None
    spelt: dict[str, str]

    @property
    def parts(self) -> list[SyntaxNode]:
        """What it computes, from its list to ORDER BY, without FROM."""
        clauses = [clause for clause in (self.where, *self.group, self.having) if clause is not None]
        return [*(item.node for item in self.items), *clauses, *(order.value for order in self.order)]


def walk(*nodes: SyntaxNode | None) -> Iterator[SyntaxNode]:
    """Nodes and all of their parts, but for the prefix of a name."""
    stack: list[object] = list(reversed(nodes))
    while stack:
        part = stack.pop()
        if isinstance(part, list | tuple):
            stack.extend(reversed(part))
        elif isinstance(part, SyntaxNode):
            yield part
            if not isinstance(part, Name):
                stack.extend(getattr(part, name) for name in reversed(type(part).__slots__))


def parse(text: QuestionText) -> SelectNode:
    """The tree of the one SELECT statement in a text."""
    parser = _Parser(text)
    select = parser.read_select()
    if parser.word != _END:
        raise parser.misread()
    return select


class _Parser:
    def __init__(self, text: QuestionText) -> None:
        self.text = text
        self.tokens = text.tokens
        self.words = [*(token.keyword for token in text.tokens), _END]
        self.joins = "JOIN" in self.words
        self.no_names = KEYWORDS | (JOIN_WORDS if self.joins else set()) | ({"END"} if "CASE" in self.words else set())
        self.at = 0
        self.word = self.words[0]

    # Tokens.

    @property
    def start(self) -> int:
        """The place of the next token."""
        return self.tokens[self.at].start if self.at < len(self.tokens) else len(self.text.source.rstrip())

    def advance(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        self.word = self.words[self.at]
        return token

    def accept(self, word: str) -> bool:
        """Read a word if it comes next."""
        if self.word != word:
            return False
        self.at += 1
        self.word = self.words[self.at]
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.misread()

    def kind(self) -> TokenKind | None:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else None

    def follows(self, *words: str) -> bool:
        """Whether these words come next."""
        return tuple(self.words[self.at : self.at + len(words)]) == words

    def at_name(self) -> bool:
        kind = self.kind()
        return kind is TokenKind.QUOTED or (kind is TokenKind.WORD and self.word not in self.no_names)

    def read_name(self) -> Name:
        if not self.at_name():
            raise self.misread()
        token = self.advance()
        quoted = token.kind is TokenKind.QUOTED
        return Name(token.start, token.text[1:-1] if quoted else token.text, quoted)

    def read_string(self, problem: str) -> str:
        if self.kind() is not TokenKind.STRING:
            raise self.text.refusal(problem, self.start)
        return self.advance().text[1:-1].replace("''", "'")

    def read_list(self, read: Callable[[], _T]) -> list[_T]:
        items = [read()]
        while self.accept(","):
            items.append(read())
        return items

    # Clauses.

    def read_select(self) -> SelectNode:
        start = self.start
        self.expect("SELECT")
        items, spelt = self.read_list(self.read_item), {}
        source, joins = None, []
        if self.accept("FROM"):
            first = self.at
            source = self.read_table()
            while (join := self.read_join()) is not None:
                joins.append(join)
            spelt["FROM"] = self.spell_since(first)
        where = None
        if self.accept("WHERE"):
            first = self.at
            where = self.read_truth()
            spelt["WHERE"] = self.spell_since(first)
        group, sets = self.read_group() if self.accept_pair("GROUP") else ([], None)
        having = self.read_truth() if self.accept("HAVING") else None
        order = self.read_list(self.read_order) if self.accept_pair("ORDER") else []
        limit = offset = None
        while self.word in ("LIMIT", "OFFSET"):
            if (limit if self.word == "LIMIT" else offset) is not None:
                raise self.misread()
            if self.accept("LIMIT"):
                limit = self.read_sum()
            else:
                self.advance()
                offset = self.read_sum()
        if self.word in ("GROUP", "ORDER") and not self.follows(self.word, "BY"):
            raise self.text.refusal(f"{self.word} is followed by BY", self.start)
        if self.word in _CLAUSES:
            clauses = "FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT"
            raise self.text.refusal(f"{self.word} is out of place: the order is {clauses}, each once", self.start)
        return SelectNode(start, items, source, joins, where, group, sets, having, order, limit, offset, spelt)

    def read_group(self) -> tuple[list[SyntaxNode], list[list[int]] | None]:
        """What GROUP BY lists, and which sets of it are grouped by, where it says."""
        nodes: list[SyntaxNode] = []
        sets: list[list[int]] = [[]]
        several = False
        while True:
            start = self.start
            made = self.read_sets(nodes)
            several = several or made is not None
            made = [[len(nodes) - 1]] if made is None else made
            if len(sets) * len(made) > MAX_SETS:
                raise self.text.refusal(f"GROUP BY makes at most {MAX_SETS} sets of keys", start)
            if len(made) == 1:
                for places in sets:
                    places += made[0]
            else:
                sets = [[*left, *right] for left in sets for right in made]
            if not self.accept(","):
                return nodes, sets if several else None

    def read_sets(self, nodes: list[SyntaxNode]) -> list[list[int]] | None:
        """The sets of one part of GROUP BY, whose keys it adds; None where the part is a key."""
        start, word = self.start, self.word
        if self.follows("GROUPING", "SETS", "("):
            self.advance()
        elif word not in ("ROLLUP", "CUBE") or not self.follows(word, "("):
            nodes.append(self.read_truth())
            return None
        self.advance()
        self.advance()
        units = self.read_list(lambda: self.read_keys(nodes))
        self.expect(")")
        if word == "GROUPING":
            return units
        if len(units) >= (MAX_SETS if word == "ROLLUP" else MAX_SETS.bit_length()):
            raise self.text.refusal(f"GROUP BY makes at most {MAX_SETS} sets of keys", start)
        sizes = range(len(units), -1, -1)
        chosen = [units[:n] for n in sizes] if word == "ROLLUP" else [c for n in sizes for c in combinations(units, n)]
        return [[place for unit in units for place in unit] for units in chosen]

    def read_keys(self, nodes: list[SyntaxNode]) -> list[int]:
        """A key, or several in parentheses, or none."""
        first = len(nodes)
        if not self.accept("("):
            nodes.append(self.read_truth())
        elif not self.accept(")"):
            nodes += self.read_list(self.read_truth)
            self.expect(")")
        return list(range(first, len(nodes)))

    def accept_pair(self, word: str) -> bool:
        """Read GROUP BY, ORDER BY or PARTITION BY."""
        if not self.follows(word, "BY"):
            return False
        self.advance()
        self.advance()
        return True

    def spell_since(self, first: int) -> str:
        """The text from a token to the last one read."""
        return " ".join(self.text.source[self.tokens[first].start : self.tokens[self.at - 1].end].split())

    def read_item(self) -> ListItem:
        first, start = self.at, self.start
        if self.follows("*", "FROM") and self.words[first - 1] == "SELECT":
            return ListItem(start, Star(self.advance().start), None, "*")
        node = self.read_truth()
        spelling = _spell(self.tokens[first : self.at])
        alias, _ = self.read_alias()
        keyword = alias is None and self.word in ("NULL", "TRUE", "FALSE", "BY")
        if keyword or self.follows("GROUP", ",") or (alias is not None and not alias.text.strip()):
            place = self.start if alias is None else alias.start
            named = self.tokens[self.at].text if alias is None else '""'
            raise self.text.refusal(f"{named} is no name: a result is followed by AS and its name", place)
        return ListItem(start, node, alias, spelling)

    def read_alias(self) -> tuple[Name | None, bool]:
        """A name after AS, or without it; and whether AS stands before it."""
        if self.accept("AS"):
            return self.read_name(), True
        return (self.read_name() if self.at_name() else None), False

    def read_table(self, *, joined: bool = False) -> TableNode:
        start = self.start
        if joined and self.word == "(":
            raise self.text.refusal("JOIN is followed by a declared data set", start)
        if self.accept("("):
            if self.word != "SELECT":
                raise self.text.refusal(f"FROM is followed by a data set or by (SELECT …). {SHAPE}", self.start)
            content: Name | SelectNode = self.read_select()
            self.expect(")")
        else:
            content = self.read_name()
            if self.word == "." and self.next_kind() in _NAMES:
                raise self.text.refusal("the data set is named without a prefix", start)
            if self.word == "(":
                raise self.text.refusal("FROM names one declared data set, or (SELECT …) of one", start)
        alias, named = self.read_alias()
        return TableNode(start, content, alias, named)

    def read_join(self) -> JoinNode | None:
        start = self.start
        if self.accept(","):
            return JoinNode(start, "", self.read_table(joined=True))
        if not self.joins:
            return None
        kind = "INNER"
        if self.accept("LEFT"):
            kind = "LEFT"
            self.accept("OUTER")
        elif not self.accept("INNER") and self.word not in JOIN_WORDS:
            return None
        if not self.accept("JOIN"):
            raise self.text.refusal(KINDS, self.start)
        table = self.read_table(joined=True)
        if self.accept("ON"):
            return JoinNode(start, kind, table, on=self.read_truth())
        if self.accept("USING"):
            self.expect("(")
            using = self.read_list(self.read_name)
            self.expect(")")
            return JoinNode(start, kind, table, using=using)
        return JoinNode(start, kind, table)

    def read_order(self) -> OrderNode:
        value = self.read_truth()
        descending = self.accept("DESC")
        if not descending:
            self.accept("ASC")
        first = False
        if self.accept("NULLS"):
            first = self.accept("FIRST")
            if not first:
                self.expect("LAST")
        return OrderNode(value.start, value, descending, first)

    # Conditions.

    def read_truth(self) -> SyntaxNode:
        return self.read_junction("OR", self.read_all)

    def read_all(self) -> SyntaxNode:
        return self.read_junction("AND", self.read_one)

    def read_junction(self, word: str, read: Callable[[], SyntaxNode]) -> SyntaxNode:
        first = read()
        if self.word != word:
            return first
        parts = [first]
        while self.accept(word):
            parts.append(read())
        return Junction(first.start, word, parts)

    def read_one(self) -> SyntaxNode:
        if self.word == "NOT":
            start = self.advance().start
            return Not(start, self.read_one())
        return self.read_test(self.read_sum())

    def read_test(self, left: SyntaxNode) -> SyntaxNode:
        """What a value is compared with, if anything."""
        negated = self.word == "NOT" and self.words[self.at + 1] in ("BETWEEN", "IN", "LIKE", "ILIKE")
        if negated:
            self.advance()
        word = self.word
        if word not in _TESTS:
            return left
        self.advance()
        test: SyntaxNode
        if word in _COMPARISONS:
            test = ComparisonNode(left.start, _COMPARISONS[word], left, self.read_side())
        elif word == "IS":
            test = self.read_is(left)
        elif word == "BETWEEN":
            low = self.read_side()
            self.expect("AND")
            test = Between(left.start, left, low, self.read_side())
        elif word == "IN":
            if self.word != "(":
                raise self.text.refusal("IN is followed by a list of constants in parentheses", left.start)
            self.advance()
            items = [] if self.word == ")" else self.read_list(self.read_side)
            self.expect(")")
            if not items:
                raise self.text.refusal("IN is followed by a list of constants in parentheses", left.start)
            test = In(left.start, left, items)
        else:
            test = self.read_like(word.lower(), left)
        if self.word in _TESTS:
            raise self.bare(left)
        return Not(left.start, test) if negated else test

    def bare(self, node: SyntaxNode) -> QuestionRefused:
        """Refuse a condition in another without parentheses: x = y IS NULL has two readings, and SQL's is the other."""
        return self.text.refusal("a condition within another stands in parentheses", node.start)

    def read_side(self) -> SyntaxNode:
        if self.word == "NOT":
            raise self.text.refusal("a condition within another stands in parentheses", self.start)
        side = self.read_sum()
        if self.word in _TESTS or (self.word == "NOT" and self.words[self.at + 1] in _TESTS):
            raise self.bare(side)
        return side

    def read_is(self, left: SyntaxNode) -> SyntaxNode:
        negated = self.accept("NOT")
        if self.follows("DISTINCT", "FROM"):
            self.advance()
            self.advance()
            distinct = ComparisonNode(left.start, "is distinct", left, self.read_side())
            return distinct if negated is False else Not(left.start, distinct)
        state = self.word
        if state not in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            problem = "IS is followed by [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"
            raise self.text.refusal(problem, left.start)
        self.advance()
        test = Is(left.start, left, state)
        return Not(left.start, test) if negated else test

    def read_like(self, function: str, left: SyntaxNode) -> Like:
        problem = "LIKE is followed by a pattern, and ESCAPE by one sign, in quotes"
        pattern = self.read_string(problem)
        if not self.accept("ESCAPE"):
            return Like(left.start, function, left, (pattern,))
        sign = self.read_string(problem)
        # a letter would be folded by ILIKE, and then stand for two
        if len(sign) != 1 or sign.isalnum():
            raise self.text.refusal(problem, left.start)
        if (len(pattern) - len(pattern.rstrip(sign))) % 2:
            raise self.text.refusal("nothing follows the last escape sign of the pattern", left.start)
        return Like(left.start, function, left, (pattern, sign))

    # Values.

    def read_sum(self) -> SyntaxNode:
        return self.read_chain(("+", "-"), self.read_product)

    def read_product(self) -> SyntaxNode:
        return self.read_chain(("*", "/"), self.read_signed)

    def read_chain(self, signs: tuple[str, str], read: Callable[[], SyntaxNode]) -> SyntaxNode:
        first = read()
        if self.word not in signs:
            return first
        rest = []
        while self.word in signs:
            sign = self.advance().text
            rest.append((sign, read()))
        return Chain(first.start, first, rest)

    def read_signed(self) -> SyntaxNode:
        if self.word == "-":
            start = self.advance().start
            return Negative(start, self.read_signed())
        return self.read_signed() if self.accept("+") else self.read_value()

    def read_value(self) -> SyntaxNode:
        kind, word = self.kind(), self.word
        if kind is TokenKind.NUMBER:
            token = self.advance()
            return Number(token.start, token.text)
        if kind is TokenKind.STRING:
            token = self.advance()
            return String(token.start, token.text[1:-1].replace("''", "'"))
        if word == "(":
            self.advance()
            inner = self.read_truth()
            if self.word == ",":
                raise self.text.refusal("a list in parentheses follows IN only", self.start)
            self.expect(")")
            return inner
        if word in ("TRUE", "FALSE"):
            return Truth(self.advance().start, word == "TRUE")
        if word == "NULL":
            return Null(self.advance().start)
        if word == "CASE":
            return self.read_case()
        if word in ("DATE", "TIMESTAMP") and self.next_kind() is TokenKind.STRING:
            start = self.advance().start
            return Moment(start, word, self.read_string(""))
        if self.words[self.at + 1 : self.at + 2] == ["("] and kind is TokenKind.WORD and word not in self.no_names:
            return self.read_extract() if word == "EXTRACT" else self.read_call()
        name = self.read_name()
        if self.word != ".":
            return name
        before, dot = self.tokens[self.at - 1], self.tokens[self.at]
        if self.next_kind() not in _NAMES:
            raise self.misread()
        self.advance()
        column = self.advance()  # a name after a dot, whatever the word means elsewhere
        if before.end != dot.start or dot.end != column.start:
            raise self.text.refusal("a prefix, the dot and the name are written without spaces", dot.start)
        if self.word == ".":
            raise self.text.refusal("the prefix of a column is the name of a table, without a prefix", name.start)
        quoted = column.kind is TokenKind.QUOTED
        return Name(name.start, column.text[1:-1] if quoted else column.text, quoted, prefix=name)

    def next_kind(self) -> TokenKind | None:
        return self.tokens[self.at + 1].kind if self.at + 1 < len(self.tokens) else None

    def read_call(self) -> CallNode | WindowNode:
        token = self.advance()
        self.expect("(")
        counts = token.keyword == "COUNT"
        distinct = counts and self.accept("DISTINCT")
        arguments: list[SyntaxNode] = []
        if counts and self.word == "*":
            arguments.append(Star(self.advance().start))
            if self.word != ")":
                raise self.text.refusal("COUNT(*) is written without anything else in it", arguments[0].start)
        elif self.word != ")":
            arguments = self.read_list(self.read_truth)
        self.expect(")")
        within = None
        if self.follows("WITHIN", "GROUP"):
            self.advance()
            self.advance()
            if not self.follows("(", "ORDER", "BY"):
                raise self.text.refusal("WITHIN GROUP is followed by (ORDER BY column)", token.start)
            for _ in range(3):
                self.advance()
            within = self.read_list(self.read_order)
            self.expect(")")
        if self.word != "OVER":
            return CallNode(token.start, token.text, arguments, distinct, within)
        start = self.advance().start
        if not self.accept("(") or distinct or within is not None:
            raise self.text.refusal("OVER is written function(…) OVER (PARTITION BY key), or OVER ()", start)
        partition = self.read_list(self.read_truth) if self.accept_pair("PARTITION") else []
        if self.word in ("ORDER", "ROWS", "RANGE", "GROUPS"):
            raise self.text.refusal(WHOLE, self.start)
        self.expect(")")
        return WindowNode(token.start, token.text, arguments, partition)

    def read_extract(self) -> Extract:
        start = self.advance().start
        self.expect("(")
        part = self.read_name()
        if not self.accept("FROM"):
            raise self.text.refusal("EXTRACT is written EXTRACT(part FROM date)", self.start)
        value = self.read_truth()
        self.expect(")")
        return Extract(start, part.text, value)

    def read_case(self) -> CaseNode:
        start = self.advance().start
        subject = None if self.word == "WHEN" else self.read_truth()
        branches = []
        while self.accept("WHEN"):
            condition = self.read_truth()
            self.expect("THEN")
            branches.append((condition, self.read_truth()))
        default = self.read_truth() if self.accept("ELSE") else None
        if not branches or not self.accept("END"):
            raise self.misread()
        return CaseNode(start, subject, branches, default)

    # Refusals.

    def misread(self) -> QuestionRefused:
        """Refuse the next token, with what was meant if that can be told."""
        place, word, before = self.start, self.word, self.words[self.at - 1]
        marked = _is_in_marked_number(self.text.source, place)
        if word in _MEANT and not marked:
            return self.text.refusal(_MEANT[word], place)
        if self.kind() is TokenKind.STRING and before != "AS":
            told = "strings are values: names are written without quotes or in double quotes"
            return self.text.refusal(told, place)
        if word in _OFFERED and (before == "AS" or (before == "(" and self.words[self.at + 1] in (")", ","))):
            written = self.tokens[self.at].text
            return self.text.refusal(f'{word} is a word of SQL: a name is written "{written}"', place)
        if before in (",", "AS") and not marked:
            return self.text.refusal(_MEANT[before], self.tokens[self.at - 1].start)
        if (slip := _find_slip(self.text, place)) is not None:
            return slip
        hint = "A name that is also an SQL word is written in double quotes, a string in single quotes"
        if marked:
            hint = "A number is written without marks for thousands and with a decimal point, such as 1500 or 1500.75"
        return self.text.refusal(f"the text cannot be read from here. {SHAPE}. {hint}", place)


def _find_slip(text: QuestionText, place: int) -> QuestionRefused | None:
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
        near = place in (token.start, after.start if after else None)
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


def _spell(item: Sequence[Token]) -> str:
    """The tokens with single spaces where the writer had any, none beside parentheses, one after a comma."""
    spelt = ""
    for before, token in zip([None, *item], item, strict=False):
        tight = before is None or before.text == "(" or token.text in (")", ",")
        spaced = before is not None and (before.text == "," or before.end < token.start)
        spelt += (" " if spaced and not tight else "") + token.text
    return spelt
