"""From SQL text to a plan: public facts only, no data is touched here."""
