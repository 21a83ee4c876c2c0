"""Operators that do no arithmetic that is counted, by reason; and those that nobody has a formula for yet."""

from __future__ import annotations

from flopwatch.flops.formulas.registry import free

_VIEWS = "Flatten Identity Reshape Squeeze Unsqueeze Optional OptionalGetElement"
_ASKED = "Shape Size OptionalHasElement SequenceLength"
_LISTS = "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert"
_CONSTANTS = "Constant ConstantOfShape EyeLike Range"
_CASTS = "Cast CastLike BitCast"
_MOVED = (
    "CenterCropPad Concat ConcatFromSequence DepthToSpace Expand Pad ReverseSequence Slice SpaceToDepth Split SplitToSequence "
    "Tile Transpose Trilu"
)
_INDEXED = "Compress Gather GatherElements GatherND MaxUnpool NonZero OneHot Scatter TensorScatter Where"
_COMPARED = (
    "And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BitShift Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Not Or "
    "ThresholdedRelu TopK Unique Xor"
)
_ROUNDED = "Abs Ceil Floor Neg Round Sign"
_RANDOM = "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
_TEXT = "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"
_CONTROL = "If Loop Scan SequenceMap"
_CLASSICAL = (
    "ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder OneHotEncoder "
    "ZipMap"
)
_RUNTIME = "ExpandDims GatherND IsAllFinite NGramRepeatBlock NhwcMaxPool Pad RemovePadding RestorePadding TorchEmbedding Trilu Unique"


def _free(reason: str, names: str, domain: str = "onnx", *, moves: bool = True) -> None:
    free(reason, *(f"{domain}::{name}" for name in names.split()), moves=moves)


_free("view", _VIEWS, moves=False)
_free("a size or a state is asked for", _ASKED, moves=False)
_free("lists of tensors", _LISTS, moves=False)
_free("filled with constants", _CONSTANTS)
_free("cast", _CASTS)
_free("concatenation, padding or rearrangement", _MOVED)
_free("selection or placement by index", _INDEXED)
_free("comparison or logic", _COMPARED)
_free("sign, exponent or rounding: no arithmetic on the value", _ROUNDED)
_free("random numbers", _RANDOM)
_free("text", _TEXT)
_free("its graphs are counted by themselves", _CONTROL, moves=False)
_free("selection and comparison", _CLASSICAL, "ai.onnx.ml")
_free("selection, comparison or rearrangement", _RUNTIME, "com.microsoft")
free("integer arithmetic", "onnx::(integers)")

UNKNOWN: dict[str, str] = {
    "onnx::ImageDecoder": "depends on the compression of the picture",
    "onnx::MaxRoiPool": "depends on how large the regions are",
    "onnx::MelWeightMatrix": "most of it is where the triangles lie, which depends on its numbers",
    "ai.onnx.ml::SVMClassifier": "scores of pairs of classes, and probabilities of them by iteration",
    "ai.onnx.ml::TreeEnsemble": "how deep each sample gets into the trees depends on it",
    "ai.onnx.ml::TreeEnsembleClassifier": "as TreeEnsemble",
    "ai.onnx.ml::TreeEnsembleRegressor": "as TreeEnsemble",
    "ai.onnx.preview::FlexAttention": "its scores go through graphs of their own",
    "ai.onnx.preview.training::Gradient": "the graph that it differentiates is named, not given",
}
"""Operators of onnx without a formula, and why."""
