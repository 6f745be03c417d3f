"""Joins: rows kept by key and time, and the operators that pair them."""
