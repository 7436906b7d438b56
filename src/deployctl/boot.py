"""How the agent gets into a target: a zip of its modules, and the line of Python that reads it from stdin and starts it."""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Sequence
from importlib import resources

from deployctl.transports.base import PATH

# Must be readable by any Python, down to 2.7: it is what tells that one is too old. Source: memfd_create(2), zipimport.
_SOURCE = """
import os, sys
if sys.version_info < (3, 8):
    sys.exit('deployctl: python %d.%d is too old, 3.8 or newer is needed' % sys.version_info[:2])
size = int(sys.argv[1])
blob = b''
while len(blob) < size:
    piece = os.read(0, size - len(blob))
    if not piece:
        sys.exit('deployctl: the agent did not arrive whole')
    blob += piece
try:
    os.setsid()
except OSError:
    pass
handle = os.memfd_create('deployctl')
with open(handle, 'wb', closefd=False) as memory:
    memory.write(blob)
sys.dont_write_bytecode = True
sys.path.insert(0, '/proc/self/fd/%d' % handle)
from agent.main import main
main(sys.argv[2])
"""


@functools.lru_cache(maxsize=1)
def agent_zip() -> bytes:
    """The agent's modules as `agent/*.py` in a zip; the same bytes for the same sources."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(resources.files("deployctl.agent").iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                archive.writestr(zipfile.ZipInfo(f"agent/{file.name}"), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def argv(python: str | None, nonce: str) -> Sequence[str]:
    """What to exec in the target: plain ASCII without a newline; env looks for python3 where pct's own PATH does not."""
    return ["/usr/bin/env", f"PATH={PATH}", python or "python3", "-I", "-c", f"exec({_SOURCE!r})", str(len(agent_zip())), nonce]
