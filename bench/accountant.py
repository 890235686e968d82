"""Concentrated accounting against Google's dp_accounting, in an environment of its own.

    python -m bench.accountant [--python PATH]

Random histories of 1 to 500 questions. Its zCDP events over many orders should give our ε within 0.1 %; its privacy
loss distributions, which know the whole law of Laplace and Gaussian noise, an ε that is not greater than ours.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from bench.peers import install
from idios.core.concentrated import convert_to_epsilon, pure_rho, range_rho

EPSILONS = [Fraction(text) for text in ("0.01", "0.02", "0.05", "0.1", "0.25", "0.5", "1")]
DELTAS = [Fraction(1, 10**places) for places in (3, 6, 9)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="a Python that has dp_accounting; otherwise it is installed")
    python = parser.parse_args().python or install("dp_accounting", ["dp_accounting"])
    if python is None:
        print("dp_accounting does not install here")
        return 1
    chance = random.Random(1)
    histories = [draw_mixed(chance) for _ in range(100)] + [draw_noises(chance) for _ in range(30)]
    script = Path(__file__).parent / "peers" / "account.py"
    done = subprocess.run(
        [str(python), str(script)], input=json.dumps(histories), capture_output=True, text=True, check=True
    )
    apart, above = 0.0, 0.0
    for history, found in zip(histories, json.loads(done.stdout), strict=True):
        ours = history["epsilon"]
        apart = max(apart, abs(found["zcdp"] / ours - 1))
        above = max(above, found.get("pld", 0.0) / ours)
    print(f"{len(histories)} histories: zCDP within {apart:.2e} of ours (expected: below 1e-3),")
    print(f"privacy loss distributions at most {above:.4f} of ours (expected: at most 1)")
    return int(apart > 1e-3 or above > 1)


def draw_mixed(chance: random.Random) -> dict[str, object]:
    """Questions of every kind, one by one."""
    rhos = []
    for _ in range(chance.randint(1, 500)):
        epsilon = chance.choice(EPSILONS)
        share = chance.choice([Fraction(1, 2), Fraction(2, 3)])
        above_threshold = range_rho(epsilon * share + 2 * epsilon * (1 - share))
        rhos.append(chance.choice([pure_rho(epsilon), range_rho(epsilon), above_threshold]))
    return tell(rhos, chance.choice(DELTAS), [])


def draw_noises(chance: random.Random) -> dict[str, object]:
    """Laplace and Gaussian noise, each several times with the same parameter."""
    rhos, noises = [], []
    for epsilon in chance.sample(EPSILONS[1:6], 3):
        times = chance.randint(1, 60)
        kind = chance.choice(["laplace", "gaussian"])
        rhos += [pure_rho(epsilon)] * times  # of Gaussian noise with σ = 1/ε too
        noises.append((kind, float(1 / epsilon), times))
    return tell(rhos, chance.choice(DELTAS), noises)


def tell(rhos: list[Fraction], delta: Fraction, noises: list[tuple[str, float, int]]) -> dict[str, object]:
    return {
        "rhos": [float(rho) for rho in rhos],
        "delta": float(delta),
        "noises": noises,
        "epsilon": float(convert_to_epsilon(sum(rhos, Fraction(0)), delta)),
    }


if __name__ == "__main__":
    sys.exit(main())
