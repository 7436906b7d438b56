"""`deployctl`, and `python -m deployctl`: signals and streams before everything else, so that the imports can be interrupted too."""

from __future__ import annotations

import sys
from typing import NoReturn

from deployctl.cli import interrupts, streams
from deployctl.errors import Interrupted


def main() -> NoReturn:
    """Runs the words of this process and ends it with their status."""
    interrupts.heed()
    streams.steady()
    try:
        from deployctl.cli.main import call

        status = call(sys.argv[1:])
    except Interrupted:
        print("interrupted", file=sys.stderr)
        status = 130
    interrupts.ignore()
    sys.exit(status)


if __name__ == "__main__":
    main()
