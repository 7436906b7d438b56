"""python -m tests.stuck: brings each state about, asks `deployctl why` before and after the signal, and prints a table."""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.stuck import family, rounds
from tests.stuck import header as headers
from tests.stuck.header import Header
from tests.stuck.looking import ROOT
from tests.stuck.rounds import LONGEST, How, Row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stuck", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME,…", help="programs, by a part of their names, or verdicts")
    parser.add_argument("--jobs", type=int, default=4, help="how many at a time")
    parser.add_argument("--bare", action="store_true", help="without `why`: only whether each program does what its header says")
    parser.add_argument("--piped", action="store_true", help="what the programs print goes into a pipe, where `why` cannot read it")
    parser.add_argument("--one", metavar="NAME", help="this one, in this process; prints its row as JSON")
    parser.add_argument("--programs", type=Path, default=headers.PROGRAMS, metavar="DIR", help="where the programs are, if not here")
    parser.add_argument("--patience", type=float, default=family.PATIENCE, help="seconds for each thing that must come")
    words = parser.parse_args()
    everything = headers.everything(words.programs)
    how = How(words.bare, words.piped, patience=words.patience)
    if words.one:
        return one(next(header for header in everything if header.name == words.one), how)
    chosen = [header for header in everything if _chosen(header, words.only)]
    return table(chosen, words.jobs, how)


def _chosen(header: Header, only: str) -> bool:
    return not only or any(word in header.name or word == header.after[0].verdict for word in only.split(","))


def one(header: Header, how: How) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that everything is ended and unmounted
    row = rounds.play(header, how)
    print(json.dumps(dataclasses.asdict(row)))
    return 1 if row.wrong else 0


def apart(header: Header, how: How) -> Row:
    """The round in a process of its own, which adopts whatever the program leaves."""
    argv = [sys.executable, "-m", "tests.stuck", "--one", header.name, "--programs", str(header.path.parent), *how.words()]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT)
    try:
        out = process.communicate(timeout=LONGEST)[0]
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    if not out.strip():
        return Row(header.name, str(header.after[0]), wrong=[f"the driver ended with {process.returncode}"])
    return Row(**json.loads(out.splitlines()[-1]))


def table(chosen: list[Header], jobs: int, how: How) -> int:
    """Prints a line a program in the order of the verdicts; 1 when one is wrong."""
    here = [header for header in chosen if not headers.missing(header)]
    print(f"{'program':<28} {'expected':<36} {'given':<36} {'confidence':<11} {'s':>5}")
    with ThreadPoolExecutor(jobs) as pool:
        rows = [row for row in pool.map(lambda header: apart(header, how), here) if _printed(row)]
    for header in chosen:
        if header not in here:
            print(f"{header.name:<28} left out: needs {', '.join(headers.missing(header))}")
    wrong = sum(bool(row.wrong) for row in rows)
    print(f"{len(rows) - wrong} right, {wrong} wrong, {len(chosen) - len(here)} left out")
    return 1 if wrong else 0


def _printed(row: Row) -> bool:
    print(f"{row.name:<28} {row.expected:<36} {row.given:<36} {row.confidence:<11} {row.seconds:>5.1f}", flush=True)
    for wrong in row.wrong:
        print(f"    WRONG {wrong}", flush=True)
    for line in row.evidence if row.wrong else []:
        print(f"      {line}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
