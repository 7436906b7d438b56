"""The house: floors, who may import what, and that each step, transport and verdict has its test and its page."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deployctl"
FLOORS = {
    "__main__": 11, "cli": 10,
    "report": 9, "fleet": 8, "preview": 8, "runner": 7, "plan": 6,
    "playbook": 5, "playbooks": 5, "workload_model": 3, "inventory": 5, "draft": 5,
    "steps": 4,
    "target": 3, "boot": 3,
    "transports": 2, "document": 2, "fields": 2, "flags": 2, "journal": 2, "demo": 2,
    "values": 1, "errors": 1, "verdicts": 1, "events": 1, "workload": 1,
    "agent": 0, "__init__": 0,
}  # fmt: skip
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "demo/train" not in path.as_posix() and "demo/old" not in path.as_posix())
BESIDE = ("fields", "errors", "boot", "flags")  # what a file of the same floor may know: values, errors, the way in
LONGEST_FUNCTION = 40
LONGEST_MODULE = 300


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix()


def floor_of(name: str) -> int:
    return FLOORS[name.split("/")[0]]


def imports(path: Path) -> Iterator[str]:
    """Dotted names that the file imports; relative ones as deployctl.agent.…"""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "deployctl.agent" if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down_only(path: Path) -> None:
    own = floor_of(name_of(path))
    for imported in imports(path):
        if imported.startswith("deployctl."):
            part = imported.split(".")[1]
            lower = FLOORS.get(part, 0)
            package = path.parent != SOURCE and path.relative_to(SOURCE).parts[0] == part
            beside = lower == own and part in BESIDE
            assert lower < own or package or beside, imported


ONLY = {
    "typer": ("cli/",),
    "yaml": ("document",),
    "fabric": ("transports/ssh",),
    "paramiko": ("transports/ssh", "transports/known_hosts"),
    "rich": ("report/",),
}


@pytest.mark.parametrize("library", ONLY)
def test_a_library_is_known_in_one_place_only(library: str) -> None:
    users = [name_of(path) for path in MODULES if any(name.split(".")[0] == library for name in imports(path))]
    assert users
    assert [user for user in users if not user.startswith(ONLY[library])] == []


def test_only_the_agent_reads_proc() -> None:
    assert [name_of(path) for path in MODULES if "/proc" in path.read_text() and not name_of(path).startswith(("agent/", "boot"))] == []


def test_the_agent_imports_the_standard_library_only() -> None:
    for path in (SOURCE / "agent").glob("*.py"):
        for imported in imports(path):
            assert imported.startswith("deployctl.agent") or imported.split(".")[0] in sys.stdlib_module_names, f"{path.name}: {imported}"


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_and_its_functions_hold_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE
    assert [found for found in functions(path) if found[1] > LONGEST_FUNCTION] == []


def test_each_step_has_its_test_and_page() -> None:
    from deployctl.steps.registry import KINDS

    for word in KINDS:
        assert (ROOT / "tests" / "steps" / f"test_{word}.py").exists(), word
        assert (ROOT / "docs" / "steps" / f"{word}.md").exists(), word


def test_each_transport_has_its_test_and_page() -> None:
    for word in ("local", "ssh", "pct"):
        assert (ROOT / "tests" / "transports" / f"test_{word}.py").exists(), word
        assert (ROOT / "docs" / "transports" / f"{word}.md").exists(), word


def test_each_verdict_has_its_page_and_is_brought_about_in_a_test() -> None:
    from deployctl.verdicts import VERDICTS

    tests = "\n".join(path.read_text() for path in (ROOT / "tests" / "agent").glob("*.py"))
    for word in VERDICTS:
        assert (ROOT / "docs" / "verdicts" / f"{word}.md").exists(), word
        assert f'"{word}"' in tests, word


def test_the_examples_load() -> None:
    from deployctl import inventory, playbook

    examples = sorted((ROOT / "playbooks").glob("*.yaml"))
    assert [playbook.load(path).name for path in examples] == [path.stem for path in examples]
    assert inventory.load(ROOT / "hosts.example.yaml").select(["ct200"])
