"""OVER: each row with what functions make of the rows of its partition up to it, in the order of time."""
