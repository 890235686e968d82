"""The durable budget: who may spend what, what was spent, what was answered, in a signed chain."""

from idios.ledger.backup import Restored, restore
from idios.ledger.chain import Anchor, Entry
from idios.ledger.facts import Promise
from idios.ledger.history import Spending, Step
from idios.ledger.ledger import Ledger
from idios.ledger.operational import RunningQuestion, RunningQuestions
from idios.ledger.request import ChargeRequest, Declaration, Price, Reservation, StoredAnswer
from idios.ledger.state import TokenRow
from idios.ledger.tokens import Identity, IssuedToken
from idios.ledger.verification import Verification
from idios.model import Account, Balance, Role

__all__ = [
    "Account",
    "Anchor",
    "Balance",
    "ChargeRequest",
    "Declaration",
    "Entry",
    "Identity",
    "IssuedToken",
    "Ledger",
    "Price",
    "Promise",
    "Reservation",
    "Restored",
    "Role",
    "RunningQuestion",
    "RunningQuestions",
    "Spending",
    "Step",
    "StoredAnswer",
    "TokenRow",
    "Verification",
    "restore",
]
