"""How rows look as bytes in systems that know no columns."""
