"""Run inside dp_accounting's environment: read histories from standard input, print what it makes of them as JSON.

It imports nothing of Idios.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    import dp_accounting
    import numpy as np
    from dp_accounting import pld, rdp

    given = json.load(sys.stdin)
    orders = 1 + np.geomspace(0.02, 1e7, 4000)
    found = []
    for history in given:
        accountant = rdp.RdpAccountant(orders)
        for rho in history["rhos"]:
            accountant.compose(dp_accounting.ZCDpEvent(rho))
        epsilons = {"zcdp": accountant.get_epsilon(history["delta"])}
        if history["noises"]:
            exact = pld.PLDAccountant(value_discretization_interval=1e-3)
            for kind, multiplier, times in history["noises"]:
                event = dp_accounting.LaplaceDpEvent if kind == "laplace" else dp_accounting.GaussianDpEvent
                exact.compose(event(multiplier), times)
            epsilons["pld"] = exact.get_epsilon(history["delta"])
        found.append(epsilons)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
