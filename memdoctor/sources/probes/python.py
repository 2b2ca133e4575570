"""The Python stack and its fused kernels: inside.py is run by the interpreter that the job would use, and read here."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memdoctor.sources.probes.child import Outcome, is_fact, run
from memdoctor.sources.probes.interpreter import interpreter
from memdoctor.sources.probes.locks import extensions_dir, find_locks
from memdoctor.sources.probes.notebook import Notebook
from memdoctor.sources.probes.request import Request

LIMIT = 60.0  # seconds; importing torch from a cold network file system takes most of a minute
BUILD_LIMIT = 900.0  # with --build: a compiler on a busy machine takes minutes for each op
STACK_KINDS = ("stack.python", "stack.package", "stack.torch", "stack.device", "stack.tool", "stack.library")
KERNEL_KINDS = ("kernel.run",)
STACK_STAGES = ("packages", "tools", "torch", "devices")
KERNEL_STAGES = (
    "fused_adamw",
    "attention",
    "triton",
    "apex",
    "transformer_engine",
    "flash_attention",
    "xformers",
    "bitsandbytes",
    "deepspeed",
)
_FIRST = ("packages", "torch")  # stages that the kernels need, whoever asks for them
_PACKAGES = {
    "transformer_engine": "transformer-engine",
    "flash_attention": "flash-attn",
    "fused_adamw": "torch",
    "attention": "torch",
    "devices": "torch",
}
MOST_STARTS = 6  # of the child: each stage that kills it costs one


def limit_of(request: Request) -> float:
    """Seconds that both checks together may take."""
    return request.timeout or (BUILD_LIMIT if request.build else LIMIT)


def probe(stack: Notebook | None, kernels: Notebook | None, request: Request) -> None:
    """Fill ``stack``, ``kernels`` or both with one import of torch."""
    python = interpreter(request.python)
    if request.silent:
        for book, kinds in ((stack, STACK_KINDS), (kernels, KERNEL_KINDS)):
            if book is not None:
                book.skip(request.silent, *kinds)
        return
    stages = [*(STACK_STAGES if stack is not None else ()), *(KERNEL_STAGES if kernels is not None else ())]
    books = {"stack": stack, "kernel": kernels}
    run_ = _Run(python, request, books)
    run_.go([*(stage for stage in _FIRST if stage not in stages), *stages])
    if kernels is not None and request.gpus:
        run_.tell_untried(kernels)


class _Run:
    """The child, started again without the stages that killed it, until all have had their turn or the time is up."""

    def __init__(self, python: str, request: Request, books: dict[str, Notebook | None]) -> None:
        self.python, self.request, self.books = python, request, books
        self.installed: dict[str, str] = {}
        self.broken: set[str] = set()
        self.sees: int | None = None  # GPUs that torch sees
        self.limit = limit_of(request)
        self.deadline, self.begun = time.monotonic() + self.limit, time.time()

    def go(self, stages: Sequence[str]) -> None:
        left = list(stages)
        with tempfile.TemporaryDirectory(prefix="memdoctor-") as scratch:
            for _ in range(MOST_STARTS):
                if not left:
                    return
                outcome = self._start(left, scratch)
                done = {str(line["end"]) for line in outcome.lines if "end" in line}
                begun = [str(line["begin"]) for line in outcome.lines if "begin" in line]
                self._take(outcome)
                killer = next((stage for stage in begun if stage not in done), None)
                left = [stage for stage in left if stage not in done and stage != killer]
                if killer is None and left:
                    self._skip(f"{self.python} {outcome.ended() or 'ended early'}{_last(outcome)}", left)
                    return
                if killer is not None:
                    self._unlock()
                    self._killed(killer, outcome)
                    if outcome.timed_out:
                        self._skip(f"the time was used up by {killer.replace('_', ' ')}", left)
                        return
                    if killer == "torch":
                        left = [stage for stage in left if stage in ("packages", "tools")]
                        self._skip(
                            "importing torch ends the interpreter",
                            [stage for stage in stages if stage not in done and stage not in (*left, killer)],
                        )

    def _start(self, stages: Sequence[str], scratch: str) -> Outcome:
        import json

        options = {"stages": stages, "build": self.request.build, "busy": self.request.busy, "cuda": self.request.cuda}
        environ = {
            **self.request.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRITON_CACHE_DIR": f"{scratch}/triton",
            "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
            "CUDA_CACHE_PATH": f"{scratch}/cuda",
        }
        limit = max(0.5, self.deadline - time.monotonic())
        return run([self.python, "-B", str(Path(__file__).with_name("inside.py")), json.dumps(options)], timeout=limit, environ=environ)

    def tell_untried(self, book: Notebook) -> None:
        """Kernels that ran on the CPU alone, on a host with GPUs, say nothing of the GPUs."""
        ran = [fact for fact in book.facts if fact.kind == "kernel.run"]
        if not ran or any(fact.get("device") == "cuda" for fact in ran):
            return
        if self.sees is None:
            reason = "it is not known what torch sees of them"
        elif self.sees == 0:
            reason = "torch sees none"
        elif self.request.busy is None:
            reason = "it is not known whether one is free"
        else:
            reason = "none is free"
        book.skip(f"nothing was run on a GPU: {reason}", *KERNEL_KINDS)

    def _unlock(self) -> None:
        """A build of ours that was ended must not leave its lock to the next job."""
        if self.request.build:
            for path, age in find_locks(extensions_dir(self.request)):
                if time.time() - age >= self.begun - 1:
                    with contextlib.suppress(OSError):
                        os.unlink(path)

    def _take(self, outcome: Outcome) -> None:
        for line in outcome.lines:
            if is_fact(line):
                self._note(str(line["kind"]), line["fields"], str(line.get("path", self.python)), str(line.get("excerpt", "")))
            elif "failed" in line:
                self._failed(str(line["failed"]), line)

    def _note(self, kind: str, fields: dict[str, Any], path: str, excerpt: str) -> None:
        if kind == "stack.torch":
            self.sees = fields.get("devices")
        if kind == "stack.package" and fields.get("state") == "installed":
            self.installed[fields["package"]] = fields.get("version", "")
        if kind == "kernel.run" and fields.get("state") == "skipped":
            self._skip_kernel(f"{fields['kernel']}: {fields.get('text', '')}")
            return
        book = self.books["kernel" if kind == "kernel.run" else "stack"]
        if kind == "stack.package" and book is None and fields.get("state") != "installed":
            book = self.books["kernel"]  # only the kernels were asked for, and this is why they cannot be tried
        if kind == "stack.package":
            fields = {**fields, "python": self.python}
        if book is not None:
            book.add(kind, path=path, excerpt=excerpt, fields=fields)

    def _failed(self, stage: str, line: dict[str, Any]) -> None:
        """A stage raised. That torch is not there is no fault; that it is there and cannot be imported is."""
        text, package, cause = str(line.get("text", "")), _PACKAGES.get(stage, stage.replace("_", "-")), line.get("cause")
        if stage == "torch":
            self.broken.add("torch")
            if line.get("error") == "ModuleNotFoundError" and "torch" not in self.installed and "'torch" in text:
                without = [name for name in (*STACK_STAGES, *KERNEL_STAGES) if name not in ("packages", "tools")]
                self._skip(f"torch is not installed for {self.python}", without)
                return
            fields = {"package": package, "version": self.installed.get(package) or None, "state": "broken", "text": text, "cause": cause}
            self._note("stack.package", fields, self.python, f"import torch: {text}")
            self._skip("torch cannot be imported", ["torch", *KERNEL_STAGES])
        elif "torch" in self.broken:  # it needs torch, and that is told already
            return
        elif stage in KERNEL_STAGES:  # a kernel that fails is told by the stage itself; this one could not even be tried
            self._skip_kernel(f"{stage.replace('_', ' ')} could not be tried: {text}")
        else:
            self._skip(f"{stage.replace('_', ' ')}: {text}", [stage])

    def _killed(self, stage: str, outcome: Outcome) -> None:
        package = _PACKAGES.get(stage, stage)
        self.broken.add(package)
        version = self.installed.get(package)
        if package not in self.installed and stage in ("packages", "tools"):
            self._skip(f"{self.python}: {outcome.ended()}{_last(outcome)}", [stage])
            return
        state = "slow" if outcome.timed_out else "crashed"
        ended = (
            f"it was not done after {self.limit:g} s"
            if outcome.timed_out
            else f"the interpreter {outcome.ended().removeprefix('it ') or 'left with code 0 before it was done'}"
        )
        text = f"{ended}{_last(outcome)}"
        if stage in KERNEL_STAGES and package == "torch":
            fields: dict[str, Any] = {
                "kernel": f"torch {stage.replace('_', ' ')}",
                "package": "torch",
                "state": state,
                "device": "cpu",
                "text": text,
            }
            self._note("kernel.run", fields, "torch", f"{fields['kernel']}: {text}")
        else:
            fields = {"package": package, "version": version or None, "state": state, "text": text}
            self._note("stack.package", fields, self.python, f"{package}: {text}")

    def _skip(self, reason: str, stages: Sequence[str]) -> None:
        if self.books["stack"] is not None and any(stage in STACK_STAGES for stage in stages):
            kinds = [kind for kind in STACK_KINDS if not any(fact.kind == kind for fact in self.books["stack"].facts)]
            self.books["stack"].skip(reason, *kinds)
        if self.books["kernel"] is not None and any(stage in KERNEL_STAGES for stage in stages):
            self.books["kernel"].skip(reason, *KERNEL_KINDS)

    def _skip_kernel(self, reason: str) -> None:
        if self.books["kernel"] is not None:
            self.books["kernel"].skip(reason)


def _last(outcome: Outcome) -> str:
    """The last words of a child that died."""
    lines = [line.strip() for line in outcome.stderr.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    return f" ({lines[-1][:200]})" if lines and not outcome.timed_out else ""
