"""An environment for each counter, made once under a folder: packages of its own, PyTorch from one base environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"


@dataclass(frozen=True)
class Peer:
    """A counter: its title, what to install (nothing: the base will do), and whether it needs the base's packages as well.

    `environment` is the counter whose environment this one shares. `after` are packages that are installed last, against
    what others ask for.
    """

    title: str
    packages: tuple[str, ...] = ()
    environment: str = ""
    based: bool = True
    after: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


PEERS: dict[str, Peer] = {
    "flopwatch": Peer("flopwatch"),
    "flop_counter": Peer("FlopCounterMode"),
    "flop_counter_grad": Peer("FlopCounterMode, training"),
    "flop_counter_meta": Peer("FlopCounterMode, meta"),
    "fvcore": Peer("fvcore", ("fvcore==0.1.5.post20221221",)),
    # These two install the same import package: whichever comes last wins.
    "thop": Peer("thop", ("thop==0.1.1.post2209072238",)),
    "ultralytics_thop": Peer("ultralytics-thop", ("ultralytics-thop==2.2.3",)),
    "ptflops": Peer("ptflops", ("ptflops==0.7.5",)),
    "ptflops_aten": Peer("ptflops, aten", environment="ptflops"),
    "torchinfo": Peer("torchinfo", ("torchinfo==1.8.0",)),
    "calflops": Peer("calflops", ("calflops==0.3.2",)),
    "deepspeed": Peer("DeepSpeed", ("deepspeed==0.19.8",)),
    "torchprofile": Peer("torchprofile", ("torchprofile==0.1.0",)),
    "onnx_tool": Peer("onnx-tool", ("onnx-tool==1.0.1",)),
    "tf_profiler": Peer("tf.profiler", environment="keras_flops"),
    "keras_flops": Peer("keras-flops", ("tensorflow-cpu==2.21.0", "keras-flops==0.1.2"), based=False),
    "jax": Peer("JAX cost analysis"),
    "chainer_cc": Peer(
        "chainer_computational_cost",
        ("chainer==6.7.0", "chainer_computational_cost==0.1.2", "numpy<1.24", "setuptools<81"),
        based=False,
        after=("typing_extensions",),
    ),
    "netscope": Peer("Netscope, published"),
}


@dataclass(frozen=True)
class Environments:
    """Environments under `folder`, on top of the packages of the Python `base`."""

    folder: Path
    base: str

    def python(self, peer: str) -> str:
        """The Python to run a counter with, its environment made if need be; raises CalledProcessError with pip's words."""
        wanted = PEERS[peer]
        if not wanted.packages and not wanted.environment:
            return self.base
        place = self.folder / (wanted.environment or peer)
        done = place / "is-ready"
        if not done.exists():
            self._make(place, PEERS[wanted.environment or peer])
            done.touch()
        return str(place / "bin" / "python")

    def _make(self, place: Path, wanted: Peer) -> None:
        print(f"making an environment for {wanted.title} in {place}", file=sys.stderr)
        subprocess.run((self.base, "-m", "venv", "--clear", str(place)), check=True)
        python = str(place / "bin" / "python")
        if wanted.based:
            # PyTorch takes gigabytes: one copy is enough. Packages of the environment come first.
            code = "import sysconfig; print(sysconfig.get_path('purelib'))"
            own, shared = (
                subprocess.run((each, "-c", code), check=True, capture_output=True, text=True).stdout.strip()
                for each in (python, self.base)
            )
            Path(own, "zz-base.pth").write_text(shared + "\n")
        # Old packages are built with what setuptools has lost since.
        constraint = place / "constraint.txt"
        constraint.write_text("setuptools<81\n")
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        environment = {**os.environ, "PIP_CONSTRAINT": str(constraint)}
        subprocess.run((*install, *wanted.packages), check=True, env=environment, capture_output=True, text=True)
        if wanted.after:
            last = (*install, "--no-deps", "--upgrade", *wanted.after)
            subprocess.run(last, check=True, env=environment, capture_output=True, text=True)


def variables(peer: str) -> dict[str, str]:
    """The environment variables that a counter runs with."""
    path = os.pathsep.join((str(HERE.parent), str(SOURCE)))
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    return {**os.environ, **quiet, "PYTHONPATH": path, **PEERS[peer].variables}
