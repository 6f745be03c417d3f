"""A job's file: Python with `build(env)`, or with an environment at its top level."""

from __future__ import annotations

import re
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from traceback import TracebackException
from typing import Any

import headwater as hw
from headwater.errors import JobError
from headwater.job.program import MODULE
from headwater.streams.built import built
from headwater.streams.overrides import Overrides, loading
from headwater.uncaught import of_user


def load(file: Path, overrides: Overrides | None = None) -> hw.Environment:
    """The environment that a file makes, with settings that take the place of its own."""
    if not file.is_file():
        raise JobError.no_file(str(file))
    sys.path.insert(0, str(file.parent.absolute()))  # as Python does for a script
    with loading(str(file), overrides or Overrides()):
        try:
            names = _run(file)
            build = names.get("build")
            made, _ = built(build, re.sub(r"[^\w.-]", "-", file.stem)) if callable(build) else (None, None)
        except Exception as error:
            raise JobError.not_loaded(str(file), _trace(error)) from None
        if made is not None and not isinstance(made, hw.Environment):
            raise JobError.no_program(str(file), f"its build() gives a {type(made).__name__}")
        return _only(file, names) if made is None else made


def _run(file: Path) -> dict[str, Any]:
    """What the file defines. It stays a module, so that its functions reach Spark's workers by value or by name."""
    loader = SourceFileLoader(MODULE, str(file.absolute()))
    module = module_from_spec(ModuleSpec(MODULE, loader, origin=str(file)))
    module.__file__ = str(file.absolute())
    sys.modules[MODULE] = module
    loader.exec_module(module)
    return vars(module)


def _only(file: Path, names: dict[str, Any]) -> hw.Environment:
    found = {id(one): one for one in names.values() if isinstance(one, hw.Environment)}
    if len(found) != 1:
        raise JobError.no_program(str(file), "it has neither" if not found else f"it makes {len(found)} environments")
    return next(iter(found.values()))


def _trace(error: Exception) -> str:
    """An error as Python shows it, from the lines of the file on."""
    error.__traceback__ = of_user(error.__traceback__)
    shown = TracebackException.from_exception(error)
    shown.stack[:] = [frame for frame in shown.stack if not frame.filename.startswith("<frozen ")]
    return "".join(shown.format()).rstrip()
