"""The copies of state that Python workers hold, and how a worker uses one that another has."""
