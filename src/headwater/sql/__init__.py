"""Streaming SQL: Flink SQL's text onto the same graph that streams make.

Text is read (`text/`), bound against the catalog to relations (`bind/`, `relations.py`), changed by rules (`rules/`) and
built into nodes of the graph (`build/`). There is no second runtime.
"""
