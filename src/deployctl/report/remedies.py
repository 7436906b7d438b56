"""The very command that a person would type where a process cannot be mended from inside, and what it would take down."""

from __future__ import annotations

from typing import Any


def commands(answer: dict[str, Any], ct: int | None) -> list[dict[str, str]]:
    """[{"where", "command", "takes"}]; empty where a signal or patience is enough. ct: the container's number on its host."""
    where = "on the host" if ct is not None else "as root"
    facts = dict(line.split(": ", 1) for line in answer["evidence"] if ": " in line)
    found = []
    if answer["verdict"] == "frozen":
        found.append(_thaw(answer, facts, ct, where))
    if answer["next"] == "fix-filesystem" and facts.get("fuse connection", "").isdigit():
        command = f"echo 1 > /sys/fs/fuse/connections/{facts['fuse connection']}/abort"
        found.append({"where": where, "command": command, "takes": "ends that mount: whoever uses it gets an error"})
    stuck = answer["verdict"] in ("exiting-stuck", "uninterruptible") and not found
    wanted = answer["next"] == "restart-container" or (stuck and answer["kill_useless"] is True)
    if ct is not None and wanted and answer["verdict"] != "running":
        found.append({"where": where, "command": f"pct reboot {ct}", "takes": f"ends everything in container {ct}"})
    return found


def _thaw(answer: dict[str, Any], facts: dict[str, str], ct: int | None, where: str) -> dict[str, str]:
    takes = "takes nothing down; signals that are queued act then"
    if (ct is not None and answer["look"] is None) or (answer.get("host") and answer["host"]["frozen"]):
        return {"where": where, "command": f"lxc-unfreeze -n {ct}", "takes": takes}
    file, word = ("freezer.state", "THAWED") if answer["detail"] == "cgroup-v1" else ("cgroup.freeze", "0")
    return {"where": "there" if ct is not None else where, "command": f"echo {word} > {facts.get('frozen', '')}/{file}", "takes": takes}
