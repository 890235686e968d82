"""The grammar: what binds closer, what is a name, where a node stands, and that each token is read once."""

import contextlib

import pytest

from idios.errors import QuestionRefused
from idios.sql.lexer import MAX_LENGTH, tokenize
from idios.sql.parser import (
    CallNode,
    Chain,
    ComparisonNode,
    Junction,
    Name,
    Number,
    SelectNode,
    SyntaxNode,
    WindowNode,
    _Parser,
    parse,
    walk,
)


def write(node: SyntaxNode) -> str:
    """A node with every pair of parentheses that it could have."""
    if isinstance(node, Chain):
        written = write(node.first)
        for sign, value in node.rest:
            written = f"({written} {sign} {write(value)})"
        return written
    if isinstance(node, Junction):
        return "(" + f" {node.word} ".join(map(write, node.conditions)) + ")"
    if isinstance(node, ComparisonNode):
        return f"({write(node.left)} {node.sign} {write(node.right)})"
    if isinstance(node, CallNode):
        return f"{node.function}({', '.join(map(write, node.arguments))})"
    if isinstance(node, Name):
        return node.text if node.prefix is None else f"{node.prefix.text}.{node.text}"
    if isinstance(node, Number):
        return node.written
    values = [getattr(node, name) for name in type(node).__slots__]
    return (
        f"{type(node).__name__.lower()}[{' '.join(write(v) if isinstance(v, SyntaxNode) else str(v) for v in values)}]"
    )


def read_where(condition: str) -> SyntaxNode:
    where = parse(tokenize(f"SELECT COUNT(*) FROM t WHERE {condition}")).where
    assert where is not None
    return where


@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        ("a = 1 OR b = 2 AND NOT c = 3", "((a = 1) OR ((b = 2) AND not[(c = 3)]))"),
        ("NOT a = 1 AND b", "(not[(a = 1)] AND b)"),
        ("NOT (a OR b)", "not[(a OR b)]"),
        ("a + b * c - d / e = -f", "(((a + (b * c)) - (d / e)) = negative[f])"),
        ("(a + b) * c > 1", "(((a + b) * c) > 1)"),
        ("a - b - c != 0", "(((a - b) - c) <> 0)"),
        ("- - a < + 1", "(negative[negative[a]] < 1)"),
        ("a NOT BETWEEN 1 AND 2 AND b", "(not[between[a 1 2]] AND b)"),
        ("a IS NOT NULL OR a IS UNKNOWN", "(not[is[a NULL]] OR is[a UNKNOWN])"),
        ("a IS DISTINCT FROM 1", "(a is distinct 1)"),
        ("a IS NOT DISTINCT FROM b + 1", "not[(a is distinct (b + 1))]"),
        ("a NOT LIKE 'x!%' ESCAPE '!'", "not[like[like a ('x!%', '!')]]"),
        ("(a = b) = TRUE", "((a = b) = truth[True])"),
        ("f(a, b > 1) = 1", "(f(a, (b > 1)) = 1)"),
        ("a IN (1, 2 + 3)", "in[a [Number(start=35, written='1'), Chain("),
        ("people.age > 1", "(people.age > 1)"),
    ],
)
def test_what_binds_closer(written, meaning):
    assert write(read_where(written)).startswith(meaning)


def test_clauses_and_names():
    select = parse(
        tokenize(
            'SELECT a.x AS "the x", COUNT(DISTINCT y) n FROM t a LEFT OUTER JOIN u ON a.x = u.x WHERE  (b  >1) '
            "GROUP BY 1, x HAVING n > 1 ORDER BY n DESC NULLS FIRST, 1 OFFSET 3 LIMIT 2"
        )
    )
    assert [(item.label, item.spelling) for item in select.items] == [("the x", "a.x"), ("n", "COUNT(DISTINCT y)")]
    assert [(join.kind, join.table.alias) for join in select.joins] == [("LEFT", None)]
    assert select.spelt == {"FROM": "t a LEFT OUTER JOIN u ON a.x = u.x", "WHERE": "(b >1)"}
    assert [(order.descending, order.nulls_first) for order in select.order] == [(True, True), (False, False)]
    assert (write(select.limit), write(select.offset), len(select.group)) == ("2", "3", 2)


@pytest.mark.parametrize(
    ("written", "keys", "sets"),
    [
        ("a, b", "a b", None),
        ("ROLLUP(a, b)", "a b", [[0, 1], [0], []]),
        ("ROLLUP (a, (b, c))", "a b c", [[0, 1, 2], [0], []]),
        ("CUBE(a, b)", "a b", [[0, 1], [0], [1], []]),
        ("GROUPING SETS ((a, b), c, ())", "a b c", [[0, 1], [2], []]),
        ("a, ROLLUP(b), CUBE(c)", "a b c", [[0, 1, 2], [0, 1], [0, 2], [0]]),
        ("GROUPING SETS (a), b", "a b", [[0, 1]]),
        ("rollup, cube", "rollup cube", None),
    ],
)
def test_sets_of_keys(written, keys, sets):
    select = parse(tokenize(f"SELECT COUNT(*) FROM t GROUP BY {written}"))
    assert [" ".join(map(write, select.group)), select.sets] == [keys, sets]


@pytest.mark.parametrize(
    "group", ["CUBE(a, b, c, d, e, f, g)", f"ROLLUP({', '.join('a' * 64)})", "CUBE(a, b, c, d, e, f), ROLLUP(g)"]
)
def test_the_number_of_sets_of_keys_is_limited(group):
    with pytest.raises(QuestionRefused, match="GROUP BY makes at most 64 sets of keys"):
        parse(tokenize(f"SELECT COUNT(*) FROM t GROUP BY {group}"))


def test_a_window_is_a_node_of_its_own():
    select = parse(tokenize("SELECT 1 + SUM(n) OVER (PARTITION BY a, b) AS s, COUNT(*) OVER () FROM t"))
    windows = [node for node in walk(*select.parts) if isinstance(node, WindowNode)]
    assert [(node.function, len(node.arguments), len(node.partition)) for node in windows] == [
        ("SUM", 1, 2),
        ("COUNT", 1, 0),
    ]
    assert [(item.label, item.spelling) for item in select.items] == [
        ("s", "1 + SUM(n) OVER (PARTITION BY a, b)"),
        ("", "COUNT(*) OVER ()"),
    ]


@pytest.mark.parametrize("word", ["date", "timestamp", "left", "inner", "on", "using", "end", "escape", "extract"])
def test_a_word_is_a_name_where_it_can_be_nothing_else(word):
    select = parse(tokenize(f"SELECT MEDIAN({word}) AS {word} FROM t WHERE {word} > 1 GROUP BY {word}"))
    assert [node.text for node in walk(*select.parts) if isinstance(node, Name)] == [word] * 3


def test_a_select_in_from():
    outer = parse(tokenize("SELECT MAX(m) FROM (SELECT MEDIAN(x) AS m FROM t) AS q"))
    assert outer.source is not None
    assert isinstance(outer.source.content, SelectNode)
    assert outer.source.alias is not None
    assert [outer.source.alias.text, outer.source.content.items[0].label] == ["q", "m"]


@pytest.mark.parametrize(
    ("sql", "told", "place"),
    [
        ("SELECT COUNT(*) FROM t WHERE x = ", "cannot be read", 32),
        ("SELECT COUNT(*) FROM t WHERE x BETWEEN 1", "cannot be read", 40),
        ("SELECT COUNT(*) FROM t LIMIT 1 WHERE x = 1", "WHERE is out of place", 31),
        ("SELECT COUNT(*) FROM t GROUP region", "GROUP is followed by BY", 23),
        ("SELECT COUNT(*) FROM t LIMIT 1 LIMIT 2", "cannot be read", 31),
        ("SELECT COUNT(*) FROM t WHERE x = 1 = 2", "stands in parentheses", 33),
        ("SELECT COUNT(*) FROM t WHERE x = y IS NULL", "stands in parentheses", 33),
        ("SELECT COUNT(*) FROM t WHERE x IN ()", "IN is followed by a list", 29),
        ("SELECT COUNT(*) FROM t WHERE x IN 1", "IN is followed by a list", 29),
        ("SELECT COUNT(*) FROM t WHERE x IS 3", "IS is followed by", 29),
        ("SELECT COUNT(*) FROM t WHERE CASE END", "cannot be read", 34),
        ("SELECT COUNT(*) FROM t WHERE CASE WHEN a THEN 1", "cannot be read", 47),
        ("SELECT COUNT(*) FROM a.t", "without a prefix", 21),
        ("SELECT COUNT(*) FROM f(1)", "FROM names one declared data set", 21),
        ("SELECT COUNT(*) FROM (t)", "(SELECT …)", 22),
        ("SELECT COUNT(*) FROM t JOIN (u) ON a = b", "JOIN is followed by a declared data set", 28),
        ("SELECT COUNT(*) FROM t INNER u JOIN v ON a = b", "a join is", 29),
        ("SELECT a b c FROM t", "cannot be read", 11),
        ("SELECT QUANTILE(x, 0.5) WITHIN GROUP (x) FROM t", "WITHIN GROUP is followed by", 7),
        ("SELECT EXTRACT(YEAR, day) FROM t", "EXTRACT is written", 19),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(sql, told, place):
    with pytest.raises(QuestionRefused) as caught:
        parse(tokenize(sql))
    assert told in caught.value.message
    assert caught.value.offset == place


REPEATED = {
    "joins without ON": ("SELECT COUNT(*) FROM a ", "JOIN a ", ""),
    "joins": ("SELECT COUNT(*) FROM a ", "JOIN b ON a.x = b.x ", ""),
    "tables": ("SELECT COUNT(*) FROM a", ", a", ""),
    "conditions": ("SELECT COUNT(*) FROM a WHERE x = 1", " AND x = 1 OR NOT x = 2", ""),
    "comparisons": ("SELECT COUNT(*) FROM a WHERE x", " = 1", ""),
    "items of IN": ("SELECT COUNT(*) FROM a WHERE x IN (1", ", 1", ")"),
    "dates": ("SELECT ", "DATE ", " FROM a"),
    "limits": ("SELECT COUNT(*) FROM a ", "LIMIT ", "1"),
    "words of joins": ("SELECT COUNT(*) FROM a JOIN b WHERE ", "INNER LIMIT ", ""),
    "sums": ("SELECT COUNT(*)", " + 1 * 2", " FROM a"),
    "branches": ("SELECT CASE ", "WHEN a THEN 1 ", "END FROM a"),
    "arguments": ("SELECT COALESCE(a", ", a", ") FROM a"),
    "results": ("SELECT a", ", a AS b", " FROM a"),
    "names": ("SELECT ", "a ", "FROM a"),
    "keys": ("SELECT a FROM a GROUP BY a", ", a", ""),
    "orders": ("SELECT a FROM a ORDER BY a", ", a DESC NULLS FIRST", ""),
    "orders within groups": ("SELECT a(1) WITHIN GROUP (ORDER BY a", ", a", ") FROM a"),
    "comments": ("SELECT a ", "/**/ ", "FROM a"),
}
NESTED = {
    "parentheses": ("SELECT COUNT(*) FROM a WHERE ", "(", "x", ")", ""),
    "calls that are dates": ("SELECT ", "DATE(", "x", ")", " FROM a"),
    "calls in a join": ("SELECT COUNT(*) FROM a JOIN b ON ", "LIMIT ROUND( TABLE ", "x", ")", ""),
    "truths": ("SELECT COUNT(*) FROM a WHERE ", "( TRUE LIMIT ", "x", ")", ""),
    "branches": ("SELECT ", "CASE WHEN a THEN ", "x", " END", " FROM a"),
    "negations": ("SELECT COUNT(*) FROM a WHERE ", "NOT (", "x", ")", ""),
    "selects": ("SELECT COUNT(*) FROM ", "(SELECT a FROM ", "a", ")", ""),
}


class CountingParser(_Parser):
    """Counts the steps from one token to the next."""

    steps = 0

    def advance(self):
        self.steps += 1
        return super().advance()

    def accept(self, word):
        self.steps += 1
        return super().accept(word)


def count_steps(sql: str) -> tuple[int, int]:
    """Tokens of a text, and the steps that reading them takes, whether it is refused or not."""
    text = tokenize(sql)
    parser = CountingParser(text)
    with contextlib.suppress(QuestionRefused):
        parser.read_select()
    return len(text.tokens), parser.steps


@pytest.mark.parametrize("name", REPEATED)
def test_what_repeats_is_read_once(name):
    before, repeated, after = REPEATED[name]
    for times in (10, 100, (MAX_LENGTH - 100) // len(repeated)):
        tokens, steps = count_steps(before + repeated * times + after)
        assert steps <= 12 * tokens + 100


@pytest.mark.parametrize("name", NESTED)
def test_what_nests_is_read_once(name):
    before, opened, inner, closed, after = NESTED[name]
    for times in range(1, 10):
        tokens, steps = count_steps(before + opened * times + inner + closed * times + after)
        assert steps <= 12 * tokens + 100


@pytest.mark.parametrize("name", ["END", "p.END", "p . END", "EXTRACT(END FROM 1)"])
def test_no_column_called_end_hides_how_deep_case_nests(name):
    text = f"SELECT COUNT(*) FROM t WHERE {f'CASE {name} WHEN ' * 900}"
    with pytest.raises(QuestionRefused):
        parse(tokenize(text))


def test_a_column_may_be_called_end_where_there_is_no_case():
    assert parse(tokenize("SELECT MAX(end) FROM t")).items
    assert parse(tokenize('SELECT CASE WHEN MAX(p.end) > 1 THEN 2 END AS "end" FROM t AS p')).items
    with pytest.raises(QuestionRefused, match='a name is written "end"'):
        parse(tokenize("SELECT CASE WHEN 1 = 1 THEN 2 END AS end FROM t"))
