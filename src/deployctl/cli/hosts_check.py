"""What `deployctl hosts check` does. Imported when it is called, not before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from deployctl import inventory
from deployctl.cli.each import each
from deployctl.errors import TransportError
from deployctl.inventory import TargetSpec
from deployctl.report import usable
from deployctl.runner import open_session
from deployctl.transports.connect import Connections


def check(words: Sequence[str], as_json: bool, environment: Mapping[str, str], cwd: Path) -> int:
    """Prints what each target says of itself; the status that a run would have begun with (0, 3, 6). Raises WordsError."""
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    with Connections() as connections:

        def ask(target: TargetSpec) -> int:
            with open_session(target, connections) as session:
                if locked := session.locked:
                    raise locked
                found = {"target": target.name, "container": target.ct, **session.hello, **session.ask("records")}
            if found["fault"]:
                todo = "let it be written, or name another directory: `state:` of the target"
                raise TransportError(f"no records can be kept in '{found['directory']}': {found['fault']}", where=target.name, todo=todo)
            print(json.dumps(found) if as_json else "\n".join(usable.lines(found)))
            return 0

        return each(hosts.select(words or hosts.targets), ask)
