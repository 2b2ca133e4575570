"""Variables that name things of this host: interfaces, RDMA devices, GPUs, architectures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.derive.variables.table import Context, Verdict

Read = tuple[str | None, Verdict | None]
_GPU = re.compile(r"-?\d+|GPU-[0-9A-Fa-f-]+|MIG-[0-9A-Za-z/-]+")
_ARCH = re.compile(
    r"(?:\d{1,2}\.\d[af]?|Kepler(?:\+Tesla)?|Maxwell(?:\+Tegra)?|Pascal|Volta(?:\+Tegra)?|Turing|Ampere(?:\+Tegra)?|Ada|Hopper|Blackwell(?:\+Tegra)?)(?:\+PTX)?"
)


def filtered(name: str, value: str, have: Sequence[str] | None, what: str) -> Read:
    """A filter as NCCL reads it: beginnings of names; ``=`` (exactly) and ``^`` (all but) only at the very start, for the whole list."""
    rest, negated, exact = value, False, False
    if rest.startswith("^"):
        rest, negated = rest[1:], True
    if rest.startswith("="):
        rest, exact = rest[1:], True
    parts = [part.split(":")[0] for part in rest.split(",") if part]
    for part in parts:
        if part[:1] in ("=", "^"):
            meant = value[0] * (value[0] in "=^") + rest.replace("=", "").replace("^", "")
            text = f"{part[0]!r} counts only at the very start, for the whole list: {part!r} is taken for a name"
            return value, Verdict(name, value, "read_otherwise", text, read=part, meant=meant)
        if part != part.strip():
            return value, Verdict(
                name, value, "read_otherwise", f"the blank is part of the name {part!r}", read=repr(part), meant=value.replace(" ", "")
            )
    if have is None or not parts:
        return value, None

    def fits(one: str) -> bool:
        return any(one == part if exact else one.startswith(part) for part in parts)

    if not any(fits(one) != negated for one in have):
        names = ", ".join(have) or "none"
        text = f"it leaves no {what} of this host" if negated else f"no {what} of this host is called so"
        return value, Verdict(name, value, "no_interface", f"{text}; there are: {names}")
    if not negated and not exact:
        for part in parts:
            more = [one for one in have if one.startswith(part) and one not in parts]
            if part in have and more:
                text = f"it is the beginning of {', '.join(more)}, too, and these are taken as well"
                return value, Verdict(name, value, "read_otherwise", text, read=",".join([part, *more]), meant=f"={value}")
    return value, None


def exact_names(name: str, value: str, have: Sequence[str] | None) -> Read:
    """Names joined by commas, each of which must be there (Gloo, TensorPipe)."""
    parts = value.split(",")
    if any(part[:1] in ("^", "=") for part in parts):
        return value, Verdict(
            name, value, "no_interface", "it takes plain names; ^ and = are NCCL's", meant=value.replace("^", "").replace("=", "")
        )
    missing = [part for part in parts if have is not None and part not in have]
    if missing:
        text = f"no network interface of this host is called {missing[0]}; there are: {', '.join(have or ())}"
        return value, Verdict(name, value, "no_interface", text)
    return value, None


def gpus(name: str, value: str, context: Context) -> Read:
    """CUDA_VISIBLE_DEVICES: the list ends at the first entry that is no GPU of this host."""
    if not value.strip() or value.strip().lower() in ("none", "void", "nodevfiles"):
        hidden = "it hides every GPU from CUDA"
        return "0", Verdict(name, value, "device_list", hidden, read="0") if context.gpus else None
    seen: list[str] = []
    numbered = _is_number(value.split(",")[0].strip())
    for number, part in enumerate(part.strip() for part in value.split(",")):
        if not _GPU.fullmatch(part):
            text = f"{part!r} is no GPU: the list ends there, after {number} of {value.count(',') + 1}"
            return str(number), Verdict(name, value, "device_list", text, read=str(number))
        if _is_number(part) is not numbered:
            text = f"numbers and names of GPUs cannot be mixed: the list ends before {part}, after {number} of {value.count(',') + 1}"
            return str(number), Verdict(name, value, "device_list", text, read=str(number))
        if part.lstrip("-").isdigit() and (part.startswith("-") or (context.gpus is not None and int(part) >= context.gpus)):
            if part == "-1" and number == 0:
                return "0", Verdict(name, value, "device_list", "it hides every GPU from CUDA", read="0") if context.gpus else None
            have = "" if context.gpus is None else f" (there are {context.gpus}, from 0 on)"
            return str(number), Verdict(name, value, "device_list", f"there is no GPU {part}{have}: the list ends there", read=str(number))
        if part.startswith("GPU-") and context.gpu_ids is not None and not any(one.startswith(part) for one in context.gpu_ids):
            return str(number), Verdict(name, value, "device_list", f"no GPU of this host is {part}: the list ends there", read=str(number))
        if part in seen:
            return "0", Verdict(name, value, "device_list", f"GPU {part} is named twice: CUDA then shows none", read="0")
        seen.append(part)
    return str(len(seen)), None


def _is_number(part: str) -> bool:
    return part.lstrip("-").isdigit()


def archs(name: str, value: str, context: Context) -> Read:
    """TORCH_CUDA_ARCH_LIST: what extensions are built for."""
    parts = [part for part in re.split(r"[ ;,]+", value.strip()) if part]
    for part in parts:
        if not _ARCH.fullmatch(part):
            meant = re.sub(r"^(?:sm_|compute_)?(\d{1,2})(\d)([af]?(?:\+PTX)?)$", r"\1.\2\3", part)
            return None, Verdict(name, value, "refused", f"{part!r} is no architecture", meant=meant if _ARCH.fullmatch(meant) else None)
    numbers = [part.removesuffix("+PTX").rstrip("af") for part in parts if part[0].isdigit()]
    with_ptx = [part for part in parts if part.endswith("+PTX")]
    if numbers and len(numbers) == len(parts) and not with_ptx and context.archs:
        for arch in context.archs:
            if not any(serves(number, arch) for number in numbers):
                text = f"extensions are then built without kernels for the GPU of this host ({arch})"
                return value, Verdict(name, value, "contradiction", text, meant=f"{value} {arch}")
    return value, None


def serves(built: str, arch: str) -> bool:
    """Does code built for ``built`` (8.6) run on ``arch`` (8.9)? Within one major version, on the same minor or a later one."""
    major, _, minor = built.partition(".")
    other, _, least = arch.partition(".")
    return major == other and int(minor or 0) <= int(least or 0)


def place(name: str, value: str, entry: Mapping[str, Any], context: Context) -> Read | None:
    """The reading of a variable of these types; None for any other type."""
    match entry.get("type"):
        case "interfaces":
            return filtered(name, value, context.interfaces, "network interface")
        case "devices":
            return filtered(name, value, context.devices or None, "RDMA device")
        case "interface":
            return exact_names(name, value, context.interfaces)
        case "gpus":
            return gpus(name, value, context)
        case "archs":
            return archs(name, value, context)
    return None
