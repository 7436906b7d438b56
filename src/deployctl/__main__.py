"""`python -m deployctl`."""

from deployctl.cli.main import main

main()
