"""Every error Headwater raises on purpose.

A message says the subject and the rule, then the fact, then the next action. The facts are attributes, so that callers
need not parse text. Texts live here, in classmethods, so that one read of this folder shows what a user can meet.
"""

from headwater.errors.ends import PublishError, RowsRefused, SourceError
from headwater.errors.graphs import GraphError, NotKeyed
from headwater.errors.jobs import JavaMissing, JobError, JobFolderDamaged, NewerFormat, StateBudgetExceeded
from headwater.errors.roots import HeadwaterError, nearest, short
from headwater.errors.steps import ChangelogError, StateError, UserCodeError
from headwater.errors.values import DurationError, RowError, SchemaError, SizeError

__all__ = [
    "ChangelogError",
    "DurationError",
    "GraphError",
    "HeadwaterError",
    "JavaMissing",
    "JobError",
    "JobFolderDamaged",
    "NewerFormat",
    "NotKeyed",
    "PublishError",
    "RowError",
    "RowsRefused",
    "SchemaError",
    "SizeError",
    "SourceError",
    "StateBudgetExceeded",
    "StateError",
    "UserCodeError",
    "nearest",
    "short",
]

for _error in HeadwaterError.__subclasses__():
    for _named in (_error, *_error.__subclasses__()):
        _named.__module__ = __name__  # where users import them from, and what a traceback says
HeadwaterError.__module__ = __name__
