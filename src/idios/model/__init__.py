"""What travels: between party, ledger, server, client and command line, each defined once, to JSON and back."""

from idios.model.answer import Answer, QuestionProgress, QuestionRequest, QuestionState
from idios.model.balance import Account, Accounting, Balance, BalanceList, Cost, Holder, Role
from idios.model.dataset_facts import ColumnFacts, DatasetFacts, DatasetList, FunctionFacts, TableFacts
from idios.model.quote import Quote
from idios.model.released import AnswerPage, Distance, ReleasedAnswer, ReleasedTable

__all__ = [
    "Account",
    "Accounting",
    "Answer",
    "AnswerPage",
    "Balance",
    "BalanceList",
    "ColumnFacts",
    "Cost",
    "DatasetFacts",
    "DatasetList",
    "Distance",
    "FunctionFacts",
    "Holder",
    "QuestionProgress",
    "QuestionRequest",
    "QuestionState",
    "Quote",
    "ReleasedAnswer",
    "ReleasedTable",
    "Role",
    "TableFacts",
]
