"""The rules of planning, one a file; `plan/plan.py` lists them in order."""
