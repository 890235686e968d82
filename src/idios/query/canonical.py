"""One form for all predicates that mean the same, so that rewording a question does not buy a second sample.

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

A diagram can be exponentially larger than a formula. Its size is capped; the cap is public.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce

from idios.errors import QuestionRefused
from idios.query.intervals import NOTHING, Intervals, intersection, union
from idios.query.predicate import All, Among, Interval, Predicate
from idios.query.schema import Column
from idios.query.simplify import gathered, names

MAX_WORK = 100_000
"""How many runs the diagrams of one question may make and write, some tenths of a second."""
MAX_COLUMNS = 64

FALSE, TRUE = 0, 1

Runs = tuple[tuple[int | None, int], ...]
"""(last point, diagram it leads to) of each run, ascending; the first begins where the domain does."""


@dataclass(frozen=True)
class _Node:
    level: int
    runs: Runs
    null: int | None  # None where the column is not nullable


@dataclass(eq=False)
class Diagrams:
    """The nodes shared by the diagrams of one question."""

    columns: Mapping[str, Column]
    _order: list[str] = field(init=False)
    _nodes: list[_Node | None] = field(default_factory=lambda: [None, None])
    _known: dict[_Node, int] = field(default_factory=dict)
    _joined: dict[tuple[bool, int, int], int] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)
    _work: int = 0

    def __post_init__(self) -> None:
        self._order = sorted(self.columns)

    def of(self, predicate: Predicate) -> Diagram:
        """The diagram of a predicate."""
        if len(named := names(predicate)) > MAX_COLUMNS:
            raise QuestionRefused(f"WHERE uses {len(named)} different columns, at most {MAX_COLUMNS} are allowed")
        return Diagram(self, self._build(predicate))

    def node(self, index: int) -> _Node:
        """The node of an index other than FALSE and TRUE."""
        found = self._nodes[index]
        if found is None:
            raise LookupError("true and false are no nodes")
        return found

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
        both = isinstance(predicate, All)
        parts = {self._build(part) for part in gathered(predicate)}
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
        return self._make(self._order.index(among.column), runs, null)

    def join(self, both: bool, one: int, other: int) -> int:
        """The diagram of "one and other" (``both``) or of "one or other"."""
        absorbing, neutral = (FALSE, TRUE) if both else (TRUE, FALSE)
        if absorbing in (one, other):
            return absorbing
        if one in (neutral, other):
            return other
        if other == neutral:
            return one
        key = (both, min(one, other), max(one, other))
        if key not in self._joined:
            self._joined[key] = self._join(both, one, other)
        return self._joined[key]

    def _join(self, both: bool, one: int, other: int) -> int:
        if self._level(one) > self._level(other):
            one, other = other, one
        a = self.node(one)
        if a.level < self._level(other):
            runs = [(last, self.join(both, child, other)) for last, child in a.runs]
            return self._make(a.level, runs, None if a.null is None else self.join(both, a.null, other))
        b = self.node(other)
        runs = [(last, self.join(both, x, y)) for last, x, y in _aligned(a.runs, b.runs)]
        null = None if a.null is None or b.null is None else self.join(both, a.null, b.null)
        return self._make(a.level, runs, null)

    def onto(self, root: int, kept: Collection[str]) -> int:
        """The diagram of "there are values of the other columns with which it holds"."""
        found = {FALSE: FALSE, TRUE: TRUE}
        for index in sorted(self.reached(root), key=self._level, reverse=True):
            node = self.node(index)
            runs = [(last, found[child]) for last, child in node.runs]
            null = None if node.null is None else found[node.null]
            if self.name(node) in kept:
                found[index] = self._make(node.level, runs, null)
            else:
                some = {goal for _, goal in runs} | ({null} - {None})
                found[index] = reduce(partial(self.join, False), some, FALSE)
        return found[root]

    def _make(self, level: int, runs: Iterable[tuple[int | None, int]], null: int | None) -> int:
        joined: list[tuple[int | None, int]] = []
        for last, child in runs:
            self._spend(1)
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
        """The diagram of a root in writing."""
        if root not in self._texts:
            self._texts[root] = json.dumps(self._form(root), separators=(",", ":"))
        return self._texts[root]

    def reached(self, root: int) -> tuple[int, ...]:
        """Every node of a diagram once, in the order in which they are met from the root."""
        found: dict[int, None] = {}
        waiting = [root]
        while waiting:
            index = waiting.pop()
            if index in (FALSE, TRUE) or index in found:
                continue
            found[index] = None
            node = self.node(index)
            waiting.extend([*([] if node.null is None else [node.null]), *(child for _, child in node.runs[::-1])])
        return tuple(found)

    def _form(self, root: int) -> object:
        """True, False, or [column, [[first, last, goal], …], goal of NULL] of every node, the root first."""
        order = self.reached(root)
        named = {FALSE: False, TRUE: True} | {index: i for i, index in enumerate(order)}
        written: list[object] = []
        for node in map(self.node, order):
            self._spend(len(node.runs))
            runs = [
                [first, last, named[child]] for first, (last, child) in zip(self.firsts(node), node.runs, strict=True)
            ]
            written.append([self.name(node), runs, None if node.null is None else named[node.null]])
        return written if order else root == TRUE

    def _spend(self, runs: int) -> None:
        self._work += runs
        if self._work > MAX_WORK:
            raise QuestionRefused(
                "the condition is too complex to be brought into normal form: use fewer or simpler alternatives, "
                "or ask in parts"
            )

    def _level(self, index: int) -> int:
        return len(self._order) if index in (FALSE, TRUE) else self.node(index).level


@dataclass(frozen=True)
class Diagram:
    """The canonical form of one predicate over declared columns.

    >>> from idios.core.domain import Domain, Kind
    >>> ages = Diagrams({"age": Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)})
    >>> young, old = ages.of(Among("age", ((None, 17),))), ages.of(Among("age", ((18, 999),)))
    >>> (young & old).never, young.text
    (True, '[["age",[[0,17,true],[18,120,false]],null]]')
    """

    within: Diagrams
    root: int

    def __and__(self, other: Diagram) -> Diagram:
        return Diagram(self.within, self.within.join(True, self.root, other.root))

    def __or__(self, other: Diagram) -> Diagram:
        return Diagram(self.within, self.within.join(False, self.root, other.root))

    @property
    def always(self) -> bool:
        """Whether every record is selected, whatever it holds."""
        return self.root == TRUE

    @property
    def never(self) -> bool:
        """Whether no record is, whatever it holds."""
        return self.root == FALSE

    @property
    def text(self) -> str:
        """The diagram in writing: equal if and only if the meaning is."""
        return self.within.text(self.root)

    def _nodes(self) -> list[_Node]:
        return [self.within.node(index) for index in self.within.reached(self.root)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that matter, in order."""
        return tuple(sorted({self.within.name(node) for node in self._nodes()}))

    def possible(self, column: str) -> tuple[Intervals, bool]:
        """The points that the column can have in a selected record, and whether it can be NULL there."""
        declared = self.within.columns[column]
        grid = declared.grid
        if self.never:
            return NOTHING, False
        if self._passes_over(column):
            return ((grid.lower, grid.upper),), declared.nullable
        points: list[Interval] = []
        nulls = False
        for node in self._nodes():
            if self.within.name(node) == column:
                points += self._open_runs(node)
                nulls = nulls or node.null not in (None, FALSE)
        return union(points), nulls

    def onto(self, *columns: str) -> Diagram:
        """What can be said of some columns alone: they have values with which, given suitable others, it holds."""
        return Diagram(self.within, self.within.onto(self.root, columns))

    def can_hold(self, limits: Mapping[str, Interval]) -> bool:
        """Whether some record whose columns lie within limits, and are not NULL, is selected."""
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            index = waiting.pop()
            if index == TRUE:
                return True
            if index == FALSE or index in seen:
                continue
            seen.add(index)
            node = self.within.node(index)
            limit = limits.get(self.within.name(node))
            for first, (last, child) in zip(self.within.firsts(node), node.runs, strict=True):
                if limit is None or intersection(((first, last),), (limit,)):
                    waiting.append(child)
            if limit is None and node.null is not None:
                waiting.append(node.null)
        return False

    def _open_runs(self, node: _Node) -> list[Interval]:
        firsts = self.within.firsts(node)
        return [(first, last) for first, (last, child) in zip(firsts, node.runs, strict=True) if child != FALSE]

    def _passes_over(self, column: str) -> bool:
        """Whether some record is selected without its column being asked for."""
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            index = waiting.pop()
            if index == TRUE or (index != FALSE and self.within.name(self.within.node(index)) > column):
                return True  # what is not FALSE holds for some record
            if index == FALSE or index in seen:
                continue
            seen.add(index)
            node = self.within.node(index)
            if self.within.name(node) < column:
                waiting.extend(child for _, child in node.runs)
                waiting.extend([] if node.null is None else [node.null])
        return False


def _aligned(one: Runs, other: Runs) -> Iterable[tuple[int | None, int, int]]:
    """Two divisions of one domain made one: (last point, what it leads to in each)."""
    i = j = 0
    while i < len(one) and j < len(other):
        (a, x), (b, y) = one[i], other[j]
        last = b if a is None else a if b is None else min(a, b)
        yield last, x, y
        i += a == last
        j += b == last
