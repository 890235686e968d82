"""From a question to a plan: what is released, with which ε, by which mechanism, from public facts alone.

``question`` has what travels, ``planner`` makes the plan, ``budget`` divides ε, ``reductions`` has units.
It reads no data.
"""
