"""Which part may import which, and where heavy or visible libraries may be imported at all."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "memdoctor"

VOCABULARY = {"model", "catalog", "units", "errors", "resources", "records", "kept", "tables", "lazy", "shelf"}
# part -> what of ours it may import besides itself and, where it is a part proper, the vocabulary
ARROWS: dict[str, set[str]] = {
    "cli": {"interrupts", "pipeline", "checkup", "report", "engine.load", "fixtures", "handbook", "live"},
    "pipeline": {"sources", "derive", "engine"},
    "live": {"sources"},
    "checkup": {"sources", "derive", "engine"},
    "fixtures": {"pipeline", "checkup", "engine.load", "engine.yaml_strict", "handbook.near", "report.verdict", "report.text"},
    "handbook": {"engine"},
    "sources": {"memory"},
    "derive": {"memory"},  # the arithmetic of sizes: shapes and stages out of the arguments that a log dumps
    "engine": set(),
    "memory": set(),
    "report": {"handbook.entries", "handbook.guide_entries", "handbook.remedies"},  # plain data about rules and causes
    "model": {"records"},
    "records": set(),
    "lazy": set(),
    "shelf": set(),
    "units": {"lazy"},
    "errors": set(),
    "catalog": {"units", "records", "lazy"},
    "resources": {"errors"},
    "kept": {"interrupts", "resources"},
    "tables": {"kept", "errors"},
    "__init__": set(),
    "entry": {"cli", "interrupts"},
    "interrupts": set(),
    "__main__": {"entry"},
}
ONLY_IN = {
    "click": ("cli/",),
    "rich": ("report/terminal", "report/progress.py"),
    "psutil": ("sources/probes/system.py",),
    "pynvml": ("sources/probes/nvml.py",),
    "torch": ("sources/probes/inside.py", "repro/"),
    "deepspeed": ("sources/probes/inside.py", "repro/"),
}
NEVER_AT_TOP = {"torch", "pynvml", "psutil", "deepspeed"}


def files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_rules" not in path.parts)


def imports(tree: ast.AST, *, top_only: bool = False) -> Iterator[str]:
    """Full names of what is imported; ``from a import b`` yields ``a.b``."""
    for node in _nodes(tree) if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from _nodes(node)


def within(name: str, allowed: str) -> bool:
    return name == allowed or name.startswith(allowed + ".")


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place = path.relative_to(PACKAGE).as_posix()
    part = place.partition("/")[0].removesuffix(".py")
    assert part in ARROWS, f"{part} is a new part: say in ARROWS what it may import"
    allowed = ARROWS[part] | {part}
    if part not in VOCABULARY and not part.startswith("__"):
        allowed |= VOCABULARY | {"__version__"}
    for full in imports(tree):
        if full.startswith("memdoctor."):
            name = full.removeprefix("memdoctor.")
            assert any(within(name, each) for each in allowed), f"{place} may not import memdoctor.{name}"
        library = full.partition(".")[0]
        if library in ONLY_IN:
            assert place.startswith(ONLY_IN[library]), f"{place} may not import {library}"
    for full in imports(tree, top_only=True):
        assert full.partition(".")[0] not in NEVER_AT_TOP, f"{place} imports {full} when it is imported itself"


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    environment = dict(os.environ)  # without what readline put beside it: COLUMNS
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=ROOT, check=True, env=environment
    )
    return set(result.stderr.split())


def test_the_command_line_is_cheap_to_import() -> None:
    loaded = modules_after("import memdoctor.cli")
    ours = {name for name in loaded if name.startswith("memdoctor.")}
    assert ours == {"memdoctor.cli", "memdoctor.cli.group", "memdoctor.cli.output", "memdoctor.errors"}
    assert not {"rich", "yaml", "regex", "hyperscan", "zstandard", "torch"} & loaded


def test_help_of_a_command_needs_no_pipeline() -> None:
    loaded = modules_after("from memdoctor.cli import main\nassert main(['logs', '--help']) == 0")
    assert "memdoctor.cli.logs" in loaded
    assert not {"memdoctor.pipeline", "memdoctor.cli.rules", "rich", "yaml"} & loaded


def test_logs_runs_without_torch(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("RuntimeError: something of one's own\n")
    loaded = modules_after(f"from memdoctor.cli import main\nassert main(['logs', {str(log)!r}]) in (0, 1)")
    assert "memdoctor.pipeline" in loaded
    assert not {"torch", "deepspeed", "pynvml", "psutil", "numpy"} & loaded


STEP = (
    " [2026-03-01 10:00:{n:02d}] iteration {n:8d}/     100 | consumed samples: {n:12d} | elapsed time per iteration (ms): 900.0 |"
    " learning rate: 1.5E-04 | global batch size: 8 | lm loss: {loss:.4f} | loss scale: 1.0 | grad norm: 0.61 |"
    " number of skipped iterations: 0 | number of nan iterations: 0 |\n"
)
# What few logs need, and takes its time to import.
HEAVY = {
    "asyncio", "bz2", "concurrent", "csv", "difflib", "email", "glob", "http", "hyperscan", "logging", "lzma", "multiprocessing", "pathlib", "pickle", "random", "rich",
    "shutil", "signal", "socket", "statistics", "subprocess", "tempfile", "yaml", "zstandard",
}  # fmt: skip
OURS = {
    "derive.allocation", "derive.baseline", "derive.hangs", "derive.machine", "derive.shapes", "derive.stages", "derive.variables", "engine.extend",
    "engine.yaml_strict", "memory", "report.json", "report.redact", "report.terminal_check", "report.terminal_series", "sources.dumps.collect",
    "sources.probes",
}  # fmt: skip


@pytest.mark.parametrize(
    ("end", "code", "spared"),
    [
        ("", 0, {"regex", "memdoctor.sources.logs.tracebacks", "memdoctor.sources.logs.sites"}),
        ("RuntimeError: something of one's own\n", 1, set()),
    ],
    ids=["healthy", "failed"],
)
def test_a_start_imports_little(end: str, code: int, spared: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    log = tmp_path / "train.log"
    log.write_text("".join(STEP.format(n=number, loss=3 - number / 100) for number in range(1, 40)) + end)
    run = f"from memdoctor.cli import main\nassert main(['logs', {str(log)!r}]) == {code}"
    modules_after(run)  # the rules are in the cache now
    loaded = modules_after(run)
    assert "memdoctor.pipeline" in loaded
    names = HEAVY | {f"memdoctor.{name}" for name in OURS} | spared
    assert {name for name in loaded if any(within(name, each) for each in names)} == set()


def test_the_end_is_quick() -> None:
    modules_after(
        "import gc, sys\nsys.argv = ['memdoctor', '--version']\nfrom memdoctor.entry import run\nassert run() == 0\n"
        "assert gc.get_freeze_count() > len(gc.get_objects())"  # what the interpreter goes over once more is little
    )
