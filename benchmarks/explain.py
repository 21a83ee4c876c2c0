"""Estimate, measure and explain forty models of torchvision and timm, and say how much of each gap has a cause.

    python benchmarks/explain.py [--train] [--json FILE] [--least SHARE] [MODEL ...]

Each model is built, estimated and measured in a process of its own, batch 1, at the input that its documentation gives. Prints a
Markdown table; ends with exit code 1 if less of a gap is explained than SHARE (0.98).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

TORCHVISION = (
    "alexnet", "vgg11", "vgg16", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "densenet121",
    "googlenet", "inception_v3", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "mnasnet1_0",
    "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1", "efficientnet_b0", "efficientnet_b3", "efficientnet_v2_s",
    "regnet_y_400mf", "regnet_x_800mf", "convnext_tiny", "vit_b_16", "vit_b_32", "swin_t", "swin_v2_t", "maxvit_t",
    "r3d_18", "fcn_resnet50", "ssdlite320_mobilenet_v3_large",
)  # fmt: skip
TIMM = (
    "efficientnet_lite0", "mobilevit_s", "deit_tiny_patch16_224", "convnextv2_atto", "mixer_s32_224", "resmlp_12_224",
    "coat_lite_tiny", "pit_ti_224", "poolformer_s12", "ghostnet_100", "hrnet_w18_small", "eva02_tiny_patch14_224",
    "xcit_nano_12_p16_224",
)  # fmt: skip
MODELS = (*TORCHVISION, *(f"timm:{name}" for name in TIMM))
CAUSES = 3  # the largest, that a row of the table names


def one(name: str, train: bool) -> dict[str, Any]:
    """The figures of one model."""
    from flopwatch.estimating import estimate_model
    from flopwatch.explaining import explain
    from flopwatch.models import measure_model
    from flopwatch.subjects.model import Request

    estimate = estimate_model(Request(name), train=train)
    measured = measure_model(Request(name), train=train)
    found = explain(measured, estimate)
    return {
        "model": name,
        "mac": estimate.mac,
        "estimated": found.estimated,
        "measured": found.measured,
        "gap": found.gap,
        "missing": found.missing,
        "share": found.share,
        "causes": {row.cause: row.flop for row in found.rows},
        "unknown": [each.name for each in estimate.unknown],
    }


def of(name: str, train: bool) -> dict[str, Any]:
    """The same, in a process of its own."""
    command = [sys.executable, __file__, "--one", name, *(["--train"] if train else [])]
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def percent(share: float) -> str:
    """Rounded down: only everything is 100 %."""
    return f"{int(share * 10_000) / 100:.2f} %"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all forty-four")
    parser.add_argument("--train", action="store_true", help="a training step")
    parser.add_argument("--least", type=float, default=0.98, metavar="SHARE")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--one", metavar="MODEL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.train)))
        return 0
    print("| model | MAC | estimated FLOP | measured FLOP | gap | explained | largest causes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    rows = []
    for name in given.models or MODELS:
        row = of(name, given.train)
        rows.append(row)
        largest = ", ".join(f"{cause} {flop:+,}" for cause, flop in list(row["causes"].items())[:CAUSES])
        figures = " | ".join(f"{row[key]:,}" for key in ("mac", "estimated", "measured", "gap"))
        print(f"| {name} | {figures} | {percent(row['share'])} | {largest} |", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    short = [row["model"] for row in rows if row["share"] < given.least]
    print(f"\n{len(rows) - len(short)} of {len(rows)} models have at least {given.least:.0%} of their gap explained")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
