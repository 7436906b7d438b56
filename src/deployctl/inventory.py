"""The hosts file as typed models: hosts, targets, groups. It connects to nothing and does not know how a host is reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, Field

from deployctl.document import Document, fit
from deployctl.document import load as load_document
from deployctl.errors import WordsError, suggestion
from deployctl.fields import AbsolutePath, Model, Name, Text, carried

_SSH = re.compile(r"(?:[^\s-]\S*@)?(?:\[[^\]\s]+\]|(?=[^:]*:[^:]*:)[0-9a-fA-F:.]+|[^\s@:\[\]-][^\s@:\[\]]*)(?::(\d{1,5}))?")


@dataclass(frozen=True)
class HostSpec:
    """A machine reached by SSH: `ssh` is [user@]name[:port] or an alias; without `ssh_config` the user's own file is read."""

    name: str
    ssh: str
    ssh_config: Path | None


@dataclass(frozen=True)
class TargetSpec:
    """Where a workload runs. `host` is set for "ct" and "host", `ct` for "ct"; `python` is the interpreter for the agent, `state`
    the directory of the target's records; None where the agent chooses. A run starts a stopped container where `start` is true;
    `nodes` are the hosts to which a container that moved may be followed.
    """

    name: str
    kind: Literal["ct", "host", "local"]
    host: HostSpec | None
    ct: int | None
    python: str | None = None
    state: str | None = None
    start: bool = False
    nodes: tuple[HostSpec, ...] = ()


@dataclass(frozen=True)
class Inventory:
    """A hosts file: its targets and groups by name."""

    path: Path
    targets: Mapping[str, TargetSpec]
    groups: Mapping[str, tuple[str, ...]]

    def select(self, names: Iterable[str]) -> tuple[TargetSpec, ...]:
        """The targets of names of targets and groups, in order, each once. Raises WordsError for an unknown word."""
        found: dict[str, TargetSpec] = {}
        for name in names:
            for member in self.groups.get(name, (name,)):
                if member not in self.targets:
                    raise self._unknown(name)
                found.setdefault(member, self.targets[member])
        return tuple(found.values())

    def _unknown(self, name: str) -> WordsError:
        if name.startswith("-"):
            return WordsError(f"'{name}' is no target", todo="it looks like an option; `--help` lists those that there are")
        known = (*self.targets, *self.groups)
        if name.partition(":")[0] in known:
            return WordsError(f"'{name}' names a workload", todo=f"a playbook names its own; write '{name.partition(':')[0]}'")
        return WordsError(f"'{name}' is no target or group", todo=suggestion(name, known, f"write a target into {self.path}"))


def _ssh(text: str) -> str:
    words = _SSH.fullmatch(text)
    if not words or not 0 < int(words[1] or 22) < 65536:
        raise WordsError(f"'{text}' is no ssh address", todo="write [user@]name[:port] or an alias of your ssh_config")
    return text


class HostModel(Model):
    """One host: how ssh reaches it."""

    ssh: Annotated[Text, AfterValidator(carried(_ssh))]
    ssh_config: Text | None = None


class TargetModel(Model):
    """One target: a container of a host, a host itself, or this machine."""

    host: Name | None = None
    ct: int | None = Field(default=None, ge=100, le=999_999_999)  # the ids that Proxmox gives
    local: bool = False
    python: AbsolutePath | None = None
    state: AbsolutePath | None = None
    start: bool = False


class HostsModel(Model):
    """The hosts file."""

    hosts: dict[Name, HostModel] = Field(default_factory=dict)
    targets: dict[Name, TargetModel] = Field(default_factory=dict)
    groups: dict[Name, list[Name]] = Field(default_factory=dict)


def load(path: Path) -> Inventory:
    """The hosts file, whole and without contradictions. Raises WordsError, with file and line."""
    document = load_document(path)
    model = fit(document, HostsModel)
    hosts = {name: HostSpec(name, host.ssh, _beside(path, host.ssh_config)) for name, host in model.hosts.items()}
    targets = {name: _target(document, name, target, hosts) for name, target in model.targets.items()}
    for name, members in model.groups.items():
        _look_at_group(document, name, members, targets)
    return Inventory(path, targets, {name: tuple(members) for name, members in model.groups.items()})


def _beside(path: Path, other: str | None) -> Path | None:
    return None if other is None else path.absolute().parent / Path(other).expanduser()


def _target(document: Document, name: str, model: TargetModel, hosts: Mapping[str, HostSpec]) -> TargetSpec:
    where = document.where("targets", name)
    if model.local == (model.host is not None) or (model.ct is not None and model.host is None):
        raise WordsError(
            f"targets: {name}: it is not clear where this target is", where=where,
            todo="write '{host: NAME, ct: ID}' for a container, '{host: NAME}' for a host, '{local: true}' for this machine",
        )  # fmt: skip
    if model.host is not None and model.host not in hosts:
        todo = suggestion(model.host, hosts, "write it into `hosts:`")
        raise WordsError(f"targets: {name}: '{model.host}' is no host", where=document.where("targets", name, "host"), todo=todo)
    if model.start and model.ct is None:
        todo = "remove it: only a container can be started"
        raise WordsError(f"targets: {name}: 'start' has no container", where=document.where("targets", name, "start"), todo=todo)
    kind: Literal["ct", "host", "local"] = "local" if model.local else "host" if model.ct is None else "ct"
    nodes = tuple(hosts.values()) if kind == "ct" else ()
    return TargetSpec(name, kind, hosts[model.host] if model.host else None, model.ct, model.python, model.state, model.start, nodes)


def _look_at_group(document: Document, name: str, members: list[str], targets: Mapping[str, TargetSpec]) -> None:
    if name in targets:
        raise WordsError(
            f"'{name}' is a group and a target (line {document.line('targets', name)})", where=document.where("groups", name),
            todo="give one of them another name",
        )  # fmt: skip
    if not members:
        raise WordsError(f"groups: {name}: the group is empty", where=document.where("groups", name), todo="name its targets, or remove it")
    for index, member in enumerate(members):
        if member not in targets:
            todo = suggestion(member, targets, "write it into `targets:`")
            raise WordsError(f"groups: {name}[{index}]: '{member}' is no target", where=document.where("groups", name, index), todo=todo)


def find_hosts_file(environment: Mapping[str, str], cwd: Path) -> Path:
    """The hosts file: $DEPLOYCTL_HOSTS, else ./hosts.yaml, else the one of the user's config directory. Raises WordsError without one."""
    named = environment.get("DEPLOYCTL_HOSTS", "")
    if named:
        path = cwd / Path(named).expanduser()
        if not path.is_file():
            raise WordsError(f"there is no file '{named}'", where="$DEPLOYCTL_HOSTS", todo="correct the variable, or unset it")
        return path
    places = (cwd / "hosts.yaml", platformdirs.user_config_path("deployctl") / "hosts.yaml")
    for path in places:
        if path.is_file():
            return path
    raise WordsError(
        f"there is no hosts file; looked at {', '.join(str(path) for path in places)}", where="hosts.yaml",
        todo="write one, at its least 'targets: {here: {local: true}}', or set DEPLOYCTL_HOSTS",
    )  # fmt: skip
