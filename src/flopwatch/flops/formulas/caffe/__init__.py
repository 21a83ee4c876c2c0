"""Caffe's layers: what each computes outside of training; importing this registers them."""

from __future__ import annotations

from importlib import import_module

from flopwatch.flops.formulas.registry import free

# Each file registers its own layers when it is imported.
NAMES: tuple[str, ...] = ("dense", "pointwise", "rows", "windows")

for _name in NAMES:
    import_module(f"flopwatch.flops.formulas.caffe.{_name}")

_MOVED = "puts numbers elsewhere"
free(_MOVED, "caffe::Concat", "caffe::Slice", "caffe::Crop", "caffe::Tile", "caffe::Permute", "caffe::Im2col")
free(_MOVED, "caffe::BatchReindex", "caffe::ShuffleChannel", "caffe::Padding", "caffe::Upsample", "caffe::HDF5Output")
free(
    "gives a blob another name or shape",
    "caffe::Split",
    "caffe::Flatten",
    "caffe::Reshape",
    "caffe::Silence",
    moves=False,
)
free("does nothing outside of training", "caffe::Dropout", moves=False)
free("learned numbers as they are", "caffe::Parameter", moves=False)
free("only changes signs", "caffe::AbsVal")
free("compares", "caffe::Threshold")
free("compares and counts", "caffe::Accuracy")
free("boxes follow from sizes alone, they are constants", "caffe::PriorBox")
