"""The trusted party: a question goes in as SQL and comes out as a private answer.

``TrustedParty`` is what a controller opens, asks and looks at; the way of a question, step by step, is ``pipeline``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from idios import display
from idios.answer.assembly import make_answer
from idios.answer.release import draw_table
from idios.audit import compute_costs, inspect_plan, plan_levels
from idios.config import read_configuration, warn_of_fresh_budgets, warn_of_shared_sources
from idios.core.exact import Number
from idios.core.sampling import RandomSource
from idios.core.statistics import Parameters
from idios.data.backend import CancellationToken, Progress, read_dataset_name
from idios.datasets import OpenDataset, declare, open_datasets
from idios.display import Listing, shorten_list
from idios.errors import InvalidInput, LedgerError
from idios.ledger import Ledger
from idios.linked_datasets import link_datasets
from idios.model import Answer, Balance, BalanceList, Quote
from idios.model.inspection import Costs, Inspection
from idios.pipeline import Pipeline
from idios.plan.budget import shares_rho
from idios.plan.question import Plan, Split
from idios.reports.least_epsilon import find_epsilon
from idios.reports.report import Asker, ReportPlan, plan_report, plan_within
from idios.reports.totals import Payer
from idios.sandbox import ROWS, TWIN_PEOPLE, Twins
from idios.sql.reader import RecentQuestions


class TrustedParty(Pipeline):
    """Holds sensitive tables, answers questions about them, and keeps the account.

    The party of the examples below:

    >>> import idios
    >>> people = {
    ...     "age": [20 + i % 60 for i in range(3000)],
    ...     "income": [21_000 + 10 * i for i in range(3000)],
    ...     "region": [["north", "south"][i % 2] for i in range(3000)],
    ... }
    >>> columns = {
    ...     "age": {"type": "integer", "bounds": [0, 120]},
    ...     "income": {"type": "integer"},
    ...     "region": {"type": "category", "values": ["north", "south"]},
    ... }
    >>> party = idios.TrustedParty.open(people, name="people", columns=columns, budget=4)
    >>> party
    <TrustedParty people: age, income, region (differential)>
    >>> party.close()  # with it open:
    """

    def __init__(
        self,
        datasets: Mapping[str, OpenDataset],
        ledger: Ledger,
        source: RandomSource | None = None,
        twins: Twins | None = None,
        recent: RecentQuestions | None = None,
    ) -> None:
        super().__init__(datasets, ledger, source, recent)
        self.twins = twins or Twins()

    @classmethod
    def open(
        cls,
        source: Any,
        *,
        columns: Mapping[str, Any],
        budget: Number | Mapping[str, Any],
        accounting: str | None = None,
        check: Number | None = None,
        name: str | None = None,
        csv: Mapping[str, Any] | None = None,
        version: str | None = None,
        unit: str | Sequence[str] | None = None,
        unit_word: str | None = None,
        unique: bool | None = None,
        order: str | None = None,
        rows: int | None = None,
        groups: int | None = None,
        links: Mapping[str, str] | None = None,
        linked: Mapping[str, Mapping[str, Any]] | None = None,
        neighbours: str | None = None,
        protection: str | None = None,
        analysts: str | None = None,
        group: int | Sequence[Number] | Mapping[str, Any] | None = None,
        floor: Number | None = None,
        fineness: int | None = None,
        min_epsilon: Number | None = None,
        max_groups: int | None = None,
        parameters: Mapping[str, Any] | Parameters | None = None,
        release_seconds: Number | None = None,
        ledger: str | Path | Ledger | None = None,
        progress: Progress | None = None,
    ) -> TrustedParty:
        """Hold one table: a file, an address, a data frame or a dict of columns.

        The arguments are the keys of a data set in ``idios.toml``, with the same meaning, defaults and checks:
        ``columns`` declares what is public of each column, ``csv`` the format of a csv file that does not follow
        RFC 4180, such as ``{"delimiter": ";", "decimal": ","}``, ``unit`` the columns that tell people apart who may
        have several rows. ``linked`` are the data sets that can be joined to it, by name, each a table of such keys.
        ``analysts`` and ``release_seconds`` matter on a server only.

        ``ledger`` is a database address, the path of an SQLite file, or None for one that is forgotten at the end.
        ``progress`` is called with the name of each step of a slow question and the share of the work that is done.

        A polars LazyFrame is collected, and a stream of Arrow batches read to its end, once: when it is opened.

        >>> columns = {"income": {"type": "number"}}
        >>> with idios.TrustedParty.open({"income": [1.5] * 99}, name="people", columns=columns, budget=4) as party:
        ...     print(party.quote("SELECT MEDIAN(income) FROM people", epsilon=1).after)
        ε = 3: about 3 more like this one
        """
        table = {
            "source": source,
            "csv": getattr(columns, "csv_format", None) if csv is None else csv,
            "version": version,
            "unit": unit,
            "unit_word": unit_word,
            "unique": unique,
            "order": order,
            "rows": rows,
            "groups": groups,
            "links": links,
            "neighbours": neighbours,
            "protection": protection,
            "analysts": analysts,
            "group": group,
            "floor": floor,
            "fineness": fineness,
            "accounting": accounting,
            "budget": budget,
            "check": check,
            "min_epsilon": min_epsilon,
            "max_groups": max_groups,
            "parameters": parameters,
            "release_seconds": release_seconds,
            "columns": columns,
        }
        stem = read_dataset_name(str(source)) if isinstance(source, str | Path) else "data"
        config = declare(name or stem, {key: value for key, value in table.items() if value is not None})
        others = {other: declare(other, keys) for other, keys in (linked or {}).items()}
        configs = link_datasets({config.dataset.name: config} | others)
        if isinstance(ledger, Path) or (isinstance(ledger, str) and "://" not in ledger):
            ledger = f"sqlite:///{ledger}"
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger or "sqlite://")
        return cls(open_datasets(configs.values(), book, progress, retired=True), book)

    @classmethod
    def from_config(
        cls,
        path: str | Path = "idios.toml",
        *,
        progress: Progress | None = None,
        retired: bool = True,
        record: bool = True,
    ) -> TrustedParty:
        """Hold every data set of a configuration file.

        A retired data set is an error, unless ``retired`` is False: then it is left out, and its data is not read.
        Budgets are fixed in the ledger from then on, unless ``record`` is False: then nothing can be asked.

        >>> idios.TrustedParty.from_config("nowhere.toml")
        Traceback (most recent call last):
        idios.errors.ConfigurationError: there is no configuration file nowhere.toml; `idios init` writes one
        """
        configuration = read_configuration(path)
        ledger = Ledger.open(configuration.ledger_url, configuration.key_file)
        try:
            warn_of_fresh_budgets(configuration.datasets, ledger)
        except BaseException:
            ledger.close()
            raise
        datasets = open_datasets(configuration.datasets.values(), ledger, progress, retired=retired, record=record)
        party = cls(datasets, ledger)
        try:
            warn_of_shared_sources(configuration, datasets, ledger)
        except BaseException:
            party.close()
            raise
        return party

    def close(self) -> None:
        """Close the data and the ledger; ``with`` does so at its end.

        >>> party.close()
        """
        for dataset in self.datasets.values():
            dataset.backend.close()
        self.twins.close()
        self.ledger.close()

    def __enter__(self) -> TrustedParty:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TrustedParty {'; '.join(opened.describe() for opened in self.datasets.values())}>"

    def _repr_html_(self) -> str:
        """The data sets, what is declared of them, and what is left of their budgets."""
        try:
            left = {balance.dataset: balance.left_in_words for balance in self.budget()}
        except LedgerError:  # closed, or away
            left = {}
        rows = [
            (
                name,
                shorten_list(f"{column.name} ({column.kind})" for column in opened.dataset.columns.values()),
                opened.dataset.protection.level,
                "secret" if opened.dataset.size is None else f"{opened.dataset.size:,}",
                left.get(name, ""),
            )
            for name, opened in self.datasets.items()
        ]
        return display.table_html(("data set", "columns", "level", "records", "remaining"), rows)

    def budget(self, analyst: str | None = None) -> Listing[Balance]:
        """What may be spent, is spent and is left: of each data set, or of what was granted to an analyst.

        >>> party.budget()
        data set  analyst  budget ε  spent ε  remaining ε  remaining δ  promise
        people             4         0        4            0            differential, replace
        """
        held = self.ledger.grants(analyst) if analyst is not None else map(self.ledger.balance, self.datasets)
        return BalanceList(tuple(balance for balance in held if balance.dataset in self.datasets)).listing()

    def limited_to(self, names: Collection[str], caller: str = "") -> TrustedParty:
        """A view of the party with only these data sets, for one caller; close the party, not the view."""
        kept = {name: dataset for name, dataset in self.datasets.items() if name in names}
        return TrustedParty(kept, self.ledger, self.source, self.twins, self._recent.of_caller(caller))

    # The way of a question.

    def query(
        self,
        sql: str,
        epsilon: Number,
        *,
        split: Split = None,
        check: Number | None = None,
        analyst: str | None = None,
        idempotency_key: str | None = None,
        cancellation: CancellationToken | None = None,
    ) -> Answer:
        """Answer a question for ``epsilon``, charged to the data set and to the analyst (None: the controller).

        ``split`` gives the proportions in which the statistics divide ε, by their names; evenly unless given.
        ``check`` is the share of ε that tells how many records off an answer is, 0 for none; as declared unless given.
        ``idempotency_key`` is the caller's own: sent again with the same question it is the same request, with another
        it is refused. ``cancellation`` reports the steps and may cancel them; the charge stays, and the same question
        asked again completes it.

        >>> answer = party.query("SELECT region, COUNT(*) FROM people GROUP BY region", epsilon=1)
        >>> [row["region"] for row in answer.rows]
        ['north', 'south']
        >>> print(answer.cost, "|", answer.left)
        ε = 1 | ε = 3
        >>> party.query("SELECT MEDIAN(incme) FROM people", epsilon=1)
        Traceback (most recent call last):
        idios.errors.QuestionRefused: ... Did you mean income? (line 1, column 15)
          SELECT MEDIAN(incme) FROM people
                        ^
        """
        plan = self.make_plan(sql, epsilon, split, check)
        return self.complete(self.reserve(plan, analyst=analyst, idempotency_key=idempotency_key), cancellation)

    def check(
        self,
        sql: str,
        epsilon: Number,
        *,
        with_epsilon: Number,
        split: Split = None,
        analyst: str | None = None,
        cancellation: CancellationToken | None = None,
    ) -> Answer:
        """Tell, for ``with_epsilon`` more, how many records off the stored answer to a question without a check is.

        >>> median = "SELECT MEDIAN(income) FROM people"
        >>> answer = party.query(median, epsilon=1, check=0)
        >>> checked = party.check(median, epsilon=1, with_epsilon=1)
        >>> checked.value == answer.value, list(checked.check_rows[0])
        (True, ['MEDIAN(income)'])
        """
        plan = self.make_check_plan(sql, epsilon, with_epsilon, split, analyst=analyst)
        return self.complete(self.reserve(plan, analyst=analyst), cancellation)

    def quote(
        self,
        sql: str,
        epsilon: Number,
        *,
        split: Split = None,
        check: Number | None = None,
        then_check: Number | None = None,
        analyst: str | None = None,
    ) -> Quote:
        """Say what a question, or ``check`` of its answer for ``then_check``, would cost; touches no data.

        >>> print(party.quote("SELECT COUNT(*) FROM people WHERE age > 60", epsilon=0.5))
        cost: ε = 0.5
        with concentrated accounting: ρ = 0.125
        released cells: 1
        ...
        """
        if then_check is None:
            return self.price(self.make_plan(sql, epsilon, split, check), analyst=analyst)
        return self.price(self.make_check_plan(sql, epsilon, then_check, split, analyst=analyst), analyst=analyst)

    def plan(
        self,
        questions: Mapping[str, str],
        epsilon: Number | None = None,
        *,
        split: Mapping[str, Number] | None = None,
        within: Number | None = None,
        analyst: str | None = None,
    ) -> ReportPlan:
        """Plan questions by name as one report, and quote it; ``ask`` of the result spends, question by question.

        ``epsilon`` is the total for each data set, divided evenly or in the proportions of ``split``. Or ``within``
        is given, and each question has the least ε that keeps its margins so small (``find_epsilon``).

        >>> adults, old = ("SELECT COUNT(*) FROM people WHERE age >= " + age for age in ("18", "65"))
        >>> plan = party.plan({"adults": adults, "old": old}, epsilon=1)
        >>> [str(question.epsilon) for question in plan.questions], plan.affordable
        (['1/2', '1/2'], True)
        >>> plan.ask().complete
        True
        """
        own = Payer(
            lambda dataset: self.ledger.balance(dataset, analyst),
            lambda sql, share: self.quote(sql, share, analyst=analyst),
        )
        asker = Asker(
            query=lambda sql, share: self.query(sql, share, analyst=analyst),
            identify=lambda sql, share: self.key(self.make_plan(sql, share)),
            payers=(own,) if analyst is None else (own, Payer(self.ledger.balance, self.quote)),
            adds_squares=lambda dataset, total: shares_rho(self.datasets[dataset].dataset, total),
        )
        if within is None and epsilon is not None:
            return plan_report(asker, questions, epsilon, split)
        if within is None or epsilon is not None or split is not None:
            raise InvalidInput("a report takes either epsilon, with or without split, or within")
        return plan_within(asker, questions, lambda sql: self.find_epsilon(sql, within))

    def find_epsilon(self, sql: str, within: Number) -> Fraction:
        """The least ε for which the 95 % margin of each column of a question is ``within``, such as 50 or "2%".

        Of a ratio, "5 at 600" is 5 where it is divided by 600.

        >>> float(party.find_epsilon("SELECT COUNT(*) FROM people WHERE age > 60", within=10))
        0.285
        """
        return find_epsilon(lambda epsilon: self.make_plan(sql, epsilon), within)

    def sandbox(
        self,
        sql: str,
        epsilon: Number,
        split: Split = None,
        check: Number | None = None,
        *,
        cancellation: CancellationToken | None = None,
    ) -> Answer:
        """Answer a question about made-up data, as it would be answered about the real data; free.

        No data, no ledger and nothing stored is touched. ``cancellation`` may cancel it, which raises ``Cancelled``.

        >>> party.sandbox("SELECT MEDIAN(income) FROM people", epsilon=1).cost
        'free, invented data'
        """
        return self.try_out(self.make_plan(sql, epsilon, split, check), cancellation)

    def try_out(self, plan: Plan, cancellation: CancellationToken | None = None) -> Answer:
        """What ``sandbox`` does with a plan."""
        table = draw_table(plan, self.twins.of(self.datasets[plan.dataset.name].dataset), cancellation)
        size = None if plan.dataset.size is None else TWIN_PEOPLE * plan.dataset.records if plan.dataset.unit else ROWS
        made_up = replace(plan, dataset=replace(plan.dataset, size=size))
        return replace(make_answer(made_up, table, id="sandbox"), sandbox=True)

    def inspect(self, sql: str, epsilon: Number, *, split: Split = None) -> Inspection:
        """Show the controller what lies behind a question; charges nothing and is recorded.

        >>> party.inspect("SELECT MEDIAN(income) FROM people", epsilon=1)
        For the controller's eyes: true values and noise.
        statistic       true value  within one change  noise                         expected error
        MEDIAN(income)  35995       35985 … 36005      inverse sensitivity, ε = 0.8  25.1197
        """
        plan = self.make_plan(sql, epsilon, split)
        opened = self.datasets[plan.dataset.name]
        strongest = plan_levels(self._read(sql), opened.dataset, epsilon, split, limit=None).strongest
        opened.check_unchanged()
        self.ledger.record_inspection(self.make_request(plan, None))
        return inspect_plan(plan, opened.backend, strongest)

    def costs(self, sql: str, epsilon: Number, *, split: Split = None) -> Costs:
        """Show the controller how far off the answers would be at each level of protection; is recorded.

        For the controller alone: expected errors follow from the data. Charges nothing.

        >>> [row.level for row in party.costs("SELECT MEDIAN(income) FROM people", epsilon=1).rows]
        ['individual', 'group of 5', 'differential']
        """
        question = self._read(sql)
        opened = self.datasets[question.dataset]
        plans = plan_levels(question, opened.dataset, epsilon, split)
        opened.check_unchanged()
        self.ledger.record_inspection(self.make_request(plans.first, None))
        return compute_costs(plans, opened.backend)
