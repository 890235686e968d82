"""The canonical form of a predicate, so that rewording a question does not buy a second sample.

The form is an ordered decision diagram with many-valued nodes. The columns are asked in the order of their names. A
node divides what its column can be (the points of the declared domain, and NULL if it is nullable) into runs, and
leads each run to the diagram of what is left to decide:

    1. neighbouring runs of a node lead to different diagrams (otherwise they are joined),
    2. a node all of whose runs lead to one diagram is that diagram,
    3. equal nodes are one node.

Theorem. Two predicates hold for the same records, over the declared domains, if and only if their diagrams are
equal. By induction over the columns c₁ < c₂ < …: a predicate that does not depend on c₁ has no node of c₁, since by 2
the runs of such a node would lead to equal diagrams, and is a predicate of the other columns. One that does depend on
it leaves, for each value of c₁, a predicate of the others, which determines its diagram; the runs are by 1 the longest
stretches of points with one diagram, so the node is determined too. ∎

A diagram can be exponentially larger than a formula. Making nodes and traversing them is counted (``work``), and the
limit is public.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import pairwise

from idios.core.exact import INFINITY
from idios.declare.schema import Column
from idios.errors import QuestionRefused
from idios.expressions.predicates import (
    NOTHING,
    Among,
    And,
    Interval,
    Intervals,
    Predicate,
    column_names,
    gather_by_column,
    intersection,
    union,
)
from idios.expressions.preimages import Expander
from idios.expressions.work import CHARACTERS, RUN, Work

# Intervals in a row: many groups that the same condition selects are told from each other by their place alone.


Span = tuple[int, int, int]
"""From which interval on, before which, and what their points lead to."""


class SpanRow:
    """Disjoint intervals that ascend."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._firsts = [-INFINITY if first is None else first for first, _ in intervals]
        self._lasts = [INFINITY if last is None else last for _, last in intervals]

    def __len__(self) -> int:
        return len(self._firsts)

    def list_spans(self, runs: Iterable[tuple[int | None, int | None, int]]) -> list[Span]:
        """Which intervals some runs of points, which ascend, have points in, and what each run leads to.

        >>> SpanRow([(0, 4), (5, 9), (10, 14)]).list_spans([(2, 3, 7), (5, 10, 7), (11, None, 8)])
        [(0, 3, 7), (2, 3, 8)]
        """
        spans: list[Span] = []
        for first, last, goal in runs:
            start = 0 if first is None else bisect_left(self._lasts, first)
            stop = len(self) if last is None else bisect_right(self._firsts, last)
            if spans and spans[-1][1] >= start and spans[-1][2] == goal:
                start = spans.pop()[0]
            if start < stop:
                spans.append((start, stop, goal))
        return spans


def join_spans(spans: Iterable[Span]) -> Iterator[tuple[range, frozenset[int]]]:
    """The intervals that lead to anything, in rows of those that lead to the same.

    >>> list(join_spans([(0, 3, 7), (2, 3, 8), (4, 5, 7)]))
    [(range(0, 2), frozenset({7})), (range(2, 3), frozenset({8, 7})), (range(4, 5), frozenset({7}))]
    """
    opened: dict[int, list[int]] = {}
    closed: dict[int, list[int]] = {}
    for start, stop, goal in spans:
        opened.setdefault(start, []).append(goal)
        closed.setdefault(stop, []).append(goal)
    times: dict[int, int] = {}  # how many spans lead there
    for start, stop in pairwise(sorted(opened.keys() | closed.keys())):
        for goal in opened.get(start, ()):
            times[goal] = times.get(goal, 0) + 1
        for goal in closed.get(start, ()):
            times[goal] -= 1
            if not times[goal]:
                del times[goal]
        if times:
            yield range(start, stop), frozenset(times)


MAX_COLUMNS = 64

FALSE, TRUE = 0, 1

Runs = tuple[tuple[int | None, int], ...]
"""(last point, diagram it leads to) of each run, ascending; the first begins where the domain does."""

Division = tuple[str, Sequence[Interval]]
"""A column and disjoint intervals of it, ascending."""


@dataclass(frozen=True)
class _Node:
    level: int
    runs: Runs
    null: int | None  # None where the column is not nullable


@dataclass(eq=False)
class DiagramManager:
    """The nodes shared by the diagrams of one question."""

    columns: Mapping[str, Column]
    work: Work = field(default_factory=Work)
    _order: list[str] = field(init=False)
    _levels: dict[str, int] = field(init=False)
    _expander: Expander = field(init=False)
    _nodes: list[_Node | None] = field(default_factory=lambda: [None, None])
    _known: dict[_Node, int] = field(default_factory=dict)
    _joined: dict[tuple[bool, int, int], int] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)
    _quoted: dict[int, str] = field(default_factory=dict)
    _reached: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _possible: dict[tuple[int, str], tuple[Intervals, bool]] = field(default_factory=dict)
    possible_derived: dict[tuple[int, str], tuple[Intervals, bool]] = field(default_factory=dict)
    """What ``derived_values`` has found."""

    def __post_init__(self) -> None:
        self._order = sorted(self.columns)
        self._levels = {name: level for level, name in enumerate(self._order)}
        self._expander = Expander(self.columns, self.work)

    def build(self, predicate: Predicate) -> Diagram:
        """The diagram of a predicate, in which derived columns are what they are derived from."""
        predicate = self.expand(predicate)
        if len(named := column_names(predicate)) > MAX_COLUMNS:
            raise QuestionRefused(f"WHERE uses {len(named)} different columns, at most {MAX_COLUMNS} are allowed")
        return Diagram(self, self._build(predicate))

    def expand(self, predicate: Predicate) -> Predicate:
        """The same predicate, in which derived columns are what they are derived from."""
        return self._expander.expand(predicate)

    def node(self, index: int) -> _Node:
        """The node of an index other than FALSE and TRUE."""
        node = self._nodes[index]
        if node is None:
            raise LookupError("true and false are no nodes")
        return node

    def name(self, node: _Node) -> str:
        """The column that a node asks for."""
        return self._order[node.level]

    def firsts(self, node: _Node) -> list[int | None]:
        """The first point of each run of a node."""
        lower = self.columns[self.name(node)].grid.lower
        return [lower, *(None if last is None else last + 1 for last, _ in node.runs[:-1])]

    def _build(self, predicate: Predicate) -> int:
        if isinstance(predicate, Among):
            return self._leaf(predicate)
        both = isinstance(predicate, And)
        parts = {self._build(part) for part in gather_by_column(predicate, self.work)}
        result = TRUE if both else FALSE
        # from the last column to the first: each step then adds a node on top and leaves the rest as it is
        for part in sorted(parts, key=self._level, reverse=True):
            result = self.join(both, result, part)
        return result

    def _leaf(self, among: Among) -> int:
        column = self.columns[among.column]
        grid = column.grid
        runs: list[tuple[int | None, int]] = []
        start = grid.lower
        for first, last in intersection(among.intervals, ((grid.lower, grid.upper),)):
            if first is not None and first != start:
                runs.append((first - 1, FALSE))
            runs.append((last, TRUE))
            start = None if last is None else last + 1
        if not runs or runs[-1][0] != grid.upper:
            runs.append((grid.upper, FALSE))
        null = int(among.nulls) if column.nullable else None
        return self._make(self._levels[among.column], runs, null)

    def join(self, both: bool, left: int, right: int) -> int:
        """The diagram of "left and right" (``both``) or of "left or right"."""
        absorbing, neutral = (FALSE, TRUE) if both else (TRUE, FALSE)
        if absorbing in (left, right):
            return absorbing
        if left in (neutral, right):
            return right
        if right == neutral:
            return left
        key = (both, min(left, right), max(left, right))
        if key not in self._joined:
            self._joined[key] = self._join(both, left, right)
        return self._joined[key]

    def _join(self, both: bool, left: int, right: int) -> int:
        if self._level(left) > self._level(right):
            left, right = right, left
        a = self.node(left)
        if a.level < self._level(right):
            runs = [(last, self.join(both, child, right)) for last, child in a.runs]
            return self._make(a.level, runs, None if a.null is None else self.join(both, a.null, right))
        b = self.node(right)
        runs = [(last, self.join(both, x, y)) for last, x, y in _align(a.runs, b.runs)]
        null = None if a.null is None or b.null is None else self.join(both, a.null, b.null)
        return self._make(a.level, runs, null)

    def project(self, root: int, kept: Collection[str]) -> int:
        """The projection onto some columns: "there are values of the other columns with which it holds"."""
        projected = {FALSE: FALSE, TRUE: TRUE}
        for index in sorted(self.reached(root), key=self._level, reverse=True):
            node = self.node(index)
            runs = [(last, projected[child]) for last, child in node.runs]
            null = None if node.null is None else projected[node.null]
            if self.name(node) in kept:
                projected[index] = self._make(node.level, runs, null)
            else:
                self.work.spend(len(runs))
                some = {goal for _, goal in runs} | ({null} - {None})
                projected[index] = reduce(partial(self.join, False), some, FALSE)
        return projected[root]

    def _make(self, level: int, runs: Sequence[tuple[int | None, int]], null: int | None) -> int:
        self.work.spend(RUN * (1 + len(runs)))  # to make a node takes as long as to make a run
        joined: list[tuple[int | None, int]] = []
        for last, child in runs:
            if joined and joined[-1][1] == child:
                joined[-1] = (last, child)
            else:
                joined.append((last, child))
        if len(joined) == 1 and null in (None, joined[0][1]):
            return joined[0][1]
        node = _Node(level, tuple(joined), null)
        if node not in self._known:
            self._known[node] = len(self._nodes)
            self._nodes.append(node)
        return self._known[node]

    def text(self, root: int) -> str:
        """The diagram of a root as JSON text."""
        if root not in self._texts:
            written = json.dumps(self._form(root), separators=(",", ":"))
            self.work.spend(len(written) // CHARACTERS)
            self._texts[root] = written
        return self._texts[root]

    def quoted_text(self, root: int) -> str:
        """The JSON text of a root's diagram, quoted as a JSON string."""
        if root not in self._quoted:
            self._quoted[root] = json.dumps(self.text(root))
        return self._quoted[root]

    def reached(self, root: int) -> tuple[int, ...]:
        """Every node of a diagram once, in the order in which they are met from the root."""
        if root not in self._reached:
            order: dict[int, None] = {}
            waiting = [root]
            while waiting:
                index = waiting.pop()
                if index in (FALSE, TRUE) or index in order:
                    continue
                order[index] = None
                node = self.node(index)
                self.work.spend(len(node.runs))
                waiting.extend(reversed(_goals(node)))
            self._reached[root] = tuple(order)
        return self._reached[root]

    def _form(self, root: int) -> object:
        """True, False, or [column, [[first, last, goal], …], goal of NULL] of every node, the root first."""
        order = self.reached(root)
        named = {FALSE: False, TRUE: True} | {index: i for i, index in enumerate(order)}
        written: list[object] = []
        for node in map(self.node, order):
            self.work.spend(RUN * len(node.runs))
            runs = [
                [first, last, named[child]] for first, (last, child) in zip(self.firsts(node), node.runs, strict=True)
            ]
            written.append([self.name(node), runs, None if node.null is None else named[node.null]])
        return written if order else root == TRUE

    def possible(self, root: int, column: str) -> tuple[Intervals, bool]:
        """The points that a column can have in a selected record, and whether it can be NULL there."""
        if (root, column) not in self._possible:
            self._possible[root, column] = self._find_possible(root, column)
        return self._possible[root, column]

    def _find_possible(self, root: int, column: str) -> tuple[Intervals, bool]:
        declared, level = self.columns[column], self._levels[column]
        if root == FALSE:
            return NOTHING, False
        everything = ((declared.grid.lower, declared.grid.upper),), declared.nullable
        if self._level(root) > level:
            return everything
        points: list[Interval] = []
        nulls = False
        for node in map(self.node, self.reached(root)):
            if node.level > level:
                continue
            self.work.spend(len(node.runs))
            if node.level == level:
                firsts = self.firsts(node)
                points += [
                    (first, last) for first, (last, child) in zip(firsts, node.runs, strict=True) if child != FALSE
                ]
                nulls = nulls or node.null not in (None, FALSE)
            elif any(goal != FALSE and self._level(goal) > level for goal in _goals(node)):
                return everything  # what is not FALSE holds for some record, and here without asking for the column
        return union(points), nulls

    def combinations(self, root: int, divisions: Sequence[Division]) -> tuple[tuple[int, ...], ...]:
        """Which combinations of intervals, one of each division, some selected record lies in, none of it NULL.

        The divisions come in the order of their columns' names. One walk down the diagram of their columns alone: at
        each column, the nodes that earlier choices lead to are swept along its intervals once.
        """
        known: dict[tuple[int, frozenset[int]], tuple[tuple[int, ...], ...]] = {}
        kept = self.project(root, [column for column, _ in divisions])
        rows = [SpanRow(intervals) for _, intervals in divisions]

        def below(place: int, nodes: frozenset[int]) -> tuple[tuple[int, ...], ...]:
            if (place, nodes) not in known:
                listed: list[tuple[int, ...]] = []
                if TRUE in nodes:
                    listed += itertools.product(*(range(len(row)) for row in rows[place:]))
                elif nodes:
                    for alike, goals in self._sweep(nodes, divisions[place][0], rows[place]):
                        rests = below(place + 1, goals)
                        listed += zip(alike) if rests == ((),) else ((i, *rest) for i in alike for rest in rests)
                self.work.spend(len(listed))
                known[place, nodes] = tuple(listed)
            return known[place, nodes]

        return below(0, frozenset({kept} - {FALSE}))

    def _sweep(self, nodes: Collection[int], column: str, row: SpanRow) -> Iterable[tuple[range, frozenset[int]]]:
        """What the points of each interval lead to from any of some nodes; FALSE is left out."""
        spans: list[Span] = []
        for index in nodes:
            node = self.node(index)
            if node.level != self._levels[column]:
                self.work.spend(len(row))
                spans.append((0, len(row), index))
                continue
            self.work.spend(len(node.runs) + len(row))
            runs = zip(self.firsts(node), node.runs, strict=True)
            spans += row.list_spans((first, last, child) for first, (last, child) in runs if child != FALSE)
        return join_spans(spans)

    def _level(self, index: int) -> int:
        return len(self._order) if index in (FALSE, TRUE) else self.node(index).level


@dataclass(frozen=True)
class Diagram:
    """The canonical form of one predicate over declared columns.

    >>> from idios.core.domain import Domain, Kind
    >>> ages = DiagramManager({"age": Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)})
    >>> young, old = ages.build(Among("age", ((None, 17),))), ages.build(Among("age", ((18, 999),)))
    >>> (young & old).never, young.text
    (True, '[["age",[[0,17,true],[18,120,false]],null]]')
    """

    manager: DiagramManager
    root: int

    def __and__(self, other: Diagram) -> Diagram:
        return Diagram(self.manager, self.manager.join(True, self.root, other.root))

    def __or__(self, other: Diagram) -> Diagram:
        return Diagram(self.manager, self.manager.join(False, self.root, other.root))

    @property
    def always(self) -> bool:
        """Whether every record is selected, whatever it holds."""
        return self.root == TRUE

    @property
    def never(self) -> bool:
        """Whether no record is selected, whatever it holds."""
        return self.root == FALSE

    @property
    def text(self) -> str:
        """The diagram as JSON text: equal if and only if the meaning is."""
        return self.manager.text(self.root)

    @property
    def quoted_text(self) -> str:
        """The same as a JSON string."""
        return self.manager.quoted_text(self.root)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that matter, in order."""
        nodes = map(self.manager.node, self.manager.reached(self.root))
        return tuple(sorted({self.manager.name(node) for node in nodes}))

    def possible(self, column: str) -> tuple[Intervals, bool]:
        """The points that the column can have in a selected record, and whether it can be NULL there."""
        return self.manager.possible(self.root, column)

    def project(self, *columns: str) -> Diagram:
        """The projection onto some columns: their values with which, given suitable others, the predicate holds."""
        return Diagram(self.manager, self.manager.project(self.root, columns))

    def combinations(self, divisions: Sequence[Division]) -> tuple[tuple[int, ...], ...]:
        """Which combinations of intervals, one of each column, some selected record lies in."""
        return self.manager.combinations(self.root, divisions)


def _goals(node: _Node) -> list[int]:
    return [*(child for _, child in node.runs), *([] if node.null is None else [node.null])]


def _align(left: Runs, right: Runs) -> Iterable[tuple[int | None, int, int]]:
    """The common refinement of two divisions of one domain: (last point, what it leads to in each)."""
    i = j = 0
    while i < len(left) and j < len(right):
        (a, x), (b, y) = left[i], right[j]
        last = b if a is None else a if b is None else min(a, b)
        yield last, x, y
        i += a == last
        j += b == last
