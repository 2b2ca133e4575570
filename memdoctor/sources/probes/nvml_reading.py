"""What NVML tells of one GPU, as the fields of a ``gpu.device``."""

from __future__ import annotations

import ctypes
from typing import Any

from memdoctor import units
from memdoctor.sources.probes.nvml_asking import Gpu, say, text_of

MOST_LINKS = 36
_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive"}
_FABRIC = {0: "none", 1: "not_started", 2: "in_progress", 3: "completed"}
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
_REASONS = {
    0x1: "idle", 0x2: "application_clocks", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost", 0x20: "sw_thermal", 0x40: "hw_thermal",
    0x80: "power_brake", 0x100: "display",
}  # fmt: skip


def read_gpu(gpu: Gpu) -> dict[str, Any]:
    """The fields of a ``gpu.device``."""
    pci = gpu.ask("nvmlDeviceGetPciInfo")
    gpu.bus_id = text_of(pci.busId) if pci is not None else None
    arch = gpu.ask("nvmlDeviceGetCudaComputeCapability")
    fields: dict[str, Any] = {
        "gpu": gpu.number,
        "uuid": text_of(gpu.ask("nvmlDeviceGetUUID")),
        "bus_id": gpu.bus_id,
        "model": text_of(gpu.ask("nvmlDeviceGetName")),
        "arch": f"{arch[0]}.{arch[1]}" if arch else None,
        "compute_mode": _MODES.get(gpu.ask("nvmlDeviceGetComputeMode")),
        "temperature": _number(gpu.ask("nvmlDeviceGetTemperature", 0)),
        "slowdown_at": _number(gpu.ask("nvmlDeviceGetTemperatureThreshold", 1)),
        "width": gpu.ask("nvmlDeviceGetCurrPcieLinkWidth"),
        "width_max": gpu.ask("nvmlDeviceGetMaxPcieLinkWidth"),
    }
    for part in (_memory, _modes, _power, _clocks, _errors, _links, _fabric, _processes):
        fields.update(part(gpu))
    return {name: value for name, value in fields.items() if value is not None}


def _memory(gpu: Gpu) -> dict[str, Any]:
    two = gpu.ask("nvmlDeviceGetMemoryInfo", getattr(gpu.nvml, "nvmlMemory_v2", 0x02000028))
    if two is not None:
        return {"memory": two.total, "used": two.used, "reserved": two.reserved, "free": two.free}
    one = gpu.ask("nvmlDeviceGetMemoryInfo")  # its `used` holds what the driver keeps for itself, too
    return {"memory": one.total, "used": one.used, "free": one.free} if one is not None else {}


def _modes(gpu: Gpu) -> dict[str, Any]:
    mig, ecc, kept = gpu.ask("nvmlDeviceGetMigMode"), gpu.ask("nvmlDeviceGetEccMode"), gpu.ask("nvmlDeviceGetPersistenceMode")
    usual = gpu.ask("nvmlDeviceGetDefaultEccMode")
    return {
        "mig": bool(mig[0]) if mig else None,
        "ecc": bool(ecc[0]) if ecc else None,
        "ecc_default": bool(usual[0]) if usual else None,
        "persistence": bool(kept) if kept is not None else None,
    }


def _power(gpu: Gpu) -> dict[str, Any]:
    """Watts; NVML counts milliwatts."""
    calls = {
        "power": "nvmlDeviceGetPowerUsage",
        "power_limit": "nvmlDeviceGetEnforcedPowerLimit",
        "power_default": "nvmlDeviceGetPowerManagementDefaultLimit",
    }
    return {name: value / 1000 for name, call in calls.items() if (value := gpu.ask(call)) is not None}


def _clocks(gpu: Gpu) -> dict[str, Any]:
    """MHz of the SMs, and why they are not higher."""
    bits = gpu.ask("nvmlDeviceGetCurrentClocksEventReasons")
    bits = bits if bits is not None else gpu.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    reasons = [name for bit, name in _REASONS.items() if bits is not None and bits & bit]
    return {
        "clock": gpu.ask("nvmlDeviceGetClockInfo", 1),
        "clock_max": gpu.ask("nvmlDeviceGetMaxClockInfo", 1),
        "clock_set": gpu.ask("nvmlDeviceGetApplicationsClock", 1),
        "reasons": reasons if bits is not None else None,
    }


def _errors(gpu: Gpu) -> dict[str, Any]:
    rows = gpu.ask("nvmlDeviceGetRemappedRows")
    pages = gpu.ask("nvmlDeviceGetRetiredPagesPendingStatus") if rows is None else None  # before Ampere
    return {
        "ecc_volatile": gpu.ask("nvmlDeviceGetTotalEccErrors", 1, 0),
        "ecc_total": gpu.ask("nvmlDeviceGetTotalEccErrors", 1, 1),
        "rows_remapped": rows[0] + rows[1] if rows else None,
        "remap_pending": bool(rows[2]) if rows else None,
        "remap_failure": bool(rows[3]) if rows else None,
        "pages_pending": bool(pages) if pages is not None else None,
    }


def _links(gpu: Gpu) -> dict[str, Any]:
    """NVLink: the links end at the first number that the GPU does not know."""
    states = []
    for link in range(MOST_LINKS):
        state = gpu.ask("nvmlDeviceGetNvLinkState", link)
        if state is None:
            break
        states.append(bool(state))
    if not states and not gpu.refused:  # a driver that does not know the call
        return {}
    errors = {"link_replays": 0, "link_recoveries": 1, "link_crc": 2}
    counted: dict[str, Any] = {"links_up": sum(states), "links_down": len(states) - sum(states)}
    for name, counter in errors.items():
        values = [gpu.ask("nvmlDeviceGetNvLinkErrorCounter", link, counter) for link, up in enumerate(states) if up]
        known = [value for value in values if value is not None]
        counted[name] = sum(known) if known else None
    return counted


def _fabric(gpu: Gpu) -> dict[str, Any]:
    """The state of the NVSwitch fabric as this GPU sees it."""
    info_type = getattr(gpu.nvml, "c_nvmlGpuFabricInfo_t", None)
    if info_type is None:
        return {}
    info = info_type()
    if gpu.ask("nvmlDeviceGetGpuFabricInfo", ctypes.byref(info)) is None:
        return {}
    state = _FABRIC.get(int(info.state))
    return {"fabric": state, "fabric_status": int(info.status) if state == "completed" else None}


def _processes(gpu: Gpu) -> dict[str, Any]:
    # The first is the newest; drivers before R510 have the second alone, those before R450 neither.
    found = gpu.ask("nvmlDeviceGetComputeRunningProcesses")
    found = found if found is not None else gpu.ask("nvmlDeviceGetComputeRunningProcesses_v2")
    if found is None:
        return {}
    for process in found:
        fields = {"gpu": gpu.number, "of_pid": int(process.pid), "memory": process.usedGpuMemory}
        say(kind="gpu.process", fields={name: value for name, value in fields.items() if value is not None})
    return {"processes": len(found), "processes_used": sum(process.usedGpuMemory or 0 for process in found)}


def describe(fields: dict[str, Any]) -> str:
    """One line about a GPU, as evidence."""
    parts = [str(fields.get("model", "unknown model"))]
    if "arch" in fields:
        parts.append(f"architecture {fields['arch']}")
    if "memory" in fields:
        parts.append(f"{units.format_size(fields.get('used', 0))} of {units.format_size(fields['memory'])} used")
    if "temperature" in fields:
        parts.append(f"{fields['temperature']:.0f} °C")
    if "power_limit" in fields:
        parts.append(
            f"power limit {fields['power_limit']:.0f} W" + (f" of {fields['power_default']:.0f} W" if "power_default" in fields else "")
        )
    if "width" in fields:
        parts.append(f"PCIe x{fields['width']}" + (f" of x{fields['width_max']}" if "width_max" in fields else ""))
    if fields.get("links_up") or fields.get("links_down"):
        parts.append(f"{fields['links_up']} NVLinks up, {fields['links_down']} down")
    if fields.get("fabric", "none") != "none":
        parts.append(f"fabric {fields['fabric']}")
    if fields.get("ecc_volatile") or fields.get("ecc_total"):
        parts.append(f"uncorrectable ECC errors: {fields.get('ecc_volatile', 0)} since the last reset, {fields.get('ecc_total', 0)} in all")
    for name, text in (
        ("remap_pending", "row remapping pending"),
        ("remap_failure", "row remapping failed"),
        ("pages_pending", "page retirement pending"),
    ):
        parts += [text] if fields.get(name) else []
    if fields.get("mig"):
        parts.append("MIG")
    if fields.get("compute_mode", "default") != "default":
        parts.append(f"compute mode {fields['compute_mode']}")
    reasons = [reason for reason in fields.get("reasons", []) if reason not in ("idle", "sw_power_cap", "display")]
    if reasons:
        parts.append(f"clocks held down by {', '.join(reasons)}")
    return ", ".join(parts)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
