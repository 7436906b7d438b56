#!/usr/bin/env python3
# state: an event loop that does its rounds; nothing is sent
# after: running
# cure: INT
# useless: false
import asyncio
import os


async def rounds():
    print("ready", os.getpid(), flush=True)
    while True:
        await asyncio.sleep(0.05)


try:
    asyncio.run(rounds())
except KeyboardInterrupt:
    pass
