"""The extraction of what a text names."""

from __future__ import annotations

from tests.named import commands, flags, problem, snippets, variables

TEXT = """\
Run `memdoctor logs logs/` or ``memdoctor explain oom.logits``; the flag `--bf16` and NCCL_NOT_SET stay prose.

```sh
memdoctor rules new data/licence \\
  --dir DIR && memdoctor rules test DIR
export NCCL_DEBUG=INFO TORCH_NCCL_ASYNC_ERROR_HANDLING=1
torchrun --nproc-per-node 8 train.py   # --not-a-comment-flag
```

1. In a list:

   ```json
   {"bf16": {"enabled": true}}
   ```

```text
memdoctor says nothing here; --nor-this NCCL_NOR_THIS
```
"""


def test_snippets() -> None:
    found = list(snippets(TEXT))
    assert [each.kind for each in found] == ["paste", "paste", "text", "span", "span", "span"]
    assert found[1].text == '{"bf16": {"enabled": true}}'
    assert found[4].text == "memdoctor explain oom.logits"


def test_commands() -> None:
    assert commands(TEXT) == [
        ["rules", "new", "data/licence", "--dir", "DIR"],
        ["rules", "test", "DIR"],
        ["logs", "logs/"],
        ["explain", "oom.logits"],
    ]


def test_flags_and_variables() -> None:
    assert {"--dir", "--nproc-per-node", "--bf16"} <= flags(TEXT)
    assert "--nor-this" not in flags(TEXT)
    assert variables(TEXT) == {"NCCL_DEBUG", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}


def test_problems() -> None:
    assert problem(["logs", "x", "--format=json", "-v"]) is None
    assert problem(["rules", "new", "a/b", "--dir", "x"]) is None
    assert problem(["logs", "-"]) is None
    assert problem(["nope"]) == "`memdoctor` has no command `nope`"
    assert problem(["rules", "nope"]) == "`memdoctor` has no command `nope`"
    assert problem(["logs", "x", "--nope"]) == "`memdoctor logs x --nope`: no option --nope"
    assert problem(["watch"]) == "`memdoctor watch` is not in this version"
