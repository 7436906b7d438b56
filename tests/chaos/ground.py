"""Where one round happens: a site of its own, with an sshd of its own on the lab's host, seen from this machine.

The sshd has a mount namespace with a small /tmp of its own: what a run leaves on the host is known to be its own, and that disk can be
filled without anybody else noticing.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.chaos import eyes
from tests.chaos.courses import COURSES, Course
from tests.chaos.eyes import Sight
from tests.lab import sshd
from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.site import Site, in_lab

T = TypeVar("T")
SAVE = "0.5"  # seconds that a checkpoint takes
SMALL = "12m"  # a target's disk that is to be filled: four checkpoints of 1 MiB and room for a release
PORTS = 42000  # where free ports are looked for


class Ground(Site):
    """The site; `disk` names what lies on a small file system of its own: "directory", "state" or nothing. `via` is that of its push."""

    def __init__(self, home: Path, lab: Lab, target: str, disk: str = "", via: str = "push") -> None:
        self.the_lab, self.ct, self.disk, self.via = lab, int(target.removeprefix("ct")), disk, via
        self._init: Sight | None = None
        super().__init__(home, in_lab(lab, target), lab)
        self.plain = [*self.command[:-1], SAVE]
        self.server = self._sshd()
        self.set(COURSES["well"])
        self.old = self.live()

    def install_old(self) -> None:
        """On a small disk where one is wanted, with a file on it that can grow: only the container's own root can make one there."""
        if self.disk:
            script = f'mkdir -p "$0" && mount -t tmpfs -o size={SMALL} tmpfs "$0" && touch "$0/fill"'
            self.place.exec("/bin/sh", "-c", script, self.mounted)
        super().install_old()
        self.place.write(f"{self.directory}/retired.py", b"# gone from the next release\n")

    def set(self, course: Course, old: bool = False) -> None:
        """Makes the playbook that of a course: its own one, or the one by which its old trainer is started."""
        normal = COURSES["well"]
        self.command = [*self.plain, *(course.old if old else course.new)]
        self.ladder, self.check = ((normal if old else course).ladder, dict((normal if old else course).check))
        self.write()

    @property
    def mounted(self) -> str:
        """What lies on the small disk."""
        return self.directory if self.disk == "directory" else self.state

    @property
    def filler(self) -> str:
        """The file on it that grows."""
        return f"{self.mounted}/fill"

    def environment(self) -> dict[str, str]:
        """PYTHONPATH goes along, so that another tree than the installed one can be tried."""
        more = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        return {**super().environment(), **more}

    # The host's side

    def _sshd(self) -> int:
        """The pid on this machine of an sshd for this site alone; hosts.yaml is made to name it."""
        lab, home = self.the_lab, self.home
        port = sshd.free_port(PORTS + int(hashlib.sha256(self.script.encode()).hexdigest(), 16) % 10000)
        known = (lab.directory / "known_hosts").read_text().replace(f":{lab.port} ", f":{port} ").replace(f":{lab.port}]", f":{port}]")
        (home / "known_hosts").write_text(known.replace(f"]:{lab.port}", f"]:{port}"))
        config = lab.ssh_config.read_text().replace(f"Port {lab.port}", f"Port {port}")
        (home / "ssh_config").write_text(config.replace(f"{lab.directory}/known_hosts\n", f"{home}/known_hosts\n", 1))
        serve = f"mount -t tmpfs -o size=256k,mode=1777 tmpfs /tmp && exec /usr/sbin/sshd -D -f {lab.directory}/sshd/config"
        serve += f" -p {port} -o PidFile=none -E {lab.directory}/sshd/chaos-{port}.log"
        self.sshd_log = lab.directory / f"sshd/chaos-{port}.log"
        lab.host.daemon("sh", "-c", f'unshare -m --propagation private sh -c "{serve}" >/dev/null 2>&1 </dev/null &')
        return self.until("its sshd listens", lambda: self._listening(port))

    def _listening(self, port: int) -> int:
        needle = f"-p {port} "
        found = [seen.pid for seen in eyes.with_argv("/usr/sbin/sshd", needle) if "listener" in " ".join(seen.argv)]
        ready = self.sshd_log.exists() and "Server listening" in self.sshd_log.read_text()
        return found[0] if found and ready else 0

    def write(self, **playbook: object) -> None:
        """As every site, with the sshd of this one, and a push that also removes."""
        super().write(**playbook)
        file = self.home / "playbooks" / "restart.yaml"
        plan = json.loads(file.read_text())
        plan["steps"][0]["push"].update(delete=True, via=self.via)
        file.write_text(json.dumps(plan))
        hosts = self.home / "hosts.yaml"
        hosts.write_text(hosts.read_text().replace(str(self.the_lab.ssh_config), str(self.home / "ssh_config")))

    @property
    def host_tmp(self) -> Path:
        """/tmp of the host as this site's sshd has it."""
        return Path(f"/proc/{self.server}/root/tmp")

    # The target's side

    def path(self, inside: str) -> Path:
        """A file of the container, on this machine; also when the container is down."""
        init = self.init()
        if init is None:  # it is down, and has no mounts
            return self.the_lab.directory / f"lxc/{self.ct}/rootfs{inside}"
        return Path(f"/proc/{init.pid}/root{inside}")

    def init(self) -> Sight | None:
        """PID 1 of the container; None when it is down."""
        if self._init is None or not self._init.alive:
            try:
                self._init = eyes.sight(self.the_lab.init_pid(self.ct))
            except LabError:
                self._init = None
        return self._init

    def events_file(self, run: str) -> Path:
        """The target's event file of a run."""
        return self.path(f"{self.runs}/{run}.jsonl")

    @property
    def runs(self) -> str:
        """The directory of the workload's runs in the target."""
        return f"{self.state}/workloads/train/runs"

    def journals(self) -> list[Path]:
        """The controller's event files, the oldest run first."""
        return sorted((self.home / "home" / "state" / "deployctl" / "runs").glob("*.jsonl"))

    def sights(self) -> list[Sight]:
        """The trainers that are alive."""
        return eyes.trainers(self.script)

    def seen_inside(self, inner: int) -> Sight:
        """The process that has that pid in the container."""
        init = self.init()
        for pid in eyes.descendants(init.pid) if init else ():
            if (seen := eyes.sight(pid)) and seen.inner == inner:
                return seen
        raise AssertionError(f"container {self.ct} has no process {inner}")

    def live(self) -> dict[str, str]:
        """SHA-256 of the scripts at the destination, by name."""
        return self.hashes(self.path(self.directory))

    def wanted(self) -> dict[str, str]:
        """The same of the controller's."""
        return self.hashes(self.home / "train")

    @staticmethod
    def hashes(directory: Path) -> dict[str, str]:
        """SHA-256 of the scripts in a directory of this machine."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(directory.glob("*.py"))}

    @staticmethod
    def until(what: str, look: Callable[[], T], seconds: float = 20) -> T:
        """The first true value of `look`; fails after the deadline."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := look():
                return found
            time.sleep(0.01)
        raise AssertionError(f"not within {seconds} s: {what}")

    def end(self) -> None:
        """Ends what runs and removes what was made in the target and on the host."""
        servers = (eyes.sight(pid) for pid in [*reversed(eyes.descendants(self.server)), self.server])
        for seen in [*self.sights(), *(server for server in servers if server)]:
            seen.send(signal.SIGKILL)
        if self.disk:
            self.place.exec("/bin/umount", "-l", self.mounted, check=False)
        self.place.exec("/bin/rm", "-rf", self.directory, self.state, f"{self.directory}-decoys", check=False)
        self.sshd_log.unlink(missing_ok=True)
