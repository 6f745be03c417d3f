"""What a function says of arguments that it cannot take, beside their types."""

from __future__ import annotations


class Refused(Exception):
    """Why a call cannot be made. It is caught where the call is bound, and told with the step and the expression."""
