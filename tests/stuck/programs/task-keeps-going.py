#!/usr/bin/env python3
# state: the interrupt cancels the task of an event loop, and the task takes that for a timeout of its step
# send: INT
# until: says again
# after: signal-swallowed
# fair: shutdown-pending
# useless: false
# cure: TERM
import asyncio
import os
import signal


async def train():
    this = asyncio.current_task()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, this.cancel)
    print("ready", os.getpid(), flush=True)
    while True:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            print("again", flush=True)


asyncio.run(train())
