"""Random SELECTs over released statistics, in two spellings: as a question, and as DuckDB asks a table of the same.

DuckDB computes in double precision. All numbers here are multiples of a quarter below ten and all divisors powers of
two, so that doubles are exact too: results can be compared exactly, and no tolerance hides an error. What doubles
cannot hold (thirds, AVG, ROUND to decimals) stands only where nothing else is computed from it.

DuckDB differs by design in what is left out here: whole numbers overflow there; x / 0 is infinite there unless
``ieee_floating_point_ops`` is off; a CASE or a list of several types is cast there and refused here; letters beyond A
to Z have a case in its ILIKE; text has an order there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

NUMBER, TEXT, TRUTH, DATE, TIMESTAMP = "number", "text", "boolean", "date", "timestamp"

STATISTICS = {
    "n": ("COUNT(*)", NUMBER),
    "total": ("SUM(price)", NUMBER),
    "mean": ("AVG(price)", NUMBER),
    "middle": ("MEDIAN(income)", NUMBER),
    "high": ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income)", NUMBER),
    "power": ("COUNT(DISTINCT region)", NUMBER),
    "mode": ("MODE(region)", TEXT),
    "first": ("MIN(born)", DATE),
    "last": ("MAX(born)", DATE),
    "moment": ("MAX(seen)", TIMESTAMP),
}
"""By the name of DuckDB's column, how a question writes it; ``power`` holds powers of two, 0 and NULL."""
KEYS = {"region": ("region", TEXT), "sex": ("sex", TEXT), "decade": ("BIN(age, 10)", NUMBER)}
TOTALS = ("n", "total")
"""The statistics that add up."""
SETS = (
    "ROLLUP({0}, {1}, {2})",
    "{1}, ROLLUP({0}, {2})",
    "ROLLUP(({0}, {1}), {2})",
    "CUBE({0}, {1}), {2}",
    "CUBE({0}, {1}, {2})",
    "GROUPING SETS (({0}, {1}), {2}, ())",
    "GROUPING SETS (({0}, {1}, {2}), ({1}))",
)
REGIONS = ("north", "south", "50%_x", "it's", "")
NUMBERS = ("0", "1", "2", "3", "7", "0.5", "2.25", "-1", "-0.75")
TEXTS = ("'north'", "'south'", "'it''s'", "''", "'other'")
DATES = ("DATE '2020-02-29'", "DATE '2020-03-15'", "'2020-03-01'")
DIVISORS = ("2", "4", "0.5", "0", "{power}", "NULLIF({power}, 2)")
PATTERNS = ("n%", "%o%", "_orth", "%", "", "%t_", "50%x", "s__t%h", "%%", "it's")


@dataclass(frozen=True)
class Named:
    """Something with a name that an expression can use; ``exact`` says that doubles hold it."""

    name: str
    type: str
    exact: bool = True


@dataclass(frozen=True)
class Written:
    """One SELECT; what is in braces is a statistic or a key, which both sides write in their own way.

    ``grouped`` says that it folds rows, ``inside`` is the SELECT in its FROM; without one it is the innermost.
    ``sets`` is the whole GROUP BY where it has several sets of keys; the innermost then adds up what is released.
    """

    items: tuple[tuple[str, Named], ...]
    keys: tuple[str, ...] = ()
    grouped: bool = False
    where: str = ""
    having: str = ""
    order: str = ""
    limit: str = ""
    inside: Written | None = None
    sets: str = ""

    @property
    def columns(self) -> tuple[Named, ...]:
        return tuple(named for _, named in self.items)

    def ask(self) -> str:
        """The question."""
        source = "people" if self.inside is None else f"({self.inside.ask()})"
        items = ", ".join(f"{item} AS {named.name}" for item, named in self.items)
        ours = {name: spelt for name, (spelt, _) in (STATISTICS | KEYS).items()}
        parts = (f"SELECT {items} FROM {source}", self.where, self._group(), self.having, self.order, self.limit)
        return _fill(" ".join(filter(None, parts)), ours)

    def ask_duckdb(self) -> str:
        """The same of the table of released rows, with the number of each row as a last column."""
        source = "released" if self.inside is None else f"({self.inside.ask_duckdb()})"
        items = ", ".join(f"{item} AS {named.name}" for item, named in self.items)
        where, group, having = self.where, self._group(), self.having
        theirs = {name: name for name in STATISTICS | KEYS}
        place = "MIN(place)" if self.grouped else "place"
        if self.inside is None and self.sets:
            theirs |= {name: f"CASE WHEN COUNT(*) = COUNT({name}) THEN SUM({name}) END" for name in TOTALS}
            regions = f"list_position([{', '.join(map(_quote, REGIONS))}], region)"
            ranks = {"{region}": regions, "{sex}": "sex", "{decade}": "decade"}
            place = ", ".join(f"{ranks[key]} NULLS LAST" for key in sorted(ranks, key=self.sets.index))
        elif self.inside is None:  # released rows are groups already
            where, group, having = having.replace("HAVING", "WHERE", 1), "", ""
        order = f"{self.order}, {place}" if self.order else f"ORDER BY {place}"
        inner = " ".join(filter(None, (f"SELECT {items} FROM {source}", where, group, having, order, self.limit)))
        return _fill(f"SELECT *, row_number() OVER () AS place FROM ({inner})", theirs)

    def _group(self) -> str:
        return self.sets or (f"GROUP BY {', '.join(self.keys)}" if self.keys else "")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _fill(template: str, names: dict[str, str]) -> str:
    for name, spelt in names.items():
        template = template.replace(f"{{{name}}}", spelt)
    return template


@dataclass(frozen=True)
class Expressions:
    """Random expressions over some names; in the innermost SELECT these are statistics and keys."""

    rng: random.Random
    names: tuple[Named, ...]
    divisors: tuple[str, ...] = ("2", "4", "0.5", "0", "(1 - 1)")

    def pick(self, kind: str) -> str | None:
        """A name of this type."""
        offered = [named.name for named in self.names if named.type == kind and named.exact]
        return self.rng.choice(offered) if offered else None

    def make(self, kind: str, depth: int) -> str:
        """An expression of a type that doubles hold."""
        return {NUMBER: self.number, TEXT: self.text, TRUTH: self.truth, DATE: self.date, TIMESTAMP: self.moment}[kind](
            depth
        )

    def number(self, depth: int) -> str:
        rng, down = self.rng, depth - 1
        name = self.pick(NUMBER)
        if depth <= 0:
            return name if name and rng.random() < 0.75 else rng.choice(NUMBERS[:-2])
        kind = rng.randrange(17)
        if kind < 3:
            return f"({self.number(down)} {rng.choice('+-')} {self.number(down)})"
        if kind == 3:  # the order of operations
            signs = [rng.choice(("+", "-", "*")) for _ in range(3)]
            parts = [self.number(0) for _ in range(4)]
            return f"({parts[0]} {signs[0]} {parts[1]} {signs[1]} {parts[2]} {signs[2]} {parts[3]})"
        if kind == 4:
            return f"({self.number(down)} * {self.number(0)})"
        if kind in (5, 6):
            return f"{self.number(down)} / {rng.choice(self.divisors)}"
        if kind == 7:
            return f"(- {self.number(down)})" if rng.random() < 0.5 else f"(-({self.number(down)}))"
        if kind == 8:
            return f"{rng.choice(('ABS', 'FLOOR', 'CEIL', 'CEILING'))}({self.number(down)})"
        if kind in (9, 10):
            return f"ROUND({self.number(down)}{rng.choice(('', ', 0', ', -1'))})"
        if kind == 11:
            return f"{rng.choice(('GREATEST', 'LEAST'))}({self.listed(NUMBER, down)})"
        if kind == 12:
            return f"COALESCE({self.listed(NUMBER, down)})"
        if kind == 13:
            return f"NULLIF({self.number(down)}, {self.number(0)})"
        if kind == 14 and (one := self.pick(DATE)) and (other := self.pick(DATE)):
            return f"({one} - {other})"
        if kind == 15 and (one := self.pick(DATE)):
            return f"EXTRACT({rng.choice(('YEAR', 'QUARTER', 'MONTH', 'DAY', 'DOW'))} FROM {one})"
        if kind == 16 and (one := self.pick(TIMESTAMP)):
            return f"EXTRACT({rng.choice(('HOUR', 'MINUTE', 'SECOND', 'YEAR', 'DAY'))} FROM {one})"
        return self.case(NUMBER, down)

    def listed(self, kind: str, depth: int) -> str:
        return ", ".join(self.make(kind, depth) for _ in range(self.rng.randint(2, 3)))

    def case(self, kind: str, depth: int) -> str:
        rng = self.rng
        otherwise = f" ELSE {self.make(kind, depth)}" if rng.random() < 0.6 else ""
        branches = range(rng.randint(1, 2))
        if rng.random() < 0.6:
            whens = " ".join(f"WHEN {self.truth(depth)} THEN {self.make(kind, depth)}" for _ in branches)
            return f"CASE {whens}{otherwise} END"
        subject = rng.choice((NUMBER, TEXT))
        whens = " ".join(f"WHEN {self.compared(subject, 0)} THEN {self.make(kind, depth)}" for _ in branches)
        return f"CASE {self.compared(subject, 0)} {whens}{otherwise} END"

    def compared(self, kind: str, depth: int) -> str:
        """An expression that may be compared with any other: a name is compared with declared values alone."""
        made = self.make(kind, depth)
        named = kind == TEXT and made in [named.name for named in self.names]
        return f"COALESCE({made}, NULL)" if named else made

    def compare_texts(self) -> tuple[str, str]:
        """A name and a declared value, or any texts."""
        name = self.pick(TEXT)
        if name and ("region" in name or "mode" in name) and self.rng.random() < 0.5:
            return name, self.rng.choice(TEXTS[:2])
        return self.compared(TEXT, 0), self.compared(TEXT, 0)

    def text(self, depth: int) -> str:
        name = self.pick(TEXT)
        if depth <= 0 or self.rng.random() < 0.3:
            return name if name and self.rng.random() < 0.7 else self.rng.choice(TEXTS)
        kind = self.rng.randrange(3)
        if kind == 0:
            return f"COALESCE({self.listed(TEXT, depth - 1)})"
        return f"NULLIF({self.text(0)}, {self.text(0)})" if kind == 1 else self.case(TEXT, depth - 1)

    def date(self, depth: int) -> str:
        name = self.pick(DATE)
        if name is None:
            return "DATE '2020-03-15'"
        if depth <= 0:
            return name
        kind = self.rng.randrange(3)
        if kind == 0:
            return f"({name} {self.rng.choice('+-')} {self.rng.choice((1, 30, 366))})"
        return f"{self.rng.choice(('GREATEST', 'LEAST', 'COALESCE'))}({name}, {self.rng.choice(DATES[:2])})"

    def moment(self, depth: int) -> str:
        return self.pick(TIMESTAMP) or "TIMESTAMP '2020-03-01 10:20:30'"

    def truth(self, depth: int) -> str:
        rng, down = self.rng, depth - 1
        kind = rng.randrange(16 if depth > 0 else 7)
        name = self.pick(TRUTH)
        if kind == 0 and name:
            return name
        if kind in (0, 1, 2):
            return f"{self.number(down)} {rng.choice(('=', '<>', '!=', '<', '<=', '>', '>='))} {self.number(0)}"
        if kind == 3:
            return rng.choice((" = ", " <> ")).join(self.compare_texts())
        if kind == 4 and (day := self.pick(DATE)):
            return f"{day} {rng.choice(('=', '<', '>='))} {rng.choice(DATES)}"
        if kind in (4, 5):
            return f"{self.number(0)} {rng.choice(('', 'NOT '))}BETWEEN {self.number(0)} AND {self.number(0)}"
        if kind == 6:
            return f"{self.text(0)} {self.like()}"
        if kind == 7:
            missing = rng.choice(("", ", NULL"))
            return f"{self.number(down)} {rng.choice(('', 'NOT '))}IN ({self.listed(NUMBER, 0)}{missing})"
        if kind == 8:
            one, other = self.compare_texts()
            return f"{one} {rng.choice(('', 'NOT '))}IN ({other}, '{rng.choice(('south', 'north'))}')"
        if kind == 9:
            return f"{self.make(rng.choice((NUMBER, TEXT, DATE)), down)} IS {rng.choice(('', 'NOT '))}NULL"
        if kind == 10:
            which = rng.choice((NUMBER, TEXT))
            other = rng.choice((self.compared(which, 0), "NULL"))
            return f"{self.compared(which, down)} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {other}"
        if kind == 11:
            return f"({self.truth(down)}) IS {rng.choice(('', 'NOT '))}{rng.choice(('TRUE', 'FALSE', 'NULL'))}"
        if kind == 12:
            return f"NOT ({self.truth(down)})"
        if kind == 13:  # NOT binds more strongly than AND, AND than OR
            return f"(NOT {self.truth(down)} AND {self.truth(down)} OR {self.truth(down)})"
        if kind == 14 and (moment := self.pick(TIMESTAMP)):
            return f"{moment} {rng.choice(('<', '>='))} {rng.choice(('TIMESTAMP ', ''))}'2020-03-01 10:20:30'"
        return f"({self.truth(down)} {rng.choice(('AND', 'OR'))} {self.truth(down)})"

    def like(self) -> str:
        rng = self.rng
        no = rng.choice(("", "NOT "))
        if rng.random() < 0.2:
            return f"{no}LIKE '50!%!_%' ESCAPE '!'"
        pattern = rng.choice(PATTERNS).replace("'", "''")
        return f"{no}LIKE '{pattern}'" if rng.random() < 0.7 else f"{no}ILIKE '{pattern.upper()}'"

    def inexact(self) -> str:
        """What doubles hold only nearly: nothing is computed from it."""
        one, other = self.number(2), self.number(1)
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"({one}) / ({other})"
        if kind == 1:
            return f"ROUND({one}, {self.rng.choice((1, 2, 5))})"
        return f"({one}) / 3 + ({other}) * 0.1" if kind == 2 else f"100 * ({one}) / NULLIF({other}, 0)"


def make_question(rng: random.Random, statistics: Iterable[Named], keys: Iterable[Named], where: str) -> str:
    """A random question that lists these statistics and more that is computed from them, perhaps with others around."""
    statistics, keys = tuple(statistics), tuple(keys)
    expressions = Expressions(rng, (*statistics, *keys))
    around = rng.choice((0, 0, 0, 0, 1, 2))
    listed = [(named.name, replace(named, name=f"p{i}")) for i, named in enumerate((*keys, *statistics))]
    items = (*listed, *_make_items(expressions, rng, "a", last=not around, most=2))
    select = Written(items, tuple(rng.choice((key.name, str(i + 1))) for i, key in enumerate(keys)), where=where)
    having = f"HAVING {expressions.truth(1)}" if rng.random() < 0.4 else ""
    select = replace(select, having=having, order=_make_order(expressions, rng, select), limit=_make_limit(rng))
    for level in range(around):
        select = _make_around(rng, select, "bc"[level], last=level == around - 1)
    return select.ask()


def make_select(rng: random.Random, around: int) -> Written:
    """A random SELECT with so many around it, over all statistics and keys."""
    names = tuple(Named(f"{{{name}}}", kind) for name, (_, kind) in (STATISTICS | KEYS).items())
    expressions = Expressions(rng, names, DIVISORS)
    plain = [(rng.choice(("{total}", "{middle}", "{high}")), Named("p0", NUMBER)), ("{mode}", Named("p1", TEXT))]
    items = [("{n}", Named("a0", NUMBER)), *plain, *_make_items(expressions, rng, "a", last=not around, most=4)]
    keys = ("{region}", "{sex}", "{decade}")
    listed = [(key, Named(f"k{i}", kind)) for i, (key, kind) in enumerate(zip(keys, (TEXT, TEXT, NUMBER), strict=True))]
    select = Written((*listed, *items), tuple(rng.choice((key, str(i + 1))) for i, key in enumerate(keys)))
    having = f"HAVING {expressions.truth(2)}" if rng.random() < 0.5 else ""
    select = replace(select, having=having, order=_make_order(expressions, rng, select))
    select = replace(select, limit=_make_limit(rng) if not around or rng.random() < 0.5 else "")
    for level in range(around):
        select = _make_around(rng, select, f"{'bcde'[level]}", last=level == around - 1)
    return select


def make_totals(rng: random.Random, around: int) -> Written:
    """A random SELECT with several sets of keys, and so many around it, over what adds up."""
    names = {**{name: STATISTICS[name] for name in TOTALS}, **KEYS}
    expressions = Expressions(rng, tuple(Named(f"{{{name}}}", kind) for name, (_, kind) in names.items()))
    keys = ["{region}", "{sex}", "{decade}"]
    listed = [(key, Named(f"k{i}", kind)) for i, (key, kind) in enumerate(zip(keys, (TEXT, TEXT, NUMBER), strict=True))]
    listed += [(f"GROUPING({key})", Named(f"g{i}", NUMBER)) for i, key in enumerate(keys)]
    listed += [("{n}", Named("a0", NUMBER)), *_make_items(expressions, rng, "a", last=not around, most=3)]
    sets = f"GROUP BY {rng.choice(SETS).format(*rng.sample(keys, 3))}"
    select = Written(tuple(listed), tuple(keys), True, sets=sets)
    having = rng.choice(("", f"HAVING {expressions.truth(1)}", "HAVING GROUPING({sex}) = 0"))
    select = replace(select, having=having, order=_make_order(expressions, rng, select), limit=_make_limit(rng))
    for level in range(around):
        select = _make_around(rng, select, "bc"[level], last=level == around - 1)
    return select


def _make_window(rows: Expressions, rng: random.Random, *, last: bool) -> tuple[str, Named]:
    """An aggregate over other rows."""
    fold, named = _make_fold(rows, rng, last=last)
    keys = [key for kind in (TEXT, NUMBER) if rng.random() < 0.4 and (key := rows.pick(kind))]
    partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
    return f"{fold} OVER ({partition})", named


def _make_items(
    expressions: Expressions, rng: random.Random, letter: str, *, last: bool, most: int
) -> Iterable[tuple[str, Named]]:
    for i in range(1, rng.randint(2, most) + 1):
        if last and rng.random() < 0.2:
            yield expressions.inexact(), Named(f"{letter}{i}", NUMBER, exact=False)
            continue
        if rng.random() < 0.2:
            window, named = _make_window(expressions, rng, last=last)
            yield window, replace(named, name=f"{letter}{i}")
            continue
        kind = rng.choice((NUMBER, NUMBER, NUMBER, TEXT, TRUTH, DATE))
        yield expressions.make(kind, 2), Named(f"{letter}{i}", kind)


def _make_order(expressions: Expressions, rng: random.Random, select: Written) -> str:
    if rng.random() < 0.3:
        return ""
    parts = []
    for _ in range(rng.randint(1, 2)):
        place = rng.randrange(len(select.items))
        named = select.items[place][1]
        choices = [expressions.number(2), *([str(place + 1), named.name] if named.exact else [])]
        ends = rng.choice(("", " ASC", " DESC")) + rng.choice(("", "", " NULLS FIRST", " NULLS LAST"))
        chosen = rng.choice(choices)
        # a bare number would be the place of an item
        parts.append((f"({chosen} + 0)" if chosen == choices[0] else chosen) + ends)
    return f"ORDER BY {', '.join(parts)}"


def _make_limit(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return ""
    return f"LIMIT {rng.choice((0, 1, 5, 9, 100))}" + (
        f" OFFSET {rng.choice((0, 2, 30))}" if rng.random() < 0.5 else ""
    )


def _make_around(rng: random.Random, inside: Written, letter: str, *, last: bool) -> Written:
    rows = Expressions(rng, inside.columns)
    where = f"WHERE {rows.truth(2)}" if rng.random() < 0.5 else ""
    if rng.random() < 0.3:
        items = tuple(_make_items(rows, rng, letter, last=last, most=3))
        plain = Written(items, where=where, inside=inside)
        return replace(plain, order=_make_order(rows, rng, plain), limit=_make_limit(rng))
    listed: list[tuple[str, Named]] = []
    keys = []
    for i in range(rng.randint(0, 2)):
        kind = rng.choice((NUMBER, TEXT, TRUTH))
        name = f"{letter}k{i}"
        key = rows.pick(kind) if rng.random() < 0.5 else None
        key = key or rows.make(kind, 1)
        listed.append((key, Named(name, kind)))
        written = key[0].isalpha() or (key[0] == "(" and any(map(str.isalpha, key)))  # a number would be a place
        keys.append(rng.choice((name, str(i + 1), key if written else name)))
    folds = [_make_fold(rows, rng, last=last) for _ in range(rng.randint(1, 4))]
    listed += [(fold, replace(named, name=f"{letter}f{i}")) for i, (fold, named) in enumerate(folds)]
    folded = Expressions(rng, (Named("COUNT(*)", NUMBER), *(n for _, n in listed if n.exact)))
    if rng.random() < 0.3:
        window, named = _make_window(Expressions(rng, (Named("COUNT(*)", NUMBER),)), rng, last=last)
        listed.append((window, replace(named, name=f"{letter}w")))
    having = f"HAVING {folded.truth(1)}" if rng.random() < 0.3 else ""
    select = Written(tuple(listed), tuple(keys), True, where, having, inside=inside)
    return replace(select, order=_make_order(folded, rng, select), limit=_make_limit(rng))


def _make_fold(rows: Expressions, rng: random.Random, *, last: bool) -> tuple[str, Named]:
    function = rng.choice(("COUNT", "COUNT", "SUM", "MIN", "MAX", "MEDIAN", *(("AVG", "MEAN") if last else ())))
    if function == "COUNT" and rng.random() < 0.3:
        return "COUNT(*)", Named("", NUMBER)
    kind = rng.choice((NUMBER, TEXT)) if function in ("MIN", "MAX", "COUNT") else NUMBER
    exact = function not in ("AVG", "MEAN")
    own = NUMBER if function == "COUNT" else kind
    argument = rows.pick(kind) if function == "COUNT" or rng.random() < 0.5 else None
    return f"{function}({argument or rows.make(kind, 1)})", Named("", own, exact)
