"""How state grows: its course over a run, what follows from that, and the budgets that bound it."""
