"""A FUSE file system with one file, `file`, whose daemon reads every request and leaves the chosen ones without an answer.

The daemon alone has /dev/fuse open, so that its end aborts the connection and frees whoever waits.
"""

import ctypes
import os
import signal
import struct

LOOKUP, GETATTR, OPEN, READ, WRITE, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR, CREATE = 1, 3, 14, 15, 16, 18, 25, 26, 27, 29, 35
SETATTR, ACCESS, FORGET, INTERRUPT, BATCH_FORGET = 4, 34, 2, 36, 42
ASYNC_READ = 1
NO_SUCH_FILE, NO_SUCH_CALL = 2, 38
LENGTH = 1 << 16  # of the file, bytes
TOP, FILE = 1, 2  # inodes
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)  # the kernel wants no answer to these


def mount(*silent):
    """Where it is mounted; prints the daemon's pid as `name daemon`, and `unmount`."""
    place = os.path.join(os.environ["SCRATCH"], "remote")
    os.mkdir(place)
    read, write = os.pipe()
    daemon = os.fork()
    if not daemon:
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            device = os.open("/dev/fuse", os.O_RDWR)
            attach(device, place)
            os.write(write, b"1")
            serve(device, silent)
        finally:
            os._exit(1)
    os.close(write)
    print("unmount", place, flush=True)
    print("name daemon", daemon, flush=True)
    if os.read(read, 1) != b"1":
        raise OSError("the file system cannot be mounted")
    os.close(read)
    return place


def attach(device, place):
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"silent", place.encode(), b"fuse", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")


def attributes(inode):
    mode, size = (0o040755, 0) if inode == TOP else (0o100600, LENGTH)
    return struct.pack("<6Q10I", inode, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(code, inode, body):
    """The payload of an answer; None for a file or a call that we do not have. Source: include/uapi/linux/fuse.h"""
    if code == INIT:
        return struct.pack("<4I2HI", 7, 22, LENGTH, ASYNC_READ, 16, 12, LENGTH)
    if code == LOOKUP and body == b"file\0":
        return struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE)
    if code == CREATE:
        return struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE) + struct.pack("<Q2I", 1, 0, 0)
    if code in (GETATTR, SETATTR):
        return struct.pack("<Q2I", 0, 0, 0) + attributes(inode)
    if code in (OPEN, OPENDIR):
        return struct.pack("<Q2I", 1, 0, 0)
    if code == WRITE:
        return struct.pack("<2I", struct.unpack_from("<2QI", body)[2], 0)
    if code == READ:
        return bytes(min(struct.unpack_from("<2QI", body)[2], LENGTH))
    return b"" if code in (FLUSH, RELEASE, RELEASEDIR, ACCESS) else None


def serve(device, silent):
    while True:
        request = os.read(device, LENGTH + 4096)
        _, code, number, inode = struct.unpack_from("<2I2Q", request)
        if code in silent or code in UNANSWERED:
            continue
        payload = answer(code, inode, request[40:])
        error = 0 if payload is not None else -NO_SUCH_FILE if code == LOOKUP else -NO_SUCH_CALL
        os.write(device, struct.pack("<IiQ", 16 + len(payload or b""), error, number) + (payload or b""))
