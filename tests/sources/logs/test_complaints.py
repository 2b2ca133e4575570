"""What exceptions complain of, by their own words and by whose they are."""

from __future__ import annotations

import pytest

from memdoctor.engine.load import load
from memdoctor.errors import RuleError
from memdoctor.resources import rules_dir, rules_path
from memdoctor.sources.logs import complaints
from memdoctor.sources.logs.complaints import complaint_of, load_table
from memdoctor.sources.logs.tracebacks import Frame

PACKAGES = "/opt/venv/lib/python3.11/site-packages/"
OWN = "/workspace/train.py"


def said(message: str, file: str = PACKAGES + "llamafactory/hparams/parser.py", type_: str = "ValueError") -> str | None:
    return complaint_of(type_, message, [Frame(OWN, 3, "main", "")] + ([Frame(file, 7, "check", "")] if file else []))


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("FSDP2 requires PyTorch >= 2.6.0", "version"),
        ("Your PEFT version of 0.6.0 does not support `use_rslora`. Please install PEFT 0.7.2 or higher.", "version"),
        ("Please update your cuda driver.", "driver_old"),
        ("Transformer Engine is required for cudagraphs.", "kernel"),
        ("mcore_adapter is required when USE_MCA=1. Please install `mcore_adapter`.", "package"),
        ("SageAttention supports compute capability between sm_80 and sm_120.", "arch"),
        ("No GPU or Intel XPU found. A GPU is needed for quantization.", "no_gpu"),
        ("global_batch_size must be divisible by dp_size.", "batch"),
        ("`train_micro_batch_size_per_gpu` must be at least 1", "batch"),
        ("dp_size * cp_size must equal to world_size, got 4 * 4 != 8.", "parallel"),
        ("bf16 and fp16 cannot be both True.", "precision"),
        ("Cannot use multiple adapters in DeepSpeed ZeRO-3.", "zero"),
        ("Sequence parallelism requires flash attention. Please set `flash_attn: flash_attention_2`.", "sequence"),
        ("`max_samples` is incompatible with `streaming`.", "option"),
        ("Please specify `max_steps` in streaming mode.", "option"),
        ("Undefined dataset my_chats in dataset_info.json.", "data_missing"),
        ("something went wrong", None),
    ],
)
def test_libraries_say_it_in_their_words(message: str, word: str | None):
    assert said(message) == word


def test_own_code_may_refuse_what_it_likes_but_sizes_and_packages_are_what_they_are():
    assert said("fp16 payloads are not supported yet", file="") is None
    assert said("only greedy decoding is supported", file="") is None
    assert said("global batch size 30 is not divisible by micro batch size 4 times dp 8", file="") == "batch"
    assert said("please install einops: pip install einops", file="") == "package"


def test_a_line_without_frames_is_taken_at_its_word():
    assert complaint_of("ValueError", "`max_samples` is incompatible with `streaming`.", []) == "option"


def test_samples_are_no_options():
    assert said("the chat must be set for all turns", file=PACKAGES + "swift/template/base.py") is None
    assert (
        said("The number of images does not match the number of <image> tokens", file=PACKAGES + "llamafactory/data/mm_plugin.py")
        == "data_wrong"
    )


def test_the_standard_library_is_looked_through():
    frames = [Frame(PACKAGES + "axolotl/utils/config.py", 3, "load", ""), Frame("/usr/lib/python3.11/json/decoder.py", 7, "decode", "")]
    assert complaint_of("ValueError", "`max_samples` is incompatible with `streaming`.", frames) == "option"


def test_what_only_repeats_a_failure_complains_of_nothing():
    message = "Command '['python', '--only', 'is not installed']' returned non-zero exit status 1."
    assert said(message, type_="subprocess.CalledProcessError") is None


def test_tensors_of_different_sizes_are_no_batch_sizes():
    assert said("Expected input batch_size (32) to match target batch_size (64).", file=PACKAGES + "torch/nn/functional.py") is None


def test_each_word_has_a_rule_and_each_pattern_compiles():
    rules = "".join(path.read_text(encoding="utf-8") for path in rules_dir().glob("*/*.yaml"))
    for row in load_table().rows:
        assert f"says: {row.says}" in rules
        for pattern in (row.match, row.also, row.unless):
            assert pattern is None or pattern.search("") is None
    assert load([rules_path()]).rules


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("told: anywhere", "told: somewhere", "told is one of"),
        ("    unless:", "    unles:", "unknown key 'unles'"),
        ("reads:", "read:", "must have the keys"),
        ("  - says: no_gpu\n", "  - told: anywhere\n", "an entry is broken"),
    ],
)
def test_broken_tables_are_refused(tmp_path, monkeypatch, old: str, new: str, problem: str):
    text = (rules_dir() / "tables" / "complaints.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "complaints.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(complaints, "rules_path", lambda *parts: str(tmp_path.joinpath(*parts)))
    with pytest.raises(RuleError, match=problem):
        complaints.load_table.__wrapped__()
