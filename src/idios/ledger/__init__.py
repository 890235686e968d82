"""The durable budget: who may spend what, what was spent, what was answered, in a signed chain."""

from idios.ledger.balance import Account, Balance
from idios.ledger.chain import Anchor, Entry
from idios.ledger.ledger import Ledger
from idios.ledger.request import Declaration, Price, Request, Reservation, StoredAnswer
from idios.ledger.rows import Token
from idios.ledger.verification import Verification

__all__ = [
    "Account",
    "Anchor",
    "Balance",
    "Declaration",
    "Entry",
    "Ledger",
    "Price",
    "Request",
    "Reservation",
    "StoredAnswer",
    "Token",
    "Verification",
]
