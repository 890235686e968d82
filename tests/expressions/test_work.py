"""Planning any text takes a bounded number of steps: counted as calls of functions, so that no clock decides."""

import re
import sys
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.answer.projection import count_characters, show_table
from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.statistics import Parameters
from idios.declare.schema import Column
from idios.errors import InvalidInput, QuestionRefused
from idios.expressions import diagram
from idios.expressions.work import MAX_WORK, Work
from idios.model import ReleasedTable
from idios.plan.planner import make_plan
from idios.plan.postprocessing import apply_selects, count_work
from idios.sql.lexer import MAX_LENGTH
from idios.sql.reader import read
from tests.sql.declared import dataset, declared

WIDE = declared(
    dataset(
        "wide",
        Column("income", Kind.INTEGER, Domain(lower=0, upper=19_999)),
        Column("a", Kind.INTEGER, Domain()),
        Column("b", Kind.INTEGER, Domain()),
        Column("g", Kind.CATEGORY, Categories(tuple(f"v{i}" for i in range(900)))),
        *(Column(f"c{i:02}", Kind.INTEGER, Domain(lower=0, upper=1000)) for i in range(60)),
        *(Column(f"unused{i}", Kind.INTEGER, Domain()) for i in range(1000)),
    ),
    protection=Protection.declare("differential"),
    min_epsilon=Fraction(1, 10**9),
    parameters=Parameters(quantile=None, k=None, trim=None),
)


def listed(count, step=7, end=""):
    return ", ".join(f"{step * i}{end}" for i in range(1, count + 1))


def joined(word, pattern, count):
    return f" {word} ".join(pattern.format(i=3 * i) for i in range(count))


QUESTIONS = {
    "bins of a long list": f"BIN(income, 20), COUNT(*) FROM wide WHERE NOT income IN ({listed(2800)}) "
    "GROUP BY BIN(income, 20)",
    "bins of two lists": f"COUNT(*) FROM wide WHERE NOT income IN ({listed(1500)}) AND NOT c01 IN ({listed(480, 2)}) "
    "GROUP BY BIN(income, 667), BIN(c01, 32)",
    "a chain of exceptions": f"COUNT(*) FROM wide WHERE {joined('AND', 'a <> {i}', 1400)}",
    "many alternatives": f"COUNT(*) FROM wide WHERE {joined('OR', '(a = {i} AND b = {i})', 760)}",
    "alternatives that exclude each other": "COUNT(*) FROM wide WHERE c00 > 900 AND c00 < 5 AND "
    f"({joined('OR', '(a = {i} AND b = {i})', 740)})",
    "many statistics of a long list": ", ".join(f"AVG(c{i:02})" for i in range(60))
    + f" FROM wide WHERE NOT income IN ({listed(2500)})",
    "many quantiles of a long list": ", ".join(f"QUANTILE(income, 0.{i:03})" for i in range(1, 120))
    + f" FROM wide WHERE NOT income IN ({listed(2100)})",
    "long numbers": ", ".join(f"QUANTILE(a, 0.{i:03})" for i in range(1, 100))
    + f" FROM wide WHERE NOT a IN ({listed(650, 4_611_686_018_427_387)})",
    "categories": f"g, COUNT(*) FROM wide WHERE NOT income IN ({listed(2500)}) GROUP BY g",
    "an explosion": "COUNT(*) FROM wide WHERE " + " OR ".join(f"(c{i:02} > 5 AND c{i + 30} > 5)" for i in range(30)),
    "a joint distribution": f"COUNT(*) FROM wide WHERE {joined('OR', '(c00 = {i} AND c01 = {i})', 300)} "
    "GROUP BY BIN(c00, 33), BIN(c01, 33)",
}

PRODUCT = " * ".join(["AVG(income)"] * 15)
SUM = " + ".join(["COUNT(*)"] * 9)
BY_G = "FROM wide GROUP BY g"


def nest(inner, item):
    """Nine SELECTs around one that gives a, each of which computes it anew."""
    for _ in range(9):
        inner = f"SELECT {item} AS a FROM ({inner})"
    return inner.removeprefix("SELECT ")


AFTER = {
    "many cases": f"g, {', '.join(f'CASE WHEN COUNT(*) > {i} THEN 1 ELSE 2 END AS a{i}' for i in range(190))} {BY_G}",
    "a deep case": "CASE WHEN COUNT(*) > 1 THEN " * 18 + "1" + " END" * 18 + f" AS a {BY_G}",
    "long sums": f"g, {', '.join(f'{SUM} AS a{i}' for i in range(180))} {BY_G}",
    "long products": f"g, {', '.join(f'{PRODUCT} * {PRODUCT} AS a{i}' for i in range(45))} {BY_G}",
    "few long products": f"g, {', '.join(f'{PRODUCT} / ({PRODUCT}) AS a{i}' for i in range(2))} {BY_G}",
    "a long list": f"g, COUNT(*) {BY_G} HAVING COUNT(*) IN ({listed(2900)})",
    "a list of products": f"g, COUNT(*) {BY_G} HAVING {PRODUCT} IN ({listed(20)})",
    "a long pattern": f"g, COUNT(*) {BY_G} HAVING g LIKE '{'%v' * 9000}'",
    "a pattern": f"g, COUNT(*) {BY_G} HAVING g LIKE '{'%v' * 800}'",
    "a long text": f"{', '.join(f'a AS a{i}' for i in range(199))} FROM (SELECT '{'x' * 9000}' AS a, COUNT(*) {BY_G})",
    "a text": f"a AS b FROM (SELECT '{'x' * 200}' AS a, COUNT(*) {BY_G})",
    "long literals": f"g, {', '.join(f'1e399 * 1e399 * 1e399 * COUNT(*) AS a{i}' for i in range(180))} {BY_G}",
    "a long literal": f"1e399 * 1e399 * 1e399 * 1e399 * 1e399 * COUNT(*) AS a {BY_G}",
    "a tiny literal": f"1e-399 * 1e-399 * 1e-399 * COUNT(*) + AVG(income) AS a {BY_G}",
    "long rounds": f"g, {', '.join(f'ROUND(AVG(income) / {i}, 30) AS a{i}' for i in range(3, 40))} {BY_G}",
    "sums of ratios": f"SUM(r), AVG(r), MEDIAN(r) FROM (SELECT g, COUNT(*) / AVG(income) AS r {BY_G})",
    "sums of products": f"SUM(r) * SUM(r) AS x FROM (SELECT g, {PRODUCT} AS r {BY_G})",
    "a long order": f"g, COUNT(*) {BY_G} ORDER BY {', '.join(f'COUNT(*) / {i}' for i in range(7, 90))}",
    "cubes of cubes": nest("SELECT COUNT(*) AS a FROM wide", "a * a * a"),
    "sums of squares of sums": nest(f"SELECT COUNT(*) AS a {BY_G}", "SUM(a * a)"),
    "the greatest of the greatest": nest("SELECT COUNT(*) AS a FROM wide", f"GREATEST({', '.join('a' * 90)})"),
    "windows": f"g, {', '.join(f'SUM(COUNT(*) + {i}) OVER (PARTITION BY g) AS a{i}' for i in range(150))} {BY_G}",
    "windows over windows": nest(f"SELECT COUNT(*) AS a {BY_G}", "SUM(a) OVER () / MAX(a) OVER (PARTITION BY a)"),
    "totals": ", ".join(f"SUM(c1{i})" for i in range(8))
    + " FROM wide GROUP BY CUBE(BIN(c00, 112), BIN(c01, 112), BIN(c02, 112))",  # 1000 rows, as many as there can be
    "totals of totals": f"SUM(n) FROM (SELECT g, SUM(n) AS n FROM (SELECT g, COUNT(*) AS n {BY_G}) GROUP BY ROLLUP(g))",
    "folds of folds": nest(f"SELECT COUNT(*) AS a {BY_G}", f"MAX(GREATEST({', '.join('a' * 9)}))"),
}
"""What is long after the release."""


def chain(step, count, end=" FROM wide", first="COUNT(*)"):
    """Results that each name the one before twice."""
    return f"{first} AS a0, " + ", ".join(f"{step.format(a=f'a{i}')} AS a{i + 1}" for i in range(count)) + end


def surround(step, inner):
    """SELECTs around one another, whose results each name one of the SELECT inside twice."""
    for _ in range(9):
        steps = ", ".join(f"{step.format(a=f'a{i}')} AS a{i + 1}" for i in range(4))
        inner = f"SELECT {step.format(a='a4')} AS a0, {steps} FROM ({inner})"
    return inner.removeprefix("SELECT ")


GREATEST, CASE, COALESCE = "GREATEST({a}, {a})", "CASE WHEN {a} > 1 THEN {a} ELSE {a} END", "COALESCE({a}, {a})"
TEXT, TRUTH = "CASE WHEN {a} = 'b' THEN {a} ELSE {a} END", "({a} AND {a} IS NOT NULL OR NOT {a})"
FIRST = f"SELECT {chain(GREATEST, 9)}"
GRAPHS = {
    "greatest": chain(GREATEST, 60),
    "case": chain(CASE, 45),
    "coalesce": chain(COALESCE, 60),
    "text": chain(TEXT, 45, first="CASE WHEN COUNT(*) > 1 THEN 'a' ELSE 'b' END"),
    "truth": chain(TRUTH, 20, first="COUNT(*) > 1"),
    "windows": f"SUM(a60) OVER () AS a FROM (SELECT {chain(GREATEST, 60)})",
    "a pattern": chain("{a} LIKE '%a' AS b{a}, COALESCE({a}, {a})", 60, first="CASE WHEN COUNT(*) > 1 THEN 'a' END"),
    "having": chain(GREATEST, 60, " FROM wide HAVING a60 > 1 AND a60 < 9 AND a59 = a60"),
    "order": chain(GREATEST, 60, " FROM wide ORDER BY a60, a59 DESC, a6 + a5"),
    "the same twice": chain(GREATEST, 30, f", {chain(GREATEST, 30)}"),
    "selects around": surround(GREATEST, FIRST),
    "cases around": surround(CASE, FIRST),
    "folds around": f"MAX(GREATEST(a9, a9)) AS m, SUM(a9 + a9) AS s FROM ({FIRST})",
    "keys around": f"a9 + a9 AS k, COUNT(*) AS n, MAX(GREATEST(a9, a9)) AS m FROM ({FIRST}) GROUP BY a9 + a9",
    "where around": f"a0 FROM (SELECT {chain(GREATEST, 60)}) WHERE a60 > 1 AND a60 < 9",
    "all around": f"* FROM (SELECT {chain(GREATEST, 60)})",
}
"""What is a small graph, and 2ⁿ written out."""


CONDITIONS = " OR ".join(f"COUNT(*) = {i}" for i in range(1000))
FEW_CONDITIONS = " OR ".join(f"COUNT(*) = {i}" for i in range(500))
COUNTS = f"(SELECT {', '.join(f'COUNT(*) a{i}' for i in range(200))} FROM wide)"
AGAIN = {
    "a long item by its number": f"{FEW_CONDITIONS} AS x FROM wide ORDER BY {', '.join('1' * 200)}",
    "a long key by its number": f"{FEW_CONDITIONS.replace('COUNT(*)', 'a')} AS x, COUNT(*) FROM (SELECT COUNT(*) AS a "
    f"FROM wide) GROUP BY {', '.join('1' * 64)}",
    "a long item in each other": f"{CONDITIONS} AS x, {', '.join(f'NOT x a{i}' for i in range(70))} FROM wide",
    "names among many": f"a0 FROM {COUNTS} WHERE {joined('OR', 'a9 = a8', 1500)}",
    "many folds": f"{joined('OR', 'MAX({i}) > 0', 1100)} AS x FROM (SELECT COUNT(*) AS a FROM wide)",
    "many statistics": f"COUNT(*) FROM wide HAVING {joined('OR', 'AVG(unused{i}) > 0', 66)}",
}
"""What one text asks for many times."""


class Calls:
    """Counts calls of Python functions, and stops what makes too many."""

    def __init__(self, most):
        self.most, self.count = most, 0

    def __enter__(self):
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _called(self, frame, event, argument):
        self.count += event == "call"
        if self.count > self.most:
            sys.setprofile(None)
            raise AssertionError(f"more than {self.most:,} calls")


def outcome(question):
    try:
        return make_plan(question, WIDE, 1000)
    except QuestionRefused as error:
        if "too complex" not in str(error):
            raise
        return None


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_text_makes_planning_long(name):
    sql = "SELECT " + QUESTIONS[name]
    assert len(sql) <= MAX_LENGTH
    with Calls(700_000):
        question = read(sql, {"wide": WIDE})
    with Calls(1_500_000):
        outcome(question)


@pytest.mark.slow
@pytest.mark.parametrize("name", AFTER)
def test_no_text_makes_what_follows_a_release_long(name):
    """Neither its steps nor what it shows: a stored answer is shown again for nothing."""
    sql = "SELECT " + AFTER[name]
    assert len(sql) <= MAX_LENGTH
    try:
        with Calls(700_000):
            question = read(sql, {"wide": WIDE})
        with Calls(1_500_000):
            plan = make_plan(question, WIDE, 10**6)
    except QuestionRefused as error:
        if not re.search("too complex|too long to be computed", str(error)):
            raise
        return
    values = [Fraction(1_000_003 * i + 1, 10**6) for i in range(len(plan.measures))]
    released = [(*(f"v{i}" for _ in plan.keys), *values) for i in range(len(plan.cells))]
    with Calls(6_000_000):
        rows = apply_selects(plan.shown, released)
    assert sum(len(str(value)) for row in rows for value in row.values) < 4 * MAX_WORK


@pytest.mark.parametrize("name", ["a pattern", "few long products", "sums of ratios", "sums of products", "a text"])
def test_what_is_long_after_a_release_but_not_too_long_is_planned(name):
    assert make_plan(read("SELECT " + AFTER[name], {"wide": WIDE}), WIDE, 10**6).shown


@pytest.mark.parametrize("name", ["bins of a long list", "bins of two lists", "a chain of exceptions", "categories"])
def test_what_is_long_but_simple_is_planned(name):
    assert outcome(read("SELECT " + QUESTIONS[name], {"wide": WIDE})) is not None


def test_narrow_nodes_are_counted_too(monkeypatch):
    """An explosion has two runs in each node: to make, join and keep the node takes longer than they do."""
    made = []
    node = diagram._Node
    monkeypatch.setattr(diagram, "_Node", lambda *given: made.append(given) or node(*given))
    assert outcome(read("SELECT " + QUESTIONS["an explosion"], {"wide": WIDE})) is None
    assert 10_000 < len(made) < 60_000


@pytest.mark.parametrize("name", GRAPHS)
def test_what_names_a_result_twice_is_computed_once(name):
    """Its plan, its values, their intervals and where they come from: all by walks of a graph."""
    with Calls(700_000):
        question = read("SELECT " + GRAPHS[name], {"wide": WIDE})
    with Calls(60_000):
        plan = make_plan(question, WIDE, 10)
    table = ReleasedTable(
        dataset="wide",
        version="",
        guarantee="",
        statistics=("count",),
        groups=({},),
        cells=(("5",),),
        margins=(Fraction(3),),
        intervals=((("2", "8"),),),
    )
    with Calls(200_000):
        shown = show_table(plan, table)
    assert len(shown.origins) <= 1
    assert {value for [value] in filter(None, shown.values)} <= {"5", "10", "1", "a", "true", "false", None}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_is_counted_as_what_it_takes(name):
    """Within a factor, what is counted is what Python does: neither is free work, nor is what is quick refused."""
    question = read("SELECT " + GRAPHS[name], {"wide": WIDE})
    counted = count_work(question.shown, len(question.keys) + len(question.measures))
    released = [tuple(Fraction(5) for _ in question.measures)]
    with Calls(10 * counted + 1000) as calls:
        apply_selects(question.shown, released)
    assert calls.count > 0
    assert counted < MAX_WORK // 2


@pytest.mark.parametrize("name", AGAIN)
def test_what_is_asked_for_many_times_is_read_once(name):
    with Calls(600_000):
        question = read("SELECT " + AGAIN[name], {"wide": WIDE})
    with Calls(600_000):
        plan = make_plan(question, WIDE, 10)
        count_characters(plan)


@pytest.mark.parametrize("keys", [65, 1000])
def test_there_are_so_many_keys_at_most(keys):
    """The diagram of what is no NULL in any key is as deep as there are keys."""
    listed = ", ".join(f"BIN(unused{i}, 9)" for i in range(keys))
    with pytest.raises(QuestionRefused, match="GROUP BY lists at most 64"):
        read(f"SELECT COUNT(*) FROM wide GROUP BY {listed}"[:MAX_LENGTH], {"wide": WIDE})


def test_the_most_columns_of_a_question_are_planned_on_a_short_stack():
    """Those of WHERE, of GROUP BY and of statistics, each of which may be NULL, are all levels of one diagram."""
    columns = [Column(f"c{i:03}", Kind.INTEGER, Domain(lower=0, upper=3)) for i in range(328)]
    many = declared(dataset("many", *columns), min_epsilon=Fraction(1, 10**9))
    names = [column.name for column in columns]
    where = " AND ".join(f"{name} < 3" for name in names[::5][:64])
    rest = [name for i, name in enumerate(names) if i % 5 or i >= 320]
    keys, counted = rest[::4][:64], [name for name in rest if name not in rest[::4][:64]][:200]
    question = read(
        f"SELECT {', '.join(f'COUNT({name})' for name in counted)} FROM many WHERE {where} "
        f"GROUP BY {', '.join(f'BIN({name}, 4)' for name in keys)}",
        {"many": many},
    )
    assert len({*names[::5][:64], *keys, *counted}) == 328
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(900)  # a server's threads begin deep
    try:
        with pytest.raises(QuestionRefused, match="too complex"):  # and no RecursionError before
            make_plan(question, many, 10**6)
    finally:
        sys.setrecursionlimit(before)


def test_a_question_has_so_many_statistics_at_most():
    with pytest.raises(QuestionRefused, match="at most 200 statistics"):
        read(f"SELECT COUNT(*) FROM wide HAVING {joined('OR', 'AVG(unused{i}) > 0', 210)}", {"wide": WIDE})


def test_work_is_counted_up_to_a_limit():
    work = Work()
    work.spend(MAX_WORK)
    with pytest.raises(QuestionRefused, match="too complex"):
        work.spend(1)


def test_weights_that_cannot_be_added_up_are_refused():
    labels = [f"AVG(c{i:02})" for i in range(60)]
    question = read(f"SELECT {', '.join(labels)} FROM wide", {"wide": WIDE})
    awkward = {label: f"1/{10**90 + 2 * i + 1}" for i, label in enumerate(labels)}
    with pytest.raises(InvalidInput, match="short decimals"):
        make_plan(question, WIDE, 1000, awkward)


@pytest.mark.parametrize("group", [1000, {"size": 1000, "growth": "flat"}])
def test_a_large_group_costs_a_question_little(group):
    """The promise to groups is a vector of a thousand numbers: it is made a few times a question, not per statistic."""
    grouped = replace(WIDE, protection=Protection.declare("group", group=group))
    question = read(f"SELECT {', '.join(f'MEDIAN(c{i:02})' for i in range(60))} FROM wide", {"wide": grouped})
    with Calls(400_000):
        make_plan(question, grouped, 1000)
