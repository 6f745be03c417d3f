"""How much a server takes on, and how long it waits for a client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What bounds the memory, the connections and the patience of a server."""

    max_body_bytes: int
    max_bytes_in_flight: int
    """Of all bodies that are being received or worked on."""
    max_waiting: int
    """Requests that have arrived and are being worked on."""
    max_connections: int
    header_s: float
    """From the connection, or the answer before, to the end of a request's headers."""
    body_s: float
    """From there to the end of the body; and for a client to take an answer."""
