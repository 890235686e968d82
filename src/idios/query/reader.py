"""From SQL text to a question: what is not known is refused, with what is allowed instead.

    cut ─▶ parse ─▶ FROM: which data set ─▶ WHERE ─▶ GROUP BY ─▶ SELECT ─▶ Question

No data is touched, and nothing of the text goes any further: a question holds declared names, exact numbers and
the analyst's own labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from idios.core.domain import Kind
from idios.core.exact import text as written
from idios.errors import InvalidInput
from idios.query.conditions import read_condition, read_literal
from idios.query.lexer import KEYWORDS, SHAPE, QuestionText, tokenize
from idios.query.parser import allow_only, column_identifier, offset_of, parse, resolve_name, to_upper
from idios.query.predicates import ALWAYS, Predicate
from idios.query.question import Key, Measure, Question
from idios.query.schema import Column, Dataset
from idios.query.sql_functions import Function, find_advice, find_function, function_names

MAX_ITEMS = 200


def read(sql: str, datasets: Mapping[str, Dataset]) -> Question:
    """Read one question about one of some data sets.

    >>> from idios.core.domain import Domain, Kind
    >>> people = Dataset("people", {"age": Column("age", Kind.INTEGER, Domain(lower=0, upper=120))})
    >>> question = read("SELECT median(AGE) AS m FROM people WHERE age > 17.5", {"people": people})
    >>> question.measures
    (Measure(label='m', statistic=Median(q=Fraction(1, 2)), column='age', offset=7),)
    >>> question.filter
    Among(column='age', intervals=((18, 120),), nulls=False)
    """
    text = tokenize(sql)
    tree = parse(text)
    allow_only(text, tree, "expressions", "from_", "where", "group")
    dataset = datasets[_dataset(text, tree.args.get("from_"), datasets)]
    columns = dataset.columns
    where, group = tree.args.get("where"), tree.args.get("group")
    selected: Predicate = ALWAYS
    if where is not None:
        allow_only(text, where, "this")
        selected = read_condition(text, where.this, columns)
    keys: tuple[Key, ...] = ()
    if group is not None:
        allow_only(text, group, "expressions")
        keys = _keys(text, group.expressions, columns)
    items = _items(text, tree.expressions, columns, keys)
    return Question(dataset.name, items, selected, keys, text.source)


def _dataset(text: QuestionText, source: exp.Expression | None, datasets: Mapping[str, Dataset]) -> str:
    if source is None:
        raise text.refusal(f"FROM is missing. {SHAPE}")
    allow_only(text, source, "this")
    if type(source.this) is not exp.Table:
        raise text.refusal("FROM names one declared data set, nothing else", offset_of(source))
    allow_only(text, source.this, "this")
    return resolve_name(text, source.this.this, datasets, "data set")


def _keys(text: QuestionText, nodes: list[exp.Expression], columns: Mapping[str, Column]) -> tuple[Key, ...]:
    keys: list[Key] = []
    for node in nodes:
        key = _key(text, node, columns, "")
        if key is None:
            raise text.refusal("GROUP BY lists category columns and BIN(column, width), nothing else", offset_of(node))
        if key.meaning in [known.meaning for known in keys]:
            continue
        if key.column in [known.column for known in keys]:
            raise text.refusal(f"{key.column} is already a key of GROUP BY", key.offset)
        keys.append(key)
    return tuple(keys)


def _key(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column], label: str) -> Key | None:
    """A column or BIN(column, width); None for anything else."""
    if (name := column_identifier(text, node)) is not None:
        column = columns[resolve_name(text, name, columns, "column")]
        if column.kind is not Kind.CATEGORY:
            raise text.refusal(
                f"{column.name} is no category: answers are given by GROUP BY BIN({column.name}, width) "
                "or as statistics of the column",
                offset_of(node),
            )
        return Key(label or column.name, column.name, None, offset_of(node))
    if type(node) is not exp.Anonymous or to_upper(str(node.this)) != "BIN":
        return None
    allow_only(text, node, "this", "expressions")
    arguments = node.expressions
    if len(arguments) != 2:
        raise text.refusal("BIN is written BIN(column, width)", offset_of(node))
    column = _column(text, arguments[0], columns, "BIN(column, width)")
    if column.kind is Kind.CATEGORY:
        raise text.refusal(f"{column.name} is a category: GROUP BY {column.name}", offset_of(node))
    width = _number(text, arguments[1], "the width of a bin")
    if width <= 0:
        raise text.refusal("the width of a bin is greater than 0", offset_of(node))
    return Key(label or f"BIN({column.name}, {written(width)})", column.name, width, offset_of(node))


def _items(
    text: QuestionText, nodes: list[exp.Expression], columns: Mapping[str, Column], keys: tuple[Key, ...]
) -> tuple[Measure | Key, ...]:
    if len(nodes) > MAX_ITEMS:
        raise text.refusal(f"SELECT lists at most {MAX_ITEMS} items, got {len(nodes)}")
    spelt = text.select_items()
    if len(spelt) != len(nodes):
        raise text.refusal(f"the SELECT list cannot be read. {SHAPE}", 0)
    items: list[Measure | Key] = []
    for node, (start, spelling) in zip(nodes, spelt, strict=True):
        label = ""
        if type(node) is exp.Alias:
            allow_only(text, node, "this", "alias")
            label = _label(text, node.args["alias"])
            node = node.this
        if type(node) is not exp.Column:
            label = label or spelling
        key = _key(text, node, columns, label)
        if key is not None:
            if key.meaning not in [known.meaning for known in keys]:
                raise text.refusal("a column is shown beside statistics only if it is a key of GROUP BY", start)
            items.append(key)
        else:
            items.append(_measure(text, node, columns, label, start))
    if not any(isinstance(item, Measure) for item in items):
        raise text.refusal("SELECT lists no statistic, such as COUNT(*) or MEDIAN(column)", 0)
    return tuple(items)


def _label(text: QuestionText, node: exp.Expression) -> str:
    if type(node) is not exp.Identifier:
        raise text.refusal("AS is followed by a name", offset_of(node))
    allow_only(text, node, "this", "quoted")
    label = str(node.this)
    if not label.strip() or (not node.args.get("quoted") and to_upper(label) in KEYWORDS):
        raise text.refusal(f"{label} is no name: a statistic is followed by AS and its name", offset_of(node))
    return label


def _measure(
    text: QuestionText, node: exp.Expression, columns: Mapping[str, Column], label: str, start: int
) -> Measure:
    call, within = node, None
    if type(node) is exp.WithinGroup:
        allow_only(text, node, "this", "expression")
        call, within = node.this, _within(text, node.args["expression"])
    if type(call) is not exp.Anonymous or not isinstance(call.this, str):
        raise text.refusal(
            "SELECT lists statistics of columns and keys of GROUP BY, nothing computed from them. "
            f"Statistics: {', '.join(function_names())}",
            start,
        )
    allow_only(text, call, "this", "expressions")
    name, arguments = to_upper(call.this), list(call.expressions)
    function = find_function(name)
    if function is None:
        raise text.refusal(f"{call.this} is not offered. {_instead(name)}", start)
    if within is not None:
        if not function.spelling.within_group or len(arguments) != 1:
            raise text.refusal(f"{name} is written {function.signature}", start)
        arguments.insert(0, within)
    if len(arguments) == 1 and type(arguments[0]) is exp.Star and function.statistic.counts_records:
        allow_only(text, arguments[0])
        return Measure(label, function.statistic.make(), None, start)
    if len(arguments) == 1 and type(arguments[0]) is exp.Distinct:
        distinct = find_function(name, distinct=True)
        if distinct is not None:
            allow_only(text, arguments[0], "expressions")
            function, arguments = distinct, list(arguments[0].expressions)
            name = f"{name}(DISTINCT …)"
    return _of_column(text, function, name, arguments, columns, label, start)


def _of_column(
    text: QuestionText,
    function: Function,
    name: str,
    arguments: list[exp.Expression],
    columns: Mapping[str, Column],
    label: str,
    start: int,
) -> Measure:
    signature, kinds = function.signature, function.statistic.kinds
    if len(arguments) != (2 if function.parameter else 1):
        raise text.refusal(f"{name} is written {signature}", start)
    column = _column(text, arguments[0], columns, signature)
    if column.kind not in kinds:
        offered = ", ".join(sorted(kinds))
        raise text.refusal(f"{name} is offered for columns of type {offered}; {column.name} is a {column.kind}", start)
    if not function.parameter:
        return Measure(label, function.statistic.make(), column.name, start)
    parameter = _number(text, arguments[1], f"{function.parameter} of {signature}")
    try:
        return Measure(label, function.statistic.make(parameter), column.name, start)
    except InvalidInput as error:
        raise text.refusal(f"{name}: {error}", offset_of(arguments[1])) from None


def _within(text: QuestionText, order: exp.Expression) -> exp.Expression:
    """The column of WITHIN GROUP (ORDER BY column)."""
    if type(order) is exp.Order and len(order.expressions) == 1:
        allow_only(text, order, "expressions")
        ordered = order.expressions[0]
        if type(ordered) is exp.Ordered:
            allow_only(text, ordered, "this")
            inner: exp.Expression = ordered.this
            return inner
    raise text.refusal("WITHIN GROUP is followed by (ORDER BY column)", offset_of(order))


def _column(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column], signature: str) -> Column:
    name = column_identifier(text, node)
    if name is None:
        raise text.refusal(f"a column is expected here, nothing computed from one: {signature}", offset_of(node))
    return columns[resolve_name(text, name, columns, "column")]


def _number(text: QuestionText, node: exp.Expression, what: str) -> Fraction:
    value = read_literal(text, node)
    if not isinstance(value, Fraction):
        raise text.refusal(f"{what} is a number", offset_of(node))
    return value


def _instead(name: str) -> str:
    if advice := find_advice(name):
        return advice
    if name == "BIN":
        return "BIN(column, width) is a key of GROUP BY"
    return f"Statistics: {', '.join(function_names())}"
