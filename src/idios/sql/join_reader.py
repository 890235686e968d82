"""From FROM and JOIN to the tables of a question, and from the names in a SELECT to the columns that they mean.

Rules:

1. FROM names a private table. Every JOIN is INNER or LEFT and follows one declared link, in full: to more rows of the
   same people in either direction, to a public table from the table that declares the link. Where the rows of FROM
   belong to those of another table, that is joined too, whether it is written or not.
2. A prefix is the alias of a table, or its name where it has none. A name without one means the only column of that
   name; of those that USING makes equal, the first.
3. An alias without AS that is no prefix is refused: RIGHT, NATURAL or TABLESAMPLE would be read as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from idios.declare.schema import Dataset
from idios.errors import QuestionRefused
from idios.plan.joins import (
    Condition,
    Join,
    JoinedTable,
    add_owners,
    find_people,
    find_table,
    join_tables,
    list_links,
    name_column,
)
from idios.sql.lexer import SHAPE, QuestionText
from idios.sql.names import find_spelt, fold_case, quote, resolve_name, to_upper
from idios.sql.parser import KINDS, ComparisonNode, JoinNode, Junction, Name, SelectNode, SyntaxNode, TableNode, walk

MAX_TABLES = 12
OTHER_KINDS = ("RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF", "LATERAL")


@dataclass(frozen=True)
class FromClause:
    """What a SELECT reads: a data set, whose columns are those of the join where there is one.

    ``spelt`` is how a column of the join is written with the prefix of its table. ``unwritten`` are the JOINs that say
    whose the rows of FROM are, where they belong to those of another table that the question does not name.
    """

    dataset: Dataset
    join: Join | None = None
    spelt: Mapping[str, str] = field(default_factory=dict)
    unwritten: str = ""

    def label(self, column: str) -> str:
        """What a column is called in what is shown: by its own name, without that of its table."""
        return column if self.join is None else column.partition(".")[2]


@dataclass
class _Scope:
    """The tables of one SELECT by their prefixes, in the order in which they are joined."""

    text: QuestionText
    account: Dataset
    tables: list[JoinedTable] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    merged: set[tuple[str, str]] = field(default_factory=set)
    """Columns that USING has made equal to one of a table before."""
    named: dict[str, Mapping[str, None]] = field(default_factory=dict)

    def table(self, name: str) -> Dataset:
        return find_table(self.account, name)

    def name_columns(self, table: str) -> Mapping[str, None]:
        """What can be named of a table: its columns, and what tells people apart."""
        if table not in self.named:
            declared = self.table(table)
            self.named[table] = dict.fromkeys([*declared.columns, *declared.unit])
        return self.named[table]

    def find_columns(self, name: Name, table: str) -> tuple[str, ...]:
        """The columns of a table that a name can mean."""
        return find_spelt(self.text, name, self.name_columns(table))

    def find_prefix(self, node: Name) -> str:
        return self.prefixes[resolve_name(self.text, node, list(self.prefixes), "table")]


def read_source(text: QuestionText, tree: SelectNode, datasets: Mapping[str, Dataset]) -> FromClause:
    """What the innermost SELECT reads; each name in its tree is given the column that it means."""
    if tree.source is None:
        raise text.refusal(f"FROM is missing. {SHAPE}")
    scope = _begin(text, tree.source, datasets)
    if len(tree.joins) >= MAX_TABLES:
        raise text.refusal(f"at most {MAX_TABLES} tables are joined")
    for join in tree.joins:
        _read_join(scope, join)
    first = scope.tables[0].name
    joined = None
    if tree.joins or first != scope.account.name:
        joined = add_owners(scope.account, Join(tuple(scope.tables)))
    _refuse_unused(text, tree)
    for node in _list_names(tree):
        _give_meaning(scope, node, joined is not None)
    if joined is None:
        return FromClause(scope.account)
    _name_unit(scope, tree, joined)
    unwritten = _add_unwritten(scope, joined)
    if unwritten:
        _refuse_unwritten_unit(scope, tree, find_people(scope.account, joined), unwritten)
    return FromClause(join_tables(scope.account, joined), joined, dict(_spell_columns(scope)), unwritten)


def drop_prefixes(text: QuestionText, tree: SelectNode) -> None:
    """Take away, in a SELECT from another, the prefix that the other is given as its alias; refuse a JOIN."""
    if tree.joins:
        problem = "JOIN stands in the innermost SELECT, between declared data sets"
        raise text.refusal(problem, tree.joins[0].start)
    alias = None if tree.source is None else tree.source.alias
    for node in _list_names(tree):
        if node.prefix is not None:
            resolve_name(text, node.prefix, [] if alias is None else [alias.text], "table")
            node.prefix = None


def _begin(text: QuestionText, table: TableNode, datasets: Mapping[str, Dataset]) -> _Scope:
    """The scope with the table of FROM, and the data set that pays for it."""
    owners = {table.name: dataset for dataset in datasets.values() for table in dataset.tables.values()}
    owners |= datasets
    named = resolve_name(text, _read_table(text, table), owners, "data set")
    if find_table(owners[named], named).public:
        raise text.refusal(
            f"{named} is public, so that nothing is asked about it: read it where it is published. It can be joined to "
            "a private data set in FROM",
            table.start,
        )
    scope = _Scope(text, owners[named])
    _add(scope, table, JoinedTable(named))
    return scope


def _read_table(text: QuestionText, table: TableNode) -> Name:
    if not isinstance(table.content, Name):
        raise text.refusal("JOIN is followed by a declared data set", table.start)
    return table.content


def _add(scope: _Scope, written: TableNode, table: JoinedTable) -> None:
    alias, prefix = written.alias, table.name
    if alias is not None:
        prefix = alias.text
        if to_upper(prefix) in OTHER_KINDS and not alias.quoted:
            raise scope.text.refusal(KINDS, alias.start)
    if table.name in [known.name for known in scope.tables]:
        raise scope.text.refusal(f"{table.name} is joined already: a table is joined once", written.start)
    if fold_case(prefix) in map(fold_case, scope.prefixes):
        raise scope.text.refusal(f"two tables are called {prefix!r}: give one of them an alias", written.start)
    scope.tables.append(table)
    scope.prefixes[prefix] = table.name


def _spell_columns(scope: _Scope) -> Iterator[tuple[str, str]]:
    for prefix, name in scope.prefixes.items():
        table = scope.table(name)
        for column in (*table.columns, *table.unit):
            yield name_column(name, column), f"{quote(prefix)}.{quote(column)}"


# JOIN.


def _read_join(scope: _Scope, join: JoinNode) -> None:
    tables = [scope.account.name, *scope.account.tables]
    name = resolve_name(scope.text, _read_table(scope.text, join.table), tables, "linked data set")
    _add(scope, join.table, JoinedTable(name, optional=join.kind == "LEFT"))
    equal = _read_on(scope, join, name)
    found = next((conditions for conditions in _list_ways(scope, name) if set(conditions) == equal), None)
    if found is None:
        raise _refuse_undeclared(scope, join, name)
    scope.tables[-1] = JoinedTable(name, found, join.kind == "LEFT")


def _list_ways(scope: _Scope, name: str) -> Iterator[tuple[Condition, ...]]:
    """The ways in which the last table can be joined to those before it."""
    before = [table.name for table in scope.tables[:-1]]
    for declaring, link in list_links(scope.account):
        if link.table == name and declaring in before:
            yield tuple(Condition(declaring, column, key) for column, key in link.pairs)
        if declaring == name and link.table in before and not scope.table(link.table).public:
            yield tuple(Condition(link.table, key, column) for column, key in link.pairs)


def _read_on(scope: _Scope, join: JoinNode, name: str) -> set[Condition]:
    """What the condition of a JOIN says to be equal."""
    text, found = scope.text, set()
    for identifier in join.using:
        ways = [c for way in _list_ways(scope, name) for c in way if c.column == c.key]
        key = resolve_name(text, identifier, dict.fromkeys(c.key for c in ways), "link USING a column")
        tables = dict.fromkeys(c.table for c in ways if c.key == key)
        if len(tables) > 1:
            raise text.refusal(f"{key} is in {' and '.join(tables)}: write JOIN … ON", identifier.start)
        found.add(Condition(next(iter(tables)), key, key))
        scope.merged.add((name, key))
    if join.on is not None:
        equations: Sequence[SyntaxNode] = [join.on]
        if isinstance(join.on, Junction) and join.on.word == "AND":
            equations = join.on.conditions
        for equation in equations:
            if not isinstance(equation, ComparisonNode) or equation.sign != "=":
                raise _refuse_undeclared(scope, join, name)
            found.add(_read_equation(scope, equation, join, name))
    return found


def _read_equation(scope: _Scope, equation: ComparisonNode, join: JoinNode, name: str) -> Condition:
    """One side is a key of the table that is joined, and the other of one before."""
    ways = [condition for way in _list_ways(scope, name) for condition in way]
    sides = (equation.left, equation.right)
    for one, other in (sides, sides[::-1]):
        for condition in ways:
            if _means(scope, one, condition.table, condition.column) and _means(scope, other, name, condition.key):
                return condition
    raise _refuse_undeclared(scope, join, name)


def _means(scope: _Scope, node: SyntaxNode, table: str, column: str) -> bool:
    """Whether a name means a column of a table; one without a prefix means any of that name."""
    if not isinstance(node, Name) or (node.prefix is not None and scope.find_prefix(node.prefix) != table):
        return False
    return node.text == column if node.quoted else fold_case(node.text) == fold_case(column)


def _refuse_undeclared(scope: _Scope, join: JoinNode, name: str) -> QuestionRefused:
    ways = [
        " AND ".join(f"{quote(c.table)}.{quote(c.column)} = {quote(name)}.{quote(c.key)}" for c in conditions)
        for conditions in _list_ways(scope, name)
    ]
    declared = f"JOIN {quote(name)} ON {' or ON '.join(ways)}" if ways else "no link to any table before it"
    return scope.text.refusal(f"tables are joined by declared links only. Declared is: {declared}", join.start)


# Names.


def _list_names(tree: SelectNode) -> list[Name]:
    """Every column that a SELECT names, but for those of a SELECT in it and of JOIN."""
    return [node for node in walk(*tree.parts) if isinstance(node, Name)]


def _give_meaning(scope: _Scope, node: Name, joined: bool) -> None:
    """Note which column a name means. One that is no column has no meaning yet: it may be a label."""
    text, tables = scope.text, list(scope.tables)
    if node.prefix is not None:
        named = scope.find_prefix(node.prefix)
        tables = [table for table in tables if table.name == named]
    found = [(table.name, column) for table in tables for column in scope.find_columns(node, table.name)]
    if joined and node.prefix is None:
        found = [each for each in found if each not in scope.merged] or found
        found = _choose_unit(scope, found)
    if len(found) > 1 and joined:
        listed = " and ".join(f"{table}.{column}" for table, column in found)
        raise text.refusal(f"{node.text} could be {listed}: write it with its prefix", node.start)
    if node.prefix is not None and len(found) != 1:
        unprefixed = Name(node.start, node.text, node.quoted)
        resolve_name(text, unprefixed, scope.name_columns(tables[0].name), "column")
    if len(found) == 1:
        node.meaning = name_column(*found[0]) if joined else found[0][1]


def _choose_unit(scope: _Scope, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of columns that all tell the same people apart, and are equal so, that of the first table."""
    if len(found) > 1 and all(column in scope.table(table).unit for table, column in found):
        return [found[0]]
    return list(found)


def _name_unit(scope: _Scope, tree: SelectNode, join: Join) -> None:
    """Let what tells people apart in GROUP BY and SELECT be that of the first table with a unit: they are equal."""
    units: dict[str, str] = {}
    for table in join.tables[1:]:
        for condition in () if table.optional else table.conditions:
            own = name_column(condition.table, condition.column)
            if condition.key in scope.table(table.name).unit and condition.column in scope.table(condition.table).unit:
                units[name_column(table.name, condition.key)] = units.get(own, own)
    for node in (*(item.node for item in tree.items), *tree.group):
        if isinstance(node, Name) and node.meaning is not None:
            node.meaning = units.get(node.meaning, node.meaning)


def _add_unwritten(scope: _Scope, join: Join) -> str:
    """Give the owners of the rows of FROM that are not written their own names as prefixes; what would join them."""
    written = [table.name for table in scope.tables]
    text = ""
    for table in join.tables:
        if table.name not in written:
            prefixes = {name: prefix for prefix, name in scope.prefixes.items()} | {table.name: table.name}
            ends = [
                (f"{quote(prefixes[c.table])}.{quote(c.column)}", f"{quote(table.name)}.{quote(c.key)}")
                for c in table.conditions
            ]
            text += f" JOIN {quote(table.name)} ON {' AND '.join(' = '.join(pair) for pair in ends)}"
            scope.prefixes.setdefault(table.name, table.name)
    return text


def _refuse_unwritten_unit(scope: _Scope, tree: SelectNode, people: Dataset, unwritten: str) -> None:
    """Refuse GROUP BY of what tells people apart in a table that has to be joined for that."""
    labels = {fold_case(item.label) for item in tree.items if item.label}
    for node in tree.group:
        if not isinstance(node, Name) or fold_case(node.text) in labels:
            continue
        if fold_case(node.text) in map(fold_case, people.unit):
            raise scope.text.refusal(
                f"{node.text} is in {people.name}, to which the rows of {scope.tables[0].name} belong: add"
                f"{unwritten} to FROM",
                node.start,
            )


def _refuse_unused(text: QuestionText, tree: SelectNode) -> None:
    """Refuse an alias without AS that no column has as its prefix: TABLESAMPLE would be read as one."""
    names = [*_list_names(tree), *(node for node in walk(*(join.on for join in tree.joins)) if isinstance(node, Name))]
    used = {fold_case(node.prefix.text) for node in names if node.prefix is not None}
    for table in (tree.source, *(join.table for join in tree.joins)):
        if table is None or table.alias is None or table.named or fold_case(table.alias.text) in used:
            continue
        raise text.refusal(
            "the data set is named without an alias, unless columns have it as their prefix or it comes after AS",
            table.start,
        )
