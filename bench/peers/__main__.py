"""``python -m bench.peers``: the same questions to every peer, on generated data and on a folder of CSV files.

    python -m bench.peers [--data FOLDER] [--quick]

Each peer is installed into an environment of its own under .bench; what does not install is said and left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
PEERS = {
    "idios": [f"{ROOT}"],
    "opendp": ["opendp"],
    "diffprivlib": ["diffprivlib", "scikit-learn<1.6"],
    "smartnoise": ["smartnoise-sql"],
    "tumult": ["tmlt.analytics"],
}
COLUMNS = {"census": "fedtax", "eia": "resrevenue", "tarragona": "net_profit", "pums": "income"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of CSV files to ask about as well")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller data")
    chosen = parser.parse_args()
    pythons = {}
    for peer, needs in PEERS.items():
        python = installed(peer, needs)
        if python is None:
            print(f"{peer}: does not install here, left out")
        else:
            pythons[peer] = python
    print(f"{'data':<28}{'statistic':<38}{'peer':<14}{'mean |error|':>16}{'seconds':>12}")
    for name, values, low, high in tables(chosen.data, 10**4 if chosen.quick else 10**5):
        for peer, python in pythons.items():
            asked = {"peer": peer, "values": values.tolist(), "low": low, "high": high, "epsilon": 1.0}
            asked["times"] = 3 if chosen.quick else 10
            for statistic, found in answered(python, asked).items():
                print(row(name, statistic, peer, found, values), flush=True)
    return 0


def tables(folder: Path | None, size: int) -> Iterator[tuple[str, np.ndarray, float, float]]:
    """Generated data, then the known columns of a folder; the bounds are the powers of ten around the data."""
    rng = np.random.default_rng(1)
    yield "normal (0, 1)", rng.normal(0, 1, size), -100.0, 100.0
    yield "lognormal (10, 1)", rng.lognormal(10, 1, size), 0.0, 1e7
    for name, column in COLUMNS.items() if folder else ():
        path = folder / f"{name}.csv"  # type: ignore[operator]
        if not path.exists():
            continue
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        found = next((key for key in rows[0] if key.lower() == column), None)
        if found is None:
            continue
        values = np.array([float(line[found]) for line in rows if line[found] not in ("", "NA")])
        reach = 10.0 ** np.ceil(np.log10(np.abs(values).max()))
        yield f"{name}.{column}", values, -reach if values.min() < 0 else 0.0, reach


def installed(peer: str, needs: list[str]) -> Path | None:
    """The Python of a peer's environment."""
    folder = ROOT / ".bench" / peer
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {peer} ...", flush=True)
        venv.create(folder, with_pip=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", *needs], capture_output=True, check=False)
        if done.returncode:
            (folder / "bin" / "python").unlink()
            return None
    return python


def answered(python: Path, asked: dict[str, object]) -> dict[str, dict[str, object]]:
    """Ask a peer in its own process."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [python, HERE / "ask.py"], input=json.dumps(asked), capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        return {"": {"error": done.stderr.strip().splitlines()[-1][:80]}}
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def row(name: str, statistic: str, peer: str, found: dict[str, object], values: np.ndarray) -> str:
    if "error" in found:
        return f"{name:<28}{statistic:<38}{peer:<14}{found['error']}"
    truth = true_value(statistic, values)
    answers = [a for a in found["answers"] if a is not None]  # type: ignore[union-attr]
    error = float(np.mean([abs(a - truth) for a in answers])) if answers else float("nan")
    return f"{name:<28}{statistic:<38}{peer:<14}{error:>16.6g}{found['seconds']:>12.4f}"


def true_value(statistic: str, values: np.ndarray) -> float:
    ordered = np.sort(values)
    if statistic.startswith("median"):
        return float(np.median(ordered))
    if statistic == "second largest":
        return float(ordered[-2])
    if statistic == "maximum":
        return float(ordered[-1])
    cut = len(ordered) // 20 if "trimmed" in statistic else 0
    return float(ordered[cut : len(ordered) - cut].mean())


if __name__ == "__main__":
    sys.exit(main())
