"""A training loop for real launchers: steps of 0.1 s; on an interrupt each rank writes a checkpoint (tmp, then rename) and leaves with 0.

Words: seconds of a save, `loader` for a DataLoader with forked workers, `thread` for one that is no daemon.
"""

from __future__ import annotations

import os
import sys
import threading
import time

SAVE = float(sys.argv[1])
RANK = os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))


def save() -> None:
    """Writes a checkpoint for so many seconds."""
    name = f"ckpt_{RANK}.pt"
    with open(name + ".tmp", "wb", 0) as out:
        until = time.monotonic() + SAVE
        while time.monotonic() < until:
            out.write(b"x" * 100_000)
            time.sleep(0.05)
    os.rename(name + ".tmp", name)
    print(f"saved {RANK}", flush=True)


def batches():  # type: ignore[no-untyped-def]
    """What the loop runs over."""
    if "loader" not in sys.argv:
        while True:
            yield None
    from torch.utils.data import DataLoader

    while True:
        yield from DataLoader(range(10_000), num_workers=2)


def main() -> None:
    """Trains until it is interrupted."""
    if "RANK" in os.environ:
        import torch.distributed as dist

        dist.init_process_group("gloo")
    if "thread" in sys.argv:
        threading.Thread(target=lambda: time.sleep(3600)).start()
    try:
        for number, _ in enumerate(batches()):
            if number == 2:
                print("READY", flush=True)
            time.sleep(0.1)
    except KeyboardInterrupt:
        save()


main()
