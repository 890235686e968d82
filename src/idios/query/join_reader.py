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

from sqlglot import exp

from idios.errors import QuestionRefused
from idios.query.joins import (
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
from idios.query.lexer import SHAPE, QuestionText
from idios.query.parser import allow_only, fold_case, list_chain, offset_of, quote, resolve_name, to_upper
from idios.query.schema import Dataset

CLAUSES = ("where", "group", "having", "order")
MAX_TABLES = 12
KINDS = "a join is [INNER] JOIN … ON or LEFT [OUTER] JOIN … ON"
OTHER_KINDS = ("RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF", "LATERAL")


@dataclass(frozen=True)
class Source:
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

    def table(self, name: str) -> Dataset:
        return find_table(self.account, name)

    def find_prefix(self, node: exp.Expression) -> str:
        return self.prefixes[resolve_name(self.text, node, self.prefixes, "table")]


def read_source(text: QuestionText, tree: exp.Expression, datasets: Mapping[str, Dataset]) -> Source:
    """What the innermost SELECT reads; its tree is changed to name the columns as the data set does."""
    source = tree.args.get("from_")
    if source is None:
        raise text.refusal(f"FROM is missing. {SHAPE}")
    allow_only(text, source, "this")
    if type(source.this) is not exp.Table:
        raise text.refusal("FROM names one declared data set, or (SELECT …) of one", offset_of(source))
    scope = _begin(text, source.this, datasets)
    joins = tree.args.pop("joins", None) or []
    if len(joins) >= MAX_TABLES:
        raise text.refusal(f"at most {MAX_TABLES} tables are joined")
    for join in joins:
        _read_join(scope, join)
    first = scope.tables[0].name
    joined = None
    if joins or first != scope.account.name:
        joined = add_owners(scope.account, Join(tuple(scope.tables)))
    _refuse_unused(text, tree, [source.this, *(join.this for join in joins)], joins)
    for node in _list_names(tree):
        _rename(scope, node, joined is not None)
    if joined is None:
        return Source(scope.account)
    _name_unit(scope, tree, joined)
    unwritten = _add_unwritten(scope, joined)
    if unwritten:
        _refuse_unwritten_unit(scope, tree, find_people(scope.account, joined), unwritten)
    return Source(join_tables(scope.account, joined), joined, dict(_spell_columns(scope)), unwritten)


def drop_prefixes(text: QuestionText, tree: exp.Expression) -> None:
    """Take away, in a SELECT from another, the prefix that the other is given as its alias."""
    alias = tree.args["from_"].this.args.get("alias")
    known = [] if alias is None else [str(alias.this.this)]
    for node in _list_names(tree):
        if (prefix := node.args.get("table")) is not None:
            resolve_name(text, prefix, known, "table")
            node.set("table", None)


def _begin(text: QuestionText, node: exp.Expression, datasets: Mapping[str, Dataset]) -> _Scope:
    """The scope with the table of FROM, and the data set that pays for it."""
    owners = {table.name: dataset for dataset in datasets.values() for table in dataset.tables.values()}
    owners |= datasets
    private = [name for name, owner in owners.items() if not find_table(owner, name).public]
    allow_only(text, node, "this", "alias")
    named = resolve_name(text, node.this, owners, "data set")
    if named not in private:
        raise text.refusal(
            f"{named} is public, so that nothing is asked about it: read it where it is published. It can be joined to "
            "a private data set in FROM",
            offset_of(node),
        )
    scope = _Scope(text, owners[named])
    _add(scope, node, JoinedTable(named))
    return scope


def _add(scope: _Scope, node: exp.Expression, table: JoinedTable) -> None:
    alias = node.args.get("alias")
    prefix = table.name
    if alias is not None:
        allow_only(scope.text, alias, "this")
        allow_only(scope.text, alias.this, "this", "quoted")
        prefix = str(alias.this.this)
        if to_upper(prefix) in OTHER_KINDS and not alias.this.args.get("quoted"):
            raise scope.text.refusal(KINDS, offset_of(alias))
    if table.name in [known.name for known in scope.tables]:
        raise scope.text.refusal(f"{table.name} is joined already: a table is joined once", offset_of(node))
    if fold_case(prefix) in map(fold_case, scope.prefixes):
        raise scope.text.refusal(f"two tables are called {prefix!r}: give one of them an alias", offset_of(node))
    scope.tables.append(table)
    scope.prefixes[prefix] = table.name


def _spell_columns(scope: _Scope) -> Iterator[tuple[str, str]]:
    for prefix, name in scope.prefixes.items():
        table = scope.table(name)
        for column in (*table.columns, *table.unit):
            yield name_column(name, column), f"{quote(prefix)}.{quote(column)}"


# JOIN.


def _read_join(scope: _Scope, join: exp.Expression) -> None:
    text = scope.text
    allow_only(text, join, "this", "on", "using", "side", "kind")
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    if (side, kind) not in (("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")):
        raise text.refusal(KINDS, offset_of(join))
    if type(join.this) is not exp.Table:
        raise text.refusal("JOIN is followed by a declared data set", offset_of(join))
    allow_only(text, join.this, "this", "alias")
    name = resolve_name(text, join.this.this, [scope.account.name, *scope.account.tables], "linked data set")
    _add(scope, join.this, JoinedTable(name, optional=side == "LEFT"))
    equal = _read_on(scope, join, name)
    found = next((conditions for conditions in _list_ways(scope, name) if set(conditions) == equal), None)
    if found is None:
        raise _refuse_undeclared(scope, join, name)
    scope.tables[-1] = JoinedTable(name, found, side == "LEFT")


def _list_ways(scope: _Scope, name: str) -> Iterator[tuple[Condition, ...]]:
    """The ways in which the last table can be joined to those before it."""
    before = [table.name for table in scope.tables[:-1]]
    for declaring, link in list_links(scope.account):
        if link.table == name and declaring in before:
            yield tuple(Condition(declaring, column, key) for column, key in link.pairs)
        if declaring == name and link.table in before and not scope.table(link.table).public:
            yield tuple(Condition(link.table, key, column) for column, key in link.pairs)


def _read_on(scope: _Scope, join: exp.Expression, name: str) -> set[Condition]:
    """What the condition of a JOIN says to be equal."""
    text, on, using = scope.text, join.args.get("on"), join.args.get("using") or []
    if on is None and not using:
        raise _refuse_undeclared(scope, join, name)
    found = set()
    for identifier in using:
        ways = [c for way in _list_ways(scope, name) for c in way if c.column == c.key]
        key = resolve_name(text, identifier, dict.fromkeys(c.key for c in ways), "link USING a column")
        tables = dict.fromkeys(c.table for c in ways if c.key == key)
        if len(tables) > 1:
            raise text.refusal(f"{key} is in {' and '.join(tables)}: write JOIN … ON", offset_of(identifier))
        found.add(Condition(next(iter(tables)), key, key))
        scope.merged.add((name, key))
    if on is not None:
        parts = list_chain(text, _unwrap(text, on)) if type(_unwrap(text, on)) is exp.And else [on]
        for part in parts:
            equation = _unwrap(text, part)
            if type(equation) is not exp.EQ:
                raise _refuse_undeclared(scope, join, name)
            allow_only(text, equation, "this", "expression")
            found.add(_read_equation(scope, equation, join, name))
    return found


def _unwrap(text: QuestionText, node: exp.Expression) -> exp.Expression:
    while type(node) is exp.Paren:
        allow_only(text, node, "this")
        node = node.this
    return node


def _read_equation(scope: _Scope, equation: exp.Expression, join: exp.Expression, name: str) -> Condition:
    """One side is a key of the table that is joined, and the other of one before."""
    ways = [condition for way in _list_ways(scope, name) for condition in way]
    sides = (equation.this, equation.args["expression"])
    for one, other in (sides, sides[::-1]):
        for condition in ways:
            if _means(scope, one, condition.table, condition.column) and _means(scope, other, name, condition.key):
                return condition
    raise _refuse_undeclared(scope, join, name)


def _means(scope: _Scope, node: exp.Expression, table: str, column: str) -> bool:
    """Whether a name means a column of a table; one without a prefix means any of that name."""
    if type(node) is not exp.Column or type(node.this) is not exp.Identifier:
        return False
    allow_only(scope.text, node, "this", "table")
    prefix = node.args.get("table")
    if prefix is not None and scope.find_prefix(prefix) != table:
        return False
    written = str(node.this.this)
    return written == column if node.this.args.get("quoted") else fold_case(written) == fold_case(column)


def _refuse_undeclared(scope: _Scope, join: exp.Expression, name: str) -> QuestionRefused:
    ways = [
        " AND ".join(f"{quote(c.table)}.{quote(c.column)} = {quote(name)}.{quote(c.key)}" for c in conditions)
        for conditions in _list_ways(scope, name)
    ]
    declared = f"JOIN {quote(name)} ON {' or ON '.join(ways)}" if ways else "no link to any table before it"
    return scope.text.refusal(f"tables are joined by declared links only. Declared is: {declared}", offset_of(join))


# Names.


def _list_names(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Every column that a SELECT names, but for those of a SELECT in it and of JOIN."""
    parts = [*tree.expressions, *(tree.args[clause] for clause in CLAUSES if tree.args.get(clause) is not None)]
    for part in parts:
        yield from [node for node in part.walk() if type(node) is exp.Column and type(node.this) is exp.Identifier]


def _rename(scope: _Scope, node: exp.Expression, joined: bool) -> None:
    """Let a column go by the name that it has in the data set; a name that is no column stays, and may be a label."""
    text, prefix = scope.text, node.args.get("table")
    allow_only(text, node, "this", "table")
    tables = list(scope.tables)
    if prefix is not None:
        named = scope.find_prefix(prefix)
        tables = [table for table in tables if table.name == named]
        node.set("table", None)
    if not joined:
        return
    found = [(table.name, column) for table in tables for column in _find_columns(scope, node.this, table.name)]
    if prefix is None:
        found = [each for each in found if each not in scope.merged] or found
        found = _choose_unit(scope, found)
    if len(found) > 1:
        listed = " and ".join(f"{table}.{column}" for table, column in found)
        raise text.refusal(f"{node.this.this} could be {listed}: write it with its prefix", offset_of(node))
    if not found and prefix is not None:
        table = scope.table(tables[0].name)
        resolve_name(text, node.this, [*table.columns, *table.unit], "column")
    if found:
        start = offset_of(node)
        node.set("this", exp.Identifier(this=name_column(*found[0]), quoted=True))
        if start is not None:
            node.this.meta["start"] = start


def _find_columns(scope: _Scope, name: exp.Expression, table: str) -> list[str]:
    """The columns of a table that a name can mean."""
    declared, written = scope.table(table), str(name.this)
    names = dict.fromkeys([*declared.columns, *declared.unit])
    if name.args.get("quoted"):
        return [written] if written in names else []
    return [column for column in names if fold_case(column) == fold_case(written)]


def _choose_unit(scope: _Scope, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of columns that all tell the same people apart, and are equal so, that of the first table."""
    if len(found) > 1 and all(column in scope.table(table).unit for table, column in found):
        return [found[0]]
    return list(found)


def _name_unit(scope: _Scope, tree: exp.Expression, join: Join) -> None:
    """Let what tells people apart in GROUP BY and SELECT be that of the first table with a unit: they are equal."""
    units: dict[str, str] = {}
    for table in join.tables[1:]:
        for condition in () if table.optional else table.conditions:
            own = name_column(condition.table, condition.column)
            if condition.key in scope.table(table.name).unit and condition.column in scope.table(condition.table).unit:
                units[name_column(table.name, condition.key)] = units.get(own, own)
    group = tree.args.get("group")
    items = [item.this if type(item) is exp.Alias else item for item in tree.expressions]
    for node in [*items, *(group.expressions if group is not None else [])]:
        if type(node) is exp.Column and str(node.this.this) in units:
            start = node.this.meta.get("start")
            node.set("this", exp.Identifier(this=units[str(node.this.this)], quoted=True))
            if start is not None:
                node.this.meta["start"] = start


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


def _refuse_unwritten_unit(scope: _Scope, tree: exp.Expression, people: Dataset, unwritten: str) -> None:
    """Refuse GROUP BY of what tells people apart in a table that has to be joined for that."""
    group = tree.args.get("group")
    labels = {fold_case(item.alias) for item in tree.expressions if type(item) is exp.Alias}
    for node in group.expressions if group is not None else ():
        if type(node) is not exp.Column or fold_case(node.name) in labels:
            continue
        if fold_case(node.name) in map(fold_case, people.unit):
            raise scope.text.refusal(
                f"{node.name} is in {people.name}, to which the rows of {scope.tables[0].name} belong: add"
                f"{unwritten} to FROM",
                offset_of(node),
            )


def _refuse_unused(
    text: QuestionText, tree: exp.Expression, tables: Sequence[exp.Expression], joins: Sequence[exp.Expression]
) -> None:
    """Refuse an alias without AS that no column has as its prefix."""
    names = [*_list_names(tree), *(node for join in joins for node in join.find_all(exp.Column))]
    used = {fold_case(str(node.args["table"].this)) for node in names if node.args.get("table") is not None}
    for table in tables:
        alias = table.args.get("alias")
        if alias is None or fold_case(str(alias.this.this)) in used:
            continue
        start = offset_of(alias.this)
        before = [token for token in text.tokens if start is not None and token.start < start]
        if not before or before[-1].keyword != "AS":
            raise text.refusal(
                "the data set is named without an alias, unless columns have it as their prefix or it comes after AS",
                offset_of(table),
            )
