"""PyTorch: eager on any device, compiled, and on its oneDNN tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch  # type: ignore[import-not-found,unused-ignore]

from conformance import CannotStart, Tensor, Unsupported
from conformance.model.types import WIDTH, dtype_of

from .shared import ArrayLibrary, NodeCalls

TYPES = {name: getattr(torch, dtype_of(name).name) for name in WIDTH}
NAMES = {dtype: name for name, dtype in TYPES.items()}


class Torch(ArrayLibrary):
    """torch.reshape, eager."""

    name, version = "torch", torch.__version__
    not_claimed = ("declared", "form", "layout:reversed")

    def __init__(self, device: str = "cpu") -> None:
        try:
            self.device = torch.empty(0, device=device).device
        except (RuntimeError, AssertionError) as error:  # the second: a build without that device
            raise CannotStart(f"torch@{device}: {str(error).splitlines()[0]}") from None
        hardware = torch.backends.cpu.get_cpu_capability()
        if self.device.type == "cuda":
            hardware = torch.cuda.get_device_name(self.device)
        if self.device.type != "cpu":  # results of another device have another name
            self.name = f"{self.name}-{self.device.type}"
        self.detail = (("build", torch.version.git_version or ""), ("device", str(self.device)), ("hardware", hardware))

    def import_src(self, src: Tensor) -> torch.Tensor:
        """Return a torch tensor of any rank over the memory of src."""
        if any(stride < 0 for stride in src.strides):  # documented: tensors have none
            raise Unsupported("layout:reversed")
        width = WIDTH[src.type]
        memory = torch.frombuffer(
            src.memory, dtype=TYPES[src.type], count=(len(src.memory) - src.offset % width) // width,
            offset=src.offset % width,
        )  # fmt: skip
        # The dense strides of a tensor without elements may pass 64 bits.
        strides = tuple(min(stride // width, (1 << 63) - 1) for stride in src.strides)
        return torch.as_strided(memory, src.dims, strides, src.offset // width).to(self.device)

    def reshape(self, src: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        try:
            return torch.reshape(src, shape)
        except TypeError as error:
            if "Overflow when unpacking" in str(error):  # how the binding rejects integers past 64 bits
                raise OverflowError(str(error)) from error
            raise

    def export_dst(self, dst: torch.Tensor) -> Tensor:
        """Return a tensor of any rank over the storage of dst."""
        dst = dst.cpu()
        width = WIDTH[NAMES[dst.dtype]]
        memory = torch.empty(0, dtype=torch.uint8).set_(dst.untyped_storage()).numpy().data
        strides = tuple(stride * width for stride in dst.stride())
        return Tensor(NAMES[dst.dtype], tuple(dst.shape), strides, memory, dst.storage_offset() * width)


class TorchRaw(Torch):
    """torch.reshape with the shape unchanged: every 0 is literal."""

    name = "torch-raw"
    answers_special_zero = False


class TorchMkldnn(Torch):
    """torch.reshape on the tensors of PyTorch's own oneDNN."""

    name = "torch-mkldnn"

    def __init__(self) -> None:
        if not torch.backends.mkldnn.is_available():
            raise CannotStart("torch-mkldnn: this build of torch has no oneDNN; pip install torch==2.13.0")
        super().__init__()

    def run_chain(self, src: torch.Tensor, calls: NodeCalls) -> torch.Tensor:
        dst: torch.Tensor = super().run_chain(src.to_mkldnn(), calls).to_dense()
        return dst


class TorchCompile(Torch):
    """torch.reshape under torch.compile, a whole graph with constant shapes; no code is generated."""

    name = "torch-compile"
    operations = ("StaticReshape",)
    backend = "aot_eager"

    def __init__(self) -> None:
        super().__init__()
        torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0  # for a log: half of the time it takes to compile
        self.function_of = lru_cache(4096)(self.make_function)

    def make_function(self, calls: NodeCalls) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return a function for these calls, which shares no compiled code with that of other calls."""
        plain = super().run_chain

        def chain(tensor: torch.Tensor) -> torch.Tensor:
            dst: torch.Tensor = plain(tensor, calls)
            return dst

        chain.__code__ = chain.__code__.replace()  # Dynamo finds compiled code by the code object
        compiled: Callable[[torch.Tensor], torch.Tensor]
        compiled = torch.compile(chain, fullgraph=True, dynamic=False, backend=self.backend)
        return compiled

    def run_chain(self, src: torch.Tensor, calls: NodeCalls) -> torch.Tensor:
        # Each thread has its own settings, and programs may run in several.
        torch.set_grad_enabled(False)
        torch._dynamo.config.recompile_limit = 1 << 20  # a function is called with many a src
        torch._dynamo.config.accumulated_recompile_limit = 1 << 20
        return self.function_of(calls)(src)


class TorchInductor(TorchCompile):
    """torch.reshape under torch.compile with its default backend, which may compile C++ for minutes."""

    name = "torch-inductor"
    backend = "inductor"

    def __init__(self) -> None:
        super().__init__()
        torch._inductor.config.compile_threads = 1  # --jobs alone sets the number of processes
