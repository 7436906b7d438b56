"""What `deployctl adopt` does. Imported when it is called, not before."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from deployctl import draft, inventory
from deployctl import playbook as playbook_file
from deployctl.cli.playbooks import OPTIONS
from deployctl.errors import RefusedError, WordsError
from deployctl.fields import NAME
from deployctl.report.text import process
from deployctl.runner import open_session
from deployctl.transports.connect import Connections


def adopt(target: str, match: str, name: str | None, to: str | None, environment: Mapping[str, str], cwd: Path) -> int:
    """Writes or prints the playbook; 0. Raises WordsError before anything is contacted, RefusedError for what cannot be adopted."""
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    chosen = hosts.select([target])
    if len(chosen) != 1:
        raise WordsError(f"'{target}' is {len(chosen)} targets", where="adopt", todo="name one of them")
    name = name or PurePosixPath(match).stem or match
    if not NAME.fullmatch(name):
        raise WordsError(f"'{name}' is no name", where="--name", todo="give one of letters, digits, '-', '_', '.'")
    path = None if to == "-" else cwd / (to or f"playbooks/{name}.yaml")
    if path is not None and path.exists():
        raise WordsError("the file is there already", where=str(path), todo="give another one with --to, or --name")
    with Connections() as connections, open_session(chosen[0], connections) as session:
        found = session.ask("adopt", workload={"name": name, "match": match, "command": []})
    text = draft.playbook(name, match, found, OPTIONS)
    _prove(text, found["argv"])
    if path is None:
        print(text, end="")
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    print(f"{path}: written, from {process(found['process'])}", file=sys.stderr)
    print(f"   do: look at it, then `deployctl {path.stem} {target} --plan`", file=sys.stderr)
    return 0


def _prove(text: str, argv: list[str]) -> None:
    """Raises RefusedError for a playbook that does not say what the process was started with."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "draft.yaml"
        path.write_text(text, encoding="utf-8")
        command = playbook_file.load(path).model.workload.command
    if list(command[1:]) != argv[1:]:
        raise RefusedError("its command line cannot be written down as it is", where="adopt", todo="write the playbook by hand")
