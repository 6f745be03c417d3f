"""How a running job gets on: one line in the terminal, and a word when event time stands still."""
