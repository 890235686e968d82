"""Every value that a type can hold, by type and engine: how its SQL is written, and what it means exactly.

The edges of each type, the neighbourhoods of all limits that reading compares with, and random values of every size.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from idios.core.domain import LIMIT, Kind

DAY = 86_400_000_000
draw = random.Random(9)

Meaning = int | float | Fraction | str | None


@dataclass(frozen=True)
class Hostile:
    """A type of an engine: some SQL literals, and what each means to a column of some kind."""

    type: str
    values: Sequence[tuple[str, Callable[[Kind], Meaning]]]
    kinds: tuple[Kind, ...]


def _same(meaning: Meaning) -> Callable[[Kind], Meaning]:
    return lambda kind: meaning


def sizes(bits: int) -> Iterator[int]:
    """Whole numbers of every size up to so many bits, both signs, and the edges of reading."""
    for k in range(0, bits, 1 + bits // 130):
        yield draw.getrandbits(k + 1)
        yield -draw.getrandbits(k + 1)
    for edge in (0, 2**31, 2**53, LIMIT, LIMIT // 3, LIMIT * 7, 10**6 * LIMIT, 2**63, 2**64, 10**18, 10**19, 2**bits):
        for near in (edge - 1, edge, edge + 1):
            yield from (near, -near)


NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)


def integers(type: str, least: int, greatest: int, literal: str = "CAST('{}' AS {})") -> Hostile:
    found = {n for n in (*sizes(greatest.bit_length()), least, least + 1, greatest) if least <= n <= greatest}
    return Hostile(type, [(literal.format(n, type), _same(n)) for n in sorted(found)], NUMBERS)


def floats(type: str, code: str, literal: str = "CAST('{}' AS {})") -> Hostile:
    size = struct.calcsize(code)
    found = [math.nan, math.inf, -math.inf, 0.0, -0.0]
    for bits in range(8 * size):
        for _ in range(2):
            found.append(struct.unpack(code, draw.getrandbits(8 * size).to_bytes(size, "little"))[0])
        found.append(struct.unpack(code, (1 << bits).to_bytes(size, "little"))[0])
    for edge in (float(LIMIT), LIMIT / 1e6, LIMIT * 7.0, 2.0**63, 0.5, 1e-6, 1e-300, 1.7976931348623157e308):
        found += [math.nextafter(edge, 0), edge, math.nextafter(edge, math.inf), -edge]
    if code == "<f":
        found = [value for value in found if not math.isfinite(value) or abs(value) < 3.4e38]
        found = [struct.unpack(code, struct.pack(code, value))[0] for value in found]
    values = [(literal.format(_written(value), type), _same(value)) for value in found]
    return Hostile(type, values, (Kind.NUMBER, Kind.INTEGER))


def _written(value: float) -> str:
    return "NaN" if math.isnan(value) else ("-" * (value < 0) + "Infinity") if math.isinf(value) else repr(value)


def decimals(precision: int, scale: int) -> Hostile:
    type = f"DECIMAL({precision}, {scale})"
    most = 10**precision - 1
    found = {n for n in sizes(most.bit_length()) if abs(n) <= most} | {most, -most, most - 1}
    values = [(f"CAST('{_placed(n, scale)}' AS {type})", _same(Fraction(n, 10**scale))) for n in sorted(found)]
    return Hostile(type, values, NUMBERS)


def _placed(n: int, scale: int) -> str:
    digits = str(abs(n)).rjust(scale + 1, "0")
    return "-" * (n < 0) + digits[: len(digits) - scale] + "." + digits[len(digits) - scale :]


def moments(type: str, least: int, greatest: int, literal: Callable[[int], str], unit: int = 1) -> Hostile:
    """Timestamps by their number of units since 1970; a ``unit`` is so many microseconds, below 0 so many to one."""
    found = {n for n in (*sizes(63), least, greatest) if least <= n <= greatest}

    def meaning(n: int) -> Callable[[Kind], Meaning]:
        return _moment(n * unit if unit > 0 else n // -unit)

    return Hostile(type, [(literal(n), meaning(n)) for n in sorted(found)], (Kind.TIMESTAMP, Kind.DATE))


def _moment(microseconds: int) -> Callable[[Kind], Meaning]:
    return lambda kind: microseconds // DAY if kind is Kind.DATE else microseconds


def days(type: str, least: int, greatest: int, literal: str) -> Hostile:
    found = {n for n in (*sizes(31), least, greatest, LIMIT // DAY, LIMIT // DAY + 1) if least <= n <= greatest}

    def meaning(n: int) -> Callable[[Kind], Meaning]:
        return lambda kind: n if kind is Kind.DATE else n * DAY

    return Hostile(type, [(literal.format(n), meaning(n)) for n in sorted(found)], (Kind.DATE, Kind.TIMESTAMP))


def endless(type: str, *literals: str) -> Hostile:
    """Dates and timestamps that are infinite: missing."""
    return Hostile(type, [(f"CAST('{text}' AS {type})", _same(None)) for text in literals], (Kind.DATE, Kind.TIMESTAMP))


BOOLEANS = Hostile("BOOLEAN", [("TRUE", _same(1)), ("FALSE", _same(0))], (Kind.INTEGER,))


def texts(type: str, nul: bool = True) -> Hostile:
    """Text of every plane, length and look-alike of a category."""
    found = ["a", "b", "A", "a ", " a", "a\u0301", "á", "", "NULL", "'", "''", "\\", "${x}", "{x}", "%s", "\r\n", "\t"]
    found += ["日本語", "\U0001f600", "\ufeffa", "\u202ea", "x" * 100_000, "\x01\x7f\x80\u2028", "a\u200b"]
    found += ["a\0", "\0"] if nul else []
    for _ in range(60):
        characters = (draw.choice((draw.randrange(1, 0xD800), draw.randrange(0xE000, 0x110000))) for _ in range(5))
        found.append("".join(map(chr, characters)))
    return Hostile(type, [(text, _same(text)) for text in found], (Kind.CATEGORY,))


DECIMALS = [
    *((18, 6), (18, 9), (18, 2), (18, 18), (18, 0), (9, 4), (4, 2), (1, 0), (1, 1), (5, 5), (10, 0), (15, 2), (19, 4)),
    *((19, 0), (28, 9), (28, 10), (36, 1), (37, 12), (38, 0), (38, 2), (38, 10), (38, 18)),
]

DUCKDB = [
    *(integers(f"{u}{name}", 0 if u else -(2**bits // 2), 2**bits - 1 if u else 2**bits // 2 - 1)
      for u in ("", "U") for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64))),
    integers("HUGEINT", -(2**127), 2**127 - 1),
    floats("FLOAT", "<f"),
    floats("DOUBLE", "<d"),
    *(decimals(p, s) for p, s in [*DECIMALS, (38, 20), (38, 38), (37, 36)]),
    # DuckDB's own ends of a type are its infinities
    moments("TIMESTAMP", -9223372022400000000, 2**63 - 2, "make_timestamp({})".format),
    moments("TIMESTAMPTZ", -92 * 10**17, 92 * 10**17, "(make_timestamp({}) AT TIME ZONE 'UTC')".format),
    moments("TIMESTAMP_NS", -(2**63) + 2, 2**63 - 2, "make_timestamp_ns({})".format, -1000),
    days("DATE", -(2**31) + 2, 2**31 - 2, "(DATE '1970-01-01' + CAST({} AS INTEGER))"),
    *(endless(type, "infinity", "-infinity")
      for type in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS")),
    BOOLEANS,
    texts("VARCHAR"),
]  # fmt: skip


def _postgresql_moment(n: int) -> str:
    """Put together from whole days, seconds and microseconds: a multiple of an interval is computed with doubles."""
    day, rest = divmod(n, DAY)
    seconds, micros = divmod(rest, 10**6)
    midnight = f"CAST(DATE '1970-01-01' + ({day}) AS timestamp)"
    return f"({midnight} + {seconds} * INTERVAL '1 second' + {micros} * INTERVAL '1 microsecond')"


POSTGRESQL = [
    integers("smallint", -(2**15), 2**15 - 1),
    integers("integer", -(2**31), 2**31 - 1),
    integers("bigint", -(2**63), 2**63 - 1),
    integers("oid", 0, 2**32 - 1),
    floats("real", "<f"),
    floats("double precision", "<d"),
    *(decimals(p, s) for p, s in [*DECIMALS, (1000, 0), (1000, 500)]),
    Hostile(
        "numeric",
        [
            *((f"CAST('{sign}1E{e}' AS numeric)", _same(int(f"{sign}1") * Fraction(10) ** e))
              for sign in ("", "-") for e in (0, 5, 12, 13, 18, 19, 40, 400, 131071, -1, -7, -400, -16383)),
            ("CAST(repeat('9', 131072) AS numeric)", _same(10**131072 - 1)),
            ("-CAST(repeat('9', 131072) AS numeric)", _same(1 - 10**131072)),
            *((f"CAST('{text}' AS numeric)", _same(None)) for text in ("NaN", "Infinity", "-Infinity")),
            *((f"CAST('{n}' AS numeric)", _same(n)) for n in sizes(200)),
        ],
        NUMBERS,
    ),
    moments("timestamp", -210866803200000000, 2**63 - 1, _postgresql_moment),
    moments("timestamptz", -210866803200000000, 2**63 - 1, lambda n: f"({_postgresql_moment(n)} AT TIME ZONE 'UTC')"),
    # beyond 2⁶³ microseconds PostgreSQL's EXTRACT rounds: to it, the last moment that it has is the next midnight
    *(Hostile(type, [(f"CAST('294276-12-31 23:59:59.999999' AS {type})", _moment(9224318016 * 10**9))],
              (Kind.TIMESTAMP, Kind.DATE)) for type in ("timestamp", "timestamptz")),
    days("date", -2440588, 2145031948, "(DATE '1970-01-01' + ({}))"),
    *(endless(type, "infinity", "-infinity") for type in ("date", "timestamp", "timestamptz")),
    BOOLEANS,
    texts("text", nul=False),
]  # fmt: skip

SPARK = [
    integers("TINYINT", -(2**7), 2**7 - 1),
    integers("BIGINT", -(2**63), 2**63 - 1),
    floats("FLOAT", "<f"),
    floats("DOUBLE", "<d"),
    *(decimals(p, s) for p, s in DECIMALS[:4] + DECIMALS[8:9] + DECIMALS[12::3]),
    moments("TIMESTAMP", -(2**63), 2**63 - 1, "timestamp_micros(CAST('{}' AS BIGINT))".format),
    moments("TIMESTAMP_NTZ", -(2**63), 2**63 - 1,
            "CAST(timestamp_micros(CAST('{}' AS BIGINT)) AS TIMESTAMP_NTZ)".format),
    days("DATE", -(2**31), 2**31 - 1, "date_from_unix_date(CAST('{}' AS INT))"),
    BOOLEANS,
    texts("STRING"),
]  # fmt: skip

ENGINES = {"duckdb": DUCKDB, "postgresql": POSTGRESQL, "spark": SPARK}
