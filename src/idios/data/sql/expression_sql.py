"""The SQL of derived columns: from an expression on the grid to the grid point of a record, in whole numbers.

Rules:

1. What is computed on are the grid points of columns, after bounds and NULL are settled. The result is a grid point.
2. Every whole number has a public magnitude. What fits 64 bits is a BIGINT, and everything else of the engine's widest
   type; both sides of an operation are made the same type before it. So nothing overflows, in no branch of a CASE and
   whatever the order in which an engine computes.
3. Divisors are constants, or NULL where they would be 0. Division is made of the quotient towards zero and of its
   remainder, which engines agree on. ⌊n/d⌋ of a constant d is ⌊(n + kd)/d⌋ − k, for k so large that nothing is
   negative, unless n + kd no longer is a BIGINT: wide numbers are divided many times more slowly.
4. The calendar is whole-number arithmetic too (``calendar.split_date``), never an engine's date functions.
5. Names and texts come from declarations, as quoted identifiers of the relation and as places in lists. No text of an
   expression becomes SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from idios.core.domain import LIMIT, Categories
from idios.data.sql.dialect import Dialect
from idios.declare.dates import DAY
from idios.declare.schema import Column
from idios.expressions.grid import CHOICES, ROUNDED, GridNode, find_common_step, find_unit
from idios.expressions.language import FUNCTIONS, Call, Case, Literal, Reference, Type

NARROW = 2**63 - 1
"""The greatest BIGINT."""

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is distinct")
_UNITS = {"hour": (DAY // 24, 24), "minute": (DAY // 1440, 60), "second": (10**6, 60)}
"""The microseconds of a part of the time of day, and how many of it there are."""


@dataclass(frozen=True)
class Whole:
    """A whole number in SQL, none of whose values is further from 0 than its magnitude; NULL is possible."""

    text: str
    magnitude: int

    @property
    def narrow(self) -> bool:
        """Whether it is a BIGINT."""
        return self.magnitude <= NARROW


@dataclass(frozen=True)
class ExpressionSql:
    """What writes an expression in the SQL of an engine, over names of the points of its columns."""

    dialect: Dialect
    names: Mapping[str, str]

    def write_point(self, column: Column, node: GridNode) -> str:
        """The grid point of a derived column, as a BIGINT: what lies beyond ±2^62 reads as the end."""
        if isinstance(column.domain, Categories):
            return self._translate(self.write_place(node), node.values, column.domain.values)
        if node.type is Type.BOOLEAN:
            truth = self.write_truth(node)
            return f"CASE WHEN {truth} THEN {self._bigint(1)} WHEN NOT {truth} THEN {self._bigint(0)} END"
        number = self.write_number(node)
        if number.magnitude <= LIMIT:
            return number.text
        low, high = (self._literal(end, number).text for end in (-LIMIT, LIMIT))
        # whichever branch is computed, the cast fits
        inside = f"CAST(LEAST(GREATEST({number.text}, {low}), {high}) AS BIGINT)"
        return f"CASE WHEN {number.text} IS NULL THEN {self._bigint(None)} ELSE {inside} END"

    # Whole numbers.

    def _bigint(self, number: int | None) -> str:
        return f"CAST({'NULL' if number is None else number} AS BIGINT)"

    def _literal(self, number: int, beside: Whole | None = None) -> Whole:
        """A constant, of the type of what it stands beside."""
        narrow = abs(number) <= NARROW and (beside is None or beside.narrow)
        return Whole(self._bigint(number) if narrow else self.dialect.whole(number), abs(number))

    def _as_wide_as(self, number: Whole, magnitude: int) -> str:
        """A number in the type of a magnitude that is no less than its own, or that its value is known to fit."""
        if number.narrow == (magnitude <= NARROW):
            return number.text
        return f"CAST({number.text} AS {self.dialect.wide if number.narrow else 'BIGINT'})"

    def _join(self, sign: str, left: Whole, right: Whole, magnitude: int) -> Whole:
        widest = max(magnitude, left.magnitude, right.magnitude)
        text = f"({self._as_wide_as(left, widest)} {sign} {self._as_wide_as(right, widest)})"
        return Whole(self._as_wide_as(Whole(text, widest), magnitude), magnitude)

    def _add(self, left: Whole, right: Whole) -> Whole:
        return self._join("+", left, right, left.magnitude + right.magnitude)

    def _subtract(self, left: Whole, right: Whole) -> Whole:
        return self._join("-", left, right, left.magnitude + right.magnitude)

    def _times(self, number: Whole, factor: int) -> Whole:
        return number if factor == 1 else self._join("*", number, self._literal(factor), number.magnitude * abs(factor))

    def _divide(self, left: Whole, right: Whole, magnitude: int) -> Whole:
        """The quotient towards zero, whose divisor is at least 1 or NULL."""
        widest = max(left.magnitude, right.magnitude)
        n, d = (self._as_wide_as(side, widest) for side in (left, right))
        template = self.dialect.quotient
        if widest <= NARROW:
            template = self.dialect.narrow_quotient or template
        elif magnitude > NARROW:
            template = self.dialect.wide_quotient or template
        return Whole(f"CAST({template.format(n=n, d=d)} AS {self._type(magnitude)})", magnitude)

    def _type(self, magnitude: int) -> str:
        return "BIGINT" if magnitude <= NARROW else self.dialect.wide

    def _floor(self, number: Whole, divisor: int) -> Whole:
        """⌊n/d⌋ for a constant d ≥ 1 (rule 3)."""
        if divisor == 1:
            return number
        lifts = -(-number.magnitude // divisor)
        if number.narrow and number.magnitude + lifts * divisor > NARROW:
            below = self._join("%", number, self._literal(divisor), divisor)
            down = self._either(f"{below.text} < 0", self._literal(1), self._literal(0))
            quotient = self._divide(number, self._literal(divisor), lifts)
            return self._narrowed(self._subtract(quotient, down), lifts)
        lifted = self._add(number, self._literal(lifts * divisor))
        quotient = self._divide(lifted, self._literal(divisor), 2 * lifts)
        return self._narrowed(self._subtract(quotient, self._literal(lifts)), lifts)

    def _remainder(self, number: Whole, divisor: int) -> Whole:
        """n − d·⌊n/d⌋ for a constant d ≥ 1."""
        d = self._literal(divisor)
        signed = self._join("%", number, d, divisor - 1)
        return self._join("%", self._add(signed, d), d, divisor - 1)

    def _negate(self, number: Whole) -> Whole:
        return Whole(f"(0 - {number.text})", number.magnitude)

    def _either(self, condition: str, yes: Whole, no: Whole) -> Whole:
        magnitude = max(yes.magnitude, no.magnitude)
        parts = (self._as_wide_as(part, magnitude) for part in (yes, no))
        return Whole("(CASE WHEN {} THEN {} ELSE {} END)".format(condition, *parts), magnitude)

    # Numbers.

    def write_number(self, node: GridNode) -> Whole:
        """The point of a numeric part."""
        expression = node.expression
        if isinstance(expression, Literal):
            value = expression.value
            if not isinstance(value, Fraction):
                return Whole(self._bigint(None), 0)
            return self._literal((value > 0) - (value < 0))
        if isinstance(expression, Reference):
            return Whole(self.names[str(expression.name)], node.magnitude)
        if isinstance(expression, Case) or expression.function in CHOICES:
            return self._narrowed(self._choose(node), node.magnitude)
        if expression.function in ROUNDED:
            return self._narrowed(self._round(node, expression), node.magnitude)
        if expression.function.startswith("extract "):
            return self._narrowed(self._extract(node), node.magnitude)
        return self._arithmetic(node)

    def _narrowed(self, number: Whole, magnitude: int) -> Whole:
        """A number whose values are known to fit a magnitude."""
        return Whole(self._as_wide_as(number, magnitude), magnitude)

    def _arithmetic(self, node: GridNode) -> Whole:
        if node.function == "abs":
            inner = self.write_number(node.parts[0])
            return Whole(f"ABS({inner.text})", inner.magnitude)
        if node.function in ("+", "-"):
            left, right = (self._scaled(part, node.step) for part in node.parts)
            return self._add(left, right) if node.function == "+" else self._subtract(left, right)
        left, right = (self.write_number(part) for part in node.parts)
        if node.function == "*":
            return self._join("*", left, right, left.magnitude * right.magnitude)
        divisor = node.parts[1].expression
        value = divisor.value if isinstance(divisor, Literal) else None
        if not value:
            return Whole(self._bigint(None), 0)
        return left if isinstance(value, Fraction) and value > 0 else self._negate(left)

    def _scaled(self, node: GridNode, step: Fraction) -> Whole:
        """The point of a part in other steps, of which its own is a multiple."""
        return self._times(self.write_number(node), int(node.step / step) if step else 1)

    def _round(self, node: GridNode, expression: Call) -> Whole:
        dividend, divisor = node.parts
        unit = find_unit(expression)
        n = self.write_number(dividend)
        if divisor.literal:
            ratio = dividend.step / unit
            return self._round_constant(expression.function, self._times(n, ratio.numerator), ratio.denominator)
        d = self.write_number(divisor)
        ratio = dividend.step / divisor.step / unit if divisor.step else Fraction(0)
        n, d = self._times(n, ratio.numerator), self._times(d, ratio.denominator)
        size = Whole(f"NULLIF(ABS({d.text}), {self._literal(0, d).text})", d.magnitude)
        magnitude = max(node.magnitude, 1)
        if expression.function == "round":
            twice = self._add(self._times(Whole(f"ABS({n.text})", n.magnitude), 2), size)
            quotient = self._divide(twice, self._times(size, 2), magnitude)
            return self._either(f"({n.text} < 0) <> ({d.text} < 0)", self._negate(quotient), quotient)
        up = expression.function == "ceil"
        signed = self._either(f"{d.text} {'>' if up else '<'} 0", self._negate(n), n)
        below = self._join("%", signed, size, max(signed.magnitude, size.magnitude))
        down = self._either(f"{below.text} < 0", self._literal(1), self._literal(0))
        floor = self._subtract(self._divide(signed, size, magnitude), down)
        return self._negate(floor) if up else floor

    def _round_constant(self, function: str, n: Whole, d: int) -> Whole:
        """ROUND, FLOOR or CEIL of n/d for a constant d ≥ 1; a half is rounded away from zero."""
        if d == 1:
            return n
        if function == "floor":
            return self._floor(n, d)
        if function == "ceil":
            return self._negate(self._floor(self._negate(n), d))
        twice = self._times(self._join("%", n, self._literal(d), d), 2)
        up, down = (f"({twice.text} {sign} {self._literal(end, twice).text})" for sign, end in ((">=", d), ("<=", -d)))
        away = self._either(up, self._literal(1), self._either(down, self._literal(-1), self._literal(0)))
        return self._add(self._divide(n, self._literal(d), n.magnitude // d), away)

    def _extract(self, node: GridNode) -> Whole:
        """Parts of a date, as ``calendar.split_date`` has them: years are counted from March."""
        [part] = node.parts
        number, name = self._times(self.write_number(part), part.step.numerator), node.function.removeprefix("extract ")
        if name in _UNITS:
            unit, count = _UNITS[name]
            return self._remainder(self._floor(number, part.step.denominator * unit), count)
        days = self._floor(number, part.step.denominator)
        if name == "dow":
            return self._remainder(self._add(days, self._literal(4)), 7)
        since_march = self._add(days, self._literal(719_468))
        # days of 400 years, of a century and of a year; 4·n + 3 makes every fourth year, and century, the longer one
        quarters = [self._quarters(self._remainder(since_march, 146_097))]
        quarters.append(self._quarters(self._floor_of(self._remainder_of(quarters[0], 146_097), 4)))
        day = self._floor_of(self._remainder_of(quarters[1], 1_461), 4)
        months = self._add(self._times(day, 5), self._literal(461))  # five months from March on have 153 days
        if name == "day":
            return self._add(self._floor_of(self._remainder_of(months, 153), 5), self._literal(1))
        if name == "year":
            cycles = self._times(self._floor(since_march, 146_097), 400)
            centuries = self._times(self._floor_of(quarters[0], 146_097), 100)
            early = self._either(f"{day.text} >= 306", self._literal(1), self._literal(0))  # January and February
            parts = (centuries, self._floor_of(quarters[1], 1_461), early)
            return reduce(self._add, parts, cycles)
        # 3 to 14: January and February are 13 and 14
        before = self._remainder_of(self._subtract(self._floor_of(months, 153), self._literal(1)), 12)
        if name == "quarter":
            before = self._floor_of(before, 3)
        return self._add(before, self._literal(1))

    def _quarters(self, days: Whole) -> Whole:
        return self._add(self._times(days, 4), self._literal(3))

    def _floor_of(self, number: Whole, divisor: int) -> Whole:
        """⌊n/d⌋ of what is never negative."""
        return self._divide(number, self._literal(divisor), number.magnitude // divisor)

    def _remainder_of(self, number: Whole, divisor: int) -> Whole:
        """n − d·⌊n/d⌋ of what is never negative."""
        return self._join("%", number, self._literal(divisor), divisor - 1)

    # Choices, of numbers, places and truths alike.

    def _choose(self, node: GridNode) -> Whole:
        chosen = [self._scaled(part, node.step) for part in _list_chosen(node)]
        magnitude = max(number.magnitude for number in chosen)
        if node.function == "nullif":
            return Whole(f"CASE WHEN {self._compare(node, '=')} THEN NULL ELSE {chosen[0].text} END", magnitude)
        texts = [self._as_wide_as(number, magnitude) for number in chosen]
        return Whole(self._write_choice(node, texts), magnitude)

    def _write_choice(self, node: GridNode, texts: Sequence[str]) -> str:
        if isinstance(node.expression, Case):
            conditions = [self.write_truth(part) for part in node.parts[: len(texts) - 1]]
            branches = " ".join(f"WHEN {when} THEN {then}" for when, then in zip(conditions, texts, strict=False))
            return f"(CASE {branches} ELSE {texts[-1]} END)"
        return f"{node.function.upper()}({', '.join(texts)})" if len(texts) > 1 else texts[0]

    # Text.

    def write_place(self, node: GridNode) -> str:
        """The place of a part among the texts that it can be, from 0."""
        expression = node.expression
        if isinstance(expression, Literal):
            return self._bigint(None if expression.value is None else 0)
        if isinstance(expression, Reference):
            return self.names[str(expression.name)]
        chosen = [self._translate(self.write_place(part), part.values, node.values) for part in _list_chosen(node)]
        if node.function == "nullif":
            return f"CASE WHEN {self._compare(node, '=')} THEN NULL ELSE {chosen[0]} END"
        return self._write_choice(node, chosen)

    def _translate(self, place: str, listed: Sequence[str], wanted: Sequence[str]) -> str:
        """The place in another list; NULL for what is not in it."""
        if tuple(wanted[: len(listed)]) == tuple(listed):
            return place
        known = {value: str(i) for i, value in enumerate(wanted)}
        items = ", ".join(known.get(value, "NULL") for value in listed)
        array = f"CAST({self.dialect.array.format(items=items)} AS {self.dialect.integers})"
        return self.dialect.element.format(array=array, i=f"({place} + 1)")

    # Truth.

    def write_truth(self, node: GridNode) -> str:
        """A condition, in parentheses; NULL where it is unknown."""
        expression, function = node.expression, node.function
        if isinstance(expression, Literal):
            return {True: "(1 = 1)", False: "(1 = 0)"}.get(expression.value, "CAST(NULL AS BOOLEAN)")  # type: ignore[arg-type]
        if isinstance(expression, Case) or function in CHOICES:
            chosen = [self.write_truth(part) for part in _list_chosen(node)]
            if function == "nullif":
                return f"(CASE WHEN {self._compare(node, '=')} THEN NULL ELSE {chosen[0]} END)"
            return self._write_choice(node, chosen)
        if function in _COMPARISONS:
            return self._compare(node, "IS DISTINCT FROM" if function == "is distinct" else function)
        if function in ("like", "ilike"):
            return self._match(node)
        if function == "is null":
            return f"({self._write_value(node.parts[0])} IS NULL)"
        parts = [self.write_truth(part) for part in node.parts]
        return f"(NOT {parts[0]})" if function == "not" else "({})".format(f" {function.upper()} ".join(parts))

    def _write_value(self, node: GridNode) -> str:
        if node.type is Type.TEXT:
            return self.write_place(node)
        return self.write_truth(node) if node.type is Type.BOOLEAN else self.write_number(node).text

    def _compare(self, node: GridNode, sign: str) -> str:
        left, right = node.parts
        kind = left.type or right.type
        if kind is Type.NUMBER:
            step = find_common_step([part.step for part in node.parts])
            numbers = [self._scaled(part, step) for part in node.parts]
            widest = max(number.magnitude for number in numbers)
            sides = [self._as_wide_as(number, widest) for number in numbers]
        elif kind is Type.TEXT:
            values = tuple(dict.fromkeys((*left.values, *right.values)))
            sides = [self._translate(self.write_place(part), part.values, values) for part in node.parts]
        else:
            sides = [self.write_truth(part) for part in node.parts]
        return f"({sides[0]} {sign} {sides[1]})"

    def _match(self, node: GridNode) -> str:
        """LIKE, resolved to the texts that match."""
        text, *pattern = node.parts
        said = [part.expression.value for part in pattern if isinstance(part.expression, Literal)]
        if None in said:
            return "CAST(NULL AS BOOLEAN)"
        matches = FUNCTIONS[node.function].compute
        found = [str(i) for i, value in enumerate(text.values) if matches(value, *said)]
        return f"({self.write_place(text)} IN ({', '.join(found or ['-1'])}))"


def _list_chosen(node: GridNode) -> Sequence[GridNode]:
    """The parts of which one is the value."""
    if isinstance(node.expression, Case):
        return node.parts[len(node.parts) // 2 :]
    return node.parts[:1] if node.function == "nullif" else node.parts
