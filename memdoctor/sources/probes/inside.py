"""Looks at a Python interpreter from inside: packages, torch, and fused kernels tried on tiny tensors.

One file of the standard library alone, for Python 3.7 and later: any interpreter can run it, whatever is installed there. It changes nothing:
run it with ``-B``. Its one argument is a JSON object: ``stages`` (names, in order), ``build`` (extensions may be compiled), ``busy`` (UUIDs of GPUs
that are in use; null: of no GPU is it known that it is free, so nothing is run on any), ``cuda`` (false: the driver does not answer, leave it alone).

It prints one JSON object a line: {"begin": stage}, {"end": stage, "failed": text or null}, and the facts {"kind", "fields", "path", "excerpt"}. A
stage that kills the process has a "begin" without an "end"; whoever reads this starts it anew with the stages that are left.

The parts that need a GPU were written from the documentation of the libraries and have not been run on a GPU.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

# The folder of this file holds other modules whose names must not hide packages.
if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    sys.path.pop(0)

_out = sys.stdout
# distribution name (normalised) -> the package it is told as
_DISTRIBUTIONS = {
    "torch": "torch", "triton": "triton", "pytorch-triton": "triton", "apex": "apex", "transformer-engine": "transformer-engine",
    "transformer-engine-torch": "transformer-engine", "flash-attn": "flash-attn", "flash-attn-3": "flash-attn-3", "flashattn-hopper": "flash-attn-3",
    "deepspeed": "deepspeed", "megatron-core": "megatron-core", "megatron-lm": "megatron-lm", "xformers": "xformers", "bitsandbytes": "bitsandbytes",
    "transformers": "transformers", "accelerate": "accelerate", "lightning": "lightning", "numpy": "numpy", "ninja": "ninja", "nvidia-nccl": "nvidia-nccl",
    "nvidia-cudnn": "nvidia-cudnn", "nvidia-cublas": "nvidia-cublas", "nvidia-cuda-runtime": "nvidia-cuda-runtime", "peft": "peft", "torchvision": "torchvision",
}  # fmt: skip
_LIBRARIES = (("nccl", "libnccl.so"), ("cudart", "libcudart.so"), ("cublas", "libcublas.so"), ("cudnn", "libcudnn.so"))


def say(**line: Any) -> None:
    _out.write(json.dumps(line, default=str) + "\n")
    _out.flush()


def fact(kind_: str, path_: str, excerpt_: str, **fields: Any) -> None:
    say(kind=kind_, path=path_, excerpt=excerpt_, fields={name: value for name, value in fields.items() if value is not None})


def short(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0][:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- what is installed ------------------------------------------------------------------------------------------------------


def packages(options: Mapping[str, Any]) -> None:
    fact(
        "stack.python",
        sys.executable,
        sys.version.split("\n")[0],
        path=sys.executable,
        version=".".join(str(part) for part in sys.version_info[:3]),
    )
    for package, (version, place) in sorted(installed().items()):
        fact("stack.package", place, f"{package} {version}", package=package, version=version, state="installed", place=place)


def installed() -> dict[str, tuple[str, str]]:
    """package -> (version, folder), the first on sys.path, from the names of the dist-info folders: nothing is imported."""
    found: dict[str, tuple[str, str]] = {}
    for folder in sys.path:
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for name in names:
            match = re.match(r"(.+?)-(\d[^-]*?)(?:-py[\d.]+)?\.(?:dist|egg)-info$", name)
            if match is None:
                continue
            distribution = re.sub(r"[-_.]+", "-", match.group(1)).lower()
            package = _DISTRIBUTIONS.get(distribution) or _DISTRIBUTIONS.get(re.sub(r"-cu\d+$", "", distribution))
            if package is not None:
                found.setdefault(package, (match.group(2), folder))
    return found


def tools(options: Mapping[str, Any]) -> None:
    """What builds extensions, found the way torch.utils.cpp_extension finds it."""
    home = cuda_home()
    nvcc = os.path.join(home, "bin", "nvcc") if home else None
    if nvcc and os.path.exists(nvcc):
        text = ask([nvcc, "--version"])
        match = re.search(r"release (\d+\.\d+)", text)
        fact("stack.tool", nvcc, text.strip().split("\n")[-1], name="nvcc", version=match.group(1) if match else None, path=nvcc)
    if home:
        fact("stack.tool", home, f"CUDA_HOME is {home}", name="cuda_home", path=home)
    compiler = os.environ.get("CXX") or next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
    if compiler and shutil.which(compiler.split()[0]):
        text = ask([compiler.split()[0], "--version"]).split("\n")[0]
        match = re.search(r"(\d+\.\d+(?:\.\d+)?)", text)
        fact("stack.tool", compiler, text, name="cxx", version=match.group(1) if match else None, path=shutil.which(compiler.split()[0]))
    ninja = shutil.which("ninja", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if ninja:
        fact("stack.tool", ninja, ninja, name="ninja", path=ninja)


def cuda_home() -> str | None:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return home
    nvcc = shutil.which("nvcc")
    if nvcc:
        return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return "/usr/local/cuda" if os.path.exists("/usr/local/cuda") else None


def ask(command: list[str]) -> str:
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return ""


def missing_tools(cuda: bool) -> str:
    """What is lacking to build an extension, in words; "" where nothing is."""
    lacking = []
    if shutil.which("ninja", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])) is None:
        lacking.append("ninja")
    if not any(shutil.which(name) for name in (os.environ.get("CXX") or "c++", "g++", "clang++")):
        lacking.append("a C++ compiler")
    if cuda and not os.path.exists(os.path.join(cuda_home() or "", "bin", "nvcc")):
        lacking.append("nvcc")
    return ", ".join(lacking)


# --- torch ------------------------------------------------------------------------------------------------------------------


def torch(options: Mapping[str, Any]) -> None:
    import torch as t

    cuda = t.version.cuda
    fields = {
        "version": t.__version__, "cuda": cuda, "hip": getattr(t.version, "hip", None), "cxx11_abi": bool(t._C._GLIBCXX_USE_CXX11_ABI),
    }  # fmt: skip
    if cuda:
        attempt(fields, "archs", lambda: t._C._cuda_getArchFlags().split())
        attempt(fields, "cudnn", lambda: dotted(t.backends.cudnn.version()))
        attempt(fields, "nccl", lambda: ".".join(str(part) for part in t.cuda.nccl.version()))
    fields["available"], fields["devices"] = None, None
    if options.get("cuda", True):
        fields["available"] = bool(t.cuda.is_available())
        fields["devices"] = int(t.cuda.device_count()) if fields["available"] else 0
    if cuda and fields["available"] is False:
        try:
            t.cuda.init()
        except Exception as error:
            fields["text"] = short(error)
    sees = "GPUs not looked at" if fields["available"] is None else f"sees {fields['devices']} GPUs"
    excerpt = f"torch {t.__version__}, {f'CUDA {cuda}' if cuda else 'built for CPUs only'}, {sees}"
    fact("stack.torch", os.path.dirname(t.__file__), excerpt, **fields)
    loaded_libraries()


def attempt(fields: dict[str, Any], name: str, call: Callable[[], Any]) -> None:
    try:
        fields[name] = call()
    except Exception:
        fields[name] = None


def dotted(number: int | None) -> str | None:
    """cuDNN counts 8902 as 8.9.2 and 90100 as 9.1.0."""
    if not number:
        return None
    large = number >= 90000
    major, minor, patch = (
        (number // 10000, number // 100 % 100, number % 100) if large else (number // 1000, number // 100 % 10, number % 100)
    )
    return f"{major}.{minor}.{patch}"


def loaded_libraries() -> None:
    """Which NCCL and CUDA libraries this process has loaded by now, and which further ones lie on the search path."""
    try:
        with open("/proc/self/maps") as file:
            loaded = sorted({line.split(None, 5)[5].strip() for line in file if ".so" in line and line.count(" ") >= 5})
    except (OSError, IndexError):
        return
    preloaded = os.environ.get("LD_PRELOAD", "")
    for name, stem in _LIBRARIES:
        for path in loaded:
            if os.path.basename(path).startswith(stem):
                origin = "package" if "site-packages" in path or "dist-packages" in path else "preload" if path in preloaded else "system"
                if origin == "system" and any(under(path, folder) for folder in search_path()):
                    origin = "search_path"
                fact("stack.library", path, path, name=name, path=path, version=version_of(path), origin=origin, major="loaded")


def search_path() -> list[str]:
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


def under(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder).rstrip("/") + "/")


def version_of(path: str) -> str | None:
    """From the name of the file, or from the package it belongs to."""
    match = re.search(r"\.so\.(\d+(?:\.\d+)+)$", os.path.realpath(path))
    if match is not None:
        return match.group(1)
    match = re.search(r"/nvidia/(nccl|cudnn|cublas|cuda_runtime)/", path)
    known = installed()
    package = "nvidia-" + match.group(1).replace("_", "-") if match else ""
    return known[package][0] if package in known else None


# --- kernels ----------------------------------------------------------------------------------------------------------------


def device(options: Mapping[str, Any], t: Any) -> Any:
    """The GPU to try kernels on: the first that is known to be free; None where there is none."""
    busy = options.get("busy")
    if busy is None or not t.cuda.is_available():
        return None
    for number in range(t.cuda.device_count()):
        uuid = str(getattr(t.cuda.get_device_properties(number), "uuid", ""))
        if not busy or (uuid and not any(uuid in one for one in busy)):
            return t.device("cuda", number)
    return None


def devices(options: Mapping[str, Any]) -> None:
    """How CUDA numbers the GPUs. This starts CUDA, so it is done only where a GPU is free."""
    import torch as t

    if device(options, t) is None:
        return
    for number in range(t.cuda.device_count()):
        about = t.cuda.get_device_properties(number)
        uuid = str(getattr(about, "uuid", "")) or None
        arch = f"{about.major}.{about.minor}"
        fact(
            "stack.device",
            f"CUDA, GPU {number}",
            f"{about.name} ({arch})",
            index=number,
            uuid="GPU-" + uuid if uuid else None,
            model=about.name,
            arch=arch,
        )


def result(kernel: str, package: str, state: str, where: str, text: str = "", **more: Any) -> None:
    excerpt = f"{kernel} on {where}: {state}" + (f" ({text})" if text else "")
    fact("kernel.run", package, excerpt, kernel=kernel, package=package, state=state, device=where, text=text or None, **more)


def compare(kernel: str, package: str, where: str, tolerance: float, run: Callable[[], tuple[Any, Any]]) -> None:
    """Run ``run`` -> (result, reference) and tell whether they agree within ``tolerance`` (absolute)."""
    try:
        got, wanted = run()
        difference = float((got.detach().float().cpu() - wanted.detach().float().cpu()).abs().max())
    except Exception as error:
        result(kernel, package, "failed", where, short(error), cause=cause_of(error))
        return
    if difference <= tolerance:
        result(kernel, package, "ok", where, difference=difference)
    else:
        result(kernel, package, "wrong", where, f"differs from the reference by {difference:.3g}", difference=difference)


def cause_of(error: BaseException) -> str:
    """abi, arch, missing or other: what the text of an error says."""
    text = str(error)
    if "undefined symbol" in text or "GLIBC" in text or "CXXABI" in text or "cannot open shared object" in text:
        return "abi"
    if "no kernel image" in text or "not compatible" in text or "only supports" in text or "compute capability" in text.lower():
        return "arch"
    return "missing" if isinstance(error, ImportError) else "other"


def imported(package: str, name: str) -> Any:
    """The module ``name``; None (and a fact that says why) where it is installed but cannot be imported, or is not installed."""
    import importlib
    import importlib.util

    try:
        if importlib.util.find_spec(name.split(".")[0]) is None:
            return None
        return importlib.import_module(name)
    except Exception as error:
        version = installed().get(package, (None, None))[0]
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == name.split(".")[0]:
            if version is not None:
                result(
                    name,
                    package,
                    "failed",
                    "import",
                    f"{package} lacks the part {error.name}: it was built without it",
                    cause="missing",
                )
            return None
        fact(
            "stack.package",
            name,
            f"import {name}: {short(error)}",
            package=package,
            version=version,
            state="broken",
            text=short(error),
            cause=cause_of(error),
        )
        return None


def fused_adamw(options: Mapping[str, Any]) -> None:
    import torch as t

    def run(where: Any) -> tuple[Any, Any]:
        """The kernel itself: the optimizer class would load half of torch.compile."""
        weight = t.linspace(-1, 1, 64).to(where)
        average, square, steps = t.zeros_like(weight), t.zeros_like(weight), t.zeros((), dtype=t.float32, device=where)
        for gradient in gradients(t, where, 64):
            steps += 1
            t._fused_adamw_(
                [weight], [gradient], [average], [square], [], [steps], lr=RATE, beta1=BETAS[0], beta2=BETAS[1], weight_decay=DECAY, eps=EPS,
                amsgrad=False, maximize=False,
            )  # fmt: skip
        return weight, adam_by_hand(t, where, 64, DECAY)

    for where in [t.device("cpu"), device(options, t)]:
        if where is not None:
            compare("torch fused AdamW", "torch", where.type, 1e-5, functools.partial(run, where))


RATE, DECAY, BETAS, EPS = 0.1, 0.01, (0.9, 0.999), 1e-8


def gradients(t: Any, where: Any, size: int) -> list[Any]:
    return [t.linspace(1, -1, size).to(where) * number for number in range(1, 4)]


def adam_by_hand(t: Any, where: Any, size: int, decay: float) -> Any:
    """The weight after three steps of AdamW."""
    weight = t.linspace(-1, 1, size).to(where)
    first, second = t.zeros_like(weight), t.zeros_like(weight)
    for number, gradient in enumerate(gradients(t, where, size), 1):
        weight = weight * (1 - RATE * decay)
        first = BETAS[0] * first + (1 - BETAS[0]) * gradient
        second = BETAS[1] * second + (1 - BETAS[1]) * gradient * gradient
        weight = weight - RATE * (first / (1 - BETAS[0] ** number)) / ((second / (1 - BETAS[1] ** number)).sqrt() + EPS)
    return weight


def adam_of(t: Any, where: Any, make: Callable[..., Any], size: int, decay: float) -> tuple[Any, Any]:
    """Three steps of somebody's optimizer, and the formula."""
    weight = t.nn.Parameter(t.linspace(-1, 1, size).to(where))
    optimizer = make([weight], lr=RATE, weight_decay=decay)
    for gradient in gradients(t, where, size):
        weight.grad = gradient
        optimizer.step()
    return weight, adam_by_hand(t, where, size, decay)


def attention(options: Mapping[str, Any]) -> None:
    """Back-ends of scaled_dot_product_attention, each against the plain formula."""
    import torch as t
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for where in [t.device("cpu"), device(options, t)]:
        if where is None:
            continue
        kind = t.float32 if where.type == "cpu" else t.float16
        for name in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
            backend = getattr(SDPBackend, name, None)
            if backend is None or (where.type == "cpu" and name in ("EFFICIENT_ATTENTION", "CUDNN_ATTENTION")):
                continue
            if where.type == "cuda" and name == "FLASH_ATTENTION" and t.cuda.get_device_capability(where)[0] < 8:
                continue

            def run(backend: Any = backend, where: Any = where, kind: Any = kind) -> tuple[Any, Any]:
                q, k, v = inputs(t, where, kind)
                with sdpa_kernel(backend):
                    got = t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                return got, plain_attention(t, q, k, v)

            compare(f"torch SDPA {name}", "torch", where.type, 2e-2 if kind == t.float16 else 1e-4, run)


def inputs(t: Any, where: Any, kind: Any) -> list[Any]:
    t.manual_seed(2)
    return [t.randn(2, 4, 32, 64, dtype=t.float32).to(where, kind) for _ in range(3)]


def plain_attention(t: Any, q: Any, k: Any, v: Any) -> Any:
    """[b, h, s, d], causal, in fp32."""
    scores = q.float() @ k.float().transpose(-1, -2) / q.shape[-1] ** 0.5
    mask = t.ones(scores.shape[-2:], dtype=t.bool, device=q.device).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v.float()


def apex(options: Mapping[str, Any]) -> None:
    """FusedAdam, FusedLayerNorm and the extension that Megatron-LM fuses gradient accumulation with."""
    if imported("apex", "apex") is None:
        return
    import torch as t

    where = device(options, t)
    for name in ("amp_C", "fused_layer_norm_cuda", "fused_weight_gradient_mlp_cuda"):
        imported("apex", name)
    if where is None:
        result("apex", "apex", "skipped", "cuda", "needs a free GPU")
        return

    def norm() -> tuple[Any, Any]:
        from apex.normalization import FusedLayerNorm

        x = t.randn(8, 64, device=where)
        return FusedLayerNorm(64).to(where)(x), t.nn.LayerNorm(64).to(where)(x)

    def adam() -> tuple[Any, Any]:
        from apex.optimizers import FusedAdam

        return adam_of(t, where, FusedAdam, 64, DECAY)

    compare("apex FusedLayerNorm", "apex", "cuda", 1e-4, norm)
    compare("apex FusedAdam", "apex", "cuda", 1e-4, adam)


def transformer_engine(options: Mapping[str, Any]) -> None:
    te = imported("transformer-engine", "transformer_engine.pytorch")
    if te is None:
        return
    import torch as t

    where = device(options, t)
    if where is None:
        result("Transformer Engine", "transformer-engine", "skipped", "cuda", "needs a free GPU")
        return

    def linear() -> tuple[Any, Any]:
        x = t.randn(32, 64, device=where, dtype=t.bfloat16)
        layer = te.Linear(64, 64, bias=False, params_dtype=t.bfloat16).to(where)
        return layer(x), t.nn.functional.linear(x.float(), layer.weight.float())

    def norm() -> tuple[Any, Any]:
        x = t.randn(32, 64, device=where)
        return te.LayerNorm(64).to(where)(x), t.nn.LayerNorm(64).to(where)(x)

    compare("Transformer Engine Linear", "transformer-engine", "cuda", 0.1, linear)
    compare("Transformer Engine LayerNorm", "transformer-engine", "cuda", 1e-3, norm)
    if t.cuda.get_device_capability(where) >= (8, 9):

        def fp8() -> tuple[Any, Any]:
            x = t.randn(32, 64, device=where, dtype=t.bfloat16)
            layer = te.Linear(64, 64, bias=False, params_dtype=t.bfloat16).to(where)
            with te.fp8_autocast(enabled=True):
                got = layer(x)
            return got, t.nn.functional.linear(x.float(), layer.weight.float())

        compare("Transformer Engine Linear in FP8", "transformer-engine", "cuda", 0.5, fp8)


def flash_attention(options: Mapping[str, Any]) -> None:
    import torch as t

    where = device(options, t)
    for package, name, call in (
        ("flash-attn", "flash_attn", "flash_attn_func"),
        ("flash-attn-3", "flash_attn_interface", "flash_attn_func"),
    ):
        module = imported(package, name)
        if module is None:
            continue
        if where is None:
            result(package, package, "skipped", "cuda", "needs a free GPU")
            continue

        def run(module: Any = module, call: str = call) -> tuple[Any, Any]:
            q, k, v = inputs(t, where, t.bfloat16)
            got = getattr(module, call)(*(one.transpose(1, 2).contiguous() for one in (q, k, v)), causal=True)
            got = got[0] if isinstance(got, tuple) else got
            return got.transpose(1, 2), plain_attention(t, q, k, v)

        compare(package, package, "cuda", 3e-2, run)


def xformers(options: Mapping[str, Any]) -> None:
    ops = imported("xformers", "xformers.ops")
    if ops is None:
        return
    import torch as t

    where = device(options, t)
    if where is None:
        result("xformers memory_efficient_attention", "xformers", "skipped", "cuda", "needs a free GPU")
        return

    def run() -> tuple[Any, Any]:
        q, k, v = inputs(t, where, t.float16)
        bias = ops.LowerTriangularMask()
        got = ops.memory_efficient_attention(*(one.transpose(1, 2).contiguous() for one in (q, k, v)), attn_bias=bias)
        return got.transpose(1, 2), plain_attention(t, q, k, v)

    compare("xformers memory_efficient_attention", "xformers", "cuda", 2e-2, run)


def bitsandbytes(options: Mapping[str, Any]) -> None:
    module = imported("bitsandbytes", "bitsandbytes")
    if module is None:
        return
    import torch as t

    where = device(options, t)
    if where is None:
        result("bitsandbytes AdamW8bit", "bitsandbytes", "skipped", "cuda", "needs a free GPU")
        return

    def run() -> tuple[Any, Any]:
        return adam_of(t, where, module.optim.AdamW8bit, 8192, DECAY)

    compare("bitsandbytes AdamW8bit", "bitsandbytes", "cuda", 5e-2, run)


def triton(options: Mapping[str, Any]) -> None:
    """Triton only compiles for a GPU; here it is imported, and its compiler's needs are looked at."""
    if imported("triton", "triton") is None:
        return
    lacking = "" if any(shutil.which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")) else "a C compiler"
    if lacking:
        result("triton", "triton", "needs_build", "cuda", "its launcher is compiled at first use", missing=lacking, weight="main")


_MAIN_OPS = ("fused_adam", "cpu_adam")


def deepspeed(options: Mapping[str, Any]) -> None:
    """Each op: built, ready to be built at first use, or not: what is lacking. With ``build`` the main ones are built and run."""
    if imported("deepspeed", "deepspeed") is None:
        return
    import torch as t
    from deepspeed.ops.op_builder.all_ops import ALL_OPS

    try:
        from deepspeed.git_version_info import installed_ops
    except ImportError:
        installed_ops = {}
    wanted: list[tuple[str, Any]] = []
    for name, builder in sorted(ALL_OPS.items()):
        if name == "deepspeed_not_implemented" or "NotImplemented" in type(builder).__name__:
            continue
        weight = "main" if name in _MAIN_OPS else "optional"
        cuda = any(base.__name__ == "CUDAOpBuilder" for base in type(builder).__mro__) and not name.startswith("cpu_")
        try:
            fits = bool(builder.is_compatible(verbose=False))
        except Exception as error:
            result("deepspeed." + name, "deepspeed", "failed", "build", short(error), weight=weight)
            continue
        lacking = missing_tools(cuda and t.version.cuda is not None)
        if installed_ops.get(name) or cached(name):
            result("deepspeed." + name, "deepspeed", "built", "build", weight=weight)
        elif not fits:
            result(
                "deepspeed." + name,
                "deepspeed",
                "incompatible",
                "build",
                str(getattr(builder, "error_log", "") or "").strip()[:300],
                weight=weight,
            )
        else:
            result(
                "deepspeed." + name, "deepspeed", "needs_build", "build", "compiled at first use", missing=lacking or None, weight=weight
            )
        if options.get("build") and fits and not lacking and weight == "main":
            wanted.append((name, builder))
    for name, builder in wanted:
        build_and_run(name, builder, options, t)


def cached(name: str) -> bool:
    """True where an earlier run has compiled the op for this interpreter."""
    top = os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(os.path.expanduser("~"), ".cache", "torch_extensions")
    for folder, names, files in os.walk(top):
        if os.path.basename(folder) == name and name + ".so" in files:
            return True
        if folder.count(os.sep) - top.count(os.sep) >= 3:
            del names[:]
    return False


def build_and_run(name: str, builder: Any, options: Mapping[str, Any], t: Any) -> None:
    kernel = "deepspeed." + name
    where = t.device("cpu") if name == "cpu_adam" else device(options, t)
    try:
        builder.load(verbose=False)
    except Exception as error:
        result(kernel, "deepspeed", "failed", "build", short(error), weight="main", cause=cause_of(error))
        return
    if where is None:
        result(kernel, "deepspeed", "built", "build", "it was built, and not run: no GPU is free", weight="main")
        return

    def run() -> tuple[Any, Any]:
        from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam

        return adam_of(t, where, DeepSpeedCPUAdam if name == "cpu_adam" else FusedAdam, 64, DECAY)

    compare(kernel, "deepspeed", where.type, 1e-4, run)


STAGES: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "packages": packages, "tools": tools, "torch": torch, "devices": devices, "fused_adamw": fused_adamw, "attention": attention, "apex": apex,
    "transformer_engine": transformer_engine, "flash_attention": flash_attention, "xformers": xformers, "bitsandbytes": bitsandbytes, "triton": triton,
    "deepspeed": deepspeed,
}  # fmt: skip


def main() -> None:
    global _out
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    # What libraries print must not get between the lines: standard output becomes standard error for them.
    _out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # looks for GPUs without starting CUDA
    for name in options.get("stages") or list(STAGES):
        say(begin=name)
        failed = None
        try:
            STAGES[name](options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, too: a library may try to leave
            failed = short(error)
            say(failed=name, text=failed, cause=cause_of(error), error=type(error).__name__)
        say(end=name)


if __name__ == "__main__":
    main()
