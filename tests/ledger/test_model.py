"""Random histories: the ledger does what a few dictionaries do, and its chain and tables always agree."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from idios.core.concentrated import find_largest_rho
from idios.errors import BudgetExceeded, InvalidInput, LedgerError, NotPermitted
from idios.ledger import Account, Anchor, ChargeRequest, Declaration, Ledger, Reservation, Role, StoredAnswer
from tests.ledger.ledger_place import Place
from tests.ledger.ledger_worker import table

DATASETS = st.sampled_from(["people", "firms"])
ANALYSTS = st.sampled_from(["ada", "bob"])
ASKERS = st.sampled_from([None, "ada", "bob"])
QUESTIONS = st.sampled_from(["median(x)", "max(x)", "count(*)"])
VERSIONS = st.sampled_from(["1", "2"])
AMOUNTS = st.sampled_from([Fraction(text) for text in ("0", "1/3", "1/7", "0.1", "1/2")])
BUDGETS = st.sampled_from([Fraction(text) for text in ("1/3", "1", "1.5")])

ACCOUNTINGS = st.sampled_from(["pure", "concentrated"])
# How a question is answered: its ρ in terms of ε²/2, and whether it has an ε of its own.
METHODS = st.sampled_from([(Fraction(1), True), (Fraction(1, 4), True), (Fraction(1, 100), False)])

Key = tuple[str, str, str, Fraction, Fraction]


class LedgerAgainstModel(RuleBasedStateMachine):
    """The model: budgets, caps, what each analyst paid for, and answers, in plain dictionaries."""

    ledger: Ledger

    def open(self) -> None:
        self.ledger = Ledger.open("sqlite://")

    def __init__(self) -> None:
        super().__init__()
        self.open()
        self.budgets: dict[str, list[Fraction]] = {}
        self.declared: dict[str, list[Fraction]] = {}
        self.accounting: dict[str, str] = {}
        self.forfeited: dict[str, list[Fraction]] = {}
        self.forfeited_rho: dict[str, tuple[Fraction, bool]] = {}
        self.method: dict[Key, tuple[Fraction, bool]] = {}
        self.retired: set[str] = set()
        self.caps: dict[tuple[str, str], tuple[Fraction | None, Fraction | None]] = {}
        self.withdrawn: set[tuple[str, str]] = set()
        self.tokens: dict[str, tuple[str, Role]] = {}
        self.revoked: set[str] = set()
        self.charged: dict[Key, str | None] = {}
        self.paid: set[tuple[Key, str]] = set()
        self.open_reservations: list[tuple[Key, Reservation]] = []
        self.anchors: list[Anchor] = []
        self.draws = itertools.count()

    @initialize()
    def analysts(self) -> None:
        self.ledger.add_analyst("ada")
        self.ledger.add_analyst("bob")

    @rule(dataset=DATASETS, version=VERSIONS, epsilon=BUDGETS, delta=AMOUNTS, accounting=ACCOUNTINGS)
    def declare(self, dataset: str, version: str, epsilon: Fraction, delta: Fraction, accounting: str) -> None:
        if accounting == "concentrated" and delta == 0:
            with pytest.raises(InvalidInput):
                Declaration(dataset, version, epsilon, delta, accounting=accounting)
            return
        declaration = Declaration(dataset, version, epsilon, delta, accounting=accounting)
        if dataset in self.retired:
            with pytest.raises(NotPermitted):
                self.ledger.declare(declaration)
            return
        recorded = self.budgets.setdefault(dataset, [epsilon, delta])
        before = self.declared.setdefault(dataset, [epsilon, delta])
        known = [with_delta for with_epsilon, with_delta in (before, recorded) if with_epsilon == epsilon]
        if not known or delta not in (0, *known):
            with pytest.raises(LedgerError):
                self.ledger.declare(declaration)
        else:
            self.ledger.declare(declaration)
            self.accounting[dataset] = accounting
            # one that declares no δ leaves what is recorded of it
            self.declared[dataset] = [epsilon, delta if delta in known else known[0]]

    @rule(dataset=DATASETS, more=AMOUNTS.filter(bool))
    def raise_budget(self, dataset: str, more: Fraction) -> None:
        if dataset not in self.budgets or dataset in self.retired:
            with pytest.raises(NotPermitted):
                self.ledger.raise_budget(dataset, epsilon=more)
        else:
            self.budgets[dataset][0] += more
            self.ledger.raise_budget(dataset, epsilon=self.budgets[dataset][0])

    @rule(dataset=DATASETS, epsilon=AMOUNTS.filter(bool), delta=AMOUNTS, rho=st.none() | AMOUNTS)
    def forfeit(self, dataset: str, epsilon: Fraction, delta: Fraction, rho: Fraction | None) -> None:
        if dataset not in self.budgets:
            with pytest.raises(NotPermitted):
                self.ledger.forfeit(dataset, epsilon=epsilon, delta=delta, rho=rho, reason="lost")
        else:
            self.ledger.forfeit(dataset, epsilon=epsilon, delta=delta, rho=rho, reason="lost")
            lost, pure = self.forfeited_rho.get(dataset, (Fraction(0), True))
            self.forfeited_rho[dataset] = (lost + (epsilon**2 / 2 if rho is None else rho), pure and rho is None)
            before = self.forfeited.setdefault(dataset, [Fraction(0), Fraction(0)])
            self.forfeited[dataset] = [before[0] + epsilon, before[1] + delta]

    @precondition(lambda self: len(self.charged) > 5)
    @rule(dataset=DATASETS)
    def retire(self, dataset: str) -> None:
        if dataset in self.budgets:
            self.ledger.retire(dataset)
            self.retired.add(dataset)

    @rule(analyst=ANALYSTS, dataset=DATASETS, epsilon=st.none() | BUDGETS, delta=st.none() | AMOUNTS)
    def grant(self, analyst: str, dataset: str, epsilon: Fraction | None, delta: Fraction | None) -> None:
        if dataset not in self.budgets or dataset in self.retired:
            with pytest.raises(NotPermitted):
                self.ledger.grant(analyst, dataset, epsilon=epsilon, delta=delta)
        else:
            self.ledger.grant(analyst, dataset, epsilon=epsilon, delta=delta)
            self.caps[analyst, dataset] = (epsilon, delta)
            self.withdrawn.discard((analyst, dataset))

    @rule(analyst=ANALYSTS, dataset=DATASETS)
    def withdraw(self, analyst: str, dataset: str) -> None:
        if (analyst, dataset) not in self.caps:
            with pytest.raises(NotPermitted):
                self.ledger.withdraw(analyst, dataset)
        else:
            self.ledger.withdraw(analyst, dataset)
            self.withdrawn.add((analyst, dataset))

    @rule(name=ANALYSTS, role=st.sampled_from(Role))
    def issue_token(self, name: str, role: Role) -> None:
        self.tokens[self.ledger.issue_token(name, role=role).secret] = (name, role)

    @precondition(lambda self: self.tokens.keys() - self.revoked)
    @rule(data=st.data())
    def revoke_token(self, data: st.DataObject) -> None:
        secret = data.draw(st.sampled_from(sorted(self.tokens.keys() - self.revoked)))
        self.ledger.revoke_token(self.ledger.authenticate(secret).token)
        self.revoked.add(secret)

    @rule(
        dataset=DATASETS,
        version=VERSIONS,
        analyst=ASKERS,
        question=QUESTIONS,
        epsilon=AMOUNTS,
        delta=st.just(Fraction(0)) | AMOUNTS,
        method=METHODS,
    )
    def ask(
        self,
        dataset: str,
        version: str,
        analyst: str | None,
        question: str,
        epsilon: Fraction,
        delta: Fraction,
        method: tuple[Fraction, bool],
    ) -> None:
        share, pure = method
        rho = share * epsilon**2 / 2
        request = ChargeRequest(dataset, version, analyst, question, epsilon, delta, rho, pure)
        key = (dataset, version, question, epsilon, delta)
        permitted = dataset in self.budgets and dataset not in self.retired
        if not permitted or (analyst is not None and not self.may_ask(analyst, dataset)):
            with pytest.raises(NotPermitted):
                self.ledger.reserve(request)
            return
        new = key not in self.charged
        pays = analyst is not None and (key, analyst) not in self.paid
        charged_rho, charged_pure = self.method.get(key, (rho, pure))
        if not new and self.charged[key] is None and (rho > charged_rho or (charged_pure and not pure)):
            with pytest.raises(InvalidInput):
                self.ledger.reserve(request)
            return
        amounts = (epsilon, delta, charged_rho, charged_pure)
        if (new and not self.fits(dataset, None, *amounts)) or (pays and not self.fits(dataset, analyst, *amounts)):
            with pytest.raises(BudgetExceeded):
                self.ledger.reserve(request)
            return
        result = self.ledger.reserve(request)
        if new:
            self.charged[key], self.method[key] = None, (rho, pure)
        if analyst is not None:
            self.paid.add((key, analyst))
        if self.charged[key] is None:
            assert isinstance(result, Reservation)
            assert result.joined is not new
            self.open_reservations.append((key, result))
        else:
            assert isinstance(result, StoredAnswer)
            assert result.text == self.charged[key]

    @precondition(lambda self: self.open_reservations)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key, reservation = data.draw(st.sampled_from(self.open_reservations))
        draw = f'{{"draw": {next(self.draws)}}}'
        if key[0] in self.retired:
            with pytest.raises(NotPermitted):
                self.ledger.release(reservation, table(draw))
            return
        if self.charged[key] is None:
            self.charged[key] = draw
        assert self.ledger.release(reservation, table(draw)).text == self.charged[key]

    @precondition(lambda self: self.open_reservations)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        _, reservation = data.draw(st.sampled_from(self.open_reservations))
        self.ledger.fail(reservation, "lost")

    @rule()
    def anchor(self) -> None:
        self.anchors.append(self.ledger.head())

    @rule()
    def rebuild(self) -> None:
        self.ledger.rebuild()

    @invariant()
    def balances_agree(self) -> None:
        for dataset, (epsilon, delta) in self.budgets.items():
            balance = self.ledger.balance(dataset)
            assert [balance.epsilon.budget, balance.delta.budget] == [epsilon, delta]
            assert [balance.epsilon.spent, balance.delta.spent] == self.spent(dataset, None)
            rho, pure = self.spent_rho(dataset, None)
            assert balance.pure is pure
            assert (balance.rho is None) is (self.accounting[dataset] == "pure")
            if balance.rho is not None:
                assert balance.rho == Account(self.most_rho(dataset, None), rho)
            lost = self.forfeited.get(dataset, [Fraction(0), Fraction(0)])
            assert balance.delta.spent - lost[1] <= delta
            assert balance.epsilon.remaining == max(epsilon - balance.epsilon.spent, 0)
        granted = {(balance.analyst, balance.dataset) for balance in self.ledger.grants()}
        assert granted == self.caps.keys() - self.withdrawn
        for (analyst, dataset), caps in self.caps.items():
            if (analyst, dataset) in self.withdrawn:
                continue
            balance = self.ledger.balance(dataset, analyst)
            assert (balance.epsilon.budget, balance.delta.budget) == caps
            assert [balance.epsilon.spent, balance.delta.spent] == self.spent(dataset, analyst)
            rho, pure = self.spent_rho(dataset, analyst)
            assert balance.pure is pure
            if balance.rho is not None:
                assert (balance.rho.budget, balance.rho.spent) == (self.most_rho(dataset, analyst), rho)

    def teardown(self) -> None:
        assert self.ledger.verify().ok
        assert all(self.ledger.verify(anchor).ok for anchor in self.anchors[-3:])
        for secret, held in self.tokens.items():
            if secret in self.revoked:
                with pytest.raises(NotPermitted):
                    self.ledger.authenticate(secret)
            else:
                identity = self.ledger.authenticate(secret)
                assert (identity.name, identity.role) == held
        released = sorted(answer for answer in self.charged.values() if answer is not None)
        assert sorted(answer.text for answer in self.ledger.answers()) == released
        for analyst in ("ada", "bob"):
            learnt = [
                answer for key, answer in self.charged.items() if answer is not None and (key, analyst) in self.paid
            ]
            assert sorted(answer.text for answer in self.ledger.answers(analyst=analyst)) == sorted(learnt)
        self.ledger.close()

    def spent(self, dataset: str, analyst: str | None) -> list[Fraction]:
        keys = [key for key in self.charged if key[0] == dataset and (analyst is None or (key, analyst) in self.paid)]
        lost = self.forfeited.get(dataset) if analyst is None else None
        start = lost or [Fraction(0), Fraction(0)]
        return [sum((key[index] for key in keys), start[index - 3]) for index in (3, 4)]  # type: ignore[misc]

    def may_ask(self, analyst: str, dataset: str) -> bool:
        return (analyst, dataset) in self.caps and (analyst, dataset) not in self.withdrawn

    def spent_rho(self, dataset: str, analyst: str | None) -> tuple[Fraction, bool]:
        methods = [
            self.method[key]
            for key in self.charged
            if key[0] == dataset and (analyst is None or (key, analyst) in self.paid)
        ]
        if analyst is None and dataset in self.forfeited_rho:
            methods.append(self.forfeited_rho[dataset])
        return sum((rho for rho, _ in methods), Fraction(0)), all(pure for _, pure in methods)

    def most_rho(self, dataset: str, analyst: str | None) -> Fraction | None:
        epsilon, delta = self.budgets[dataset]
        left = delta - self.spent(dataset, None)[1]
        if analyst is not None:
            caps = self.caps[analyst, dataset]
            if caps == (None, None):
                return None
            epsilon = epsilon if caps[0] is None else caps[0]
            left = left if caps[1] is None else min(left, caps[1] - self.spent(dataset, analyst)[1])
        return Fraction(0) if left <= 0 else find_largest_rho(epsilon, left)

    def fits(
        self, dataset: str, analyst: str | None, epsilon: Fraction, delta: Fraction, rho: Fraction, pure: bool
    ) -> bool:
        limits = self.budgets[dataset] if analyst is None else self.caps[analyst, dataset]
        by_epsilon, by_delta = (
            amount == 0 or limit is None or spent + amount <= limit
            for limit, spent, amount in zip(limits, self.spent(dataset, analyst), (epsilon, delta), strict=True)
        )
        spent_rho, spent_pure = self.spent_rho(dataset, analyst)
        by_epsilon = by_epsilon and (limits[0] is None or rho == 0 or (spent_pure and pure))
        if self.accounting[dataset] == "pure":
            return by_epsilon and by_delta
        most = self.most_rho(dataset, analyst)
        if most is None:
            return True
        by_epsilon = by_epsilon and spent_pure and pure
        return delta == 0 and (by_epsilon or rho == 0 or spent_rho + rho <= most)


@pytest.mark.slow
def test_random_histories_in_memory() -> None:
    run_state_machine_as_test(
        LedgerAgainstModel, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_random_histories_on_disk(engine: str, request: pytest.FixtureRequest) -> None:
    place: Place = request.getfixturevalue(f"{engine}_place")
    empty: dict[str, list[dict[str, Any]]] = {}

    class OnDisk(LedgerAgainstModel):
        def open(self) -> None:
            # Each history starts empty: hypothesis runs many in one test.
            if not empty:
                place.open().close()
                empty.update(place.copied())
            place.put_back(empty)
            self.ledger = place.open()

        @rule()
        def reopen(self) -> None:
            self.ledger.close()
            self.ledger = place.open()

    run_state_machine_as_test(
        OnDisk,
        settings=settings(
            max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
