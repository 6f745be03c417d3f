"""Makes the modules of this folder, and those of expressions, importable by name; they are scripts, not a package."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "expressions")]
