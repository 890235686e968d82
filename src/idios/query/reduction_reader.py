"""From SQL to a reduction: SELECT person_id, SUM(amount) AS total FROM orders WHERE … GROUP BY person_id.

A SELECT whose GROUP BY is exactly the unit of its data set is a reduction. It has one row for each person, so it is
never released: it stands in FROM (SELECT …) of the SELECT whose statistics are. Any other SELECT in FROM is released,
and what stands around it is computed afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlglot import exp

from idios.core.domain import Categories, Kind
from idios.core.neighbours import to_plural
from idios.errors import QuestionRefused
from idios.query.conditions import read_where
from idios.query.join_reader import Source
from idios.query.lexer import QuestionText
from idios.query.parser import allow_only, column_identifier, fold_case, offset_of, quote, to_upper
from idios.query.plan import Key
from idios.query.reductions import FUNCTIONS, KEY, ReducedValue, Reduction, limit_groups, make_columns, read_truth
from idios.query.schema import Column, Dataset
from idios.query.select_reader import Listed, SelectReader
from idios.query.statistic_reader import counts_all, read_column

SYNONYMS = {"MEAN": "AVG", "ANY": "BOOL_OR", "ALL": "BOOL_AND", "EVERY": "BOOL_AND"}
TRUTHS = ("BOOL_OR", "BOOL_AND")
OFFERED = "COUNT(*), COUNT(x), SUM(x), AVG(x), MIN(x), MAX(x), MEDIAN(x), LAST(x), BOOL_OR(x) and BOOL_AND(x)"
_CLAUSES_AFTER = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")


def find_unit_column(text: QuestionText, node: exp.Expression, dataset: Dataset) -> str | None:
    """The column of the unit that a name means; None if it is none."""
    name = column_identifier(text, node)
    if name is None:
        return None
    written = str(name.this)
    if name.args.get("quoted"):
        return written if written in dataset.unit else None
    return next((column for column in dataset.unit if fold_case(column) == fold_case(written)), None)


def groups_by_unit(text: QuestionText, tree: exp.Expression, dataset: Dataset) -> bool:
    """Whether a SELECT is a reduction; one that groups by a part of the unit, or undeclared by more, is refused."""
    group = tree.args.get("group")
    if group is None:
        return False
    named = [find_unit_column(text, _resolve(tree, node), dataset) for node in group.expressions]
    if not any(named):
        return False
    if (None in named and dataset.groups is None) or set(named) - {None} != set(dataset.unit):
        unit = ", ".join(dataset.unit)
        raise text.refusal(
            f"{_plural(dataset)} are told apart by {unit}, so that a reduction to them has GROUP BY {unit} and nothing "
            f"else: whatever else there is of them is a value of theirs, such as MAX(x) AS x. Where a data set "
            f"declares groups, in how many groups one of them counts, GROUP BY {unit} and categories is one too",
            offset_of(group),
        )
    return True


def refuse_unit(
    text: QuestionText, parts: Iterable[exp.Expression | None], dataset: Dataset, known: Collection[str]
) -> None:
    """Refuse a column that tells people apart where nothing is asked of it; ``known`` are other names."""
    for part in parts:
        for node in () if part is None else part.walk():
            if type(node) is exp.Column and find_unit_column(text, node, dataset):
                if fold_case(str(node.this.this)) in known:
                    continue
                raise text.refusal(
                    f"{node.this.this} tells {_plural(dataset)} apart, and is used in GROUP BY of a reduction only: "
                    f"SELECT COUNT(*) FROM (SELECT … GROUP BY {', '.join(dataset.unit)}) is the number of "
                    f"{_plural(dataset)}",
                    offset_of(node),
                )


def _resolve(tree: exp.Expression, node: exp.Expression) -> exp.Expression:
    """The item of the list that a number or a label stands for."""
    if type(node) is exp.Column:
        named = (item for item in tree.expressions if type(item) is exp.Alias and type(item.this) is exp.Column)
        return next((item.this for item in named if fold_case(item.alias) == fold_case(node.name)), node)
    if type(node) is exp.Literal and not node.args.get("is_string") and str(node.this).isdecimal():
        number = int(str(node.this)[:9])
        if 1 <= number <= len(tree.expressions):
            item: exp.Expression = tree.expressions[number - 1]
            return item.this if type(item) is exp.Alias else item
    return node


class ReductionReader(SelectReader):
    """Reads a SELECT that has one row for each person."""

    def __init__(self, text: QuestionText, tree: exp.Expression, number: int, source: Source) -> None:
        super().__init__(text, tree, number)
        self.source, self.dataset = source, source.dataset
        if number == 0:
            raise text.refusal(
                f"this has one row for each {self.dataset.unit_word}, which is never released: write statistics around "
                "it, such as SELECT MEDIAN(total) FROM (SELECT … AS total … GROUP BY …)",
                offset_of(tree),
            )

    def read(self) -> tuple[Reduction, dict[str, Column]]:
        """The reduction, and by its labels the columns that it makes."""
        for clause in ("having", "order", "limit", "offset"):
            if self.tree.args.get(clause) is not None:
                raise self.text.refusal(
                    f"a reduction has no {clause.upper()}: a condition on what it gives is WHERE of the SELECT around "
                    "it",
                    offset_of(self.tree.args[clause]),
                )
        selected = read_where(self.text, self.tree, self.dataset.columns)
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
        group = self.tree.args["group"]
        allow_only(self.text, group, "expressions")
        keys = []
        for node in group.expressions:
            written = _resolve(self.tree, node)
            if find_unit_column(self.text, written, self.dataset) is not None:
                continue
            column = read_column(self.text, written, self.dataset.columns, "GROUP BY column")
            if column.kind is not Kind.CATEGORY:
                raise self.text.refusal(
                    f"{column.name} is no category: the rows of a {self.dataset.unit_word} are grouped by categories",
                    offset_of(node),
                )
            keys.append(column)
        return keys

    def _find_key(self, node: exp.Expression, keys: Sequence[Column]) -> Column | None:
        """The key that a listed column is."""
        name = column_identifier(self.text, node)
        if name is None or not keys:
            return None
        column = read_column(self.text, node, self.dataset.columns, "GROUP BY column")
        return column if column in keys else None

    def refuse_unit_outside(self, around: exp.Expression) -> None:
        """Refuse a column of the unit in the SELECT around, unless a value goes by its name."""
        labels = {fold_case(listed.label) for listed in self.listed if listed.label}
        clauses = [around.args.get(clause) for clause in ("where", "group", "having", "order")]
        refuse_unit(self.text, [*around.expressions, *clauses], self.dataset, labels)

    def _read_value(self, listed: Listed) -> ReducedValue:
        node = listed.node
        if type(node) is not exp.Anonymous or not isinstance(node.this, str):
            raise self._refuse(listed)
        allow_only(self.text, node, "this", "expressions")
        written = to_upper(node.this)
        function, arguments = SYNONYMS.get(written, written), list(node.expressions)
        if (function not in FUNCTIONS and function not in TRUTHS) or len(arguments) != 1:
            raise self._refuse(listed)
        if function == "COUNT" and counts_all(self.text, arguments[0]):
            return ReducedValue("COUNT")
        if type(arguments[0]) is exp.Distinct:
            raise self._refuse(listed)
        column = read_column(self.text, arguments[0], self.dataset.columns, f"{written}(column)")
        return self._make_value(written, function, column, listed)

    def _make_value(self, written: str, function: str, column: Column, listed: Listed) -> ReducedValue:
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

    def _refuse(self, listed: Listed) -> QuestionRefused:
        return self.text.refusal(
            f"this is no value of a {self.dataset.unit_word}: a reduction lists {OFFERED}, each of a column",
            listed.start,
        )

    def find(self, node: exp.Expression) -> None:
        """Nothing is computed in a reduction."""
        raise AssertionError("a reduction computes nothing of its values")

    def refuse_name(self, node: exp.Expression) -> QuestionRefused:
        """Nothing is named in a reduction but columns."""
        raise AssertionError("a reduction computes nothing of its values")


def _spelt_alike(label: str, value: ReducedValue, values: dict[str, ReducedValue]) -> bool:
    """Whether a name that is not quoted could mean two values."""
    return any(fold_case(known) == fold_case(label) and other != value for known, other in values.items())


def propose_reduction(
    text: QuestionText,
    tree: exp.Expression,
    read: Source,
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
    where = f" WHERE {condition}" if (condition := _spell_where(text, tree)) else ""
    source = f"{_spell_from(text)}{read.unwritten}" if spelt else quote(dataset.name)
    return (
        f"SELECT {', '.join([*grouped, outer])} FROM (SELECT {', '.join(inner) or 'COUNT(*)'} FROM {source}{where} "
        f"GROUP BY {', '.join(unit)}){' GROUP BY ' if grouped else ''}{', '.join(grouped)}"
    )


def propose_selection(
    text: QuestionText, tree: exp.Expression, read: Source, listed: Sequence[Listed], keys: Sequence[Key]
) -> str:
    """The question about the first group of one SELECT that could be asked without GROUP BY."""
    asked = ", ".join(f"{each.spelling} AS {quote(each.label)}" if each.label else each.spelling for each in listed)
    conditions = [f"({written})"] if (written := _spell_where(text, tree)) else []
    alias = tree.args["from_"].this.args.get("alias")
    prefix = "" if alias is None else f"{quote(str(alias.this.this))}."  # an alias that nothing uses is refused
    for key in keys:
        domain = read.dataset.columns[key.column].domain
        assert isinstance(domain, Categories), "the keys of rows are categories"
        value = domain.shown(0).replace("'", "''")
        conditions.append(f"{read.spelt.get(key.column, f'{prefix}{quote(key.column)}')} = '{value}'")
    return f"SELECT {asked} FROM {_spell_from(text)} WHERE {' AND '.join(conditions)}"


def _plural(dataset: Dataset) -> str:
    return to_plural(dataset.unit_word)


def _spell_where(text: QuestionText, tree: exp.Expression) -> str:
    """The condition of a SELECT as it was written."""
    where = tree.args.get("where")
    start = None if where is None else offset_of(where)
    if start is None:
        return ""
    # a condition may begin with what has no place of its own, such as a parenthesis
    before = (i for i, token in enumerate(text.tokens) if token.keyword == "WHERE" and token.start < start)
    return _spell_clause(text, max(before, default=0) + 1, _CLAUSES_AFTER)


def _spell_from(text: QuestionText) -> str:
    """The tables of the innermost SELECT as they were written."""
    selects = [i for i, token in enumerate(text.tokens) if token.keyword == "SELECT"]
    depth = 0
    for i, token in enumerate(text.tokens[selects[-1] :], start=selects[-1]):
        depth += {"(": 1, ")": -1}.get(token.keyword, 0)
        if token.keyword == "FROM" and not depth:
            return _spell_clause(text, i + 1, ("WHERE", *_CLAUSES_AFTER))
    raise AssertionError("a SELECT that was read has FROM")


def _spell_clause(text: QuestionText, first: int, following: Sequence[str]) -> str:
    """What stands from a token on until one of the words that may follow, or until a parenthesis ends it."""
    depth, end = 0, len(text.source)
    for token in text.tokens[first:]:
        depth += {"(": 1, ")": -1}.get(token.keyword, 0)
        if depth < 0 or (not depth and token.keyword in following):
            end = token.start
            break
    return " ".join(text.source[text.tokens[first].start : end].split())
