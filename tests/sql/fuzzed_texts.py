"""Texts by the grammar and damaged ones: each is quoted or refused on purpose, in less than half a second of CPU.

    python -m tests.sql.fuzzed_texts --texts 100000 [--seed 1]

``GROWING`` has a text of any size for every construct that can be repeated or nested. A random text is one of these, or
several in one question, or a question of ``test_hostile_sql``; a damaged one is any of them with tokens deleted,
doubled, swapped or repeated. What takes too long is interrupted, so that no text keeps the fuzzer.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from types import FrameType

from idios.answer.assembly import make_quote
from idios.core.calibration import Protection
from idios.core.statistics import Parameters
from idios.errors import InvalidInput, QuestionRefused
from idios.ledger.request import Price
from idios.model.balance import Accounting, Balance, Cost
from idios.plan.planner import make_plan
from idios.sql.lexer import MAX_LENGTH
from idios.sql.reader import read
from tests.expressions.test_work import AFTER, GRAPHS, QUESTIONS, WIDE
from tests.sql import declared, test_join_reader
from tests.sql.test_hostile_sql import HOSTILE, WORDS, jumbled, mutated, valid

SECONDS = 0.5
"""How much CPU reading, planning and quoting a text may take."""
PATIENCE = SECONDS + 0.05
"""After how much CPU a text is interrupted."""
LONGEST_TOLD = 300
"""How many characters of a text are told; its number and the seed make it again."""
TRIES = 3
"""How often a text is measured that took too long: another process may have held up the first time."""

PLAIN = replace(
    declared.PEOPLE,
    protection=Protection.declare("differential"),
    min_epsilon=Fraction(1, 10**9),
    parameters=Parameters(quantile=None, k=None, trim=None),
)
PRICE = Price(stored=False, charges_dataset=True, charges_analyst=False)
NOTHING = Cost(Fraction(0), Fraction(0), Fraction(0))
BALANCE = Balance.of_dataset("people", Accounting.PURE, Fraction(10**7), Fraction(0), NOTHING)
DATASETS = (PLAIN, PLAIN, WIDE, test_join_reader.PEOPLE)


def repeat(text: str) -> Callable[[int], str]:
    """A text of any size: what stands in «» comes n times, and {i} in it is the number; «a|b» joins a's by b."""

    def make(n: int) -> str:
        def write(found: re.Match[str]) -> str:
            unit, _, word = found[1].partition("|")
            return word.join(unit.replace("{i}", str(i)) for i in range(n))

        return re.sub("«(.*?)»", write, text, flags=re.DOTALL)

    return make


COUNT = "SELECT COUNT(*) FROM people"
AS_N = "SELECT COUNT(*) AS n FROM people"
OF_PEOPLE = "FROM (SELECT SUM(amount) AS s FROM orders GROUP BY person)"
GROWING: Mapping[str, Callable[[int], str]] = {
    name: repeat(text)
    for name, text in {
        # conditions
        "AND": f"{COUNT} WHERE «age <> {{i}}| AND »",
        "OR": f"{COUNT} WHERE «age = {{i}}| OR »",
        "OR of two": f"{COUNT} WHERE «(age = {{i}} AND income > {{i}})| OR »",
        "AND and OR": f"{COUNT} WHERE «age = {{i}} OR sex = 'f' AND »TRUE",
        "NOT": f"{COUNT} WHERE «NOT »age = 1",
        "parentheses": f"{COUNT} WHERE «(»age = 1«)»",
        "NOT and parentheses": f"{COUNT} WHERE «NOT (»age = 1«)»",
        "open parentheses": f"{COUNT} WHERE «(»",
        "closed parentheses": f"{COUNT} WHERE age = 1«)»",
        "nested AND": f"{COUNT} WHERE «(age > {{i}} AND »TRUE«)»",
        "nested OR and AND": f"{COUNT} WHERE «(age > 1 OR (income > {{i}} AND »TRUE«))»",
        "IN numbers": f"{COUNT} WHERE age IN («{{i}}|, »)",
        "NOT IN numbers": f"{COUNT} WHERE NOT income IN («{{i}}7|, »)",
        "IN words": f"{COUNT} WHERE region IN («'north'|, »)",
        "IN computed": f"{COUNT} WHERE age IN («{{i}} + 1|, »)",
        "many IN": f"{COUNT} WHERE «age IN (1, 2, {{i}})| OR »",
        "BETWEEN": f"{COUNT} WHERE «age BETWEEN {{i}} AND 99| AND »",
        "LIKE": f"{COUNT} WHERE «region LIKE '%o{{i}}'| OR »",
        "a pattern": f"{COUNT} WHERE region LIKE '«%o_»'",
        "an escaped pattern": f"{COUNT} WHERE region LIKE '«!%»' ESCAPE '!'",
        "IS NULL": f"{COUNT} WHERE «age IS NOT NULL| AND »",
        "IS NULL IS NULL": f"{COUNT} WHERE age «IS NULL »",
        "equal equal": f"{COUNT} WHERE age «= 1 »",
        "constants": f"{COUNT} WHERE age = «1| + »",
        "a constant LIKE": f"{COUNT} WHERE 'abc' LIKE '«%a_»'",
        "a sum in a comparison": f"{COUNT} WHERE «1 + {{i}} > {{i}}| AND »",
        "dates": f"{COUNT} WHERE born IN («DATE '2001-02-03'|, »)",
        # expressions
        "minus": f"{COUNT} WHERE age = «- »1",
        "minus in SELECT": "SELECT «- »COUNT(*) AS a FROM people",
        "sum": "SELECT «COUNT(*)| + » AS a FROM people",
        "product": "SELECT «COUNT(*)| * » AS a FROM people",
        "quotient": "SELECT COUNT(*)« / {i}» AS a FROM people",
        "sums in parentheses": "SELECT «(COUNT(*) + »1«)» AS a FROM people",
        "parentheses in SELECT": "SELECT «(»COUNT(*)«)» AS a FROM people",
        "ABS": "SELECT «ABS(»COUNT(*)«)» AS a FROM people",
        "ROUND": "SELECT «ROUND(»COUNT(*)«, 1)» AS a FROM people",
        "COALESCE nested": "SELECT «COALESCE(»COUNT(*)«, 1)» AS a FROM people",
        "COALESCE": "SELECT COALESCE(«COUNT(*)|, ») AS a FROM people",
        "GREATEST nested": "SELECT «GREATEST(1, »COUNT(*)«)» AS a FROM people",
        "GREATEST": "SELECT GREATEST(«COUNT(*)|, ») AS a FROM people",
        "NULLIF": "SELECT «NULLIF(»COUNT(*)«, {i})» AS a FROM people",
        "CASE": "SELECT CASE «WHEN COUNT(*) > {i} THEN {i} »END AS a FROM people",
        "CASE of a value": "SELECT CASE COUNT(*) «WHEN {i} THEN {i} »END AS a FROM people",
        "CASE nested": "SELECT «CASE WHEN COUNT(*) > 1 THEN »1« END» AS a FROM people",
        "ELSE nested": "SELECT «CASE WHEN COUNT(*) > 1 THEN 1 ELSE »1« END» AS a FROM people",
        "WHEN nested": "SELECT «CASE WHEN »COUNT(*) > 1« THEN TRUE END» AS a FROM people",
        "CASE of words": "SELECT CASE «WHEN COUNT(*) > {i} THEN 'word {i}' »END AS a FROM people",
        "EXTRACT": "SELECT «EXTRACT(YEAR FROM »MIN(born)«)» AS a FROM people",
        "truth": f"{AS_N} HAVING «n > {{i}}| AND »",
        "HAVING IN": f"{AS_N} HAVING n IN («{{i}}|, »)",
        "HAVING IN words": "SELECT region, COUNT(*) FROM people GROUP BY region HAVING region IN («'north'|, »)",
        "HAVING NOT": f"{AS_N} HAVING «NOT »n > 1",
        "HAVING LIKE": "SELECT region, COUNT(*) FROM people GROUP BY region HAVING «region LIKE '%{i}'| OR »",
        "HAVING a pattern": "SELECT region, COUNT(*) FROM people GROUP BY region HAVING region LIKE '«%_»'",
        "HAVING NULLIF": f"{AS_N} HAVING «n IS DISTINCT FROM {{i}}| OR »",
        # clauses
        "items": "SELECT «COUNT(*) AS a{i}|, » FROM people",
        "statistics": "SELECT «QUANTILE(age, 0.{i}) AS a{i}|, » FROM people",
        "the same item": "SELECT «COUNT(*)|, » FROM people",
        "computed items": "SELECT «COUNT(*) + {i} AS a{i}|, » FROM people",
        "names of results": "SELECT COUNT(*) AS n«, n AS a{i}» FROM people",
        "results twice": "SELECT COUNT(*) AS n0«, n{i} + n{i} AS m{i}» FROM people",
        "one result": "SELECT COUNT(*) AS n, «n| + » AS a FROM people",
        "LIKE of a word": f"SELECT COUNT(*) AS n, '{'ab' * 2000}' AS t, CASE WHEN «t LIKE '%c_'| OR » THEN 1 END AS a "
        "FROM people",
        "keys": "SELECT COUNT(*) FROM people GROUP BY «region|, »",
        "bins": "SELECT COUNT(*) FROM people GROUP BY «BIN(age, {i})|, »",
        "order": f"{AS_N} ORDER BY «n|, »",
        "order of numbers": f"{AS_N} ORDER BY «1 DESC|, »",
        "order of sums": f"{AS_N} ORDER BY «n + {{i}}|, »",
        "SELECT around": f"«SELECT * FROM (»{COUNT}«)»",
        "SELECT around twice": f"«SELECT n + n AS n FROM (»{AS_N}«)»",
        "open SELECT": "«SELECT * FROM (»",
        "SELECT SELECT": "«SELECT »",
        "FROM FROM": f"{COUNT}« FROM people»",
        "WHERE WHERE": f"{COUNT}« WHERE age = 1»",
        "columns of SELECT around": f"SELECT «n + {{i}} AS a{{i}}|, » FROM ({AS_N})",
        "folds": f"SELECT «MAX(n + {{i}}) AS a{{i}}|, » FROM ({AS_N})",
        "OVER": "SELECT «SUM(COUNT(*) + {i}) OVER () AS a{i}|, » FROM people",
        "OVER again": "SELECT COUNT(*) «OVER ()» FROM people",
        "OVER nested": "SELECT «SUM(»COUNT(*)«) OVER ()» AS a FROM people",
        "OVER around OVER": "«SELECT region, SUM(n) OVER () AS n FROM (»SELECT region, COUNT(*) AS n FROM people "
        "GROUP BY region«)»",
        "PARTITION BY": "SELECT region, SUM(COUNT(*)) OVER (PARTITION BY «region|, ») FROM people GROUP BY region",
        "PARTITION BY computed": "SELECT SUM(COUNT(*)) OVER (PARTITION BY «COUNT(*) + {i}|, ») FROM people",
        "ROLLUP": "SELECT COUNT(*) FROM people GROUP BY ROLLUP(«region|, »)",
        "ROLLUP of lists": "SELECT COUNT(*) FROM people GROUP BY ROLLUP(«(region, sex)|, »)",
        "ROLLUP and ROLLUP": "SELECT COUNT(*) FROM people GROUP BY «ROLLUP(region)|, »",
        "ROLLUP around ROLLUP": "«SELECT region, SUM(n) AS n FROM (»SELECT region, COUNT(*) AS n FROM people GROUP BY "
        "region«) GROUP BY ROLLUP(region)»",
        "CUBE": "SELECT COUNT(*) FROM people GROUP BY CUBE(«region|, »)",
        "CUBE of bins": "SELECT COUNT(*) FROM people GROUP BY CUBE(region, sex, «BIN(age, 10)|, »)",
        "GROUPING SETS": "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS («(region, sex)|, »)",
        "one of GROUPING SETS": "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS ((«region|, »), ())",
        "empty GROUPING SETS": "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS («()|, »)",
        "GROUPING": "SELECT «GROUPING(region)| + » AS a, COUNT(*) FROM people GROUP BY ROLLUP(region)",
        "WITHIN GROUP": "SELECT «PERCENTILE_CONT(0.{i}) WITHIN GROUP (ORDER BY age) AS a{i}|, » FROM people",
        "LIMIT": f"{AS_N} LIMIT «1| + »",
        "UNION": f"«{COUNT}| UNION »",
        "commas in FROM": "SELECT COUNT(*) FROM «people|, »",
        "caps": f"SELECT SUM(«LEAST(»s«, {{i}})») {OF_PEOPLE}",
        "caps inside": "SELECT SUM(s) FROM (SELECT «GREATEST(»SUM(amount)«, {i})» AS s FROM orders GROUP BY person)",
        "constants of a cap": f"SELECT AVG(LEAST(s, «{{i}} + 1|, »)) {OF_PEOPLE}",
        "capped statistics": f"SELECT «SUM(LEAST(s, {{i}}))|, » {OF_PEOPLE}",
        "JOIN without ON": "SELECT COUNT(*) FROM people «JOIN a »",
        "JOIN": "SELECT COUNT(*) FROM orders «JOIN people ON person = id »",
        "JOIN of aliases": "SELECT COUNT(*) FROM people p «JOIN orders o{i} ON o{i}.person = p.id »",
        "ON": "SELECT COUNT(*) FROM orders JOIN people ON «person = id| AND »",
        # calls and words that a parser might read in several ways
        "DATE": "SELECT «DATE(»1«)» FROM people",
        "TRUE LIMIT": f"{COUNT} WHERE «( TRUE LIMIT ( »1",
        "TRUE LIMIT once": f"{COUNT} WHERE «( TRUE LIMIT »1",
        "LIMIT ROUND TABLE": f"{COUNT} LIMIT «ROUND( TABLE LIMIT »1",
        "WHERE INNER LIMIT": f"{COUNT} «WHERE INNER LIMIT ( »1",
        "TIMESTAMP": f"{COUNT} WHERE seen = «TIMESTAMP »'2001-01-01'",
        "INTERVAL": f"{COUNT} WHERE seen = «INTERVAL »1",
        "FILTER": "SELECT COUNT(*) «FILTER (WHERE age > 1) »FROM people",
        "DISTINCT": "SELECT COUNT(«DISTINCT »age) FROM people",
        "VALUES": "SELECT * FROM «(VALUES »1«)»",
        "casts": "SELECT COUNT(*)«::int» FROM people",
        "brackets": "SELECT «[»1«]» FROM people",
        "braces": "SELECT «{»1«}» FROM people",
        "AS": "SELECT COUNT(*) «AS a » FROM people",
        # signs
        "dots": "SELECT «a|.» FROM people",
        "only dots": f"{COUNT} WHERE age = 1«.»",
        "stars": "SELECT «* »FROM people",
        "commas": "SELECT COUNT(*) «, » FROM people",
        "semicolons": f"{COUNT}«;»",
        "spaces": f"{COUNT}«   \n»",
        "comments": f"{COUNT}«/**/»",
        "comments in comments": f"{COUNT}«/*»«*/»",
        "open comments": f"{COUNT}«/*»",
        "lines of comments": f"{COUNT}«--\n»",
        "a comment": f"{COUNT} --«abc»",
        "a string": f"{COUNT} WHERE region = '«abc»'",
        "a string of quotes": f"{COUNT} WHERE region = '«''»'",
        "strings": f"{COUNT} WHERE region = «'a' »",
        "quotes": "«'»",
        "a quoted name": f"{COUNT} WHERE \"«abc»\" = 1",
        "quotes in a name": f"{COUNT} WHERE \"«\"\"»\" = 1",
        "quoted names": f"{COUNT} WHERE «\"age\"| = »",
        "a label": "SELECT COUNT(*) AS \"«abc»\" FROM people",
        "a word": f"{COUNT} WHERE «abc» = 1",
        "digits": f"{COUNT} WHERE age = «123»",
        "decimals": f"{COUNT} WHERE age = 0.«123»",
        "an exponent": f"{COUNT} WHERE age = 1e«1»",
        "words": "SELECT «abc »FROM people",
    }.items()
}  # fmt: skip
FRAGMENTS = (
    *("JOIN a ", "DATE(", "( TRUE LIMIT (", "LIMIT ROUND( TABLE LIMIT ", "WHERE INNER LIMIT (", "LEFT JOIN a ON "),
    *("CASE WHEN ", "NOT (", "GREATEST(", "SELECT * FROM (", "( SELECT ", "IN (", "::", "DISTINCT ON (", "CAST( "),
    *("INTERVAL ", "EXTRACT( ", "[", "{", "x.", ", ", "- ", "/* ", "'", '"', "ORDER BY ", "OVER (", "LATERAL ( "),
    *("OVER (PARTITION BY ", "ROLLUP(", "CUBE(", "GROUPING SETS ((", "GROUPING("),
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|[^\w\s]")


def grown(rng: random.Random) -> str:
    """A construct, mostly of some tens, now and then as long as a text may be."""
    make = rng.choice(list(GROWING.values()))
    size = int(10 ** rng.uniform(0, 4 if rng.random() < 0.05 else 2))
    return fit(make, size)


def fit(make: Callable[[int], str], size: int) -> str:
    """The construct, as large as a text may be at most."""
    text = make(size)
    while len(text) > MAX_LENGTH:
        size = min(size - 1, int(size * MAX_LENGTH / len(text)))
        text = make(size)
    return text


def composed(rng: random.Random) -> str:
    """Several constructs in one question: the conditions of one, the list of another, what follows of a third."""
    size = int(10 ** rng.uniform(0, 2.5 if rng.random() < 0.1 else 1.3))
    parts = [fit(rng.choice(list(GROWING.values())), size) for _ in range(3)]
    listed = re.search(r"SELECT (.*?) FROM", parts[0], re.DOTALL)
    where = re.search(r"WHERE (.*)", parts[1], re.DOTALL)
    after = re.search(r"(?:GROUP BY|HAVING|ORDER BY|LIMIT) .*", parts[2], re.DOTALL)
    text = f"SELECT {listed[1] if listed else 'COUNT(*) AS n'} FROM people"
    return f"{text}{f' WHERE {where[1]}' if where else ''} {after[0] if after else ''}"[:MAX_LENGTH]


def long(rng: random.Random) -> str:
    """One of the long questions that other tests ask."""
    return f"SELECT {rng.choice([*QUESTIONS.values(), *AFTER.values(), *GRAPHS.values()])}"


def whole(rng: random.Random) -> str:
    """A text that is not damaged."""
    make = rng.choices((valid, grown, composed, long), (45, 40, 13, 2))[0]
    return make(rng)


def damaged(rng: random.Random) -> str:
    """A text with tokens deleted, doubled, swapped or repeated, and perhaps with what parsers try in several ways."""
    text = whole(rng) if rng.random() < 0.9 else rng.choice(HOSTILE)
    tokens = _TOKEN.findall(text)
    for _ in range(rng.randint(1, 4)):
        at, end = sorted(rng.randrange(len(tokens) + 1) for _ in range(2))
        end = min(end, at + rng.randint(1, 12))
        match rng.randrange(7):
            case 0:
                del tokens[at:end]
            case 1:
                tokens[at:at] = tokens[at:end]
            case 2:
                tokens[at:end] = reversed(tokens[at:end])
            case 3:
                tokens[at:end] = tokens[at:end] * rng.choice((3, 10, 40))
            case 4:
                tokens[at:at] = [rng.choice(FRAGMENTS)] * rng.choice((1, 5, 30))
            case 5:
                tokens[at:at] = [f" {rng.choice(WORDS)} "]
            case _:
                other = rng.randrange(len(tokens) + 1)
                tokens[other:other] = tokens[at:end]
    return "".join(tokens)[:MAX_LENGTH]


def make_text(rng: random.Random) -> str:
    """Any text."""
    make = rng.choices((whole, damaged, mutated, jumbled), (45, 40, 10, 5))[0]
    return make(rng)


class TookTooLong(BaseException):
    """A text was interrupted."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes more CPU than this; what other tests left is not looked through meanwhile."""

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, interrupt)
    gc.disable()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.enable()
        signal.signal(signal.SIGPROF, before)


def outcome(sql: str, number: int) -> str:
    """What becomes of a text about one of the data sets; anything but a refusal on purpose is raised."""
    dataset = DATASETS[number % len(DATASETS)]
    if dataset is WIDE:
        sql = re.sub(r"\bpeople\b", "wide", sql)[:MAX_LENGTH]
    try:
        plan = make_plan(read(sql, {dataset.name: dataset}), dataset, 10**6)
    except (QuestionRefused, InvalidInput):
        return "refused"
    str(make_quote(plan, PRICE, BALANCE, charged=True))
    return "quoted"


def measure(sql: str, number: int) -> tuple[str, float]:
    """What becomes of a text, and how much CPU it takes: the least of some tries, where it is much."""
    least = math.inf
    found = "too slow"
    for _ in range(TRIES):
        began = time.process_time()
        try:
            with limited(PATIENCE):
                found = outcome(sql, number)
        except TookTooLong:
            pass
        least = min(least, time.process_time() - began)
        if least <= SECONDS:
            break
    return found, least


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fuzz(texts: int, seed: int, *, told: Callable[[str], None] = tell) -> list[str]:
    """Measure random texts, and list those that fail."""
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    slowest: list[tuple[float, str]] = []
    failed: list[str] = []
    gc.collect()
    gc.freeze()  # what other tests left is not looked through for each text
    try:
        for number in range(texts):
            sql = make_text(rng)
            try:
                found, seconds = measure(sql, number)
            except Exception as error:
                found, seconds = f"failed with {type(error).__name__}", 0.0
                failed.append(f"text {number}, {found}: {sql[:LONGEST_TOLD]!r}")
            if seconds > SECONDS:
                failed.append(f"text {number}, {seconds:.2f} s, {found}: {sql[:LONGEST_TOLD]!r}")
            outcomes[found] += 1
            slowest = sorted([*slowest, (seconds, sql)], reverse=True)[:5]
            if (number + 1) % 5000 == 0:
                told(f"{number + 1:,} texts: {dict(outcomes)}, the slowest {slowest[0][0]:.2f} s, {len(failed)} failed")
    finally:
        gc.unfreeze()
    told(f"{texts:,} texts: {dict(outcomes)}")
    for seconds, sql in slowest:
        told(f"{1000 * seconds:6.0f} ms, {len(sql):6,} characters: {sql[:100]!r}")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000, help="how many texts")
    parser.add_argument("--seed", type=int, default=1, help="of the generator")
    given = parser.parse_args()
    failed = fuzz(given.texts, given.seed)
    for text in failed:
        tell(text)
    tell(f"{len(failed)} texts failed, none should")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
