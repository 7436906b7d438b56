"""A control group for a program: made here, removed by the driver."""

import os


def make(controller, below=""):
    """The directory of a new group of a v1 controller, or of cgroup v2 for "unified"."""
    base = "/sys/fs/cgroup/" + controller
    if controller == "unified" and not os.path.isdir(base):
        base = "/sys/fs/cgroup"
    path = below + "/inner" if below else f"{base}/stuck-{os.getpid()}"
    os.mkdir(path)
    print("rmdir", path, flush=True)
    return path


def put(path, name, value):
    with open(os.path.join(path, name), "w") as file:
        file.write(str(value))


def get(path, name):
    with open(os.path.join(path, name)) as file:
        return file.read()
