"""Reads a question about the rows of people, which is one about people."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from idios.core.statistics import (
    Count,
    DiscreteQuantile,
    KthLargest,
    KthSmallest,
    Mean,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    WinsorizedMean,
)
from idios.errors import QuestionRefused
from idios.query.inner_reader import InnerReader
from idios.query.join_reader import Source
from idios.query.lexer import QuestionText
from idios.query.parser import fold_case, offset_of, quote
from idios.query.plan import Key, Question
from idios.query.reduction_reader import propose_reduction
from idios.query.reductions import (
    KEY,
    NUMBERS,
    ROW,
    SPREAD,
    ReducedValue,
    Reduction,
    limit_groups,
    make_columns,
)
from idios.query.statistic_reader import Called

_SPREAD = (Median, Quantile, DiscreteQuantile, TrimmedMean, WinsorizedMean)
"""What is offered of rows in which everyone counts alike."""


class RowsReader(InnerReader):
    """Reads a question about the rows of a data set with a unit, as one about people.

    COUNT(*), COUNT(x) and SUM(x) of rows are sums over people of their own, and AVG(x) is the mean over people of their
    means, in which everyone counts alike. So they do in quantiles and trimmed means of rows (``SPREAD``). Nothing else
    of rows changes little when one person changes, so that everything else is refused, with the reduction that could be
    asked instead. GROUP BY needs a declared number of groups for each person. Where a number of rows is declared, all
    statistics are of these.
    """

    def __init__(self, text: QuestionText, tree: exp.Expression, number: int, source: Source) -> None:
        super().__init__(text, tree, number, source.dataset)
        self.source = source
        self.names = {column: source.label(column) for column in self.names}
        self.values: list[ReducedValue] = []

    def read(self) -> Question:
        """The question, as far as this SELECT is it."""
        selected = self.read_selected()
        if self.tree.args.get("group") is not None and not (self.dataset.groups or self.dataset.rows):
            raise self._refuse_groups()
        self._read_keys()
        shown = self._read_shown()
        function = ROW if self.dataset.rows else KEY
        keys = [ReducedValue(function, key.column) for key in self.keys]
        values = tuple(dict.fromkeys([*keys, *self.values]))
        called = {value.name: value.column for value in values if value.column is not None}
        reduction = Reduction(selected, values, rows=self.dataset.rows, labels=called)
        if self.dataset.rows is None:
            reduction = limit_groups(reduction, [key.column for key in self.keys], self.dataset)
        return Question(
            self.dataset.name,
            tuple(self.measures),
            keys=tuple(replace(key, column=value.name) for key, value in zip(self.keys, keys, strict=True)),
            shown=shown,
            source=self.text.source,
            reduction=reduction,
        )

    def _read_key(self, node: exp.Expression) -> Key | None:
        """A key; bins only where rows are kept as they are."""
        key = super()._read_key(node)
        if key is not None and key.width is not None and self.dataset.rows is None:
            raise self.text.refusal(
                f"the rows of a {self.dataset.unit_word} are grouped by categories: {key.column} is none", key.offset
            )
        return key

    def resolve_statistic(self, called: Called, node: exp.Expression) -> Called:
        """The statistic of people that is one of rows."""
        statistic, column = called.statistic, called.column
        over: Statistic = Sum()
        if self.dataset.rows:
            if column is not None:
                self.values.append(ReducedValue(ROW, column.name))
            return called
        if type(statistic) in _SPREAD and column is not None:
            value, over = ReducedValue(SPREAD, column.name), statistic
        elif type(statistic) is Count:
            value = ReducedValue("COUNT", None if column is None or not column.nullable else column.name)
        elif type(statistic) is Sum and column is not None:
            value = ReducedValue("SUM", column.name)
        elif type(statistic) is Mean and column is not None:
            value, over = ReducedValue("AVG", column.name), Mean()
        else:
            raise self._refuse_statistic(called, node)
        if any((value.function == SPREAD) != (known.function == SPREAD) for known in self.values):
            raise self.text.refusal(
                f"{called.written} and what stands beside it are of rows in different ways: quantiles and trimmed "
                "means of rows are asked for by themselves",
                offset_of(node),
            )
        self.values.append(value)
        return Called(over, make_columns(self.dataset, [value])[value.name], called.written)

    def _refuse_statistic(self, called: Called, node: exp.Expression) -> QuestionRefused:
        columns = [] if called.column is None else [(self._choose_function(called), called.column)]
        instead = propose_reduction(self.text, self.tree, self.source, called.written, columns)
        return self.text.refusal(
            f"{called.written} of rows is not offered, as one {self.dataset.unit_word} may have many: there are "
            "COUNT, SUM, AVG, quantiles and trimmed means. Reduce the rows of each "
            f"{self.dataset.unit_word} to one value first: {instead}",
            offset_of(node),
        )

    def _choose_function(self, called: Called) -> str:
        """A function that reduces a column to what is most like it."""
        column, statistic = called.column, called.statistic
        if isinstance(statistic, KthSmallest | KthLargest):
            return "MIN" if isinstance(statistic, KthSmallest) else "MAX"
        if column is not None and column.kind in NUMBERS:
            return "AVG"
        return "MAX" if self.dataset.order is None else "LAST"

    def _refuse_groups(self) -> QuestionRefused:
        group = self.tree.args["group"]
        keys = {str(node.this.this) for node in group.walk() if type(node) is exp.Column}
        named = [part for listed in self.listed for part in listed.node.walk() if type(part) is exp.Column]
        found = [self._find_column(node.this) for node in [*named, *group.find_all(exp.Column)]]
        columns = list(dict.fromkeys(column.name for column in found if column is not None))
        one = "MAX" if self.dataset.order is None else "LAST"
        folded = {fold_case(key) for key in keys}
        reduced = [
            (one if fold_case(name) in folded or self.columns[name].kind not in NUMBERS else "AVG", self.columns[name])
            for name in columns
        ]
        outer = ", ".join(
            f"{each.spelling} AS {quote(each.label)}" if each.label else each.spelling for each in self.listed
        )
        instead = propose_reduction(self.text, self.tree, self.source, outer, reduced)
        return self.text.refusal(
            f"the rows of one {self.dataset.unit_word} may be in many groups, which GROUP BY of rows does not protect, "
            f"unless the controller declares groups, in how many of them a {self.dataset.unit_word} "
            f"counts. Reduce them to one value first, and with it to one group: {instead}",
            offset_of(group),
        )
