"""snapshot: of the whole container, by its host, right before the cut-over; old ones of deployctl go after a success."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from deployctl.errors import DeployError, RefusedError
from deployctl.steps.base import Container, HostFacts, Opened, Record, Setting, Step

PREFIX = "deployctl-"  # before the run's id; pct takes 40 characters, letters, digits, '_' and '-'
# Kinds of storage on which a container's volume has no snapshots; one that is not named here is left to pct.
WITHOUT = ("cephfs", "cifs", "dir", "glusterfs", "iscsi", "lvm", "nfs")
TODO = "move the volume to a storage that has snapshots, take the step out, or write 'optional: true'"


class Snapshot(Step):
    """Makes a snapshot of the container and keeps the newest `keep` of them; `optional`: goes on without where there can be none."""

    word: ClassVar[str] = "snapshot"
    phase: ClassVar[str] = "prepare"
    once: ClassVar[bool] = True

    keep: int = Field(default=3, ge=1)
    optional: bool = False

    def describe(self) -> dict[str, Any]:
        """With how many are kept, also where that is the default."""
        return {**super().describe(), "keep": self.keep}

    def admit(self, setting: Setting, opened: Opened, record: Record) -> None:
        """Raises RefusedError where the host's facts show that there can be no snapshot."""
        why = "; ".join(impossible(opened.container))
        if why and not self.optional:
            raise RefusedError(f"there can be no snapshot: {why}", where=self.word, todo=TODO)

    def seal(self, container: Container, setting: Setting, record: Record) -> None:
        """Makes it. Raises DeployError; nothing was stopped yet."""
        began, name = time.monotonic(), f"{PREFIX}{setting.run}"
        try:
            container.snapshot(name, f"deployctl: before run {setting.run} of {setting.workload.name}")
        except RefusedError as error:
            if not self.optional:
                raise RefusedError(error.what, where=self.word, todo=TODO) from error
            record("snapshot-skipped", why=error.what)
            return
        record("snapshot", name=name, container=container.vmid, seconds=round(time.monotonic() - began, 3))

    def after(self, container: Container, setting: Setting, record: Record) -> None:
        """Removes deployctl's own snapshots but the newest; those of people stay."""
        removed: list[str] = []
        trouble = None
        try:
            own = [name for name in container.snapshots() if name.startswith(PREFIX)]
            for name in own[: -self.keep]:
                container.drop(name)
                removed.append(name)
        except DeployError as error:
            trouble = str(error)
        if removed or trouble:
            record("pruned", names=removed, keep=self.keep, trouble=trouble)


def impossible(container: HostFacts | None) -> Iterator[str]:
    """Each reason why there can be no snapshot."""
    if container is None:
        yield "the target is no container"
        return
    for key, volume in container.volumes.items():
        storage = volume.split(":")[0]
        if volume.startswith("/"):
            yield f"{key} is bound in from '{volume}' of the host"
        elif (kind := container.storages.get(storage)) in WITHOUT:
            yield f"{key} lies on storage '{storage}' (kind {kind})"
    if not container.writable:
        yield "its host has lost its cluster (no quorum)"
