#!/usr/bin/env python3
# state: an event loop whose handler begins a shutdown that awaits what never happens; no call that a signal leaves alone
# send: INT
# until: says begun
# after: unexplained
# fair: shutdown-pending signal-swallowed
# useless: false unknown
# cure: TERM
import asyncio
import os
import signal


async def serve():
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.add_signal_handler(signal.SIGINT, lambda: print("begun", flush=True))
    print("ready", os.getpid(), flush=True)
    await over


asyncio.run(serve())
