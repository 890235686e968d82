"""The durable budget: who may spend what, what was spent, what was answered, in a signed chain."""

from idios.ledger.backup import Restored, back_up_ledger, restore
from idios.ledger.chain import Anchor, Entry
from idios.ledger.identity import Identity, Role
from idios.ledger.ledger import Ledger
from idios.ledger.request import Declaration, Price, Request, Reservation, StoredAnswer
from idios.ledger.rows import Token
from idios.ledger.running import Running, RunningQuestions
from idios.ledger.spending import Spending, Step
from idios.ledger.verification import Verification
from idios.model import Account, Balance

__all__ = [
    "Account",
    "Anchor",
    "Balance",
    "Declaration",
    "Entry",
    "Identity",
    "Ledger",
    "Price",
    "Request",
    "Reservation",
    "Restored",
    "Role",
    "Running",
    "RunningQuestions",
    "Spending",
    "Step",
    "StoredAnswer",
    "Token",
    "Verification",
    "back_up_ledger",
    "restore",
]
