"""Lines that look like the word of an error, and lines that only speak of one."""

from __future__ import annotations

import pytest

from memdoctor.sources.logs.looks import looks_like_an_error, only_speaks_of


@pytest.mark.parametrize(
    "text",
    [
        "FooBackendError: unit 3 does not answer",
        "error: the frobnicator has no input",
        "fatal: cannot go on without a shard index",
        "Aborted (core dumped)",
        "trainer failed in stage 2: no such plan",
        "FAILED: /opt/run/step_7",
        "thread 'main' panicked, panic at 'index out of range'",
        "upload failed after 5 retries",
        "Max retries exceeded, connection failed",
        "3 passed, 2 failed in 4.10s",
        "loading failed, giving up",
        "[17] Exit 3                  python train.py",
        "sh: error: echo 'x' needs a terminal",
        "Device Error : 3 units do not answer",
        "worker 0 has failed",
        "Rank 0 failed to start",
        "Error: no files found matching the pattern: dev/data/train_*.bin",
        "ERROR: No plan for stage 3",
    ],
)
def test_an_error(text: str) -> None:
    assert looks_like_an_error(text, text)
    assert not only_speaks_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "================== 17 passed, 1 skipped, 1 xfailed in 41.77s ===================",
        "========== 9 passed, 3 skipped in 8.02s, 0 failed ==========",
        "tests/test_guard.py::test_dead_peer[ConnectionResetError] PASSED     [ 36%]",
        "gsm8k exact_match 0.7081  (failed to parse: 12 / 1319)",
        "JobID           JobName      State ExitCode    Elapsed     MaxRSS",
        "wandb: Network error (ConnectionError), entering retry loop.",
        "wandb: 502 encountered (<title>502 Server Error</title>), retrying request",
        'attention.cu(31): warning: variable "kErrorOnOverflow" was declared but never referenced',
        "warning: 3 lines with Error in them",
        "  Warning  FailedScheduling  9m11s  default-scheduler   0/42 nodes are available",
        "checked 118 shards: 0 failed",
        "   Reason=Kill task failed [root@2025-03-11T10:17:10]",
        "              0 tests completed and failed residual checks,",
        "no errors found in 12 files",
        "errors: 0, skipped: 4",
        "failed=0 unreachable=0 ok=14",
        "error: none, warnings: 2",
        "failed: no",
        "could not read the hub: ConnectionError, falling back to the cache",
        "- `RuntimeError: something` means that the plan is too old",
        "upload failed, attempt 2/5",
        "srun --overlap --nodes=4 --output=stack-%N.out sh -c 'pgrep -o python | xargs py-spy dump --pid' || echo \"failed\"",
        '    echo "ERROR: no data in $DATA" >&2; exit 1',
        "+ printf 'FATAL: %s' plan",
        "            Correctable Error             : 1",
        "        Uncorrectable Error               : 2",
    ],
)
def test_no_error(text: str) -> None:
    assert not looks_like_an_error(text, text)


@pytest.mark.parametrize(
    "head",
    [
        "[    3.117204] ",
        "<3>[    3.117204] ",
        "[Sat Mar  1 09:00:00 2025] ",
        "kern  :err   : 2025-03-01T09:00:00,117204+00:00 ",
        "kern  :notice: [    3.117204] ",
        "Mar 01 09:00:00 gpu-03 kernel: ",
        "Mar  1 09:00:00 gpu-03 kernel: [ 9.882190] ",
        "2025-03-01T09:00:00+0000 gpu-03 kernel: ",
        "2025-03-01T09:00:00.117204+00:00 gpu-03 kernel: [ 9.882190] ",
        "Sat 2025-03-01 09:00:00 UTC gpu-03 kernel: ",
        "3,1204,9882190,-;",
        "[Mar 01 2025 09:00:00] [ERROR] [tid 1803] ",
        "kernel: [ 9.882190] ",
    ],
)
def test_the_kernels_troubles_are_not_the_jobs(head: str) -> None:
    text = "ACPI BIOS Error (bug): Could not resolve symbol, AE_ALREADY_EXISTS"
    assert looks_like_an_error(text, text)
    assert not looks_like_an_error(text, head + text)


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("[Sat Mar  1 09:00:00 2025] ", "ERROR: the plan for stage 3 cannot be read"),
        ("2025-03-01 09:00:00 ", "could not compile the kernel: ptxas failed"),
        ("Mar 01 09:00:00 gpu-03 train[4711]: ", "the kernel: launch failed"),
    ],
)
def test_a_job_that_prints_a_time_or_speaks_of_kernels_is_heard(head: str, text: str) -> None:
    assert looks_like_an_error(text, head + text)


def test_a_loud_line_needs_no_word() -> None:
    assert looks_like_an_error("no plan for stage 3", "[ERROR] no plan for stage 3", loud=True)
    assert not looks_like_an_error("no answer from the store, retrying", "[ERROR] no answer from the store, retrying", loud=True)


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ("- `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...` -> halve the micro-batch", True),
        ("2. `NVRM: Xid (PCI:0000:3b:00): 79` -> ask the administrators", True),
        ("tests/test_ckpt.py::test_no_space_left_on_device_keeps_old_checkpoint PASSED     [ 78%]", True),
        ("test_xid (tests.test_faults.Faults) ... ok", True),
        ('        save(model, opt, step)               # may raise "No space left on device"', True),
        ("b71d220 ckpt: retry on OSError: [Errno 28] No space left on device", True),
        ("* 9c4e1aa (HEAD -> main) loss: no NaN when all labels are masked", True),
        ("4f1d8c2a7b90 OSError: [Errno 28] No space left on device", False),
        ("# A fatal error has been detected", False),
        ("- CUDA out of memory in stage 3", False),
        ("`use_cache=True` is incompatible with gradient checkpointing", False),
    ],
)
def test_only_speaks_of(text: str, speaks: bool) -> None:
    assert only_speaks_of(text) is speaks
