"""The data sets that the tests of this folder ask about: declarations only, as everything here."""

from dataclasses import replace
from fractions import Fraction

from idios.core.calibration import Level, Protection
from idios.core.domain import Categories, Domain, Kind
from idios.declare.schema import Column, Dataset
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.sql.reader import read


def dataset(name: str, *columns: Column, **settings: object) -> Dataset:
    listed = {column.name: column for column in columns}
    return Dataset(name, listed, **{"protection": Protection(Level.INDIVIDUAL), **settings})  # type: ignore[arg-type]


PEOPLE = dataset(
    "people",
    Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False),
    Column("income", Kind.NUMBER, Domain()),
    Column("price", Kind.DECIMAL, Domain.declare(step="0.01", bounds=(0, 100))),
    Column("born", Kind.DATE, Domain.declare(bounds=(0, 20_000))),
    Column("seen", Kind.TIMESTAMP, Domain()),
    Column("region", Kind.CATEGORY, Categories(("north", "south", "east", "west"))),
    Column("sex", Kind.CATEGORY, Categories(("f", "m")), nullable=False),
    Column("smoker", Kind.CATEGORY, Categories(("true", "false"))),
    Column("Größe in cm", Kind.NUMBER, Domain(Fraction(1, 2))),
    Column("limit", Kind.INTEGER, Domain()),
)

SMALL = dataset(
    "small",
    Column("a", Kind.INTEGER, Domain(lower=0, upper=3)),
    Column("b", Kind.NUMBER, Domain(Fraction(1, 4), -2, 2), nullable=False),
    Column("c", Kind.CATEGORY, Categories(("u", "v", "w"))),
    Column("d", Kind.INTEGER, Domain(lower=-1, upper=1)),
)


def declared(people: Dataset = PEOPLE, **changes: object) -> Dataset:
    """The data set with other settings."""
    return replace(people, **changes)  # type: ignore[arg-type]


def protected(level: str, **settings: object) -> Dataset:
    return declared(protection=Protection.declare(level, **settings))  # type: ignore[arg-type]


def planned(sql: str, epsilon: object = 1, split: object = None, people: Dataset = PEOPLE) -> Plan:
    return make_plan(read(sql, {people.name: people}), people, epsilon, split)  # type: ignore[arg-type]
