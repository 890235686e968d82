"""How the tables of an older ledger become those of this version; run by `idios ledger upgrade`.

Rules:

1. A migration is never edited once a ledger may have been made with it: it says what its tables are in its own
   words, whatever tables.py says today.
2. It changes tables, never entries. The derived rows are made anew from the chain afterwards (upgrading.py).
3. A new ledger is made at once as tables.py says; a test holds that against all migrations in their order.
"""
