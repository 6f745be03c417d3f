"""Steps that keep nothing: Python functions, SQL expressions, Arrow functions; where changelogs begin and end."""
