"""`deployctl demo`: a real restart on this machine, without Proxmox and SSH, through the same code as any other target."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deployctl.demo.workspace import Workspace

WORDS = ("restart", "ct200", "--profile-interval", "60")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo", rich_help_panel="Commands")(demo)


KEEP = typer.Option("--keep", metavar="DIR", help="Make the workspace there and leave it, with the trainer.")


def demo(keep: Annotated[Path | None, KEEP] = None) -> int:
    """Make a small workspace, start an old version of a trainer there, and restart it with new scripts and a new flag."""
    from deployctl.demo import workspace

    if keep is None:
        with tempfile.TemporaryDirectory(prefix="deployctl-demo-") as directory:
            made = workspace.make(Path(directory))
            try:
                return _play(made, workspace.start_old(made))
            finally:
                workspace.stop(made)
    made = workspace.make(keep.absolute())
    status = _play(made, workspace.start_old(made))
    print("\n".join(_go_on(made.directory)))
    return status


def _play(made: Workspace, old: int) -> int:
    from deployctl.cli import main

    print(f"made a workspace in {made.directory}: hosts.yaml, playbooks/restart.yaml, train/ (new scripts), target/dflash/ (what runs)")
    print(f"started an old version of the trainer as pid {old}\n")
    print(f"$ cd {made.directory} && deployctl {' '.join(WORDS)}\n", flush=True)
    before = Path.cwd()
    os.chdir(made.directory)
    for name in ("DEPLOYCTL_HOSTS", "DEPLOYCTL_PLAYBOOKS"):
        os.environ.pop(name, None)  # the workspace's own files are meant
    try:
        return main.call(list(WORDS))
    finally:
        os.chdir(before)


def _go_on(directory: Path) -> list[str]:
    """What to do next in a workspace that was kept."""
    own, found = Path(sys.argv[0]).absolute(), shutil.which("deployctl")
    known = own.name != "deployctl" or (found is not None and Path(found).samefile(own))
    reach = [] if known else [f"  export PATH={shlex.quote(str(own.parent))}:$PATH"]
    return [
        "",
        "the workspace and the trainer stay. Go on:",
        *reach,
        f"  cd {shlex.quote(str(directory))} && deployctl restart ct200 --profile-interval 30",
        "  deployctl status ct200",
        "to reach a real host, change hosts.yaml:",
        "  hosts:   {pve1: {ssh: root@pve1.example.org}}",
        "  targets: {ct200: {host: pve1, ct: 200}}",
        "and in playbooks/restart.yaml the directory, the command, `match` and `to:`.",
    ]
