"""Savepoints as tables: read them, write them from tables, and see beforehand whether a program can go on from one."""

from headwater.savepoints.fitting import Fate, Fit, Upgrade
from headwater.savepoints.tables.checking import check
from headwater.savepoints.tables.reading import SavedJob, SavedState, read
from headwater.savepoints.tables.writing import write

__all__ = ["Fate", "Fit", "SavedJob", "SavedState", "Upgrade", "check", "read", "write"]
