"""`python -m headwater.cli` is `headwater`, where scripts of packages are not on the path."""

from headwater.cli.app import main

main()
