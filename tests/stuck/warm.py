"""Rounds in processes that are forked from one that has all modules already, for CI: each costs half of the processor's time.

The looks then run the command's own function in the driver. The table runs the command as a person does.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from multiprocessing.connection import Connection

import deployctl.cli.main
import deployctl.cli.whys  # noqa: F401 (to have it)
from tests.stuck import rounds
from tests.stuck.header import Header
from tests.stuck.rounds import LONGEST, How, Row

HOW = How(warm=True)


def apart(header: Header, how: How = HOW) -> Row:
    """The round in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(header, how, writer))
    process.start()
    writer.close()
    try:
        row: Row = reader.recv() if reader.poll(LONGEST) else Row(header.name, "", wrong=["the driver took too long"])
    except EOFError:
        row = Row(header.name, "", wrong=["the driver broke off"])
    finally:
        process.terminate()
        process.join()
        reader.close()
    return row


def _serve(header: Header, how: How, answers: Connection) -> None:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    answers.send(rounds.play(header, how))
