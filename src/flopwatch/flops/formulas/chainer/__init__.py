"""Chainer's functions, forward and the functions that compute gradients; importing this registers them.

Names are those of the classes. `inputs` are the arrays that a function takes; settings are the attributes of its instance.
"""

from __future__ import annotations

from importlib import import_module

from flopwatch.flops.formulas.registry import free

# Each file registers its own functions when it is imported.
NAMES: tuple[str, ...] = ("pointwise", "products", "rows", "windows")

for _name in NAMES:
    import_module(f"flopwatch.flops.formulas.chainer.{_name}")


def _free(reason: str, names: str, *, moves: bool = True) -> None:
    free(reason, *(f"chainer::{name}" for name in names.split()), moves=moves)


_free(
    "only another view or layout",
    "AsLayout AsStrided Broadcast BroadcastTo Diagonal ExpandDims Identity Moveaxis Reshape Rollaxis Squeeze Swapaxes Transpose",
    moves=False,
)
_free(
    "puts numbers elsewhere",
    "Assign Concat Copy Depth2Space DiagonalGrad Dstack EmbedIDFunction Flip FlipLR FlipUD Forget GetItem GetItemGrad Hstack"
    " Im2Col Pad PadSequence Permutate Repeat SelectItem Separate Shift Space2Depth SplitAxis Stack Tile"
    " TransposeSequence Unpooling2D UnpoolingND Upsampling2D Upsampling2DGrad Vstack _SetItemZero",
)
_free("converts numbers", "Cast")
_free(
    "selects",
    "ClipGrad ClippedReLUGrad2 ClippedReLUGrad3 MaxPoolingNDWithIndexes MaximumGrad MinimumGrad ReLUGrad2 ReLUGradCudnn Where",
)
_free("only changes signs", "Absolute AbsoluteGrad Neg")
_free("compares and counts", "Accuracy BinaryAccuracy ClassificationSummary")

# Functions that compute something for which nobody has written a formula yet: to become shorter.
_UNKNOWN = """
_PoolingND BaseNStepRNN BatchDet BatchInv BatchRenormalizationFunction BernoulliLogProb
BinaryHierarchicalSoftmaxFunction Cholesky ConnectionistTemporalClassification Contrastive CooMatMul CooMatMulGradSP
CrossCovariance CudnnRNNWeightConcat Cumprodsum DecorrelatedBatchNormalization DecorrelatedBatchNormalizationGrad
DeCov FFT FixedDecorrelatedBatchNormalization FixedDecorrelatedBatchNormalizationGrad FunctionAdapter Hinge
IndexSelectorBase Inv LaplaceCDF LaplaceICDF LogNdtr ModifiedXLogX NegativeSamplingFunction
NegativeSamplingFunctionGrad NStepBiGRU NStepBiLSTM NStepBiRNNReLU NStepBiRNNTanh NStepGRU NStepLSTM NStepRNNReLU
NStepRNNTanh Pooling2D R2_score ROIAverageAlign2D ROIAveragePooling2D ROIMaxAlign2D ROIMaxPooling2D ROIPooling2D
ROIPooling2DGrad SelectorBase SimplifiedDropconnect SLSTM SLSTMGrad SpatialTransformerGrid SpatialTransformerSampler
StaticScheduleFunction TheanoFunction TreeLSTM TriangularInv Triplet Zoneout
"""
UNKNOWN: frozenset[str] = frozenset(_UNKNOWN.split())
