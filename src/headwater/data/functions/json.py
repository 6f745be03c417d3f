"""JSON in strings."""

from __future__ import annotations

from headwater.data.functions.declared import Function

JSON: tuple[Function, ...] = ()
