"""A round without looks, led from outside: in a container, where the driver's programs run and `deployctl why` comes from the controller.

python3 -m tests.stuck.stage NAME: starts the program and says `ready PID` and the pids that it named, as JSON; then does what it reads,
`signal` or `cure`, a word a line, and says `done`. At the end of its stdin it removes everything and says what is left, as JSON.
"""

from __future__ import annotations

import json
import sys

from tests.stuck import family, header
from tests.stuck.rounds import How, Round


def main(name: str) -> None:
    family.adopt()
    round_ = Round(header.read(header.PROGRAMS / name), How())
    try:
        round_.start()
        print("ready", round_.pid, json.dumps(round_.names), flush=True)
        for line in sys.stdin:
            {"signal": round_.signal, "cure": round_.cure}[line.strip()]()
            print("done", flush=True)
    finally:
        print(json.dumps(round_.clean()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
