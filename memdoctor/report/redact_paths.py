"""Private parts of paths: who and which project, but not which framework file and which kind of folder."""

from __future__ import annotations

import re

from memdoctor.report.redact_secrets import Name

_PATH = re.compile(r"(?<![\w/:.~$}>-])(?:~|\.{1,2})?/(?:[^\s/\"'`:,;<>()\[\]{}|*?=&#]+/?)+")
_HOMES = ("home", "Users", "users")
# Below these everything is the system's, the same on every machine.
_SYSTEM = ("usr", "etc", "dev", "proc", "sys", "opt", "lib", "lib64", "bin", "sbin", "run", "boot", "__w")
# From these on, the path of a source file is inside published software.
_PUBLISHED = re.compile(
    r"site-packages|dist-packages|python3(\.\d+)?|[Mm]egatron(-LM|_core)?|[Dd]eep[Ss]peed|transformers|accelerate|(py)?torch|third_party|flash_attn"
    r"|transformer_engine|apex|nccl|gloo"
)
_SOURCE = re.compile(r".+\.(py|pyx|pyi|so(\.\d+)*|cu|cuh|cpp|cc|c|h|hpp)")
# Folder and file names that say what a thing is, not whose.
_GENERIC = re.compile(
    r"(?i)[.~-]*|[\d.]+|tmp|var|mnt|root|home|users?|scratch|work|workspace|shared?|nfs|lustre|gpfs|fsx|efs|s3|fixtures|rules|hosts?"
    r"|data|datasets?|ckpts?|checkpoints?|models?|weights|optimizer|logs?|outputs?|runs?|results?|train|training|stdout|stderr"
    r"|src|code|projects?|repo|scripts?|examples?|configs?|cache|\.cache|\.local|\.?v?envs?|\.pyenv|versions|bin|lib|include|share|conda|(mini|ana)conda3"
    r"|torch_extensions|torchelastic_\w+|triton|huggingface|hub|tensorboard|wandb|default_pg"
    r"|(iter|global_?step|step|epoch|rank|attempt|mp_rank|layer|part|version)[_-]?\d+(_\d+)*|latest(_\w+)?|none_\w+|py3\d+_cu\d+"
)
# Where a probe has learnt something is no path; of several hosts the name stands before it.
_LEARNT = re.compile(
    r"(?:([\w.#-]+): )?(environment|saved facts|NVML(?:, GPU \d+(?: and \d+)?)?|CUDA, GPU \d+|ulimit|uname|hostname|host|journalctl -k|(?:eth|ib|bond|mlx\d_)\d+"
    r"|torch|triton|apex|transformer-engine|flash-attn(?:-3)?|xformers|bitsandbytes|deepspeed)"
)
_TELLING = re.compile(
    r".+\.(py|pyx|pyi|log|out|err|so(\.\d+)*|cu|cuh|cpp|cc|c|h|hpp|sh|bash|slurm|sbatch|json|ya?ml|toml|txt|ninja)(\.(gz|xz|bz2|zst))?"
    r"|(model_optim_rng|[\w-]*mp_rank_\d+[\w-]*|zero_pp_rank[\w-]*|pytorch_model[\w-]*|model[\d-]*(-of-\d+)?|metadata|common|__\d+_\d+|core)\.\w+"
)
_SUFFIX = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,10}){1,2}$")


def hide_paths(text: str, name: Name) -> str:
    """``text`` with the private parts of every absolute path (and of ``./``, ``../``, ``~/`` ones) replaced."""

    def hide(match: re.Match[str]) -> str:
        path = match[0].rstrip(".")  # "Saving to /data/x.pt..."
        if path.strip("/").count("/") == 0:
            return match[0]  # one name alone is no path worth hiding: "CPU /CUDA"
        return hide_path(path, name) + match[0][len(path) :]

    return _PATH.sub(hide, text)


def hide_path(path: str, name: Name) -> str:
    """One path with its private parts replaced: ``/home/ann/secret/train.py`` -> ``/home/user-1/dir-1/train.py``."""
    learnt = _LEARNT.fullmatch(path)
    if learnt is not None:
        return f"{name('host', learnt[1])}: {learnt[2]}" if learnt[1] else path
    parts = path.split("/")
    shown: list[str] = []
    keep = len(parts) > 1 and parts[0] == "" and parts[1] in _SYSTEM
    home = 0  # where the home folders lie
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        keep = keep or bool(_PUBLISHED.fullmatch(part) and _SOURCE.fullmatch(parts[-1]))
        if home and place == home + 1 and part and not (last and _TELLING.fullmatch(part)):
            shown.append(name("user", part))
        elif keep or not part or _GENERIC.fullmatch(part) or (last and _TELLING.fullmatch(part)):
            shown.append(part)
        elif last and (suffix := _SUFFIX.search(part)):
            shown.append(name("file", part[: suffix.start()]) + suffix[0])
        else:
            shown.append(name("dir", part))
        if not home and part in _HOMES:
            home = place
    return "/".join(shown)
