"""A hundred medians within one budget: errors with pure and with concentrated accounting, and how many questions fit.

    python -m bench.many_medians [--sets 5]

It prints the tables of docs/evaluation.md, in Markdown. Each party holds 10,000 records of 100 columns, has a budget of
(1, 10⁻⁶), and is asked for the median of every column with the greatest ε for which all hundred fit. The errors are
those of the answers given; no bounds are declared.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

import idios
from idios.core.concentrated import find_largest_rho, pure_rho, range_rho
from idios.core.exact import round_root_down
from idios.errors import BudgetExceeded

RECORDS, COLUMNS = 10_000, 100
BUDGET, DELTA = Fraction(1), Fraction(1, 10**6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=5, help="how many tables are made")
    sets = parser.parse_args().sets
    print("| level | pure: ε each | mean error | concentrated: ε each | mean error | ratio |")
    print("|---|---|---|---|---|---|")
    for level in ("differential", "individual"):
        most = find_largest_rho(BUDGET, DELTA) / COLUMNS
        each = round_root_down(most * (8 if level == "differential" else 2))
        pure = measure(level, "pure", BUDGET / COLUMNS, sets)
        concentrated = measure(level, "concentrated", each, sets)
        print(
            f"| `{level}` | {float(BUDGET / COLUMNS):.4g} | {pure:.1f} | {float(each):.4g} | {concentrated:.1f} "
            f"| {pure / concentrated:.1f} |"
        )
    most, share = find_largest_rho(Fraction(5), DELTA), Fraction(1, 20)
    print(f"\nQuestions of ε = 0.05 within (5, 10⁻⁶): 100 with pure accounting, {most // pure_rho(share):,} counts and")
    print(f"{most // range_rho(share):,} medians with concentrated accounting; asked for real until refused:")
    print(f"{ask_until_refused('COUNT(*)', share)} counts, {ask_until_refused('MEDIAN(x)', share)} medians.")


def measure(level: str, accounting: str, epsilon: Fraction, sets: int) -> float:
    """The mean error of a hundred medians that one budget pays for."""
    errors = []
    for seed in range(sets):
        values = np.random.default_rng(seed).normal(50_000, 10_000, (COLUMNS, RECORDS)).round().astype(np.int64)
        table = {f"c{i}": column for i, column in enumerate(values)}
        budget = BUDGET if accounting == "pure" else {"epsilon": BUDGET, "delta": DELTA}
        with idios.TrustedParty.open(
            table,
            columns={name: {"type": "integer", "nullable": False} for name in table},
            budget=budget,
            accounting=accounting,
            protection=level,
            min_epsilon="0.0001",
            check=0,
        ) as party:
            for name, column in table.items():
                answer = party.query(f"SELECT MEDIAN({name}) FROM data", epsilon).value
                errors.append(abs(answer - float(np.median(column))))
    return float(np.mean(errors))


def ask_until_refused(statistic: str, epsilon: Fraction) -> int:
    """How many different questions a budget of (5, 10⁻⁶) pays for."""
    values = np.random.default_rng(0).integers(0, 100_000, 10_000)
    asked = 0
    with idios.TrustedParty.open(
        {"x": values},
        columns={"x": {"type": "integer", "nullable": False}},
        budget={"epsilon": 5, "delta": DELTA},
        accounting="concentrated",
        protection="differential",
        check=0,
    ) as party:
        while True:
            try:
                party.query(f"SELECT {statistic} FROM data WHERE x > {asked}", epsilon)
            except BudgetExceeded:
                return asked
            asked += 1


if __name__ == "__main__":
    main()
