"""PostgreSQL: tables that lookups ask, and tables that epochs are written to, each in one transaction."""

from headwater.connectors.postgres.lookup import PostgresTable
from headwater.connectors.postgres.sink import PostgresSink

__all__ = ["PostgresSink", "PostgresTable"]
