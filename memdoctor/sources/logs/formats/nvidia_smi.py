"""``nvidia-smi -q``: readings of each GPU; only those that name a fault become facts.

The names of sections and keys are those that drivers 450 to 580 print; clocks "Throttle Reasons" became "Event Reasons" in 535.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.lazy import lazy

_GPU = lazy(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$", needs=("GPU ",))
_KEY = lazy(r"^( +)([^:]+?)\s*(?::\s*(.*))?$")
_THROTTLE = {
    "HW Slowdown": "hw_slowdown",
    "HW Thermal Slowdown": "hw_thermal",
    "HW Power Brake Slowdown": "power_brake",
    "HW Power Brake": "power_brake",
    "SW Thermal Slowdown": "sw_thermal",
}
_UNCORRECTABLE = ("uncorrectable", "double bit")


class NvidiaSmi:
    def __init__(self) -> None:
        self._gpu = -1
        self._whole = False  # not a part cut out of it: the GPUs can be counted
        self._bus = ""
        self._model = ""
        self._sections: list[tuple[int, str]] = []

    @staticmethod
    def is_it(sample: Sequence[str]) -> bool:
        first = [line for line in sample[:8] if line.strip()]
        if any("NVSMI LOG" in line for line in first):
            return True
        # The part of one GPU, cut out of the whole.
        return len(first) > 2 and _GPU.match(first[0]) is not None and all(line.startswith("    ") for line in first[1:])

    def feed(self, text: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
        self._whole = self._whole or "NVSMI LOG" in text
        gpu = _GPU.match(text)
        if gpu is not None:
            self._gpu, self._bus, self._model, self._sections = self._gpu + 1, gpu[1], "", []
            return ()
        match = _KEY.match(text)
        if match is None or self._gpu < 0:
            return ()
        depth, key, value = len(match[1]), match[2].strip(), (match[3] or "").strip()
        while self._sections and self._sections[-1][0] >= depth:
            self._sections.pop()
        path = [name for _, name in self._sections]
        if match[3] is None:
            self._sections.append((depth, key))
            return ()
        if key == "Product Name":
            self._model = value
        name = self._fault(path, key, value)
        if name is None:
            return ()
        number = re.match(r"\d+", value)
        fields: dict[str, Any] = {
            "name": name,
            "bus_id": self._bus,
            "model": self._model,
            "text": " / ".join([*path, key]) + f": {value}",
        }
        if self._whole:
            fields["gpu"] = self._gpu
        if number is not None:
            fields["value"] = float(number[0])
        return (("gpu.state", fields),)

    @staticmethod
    def _fault(path: list[str], key: str, value: str) -> str | None:
        section, low = " ".join(path).lower(), key.lower()
        if "reasons" in section and value == "Active":
            return _THROTTLE.get(key)
        if "remapped rows" in section:
            if low == "pending" and value == "Yes":
                return "remap_pending"
            if low == "remapping failure occurred" and value == "Yes":
                return "remap_failure"
        if "retired pages" in section and low.startswith("pending") and value == "Yes":
            return "remap_pending"
        if (
            "volatile" in section
            and "ecc" in section
            and any(word in f"{section} {low}" for word in _UNCORRECTABLE)
            and value.isdigit()
            and int(value) > 0
        ):
            return "ecc_uncorrectable"
        if low == "gpu recovery action" and value not in ("None", "N/A"):
            return "recovery_action"
        return None
