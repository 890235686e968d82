"""From SQL to a reduction: SELECT person_id, SUM(amount) AS total FROM orders WHERE … GROUP BY person_id.

A SELECT whose GROUP BY is exactly the unit of its data set is a reduction. It has one row for each person, so it is
never released: it stands in FROM (SELECT …) of the SELECT whose statistics are. Any other SELECT in FROM is released,
and what stands around it is computed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from idios.core.domain import Categories, Kind
from idios.core.exact import text as number_text
from idios.core.neighbours import to_plural
from idios.declare.dates import format_value
from idios.declare.schema import Column, Dataset
from idios.errors import QuestionRefused
from idios.plan.question import Key, Question
from idios.plan.reductions import FUNCTIONS, KEY, ReducedValue, Reduction, limit_groups, make_columns, read_truth
from idios.sql.conditions import locate, read_where
from idios.sql.expression_reader import read_constant
from idios.sql.inner_reader import InnerReader
from idios.sql.join_reader import FromClause
from idios.sql.lexer import QuestionText
from idios.sql.names import find_spelt, fold_case, quote, to_upper
from idios.sql.parser import CallNode, ListItem, Name, Number, SelectNode, SyntaxNode, walk
from idios.sql.select_reader import SelectReader
from idios.sql.statistic_reader import counts_all, is_cap, read_column

SYNONYMS = {"MEAN": "AVG", "ANY": "BOOL_OR", "ALL": "BOOL_AND", "EVERY": "BOOL_AND"}
TRUTHS = ("BOOL_OR", "BOOL_AND")
OFFERED = "COUNT(*), COUNT(x), SUM(x), AVG(x), MIN(x), MAX(x), MEDIAN(x), LAST(x), BOOL_OR(x) and BOOL_AND(x)"


def find_unit_column(text: QuestionText, node: SyntaxNode, dataset: Dataset) -> str | None:
    """The column of the unit that a name means; None if it is none."""
    if not isinstance(node, Name):
        return None
    if node.meaning is not None:
        return node.meaning if node.meaning in dataset.unit else None
    return next(iter(find_spelt(text, node, dataset.unit)), None)


def groups_by_unit(text: QuestionText, tree: SelectNode, dataset: Dataset) -> bool:
    """Whether a SELECT is a reduction; one that groups by a part of the unit, or undeclared by more, is refused."""
    named = [find_unit_column(text, _resolve(tree, node), dataset) for node in tree.group]
    if not any(named):
        return False
    if (None in named and dataset.groups is None) or set(named) - {None} != set(dataset.unit):
        unit = ", ".join(dataset.unit)
        raise text.refusal(
            f"{_plural(dataset)} are told apart by {unit}, so that a reduction to them has GROUP BY {unit} and nothing "
            f"else: whatever else there is of them is a value of theirs, such as MAX(x) AS x. Where a data set "
            f"declares groups, in how many groups one of them counts, GROUP BY {unit} and categories is one too",
            tree.group[0].start,
        )
    return True


def refuse_unit(
    text: QuestionText, parts: Iterable[SyntaxNode | None], dataset: Dataset, known: Collection[str]
) -> None:
    """Refuse a column that tells people apart where nothing is asked of it; ``known`` are other names."""
    for node in walk(*parts):
        if not isinstance(node, Name) or find_unit_column(text, node, dataset) is None or fold_case(node.text) in known:
            continue
        raise text.refusal(
            f"{node.text} tells {_plural(dataset)} apart, and is used in GROUP BY of a reduction only: "
            f"SELECT COUNT(*) FROM (SELECT … GROUP BY {', '.join(dataset.unit)}) is the number of "
            f"{_plural(dataset)}",
            node.start,
        )


def _resolve(tree: SelectNode, node: SyntaxNode) -> SyntaxNode:
    """The item of the list that a number or a label stands for."""
    if isinstance(node, Name) and node.prefix is None:
        named = (item for item in tree.items if item.label and isinstance(item.node, Name))
        return next((item.node for item in named if fold_case(item.label) == fold_case(node.text)), node)
    if isinstance(node, Number) and node.written.isdecimal():
        number = int(node.written[:9])
        if 1 <= number <= len(tree.items):
            return tree.items[number - 1].node
    return node


class ReductionReader(SelectReader):
    """Reads a SELECT that has one row for each person."""

    def __init__(self, text: QuestionText, tree: SelectNode, source: FromClause, *, outermost: bool) -> None:
        super().__init__(text, tree)
        self.source, self.dataset = source, source.dataset
        if tree.sets is not None:
            told = "a reduction has no totals: ROLLUP, CUBE and GROUPING SETS stand in the SELECT around it"
            raise text.refusal(told, tree.group[0].start if tree.group else tree.start)
        if outermost:
            raise text.refusal(
                f"this has one row for each {self.dataset.unit_word}, which is never released: write statistics around "
                "it, such as SELECT MEDIAN(total) FROM (SELECT … AS total … GROUP BY …)",
                tree.start,
            )

    def read(self) -> tuple[Reduction, dict[str, Column]]:
        """The reduction, and by its labels the columns that it makes."""
        tree = self.tree
        ordered = tree.order[0].value if tree.order else None
        for clause, node in (
            ("HAVING", tree.having),
            ("ORDER", ordered),
            ("LIMIT", tree.limit),
            ("OFFSET", tree.offset),
        ):
            if node is not None:
                raise self.text.refusal(
                    f"a reduction has no {clause}: a condition on what it gives is WHERE of the SELECT around it",
                    node.start,
                )
        selected = read_where(self.text, tree.where, self.dataset.columns)
        keys = self._read_keys()
        values: dict[str, ReducedValue] = {}
        for listed in self.listed:
            if find_unit_column(self.text, listed.node, self.dataset) is not None:
                continue
            key = self._find_key(listed.node, keys)
            value = self._read_value(listed) if key is None else ReducedValue(KEY, key.name)
            label = listed.label or (listed.spelling if key is None else self.source.label(key.name))
            if values.get(label, value) != value or _spelt_alike(label, value, values):
                raise self.text.refusal(f"two different values are called {label!r}: name one of them", listed.start)
            values[label] = value
        made = make_columns(self.dataset, values.values())
        labels = {label: made[value.name] for label, value in values.items()}
        called = {value.name: label for label, value in values.items()}
        reduced = Reduction(selected, tuple(dict.fromkeys(values.values())), labels=called)
        return limit_groups(reduced, [key.name for key in keys], self.dataset), labels

    def _read_keys(self) -> list[Column]:
        """What a person's rows are grouped by beside the person."""
        keys = []
        for node in self.tree.group:
            written = _resolve(self.tree, node)
            if find_unit_column(self.text, written, self.dataset) is not None:
                continue
            column = read_column(self.text, written, self.dataset.columns, "GROUP BY column")
            if column.kind is not Kind.CATEGORY:
                raise self.text.refusal(
                    f"{column.name} is no category: the rows of a {self.dataset.unit_word} are grouped by categories",
                    node.start,
                )
            keys.append(column)
        return keys

    def _find_key(self, node: SyntaxNode, keys: Sequence[Column]) -> Column | None:
        """The key that a listed column is."""
        if not isinstance(node, Name) or not keys:
            return None
        column = read_column(self.text, node, self.dataset.columns, "GROUP BY column")
        return column if column in keys else None

    def refuse_unit_outside(self, around: SelectNode) -> None:
        """Refuse a column of the unit in the SELECT around, unless a value goes by its name."""
        labels = {fold_case(listed.label) for listed in self.listed if listed.label}
        refuse_unit(self.text, around.parts, self.dataset, labels)

    def _read_value(self, listed: ListItem) -> ReducedValue:
        node = listed.node
        if is_cap(node):
            return read_cap(self.text, node, lambda part: self._read_value(replace(listed, node=part)), self.dataset)
        if not isinstance(node, CallNode) or node.distinct or node.within is not None:
            raise self._refuse(listed)
        written, arguments = to_upper(node.function), node.arguments
        function = SYNONYMS.get(written, written)
        if (function not in FUNCTIONS and function not in TRUTHS) or len(arguments) != 1:
            raise self._refuse(listed)
        if function == "COUNT" and counts_all(arguments[0]):
            return ReducedValue("COUNT")
        column = read_column(self.text, arguments[0], self.dataset.columns, f"{written}(column)")
        return self._make_value(written, function, column, listed)

    def _make_value(self, written: str, function: str, column: Column, listed: ListItem) -> ReducedValue:
        if function in TRUTHS:
            if not column.holds_truth:
                raise self.text.refusal(
                    f"{written} is of a column of truth, which holds 0 and 1, or true and false", listed.start
                )
            return ReducedValue(read_truth(function, column), column.name)
        if column.kind not in FUNCTIONS[function].kinds:
            raise self.text.refusal(
                f"{written} is of numbers; {column.name} is a {column.kind}, of which there are MIN, MAX, LAST and "
                "COUNT",
                listed.start,
            )
        if function == "LAST" and self.dataset.order is None:
            raise self.text.refusal(
                f"LAST needs to know which row is the last: {self.dataset.name} declares no order. MIN and MAX need "
                "none",
                listed.start,
            )
        if function == "COUNT" and not column.nullable:
            return ReducedValue("COUNT")
        return ReducedValue(function, column.name)

    def _refuse(self, listed: ListItem) -> QuestionRefused:
        return self.text.refusal(
            f"this is no value of a {self.dataset.unit_word}: a reduction lists {OFFERED}, each of a column, and "
            "LEAST(value, 150) and GREATEST(value, 0) of these",
            listed.start,
        )

    def find(self, node: SyntaxNode) -> None:
        """Nothing is computed in a reduction."""
        raise AssertionError("a reduction computes nothing of its values")

    def refuse_name(self, node: SyntaxNode) -> QuestionRefused:
        """Nothing is named in a reduction but columns."""
        raise AssertionError("a reduction computes nothing of its values")


class PeopleReader(InnerReader):
    """Reads the SELECT around a reduction: SUM(LEAST(s, 9)) of SUM(x) AS s is SUM(s) of LEAST(SUM(x), 9) AS s."""

    def __init__(
        self, text: QuestionText, tree: SelectNode, dataset: Dataset, made: tuple[Reduction, Mapping[str, Column]]
    ) -> None:
        self.rows, (self.reduction, labels) = dataset, made
        self.values = {value.name: value for value in self.reduction.values}
        people = replace(dataset, columns=make_columns(dataset, (ReducedValue("COUNT"), *self.reduction.values)))
        super().__init__(text, tree, people, labels)

    def read(self) -> Question:
        """The question, whose reduction has the values that are capped here too."""
        question = super().read()
        return replace(question, reduction=replace(self.reduction, values=tuple(self.values.values())))

    def read_column(self, node: SyntaxNode, signature: str) -> Column:
        """A value by its label, or a capped one."""
        if not is_cap(node):
            return super().read_column(node, signature)
        find = self.values.__getitem__
        value = read_cap(self.text, node, lambda part: find(self.read_column(part, signature).name), self.rows)
        self.values[value.name], made = value, make_columns(self.rows, [value])
        self.dataset = replace(self.dataset, columns={**self.dataset.columns, **made})
        self.names.setdefault(value.name, value.name)
        return made[value.name]


def read_cap(
    text: QuestionText, node: CallNode, read_value: Callable[[SyntaxNode], ReducedValue], dataset: Dataset
) -> ReducedValue:
    """LEAST or GREATEST of a person's value and constants; a bound that no value lies beyond is left out."""
    function, word = to_upper(node.function), dataset.unit_word
    values = [part for part in node.arguments if type(part) in (CallNode, Name)]
    constants = [read_constant(text, part) for part in node.arguments if part not in values]
    advice = f"{function} caps one number or date of a {word} by constants, none of them NULL: {function}(value, 150)"
    if len(values) != 1 or not constants or node.distinct or node.within is not None:
        raise text.refusal(advice, node.start)
    value = read_value(values[0])
    [column] = make_columns(dataset, [replace(value, lower=None, upper=None)]).values()
    for constant in constants:
        if constant is None or constant.value is None or column.kind is Kind.CATEGORY:
            raise text.refusal(advice, node.start)
        place, step = locate(text, column, constant, node.start), column.grid.step
        if place.denominator != 1:
            raise text.refusal(
                f"{function} takes a multiple of {number_text(step)}, the step of {column.name}", node.start
            )
        shown = format_value(place * step, column.kind)
        written = f"'{shown}'" if isinstance(shown, str) else str(number_text(shown))
        value = value.cap(function, int(place), written)
    if make_columns(dataset, [value])[value.name].grid.points == 1 < column.grid.points:
        raise text.refusal(f"{value.name} is the same for every {word}: nothing lies between its bounds", node.start)
    lower = value.lower if value.lower and value.lower.point > column.grid.low else None
    upper = value.upper if value.upper and value.upper.point < column.grid.high else None
    return replace(value, lower=lower, upper=upper)


def _spelt_alike(label: str, value: ReducedValue, values: dict[str, ReducedValue]) -> bool:
    """Whether a name that is not quoted could mean two values."""
    return any(fold_case(known) == fold_case(label) and other != value for known, other in values.items())


def propose_reduction(
    tree: SelectNode,
    read: FromClause,
    outer: str,
    columns: Sequence[tuple[str, Column]],
    keys: Sequence[Key],
) -> str:
    """The question that could be asked of people instead; ``columns`` come with the function that reduces each.

    ``keys`` are those of GROUP BY, where a data set declares in how many groups a person counts.
    """
    dataset, spelt = read.dataset, read.spelt
    labels = {name: quote(name) for name in [*(column.name for _, column in columns), *(key.column for key in keys)]}
    if spelt:
        labels = {name: quote(name.partition(".")[2]) for name in labels}
        for name, label in labels.items():
            outer = outer.replace(name, label).replace(spelt[name], label)
    grouped = [labels[key.column] for key in keys]
    inner = [spelt.get(key.column, quote(key.column)) for key in keys]
    unit = [*(spelt.get(name, quote(name)) for name in dataset.unit), *inner]
    inner += [
        f"{function}({spelt.get(column.name, quote(column.name))}) AS {labels[column.name]}"
        for function, column in columns
        if column.name not in [key.column for key in keys]
    ]
    where = f" WHERE {tree.spelt['WHERE']}" if tree.where is not None else ""
    source = f"{tree.spelt['FROM']}{read.unwritten}" if spelt else quote(dataset.name)
    return (
        f"SELECT {', '.join([*grouped, outer])} FROM (SELECT {', '.join(inner) or 'COUNT(*)'} FROM {source}{where} "
        f"GROUP BY {', '.join(unit)}){' GROUP BY ' if grouped else ''}{', '.join(grouped)}"
    )


def propose_selection(tree: SelectNode, read: FromClause, listed: Sequence[ListItem], keys: Sequence[Key]) -> str:
    """The question about the first group of one SELECT that could be asked without GROUP BY."""
    asked = ", ".join(f"{each.spelling} AS {quote(each.label)}" if each.label else each.spelling for each in listed)
    conditions = [] if tree.where is None else [f"({tree.spelt['WHERE']})"]
    alias = None if tree.source is None else tree.source.alias
    prefix = "" if alias is None else f"{quote(alias.text)}."  # an alias that nothing uses is refused
    for key in keys:
        domain = read.dataset.columns[key.column].domain
        assert isinstance(domain, Categories), "the keys of rows are categories"
        value = domain.shown(0).replace("'", "''")
        conditions.append(f"{read.spelt.get(key.column, f'{prefix}{quote(key.column)}')} = '{value}'")
    return f"SELECT {asked} FROM {tree.spelt['FROM']} WHERE {' AND '.join(conditions)}"


def _plural(dataset: Dataset) -> str:
    return to_plural(dataset.unit_word)
