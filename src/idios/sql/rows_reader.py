"""Reads a question about the rows of people, which is one about people."""

from __future__ import annotations

from dataclasses import replace

from idios.core.domain import Kind
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
from idios.plan.question import Key, Question
from idios.plan.reductions import (
    KEY,
    NUMBERS,
    ROW,
    SPREAD,
    ReducedValue,
    Reduction,
    limit_groups,
    make_columns,
)
from idios.sql.inner_reader import InnerReader
from idios.sql.join_reader import Source
from idios.sql.lexer import QuestionText
from idios.sql.names import resolve_name
from idios.sql.parser import Name, SelectNode, SyntaxNode
from idios.sql.reduction_reader import propose_reduction, propose_selection
from idios.sql.statistic_reader import Called

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

    def __init__(self, text: QuestionText, tree: SelectNode, source: Source) -> None:
        super().__init__(text, tree, source.dataset)
        self.source = source
        self.names = {column: source.label(column) for column in self.names}
        self.values: list[ReducedValue] = []

    def read(self) -> Question:
        """The question, as far as this SELECT is it."""
        selected = self.read_selected()
        self._read_keys()
        if self.keys and not (self.dataset.groups or self.dataset.row_limit):
            raise self._refuse_groups()
        shown = self._read_shown()
        function = ROW if self.dataset.row_limit else KEY
        keys = [ReducedValue(function, key.column) for key in self.keys]
        values = tuple(dict.fromkeys([*keys, *self.values]))
        called = {value.name: value.column for value in values if value.column is not None}
        reduction = Reduction(selected, values, rows=self.dataset.row_limit, labels=called)
        if self.dataset.row_limit is None:
            reduction = limit_groups(reduction, [key.column for key in self.keys], self.dataset)
        return Question(
            self.dataset.name,
            tuple(self.measures),
            keys=tuple(replace(key, column=value.name) for key, value in zip(self.keys, keys, strict=True)),
            shown=shown,
            source=self.text.source,
            reduction=reduction,
        )

    def _read_key(self, node: SyntaxNode) -> Key | None:
        """A key; anything but a category only where rows are kept as they are."""
        if self.dataset.row_limit is not None:
            return super()._read_key(node)
        column = None
        if isinstance(node, Name):
            column = self.columns[resolve_name(self.text, node, self.columns, "column")]
        key = super()._read_key(node) if column is None or column.kind is Kind.CATEGORY else None
        if key is None or key.width is not None:
            which = key.column if key is not None else column.name if column is not None else "this"
            raise self.text.refusal(
                f"the rows of a {self.dataset.unit_word} are grouped by categories, and {which} is none: select a "
                "period or a range by WHERE",
                node.start,
            )
        return key

    def resolve_statistic(self, called: Called, node: SyntaxNode) -> Called:
        """The statistic of people that is one of rows."""
        statistic, column = called.statistic, called.column
        over: Statistic = Sum()
        if self.dataset.row_limit:
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
                node.start,
            )
        self.values.append(value)
        return Called(over, make_columns(self.dataset, [value])[value.name], called.written)

    def _refuse_statistic(self, called: Called, node: SyntaxNode) -> QuestionRefused:
        columns = [] if called.column is None else [(self._choose_function(called), called.column)]
        instead = propose_reduction(self.tree, self.source, called.written, columns, self.keys)
        return self.text.refusal(
            f"{called.written} of rows is not offered, as one {self.dataset.unit_word} may have many: there are "
            "COUNT, SUM, AVG, quantiles and trimmed means. Reduce the rows of each "
            f"{self.dataset.unit_word} to one value first: {instead}",
            node.start,
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
        """Say what is declared to allow groups, and what can be asked without.

        The rows are not reduced to one group for each person here: which of several is theirs would be made up, and a
        sum of rows would become another.
        """
        word, example = self.dataset.unit_word, self._propose_one_group()
        instead = f"; or ask about one group: {example}" if example else ", or ask about one group at a time, by WHERE"
        return self.text.refusal(
            f"the rows of one {word} may be in many groups, which GROUP BY of rows does not protect. The controller "
            f"can declare groups = 2 or another number, in how many groups a {word} counts{instead}",
            self.tree.group[0].start,
        )

    def _propose_one_group(self) -> str:
        """The statistics of the first group, if they can be asked for as they are listed; else nothing."""
        selects = [token for token in self.text.tokens if token.keyword == "SELECT"]
        try:
            listed = [each for each in self.listed if not self._is_key(each.node)]
            if len(selects) > 1 or not listed or not all(self._find_statistic(each.node) for each in listed):
                return ""
        except QuestionRefused:
            return ""
        return propose_selection(self.tree, self.source, listed, self.keys)

    def _is_key(self, node: SyntaxNode) -> bool:
        column = self._find_column(node) if isinstance(node, Name) else None
        return column is not None and column.name in [key.column for key in self.keys]
