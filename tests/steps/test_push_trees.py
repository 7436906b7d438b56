"""Whatever tree is pushed over whatever tree: the destination ends equal to what was asked, is untouched elsewhere, and goes back whole.

The agent's session answers in this process, so that many trees can be tried; what it hears is what it would hear over the wire.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from deployctl.agent import golive, main, state
from deployctl.errors import DeployError, RefusedError
from deployctl.steps.push import Push
from deployctl.steps.sources import Patterns
from tests.steps import RUN, WHO, opened, setting, workload

NAMES = ("a.py", "b.py", "c.txt", "ü d.py", "two\nlines.py", "sub", "A.py", "a.cpython-311.pyc")
DIRECTORIES = ("sub", "pkg", "__pycache__", "sub/deep", "sub/__pycache__", "pkg/ü", "a.py", ".git", ".deployctl")
PATHS = st.one_of(
    st.sampled_from(NAMES[:6]), st.sampled_from(NAMES), st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(NAMES)).map("/".join)
)
CONTENTS = st.sampled_from([b"", b"x", b"y", b"x" * 5000, bytes(70_000), os.urandom(70_000)])
MODES = st.sampled_from([0o644, 0o755, 0o600])
FILES = st.dictionaries(PATHS, st.tuples(CONTENTS, MODES), min_size=2, max_size=8)
LINKS = st.one_of(st.just({}), st.just({}), st.dictionaries(PATHS, st.sampled_from(["a.py", "sub", "/nowhere", ".."]), max_size=2))
FIELDS = st.fixed_dictionaries(
    {
        "include": st.sampled_from([["*.py"], ["*"], ["*.py", "sub/"], ["/a.py", "b.py", "pkg/"]]),
        "exclude": st.sampled_from([[], ["pkg/"], ["b.py", "A.py"]]),
        "delete": st.booleans(),
        "via": st.sampled_from(["push", "session"]),
        "mode": st.sampled_from([None, "0640", "u+x"]),
    }
)
Tree = dict[str, tuple[str, Any, int]]


class Near:
    """A session with the agent's code in this process."""

    def __init__(self, home: Path) -> None:
        wire: Any = SimpleNamespace(pieces=lambda: iter(self.pieces), send=lambda _: None, heed=lambda: None)
        self.agent = main.Session(wire)
        self.agent.settle({"run": RUN, "target": "here", "who": WHO, "workload": workload().as_data(), "state": str(home / "state")})
        self.agent.home.make()
        self.pieces: Iterator[bytes] = iter(())

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        answer = json.loads(json.dumps(self.agent.answer(json.loads(json.dumps({"op": op, **fields})))))
        if "error" in answer:
            assert answer["error"]["kind"] == "refused", answer
            raise RefusedError(answer["error"]["what"], where=answer["error"]["where"])
        found: dict[str, Any] = answer["answer"]
        return found

    def feed(self, op: str, pieces: Iterable[bytes], **fields: Any) -> dict[str, Any]:
        self.pieces = iter(pieces)
        return self.ask(op, **fields)

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        shutil.copy(source, destination)


def plant(root: Path, files: dict[str, tuple[bytes, int]], links: dict[str, str]) -> None:
    """Makes a tree; what cannot stand beside what is there already is left out."""
    root.mkdir()
    for path, (content, mode) in files.items():
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            (root / path).chmod(mode)
        except OSError:
            continue
    for path, to in links.items():
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(to)
        except OSError:
            continue


def look(root: Path, below: str = "") -> Tree:
    """Everything of a tree but our own place in it."""
    found: Tree = {}
    for entry in os.scandir(root / below):
        path = os.path.join(below, entry.name)
        mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
        if entry.is_symlink():
            found[path] = ("link", os.readlink(entry.path), 0)
        elif entry.is_dir():
            found |= {path: ("directory", None, mode), **look(root, path)} if path != ".deployctl" else {}
        else:
            found[path] = ("file", Path(entry.path).read_bytes(), mode)
    return found


def asked_for(source: Path, before: Tree, fields: dict[str, Any], compiled: set[str]) -> Tree:
    """The files and links that should be there in the end."""
    patterns = Patterns(fields["include"], fields["exclude"])
    brought = {path: item for path, item in look(source).items() if item[0] == "file" and patterns.match(path)}
    brought |= {path: ("file", (source / path).read_bytes(), (source / path).stat().st_mode & 0o777) for path, item in look(source).items()
                if item[0] == "link" and patterns.match(path)}  # fmt: skip
    after = {path: item for path, item in before.items() if item[0] != "directory" and path not in compiled}
    if fields["delete"]:
        hidden = (".git", ".deployctl")
        after = {
            path: item for path, item in after.items()
            if path in brought or not patterns.match(path) or any(part in hidden for part in Path(path).parts[:-1])
        }  # fmt: skip
    for path, (_, content, mode) in brought.items():
        base = before[path][2] if path in before else 0o644
        base |= (base & 0o444) >> 2 if mode & 0o100 else 0
        wanted = {None: base, "0640": 0o640, "u+x": base | 0o100}[fields["mode"]]
        after[path] = ("file", content, wanted)
    return after


def compiled_of(paths: Iterable[str], before: Tree, after: Iterable[str]) -> set[str]:
    """The compiled files that go with the .py files that changed or went."""
    gone = set()
    for path in (path for path in paths if path.endswith(".py")):
        cache = os.path.join(os.path.dirname(path), "__pycache__", os.path.basename(path)[:-3] + ".cpython-311.pyc")
        gone |= {cache} if before.get(cache, ("", "", 0))[0] in ("file", "link") else set()
    return gone


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(FILES, LINKS, FILES, LINKS, FIELDS)
def test_any_tree_over_any_tree(new: Any, new_links: Any, old: Any, old_links: Any, fields: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="deployctl-trees-") as name:
        home = Path(name)
        plant(home / "new", new, new_links)
        plant(home / "live", old, old_links)
        (home / "outside").write_text("untouched")
        before, outside = look(home / "live"), sorted(os.listdir(home))
        session, step = Near(home), Push.model_validate({"from": str(home / "new"), "to": str(home / "live"), **fields})
        try:
            piece = step.prepare(step.gather(setting(home)), session, setting(home), opened(), lambda *_, **__: None)
        except DeployError as error:
            event(f"refused: {error.what[:30]}")
            session.agent.clean()
            assert look(home / "live") == before
            return
        event("goes live" if piece.files else "only removes" if piece.gone else "unchanged")
        assert look(home / "live") == before
        operations = step.compile(setting(home), piece)
        job: Any = SimpleNamespace(run=RUN, emit=lambda *_, **__: None)
        for operation in operations.do:
            golive.golive(job, operation)
        after = look(home / "live")
        assert {path: item for path, item in after.items() if item[0] != "directory"} == asked_for(
            home / "new", before, fields, compiled_of([*piece.files, *piece.gone], before, after)
        )
        assert sorted(os.listdir(home)) == sorted([*outside, "state"])
        for operation in operations.undo:
            golive.goback(job, operation)
        assert look(home / "live") == before
        assert not operations.do or not (home / "live" / ".deployctl" / RUN).exists()
        assert state.roots(session.agent.home) in ([], [str(home / "live")])
