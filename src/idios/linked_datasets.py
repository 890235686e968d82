"""Links between data sets: which are public, which belong together, and who pays.

    [datasets.people]    unit = "person_id"; budget = 10
    [datasets.orders]    unit = "person_id"; links = { person_id = "people.person_id", product = "products.id" }
    [datasets.items]     links = { order_id = "orders.id" }
    [datasets.products]  public = true

Rules:

1. A link from a data set's unit to that of another says that both are about the same people. They are one data set to
   the promise and to the ledger: a person with all their rows in both is one neighbour, and every question about either
   is paid from one budget, that of the data set which is linked to. So the other declares none, nor anything else
   about protection. Two budgets for the same people would add up, and no question could be said to cost one of them.
2. A data set without a unit that links to a private one belongs to it, row by row: a row is whose the row is that its
   key leads to. The key is unique there, which is checked when it is opened. It is part of that data set, as in 1.
3. A public data set has no budget and no protection. Any data set of people may link to it, and so may a public one.
4. Nothing else can be linked. In particular no public data set links to a private one: it would tie people together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from idios.datasets import DatasetConfig
from idios.declare.schema import Dataset, Link
from idios.errors import InvalidInput

PUBLIC_KEYS = frozenset({"source", "csv", "version", "links", "public", "columns"})
LINKED_KEYS = frozenset({"source", "csv", "version", "unit", "unique", "order", "links", "columns"})
"""What is declared of more rows of another data set's people: all else is declared there."""


def link_datasets(declared: Mapping[str, DatasetConfig]) -> dict[str, DatasetConfig]:
    """Check the links between data sets; what is left are those with a budget, each with the tables linked to it."""
    for check in (_check_names, _check):
        for name, config in declared.items():
            try:
                check(config, declared)
            except InvalidInput as error:
                raise InvalidInput(f"[datasets.{name}]: {error}") from None
    return {
        name: _attach(config, declared)
        for name, config in declared.items()
        if not config.dataset.public and not _list_private(config, declared)
    }


def _list_private(config: DatasetConfig, declared: Mapping[str, DatasetConfig]) -> list[Link]:
    """The links of a data set to private ones."""
    return [link for link in config.dataset.links if not declared[link.table].dataset.public]


def _find_payer(config: DatasetConfig, declared: Mapping[str, DatasetConfig]) -> DatasetConfig:
    """The data set that pays for one: the end of the links to private ones."""
    passed = [config.dataset.name]
    while private := _list_private(config, declared):
        config = declared[private[0].table]
        if config.dataset.name in passed:
            raise InvalidInput(f"its links lead in a circle, by {' and '.join(passed)}")
        passed.append(config.dataset.name)
    return config


def _check_names(config: DatasetConfig, declared: Mapping[str, DatasetConfig]) -> None:
    dataset = config.dataset
    if dataset.links or dataset.public:
        _check_name(dataset)
    for link in dataset.links:
        if link.table not in declared:
            raise InvalidInput(f"it is linked to {link.table!r}, which is not declared")
        if link.table == dataset.name:
            raise InvalidInput("it is linked to itself")
        _check_name(declared[link.table].dataset)


def _check(config: DatasetConfig, declared: Mapping[str, DatasetConfig]) -> None:
    dataset = config.dataset
    private = _list_private(config, declared)
    if dataset.public:
        if private:
            raise InvalidInput(f"what is public links to public data sets only, and {private[0].table!r} is private")
        _refuse_keys(config, PUBLIC_KEYS, "is no part of what is public")
        return
    if not private:
        if dataset.links and not dataset.unit:
            raise InvalidInput("links need a unit, as joined rows are asked about by person only: declare unit")
        if dataset.budget is None:
            raise InvalidInput("it needs budget")
        return
    if len(private) > 1:
        one, other = (link.written[1] for link in private[:2])
        raise InvalidInput(f"its people are those of one data set, by one link, and it is linked to {one} and {other}")
    payer = _find_payer(config, declared).dataset
    if dataset.unit:
        _check_people(dataset, private[0], declared)
    elif not payer.unit:
        raise InvalidInput(
            f"its rows are those of people in {payer.name!r}, which declares no unit: declare one there, or here"
        )
    _refuse_keys(config, LINKED_KEYS, f"belongs in [datasets.{payer.name}], which holds the people and pays for them")


def _check_people(dataset: Dataset, link: Link, declared: Mapping[str, DatasetConfig]) -> None:
    """A link to the same people is one to one from unit to unit, to the data set that pays."""
    people, unit = link.table, declared[link.table].dataset.unit
    if _list_private(declared[people], declared):
        raise InvalidInput(f"{people!r} is linked to people itself: link to these")
    if not unit or sorted(link.keys) != sorted(unit):
        wanted = f"its unit, which is {', '.join(unit)}" if unit else "a unit, and it declares none"
        raise InvalidInput(f"a link to the private {people!r} is to {wanted}")
    if sorted(link.columns) != sorted(dataset.unit):
        raise InvalidInput(f"a link to the private {people!r} is from its own unit, which is {', '.join(dataset.unit)}")


def _check_name(dataset: Dataset) -> None:
    if "." in dataset.name:
        raise InvalidInput(f"the name of a data set that is linked has no dot, got {dataset.name!r}")


def _refuse_keys(config: DatasetConfig, known: frozenset[str], why: str) -> None:
    unknown = sorted(config.given - known)
    if unknown:
        raise InvalidInput(f"{unknown[0]} {why}: leave it out")


def _attach(config: DatasetConfig, declared: Mapping[str, DatasetConfig]) -> DatasetConfig:
    """A data set with more rows of its people, and with the public tables that they or it lead to."""
    name = config.dataset.name
    people = [each for each, other in declared.items() if each != name and _find_payer(other, declared) is config]
    reached = list(people)
    for each in (name, *reached):
        _follow(declared[each].dataset.links, declared, reached)
    linked = {each: declared[each] for each in reached if each != name}
    tables = {each: other.dataset for each, other in linked.items()}
    # rows that belong to rows are of nobody else
    dataset = replace(config.dataset, tables=tables, covers_everyone=not any(tables[each].unit for each in people))
    return replace(config, dataset=dataset, linked=linked)


def _follow(links: tuple[Link, ...], declared: Mapping[str, DatasetConfig], reached: list[str]) -> None:
    for link in links:
        if link.table not in reached and declared[link.table].dataset.public:
            reached.append(link.table)
            _follow(declared[link.table].dataset.links, declared, reached)
