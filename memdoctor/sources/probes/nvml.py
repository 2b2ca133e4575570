"""Reading GPUs through NVML, in a process of its own: ``python -m memdoctor.sources.probes.nvml`` prints one JSON object a line.

Lines: {"at": ...} before each part, so that a hang has a place; {"count": n}, how many there are; {"kind", "fields", "path", "excerpt"} for each
fact; {"lost": gpu, ...} for a GPU that does not answer; {"unread": what, "text"} for a reading that failed on our side; {"init": code, "text"}
where NVML cannot be started; {"done": true} at the end.
Calls that a GPU or driver does not know leave their fields out.
"""

from __future__ import annotations

import re
from typing import Any

from memdoctor.sources.probes.notebook import read_text
from memdoctor.sources.probes.nvml_asking import NO_LIBRARY, NO_PERMISSION, Gone, Gpu, keep_stdout, say, text_of
from memdoctor.sources.probes.nvml_reading import describe, read_gpu

LIBRARY = "libnvidia-ml.so.1"
_ANCESTORS = {0: "internal", 10: "switch", 20: "switches", 30: "bridge", 40: "node", 50: "system"}
_P2P = {0: "ok", 1: "chipset", 2: "topology", 3: "disabled", 4: "old_driver", 5: "not_supported", 6: "unknown"}


def read_pairs(gpus: list[Gpu]) -> None:
    """Every two GPUs: what lies between them, and whether they may talk directly."""
    for place, one in enumerate(gpus):
        for other in gpus[place + 1 :]:
            try:
                level = _ANCESTORS.get(one.ask("nvmlDeviceGetTopologyCommonAncestor", other.handle))
                status = one.ask("nvmlDeviceGetP2PStatus", other.handle, 0)
                links = one.ask("nvmlDeviceGetP2PStatus", other.handle, 2)
            except Gone:
                return
            p2p = _P2P.get(status, "unknown") if status is not None else None
            path = "nvlink" if links == 0 else level
            fields = {"gpu": one.number, "peer": other.number, "path": path, "p2p": p2p}
            excerpt = f"GPU {one.number} and {other.number}: {path or 'distance unknown'}, P2P {p2p or 'unknown'}"
            if path is not None or p2p is not None:
                say(
                    kind="gpu.pair",
                    path=f"NVML, GPU {one.number} and {other.number}",
                    excerpt=excerpt,
                    fields={k: v for k, v in fields.items() if v is not None},
                )


def driver(nvml: Any) -> dict[str, Any]:
    """Versions of the library and, where /proc shows it, of the kernel module."""

    def ask(name: str) -> Any:
        say(at=name)
        try:
            return getattr(nvml, name)()
        except nvml.NVMLError:
            return None
        except Exception as error:
            say(unread=name, text=f"{type(error).__name__}: {error}"[:200])
            return None

    cuda = ask("nvmlSystemGetCudaDriverVersion_v2") or ask("nvmlSystemGetCudaDriverVersion")
    module = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", read_text("/proc/driver/nvidia/version") or "")
    fields = {
        "driver": text_of(ask("nvmlSystemGetDriverVersion")),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        "module": module[1] if module else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def main() -> None:
    keep_stdout()
    import pynvml

    say(at="nvmlInit")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        code, why = int(getattr(error, "value", 999)), None
        if code == NO_LIBRARY:
            why = _load_error()
        say(init=code, text=why or str(error), unloaded=why is not None)
        return
    versions = driver(pynvml)
    say(kind="gpu.driver", path="NVML", excerpt=f"driver {versions.get('driver')}, CUDA {versions.get('cuda')}", fields=versions)
    say(at="nvmlDeviceGetCount")
    try:
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        say(init=int(getattr(error, "value", 999)), text=str(error))
        return
    gpus: list[Gpu] = []
    say(count=count - _read_all(pynvml, count, gpus))
    read_pairs(gpus)
    say(at="nvmlShutdown")
    pynvml.nvmlShutdown()
    say(done=True)


def _load_error() -> str | None:
    """Why the library cannot be loaded; None where it is on no search path."""
    import ctypes

    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        text = str(error)
        return None if "No such file" in text and text.startswith(LIBRARY) else f"the NVIDIA driver's library cannot be loaded: {text}"
    return None


def _read_all(nvml: Any, count: int, gpus: list[Gpu]) -> int:
    """Read each GPU into ``gpus``; returns how many belong to somebody else and count for nobody here."""
    foreign = 0
    for number in range(count):
        gpu: Gpu | None = None
        try:
            gpu = Gpu(nvml, number)
            fields = read_gpu(gpu)
        except Gone as gone:
            say(lost=number, call=gone.call, code=gone.code, text=gone.text, bus_id=gpu.bus_id if gpu is not None else None)
            foreign += gone.code == NO_PERMISSION
            continue
        except Exception as error:
            say(unread=f"GPU {number}", text=f"{type(error).__name__}: {error}"[:200])
            continue
        say(kind="gpu.device", path=f"NVML, GPU {number}", excerpt=describe(fields), fields=fields)
        gpus.append(gpu)
    return foreign


if __name__ == "__main__":
    main()
