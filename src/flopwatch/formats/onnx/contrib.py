"""Operators that onnxruntime's optimisers and quantisers write: the names of their inputs.

onnx knows none of them. Source: the operator documentation of onnxruntime (ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Mapping

# Input names by operator; a star marks one that takes all that are left.
_INPUTS = """
Attention: input weights bias mask_index past attention_bias past_sequence_length
BiasAdd: X bias skip
BiasDropout: data bias residual ratio training_mode
BiasGelu: A B
BiasSoftmax: data bias
BiasSplitGelu: X bias
BitmaskDropout: data ratio training_mode
CDist: A B
ComplexMul: A B
ComplexMulConj: A B
ConvTransposeWithDynamicPads: X W Pads B
CropAndResize: X rois batch_indices crop_size
DecoderMaskedMultiHeadAttention: query key value mask_index attention_bias past_key past_value past_sequence_length
DequantizeLinear: x x_scale x_zero_point
DynamicQuantizeLSTM: X W R B sequence_lens initial_h initial_c P W_scale W_zero_point R_scale R_zero_point
DynamicQuantizeMatMul: A B b_scale b_zero_point bias
EmbedLayerNormalization: input_ids segment_ids word_embedding position_embedding segment_embedding gamma beta mask position_ids
ExpandDims: X axis
FastGelu: X bias
FusedConv: X W B Z
FusedGemm: A B C
FusedMatMul: A B
FusedMatMulActivation: A B
GatherBlockQuantized: data indices scales zero_points
GatherND: data indices
Gelu: X
GemmFastGelu: X W bias
GemmFloat8: A B C scaleA scaleB scaleY
GridSample: X Grid
GroupNorm: X gamma beta
GroupQueryAttention: query key value past_key past_value seqlens_k total_sequence_length cos_cache sin_cache position_ids attention_bias
Inverse: X
Irfft: X
IsAllFinite: input*
MatMulBnb4: A B absmax
MatMulFpQ4: A B B_shape
MatMulInteger16: A B
MatMulIntegerToFloat: A B a_scale b_scale a_zero_point b_zero_point bias
MatMulNBits: A B scales zero_points g_idx bias
MoE: input router_probs fc1_experts_weights fc1_experts_bias fc2_experts_weights fc2_experts_bias fc3_experts_weights fc3_experts_bias
MulInteger: A A_zero_point B B_zero_point
MultiHeadAttention: query key value bias key_padding_mask attention_bias past_key past_value past_sequence_length
NhwcConv: X W B
NhwcFusedConv: X W B Z
NhwcMaxPool: x
Pad: data pads value
QAttention: input weight bias input_scale weight_scale mask_index input_zero_point weight_zero_point past
QEmbedLayerNormalization: input_ids segment_ids word_embedding_quant position_embedding_quant segment_embedding gamma_quant beta_quant mask
QGemm: A a_scale a_zero_point B b_scale b_zero_point C y_scale y_zero_point
QLinearAdd: A A_scale A_zero_point B B_scale B_zero_point C_scale C_zero_point
QLinearAveragePool: X x_scale x_zero_point y_scale y_zero_point
QLinearConcat: Y_scale Y_zero_point inputs*
QLinearConv: x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B
QLinearGlobalAveragePool: X x_scale x_zero_point y_scale y_zero_point
QLinearLeakyRelu: X X_scale X_zero_point Y_scale Y_zero_point
QLinearMul: A A_scale A_zero_point B B_scale B_zero_point C_scale C_zero_point
QLinearReduceMean: data data_scale data_zero_point reduced_scale reduced_zero_point
QLinearSigmoid: X X_scale X_zero_point Y_scale Y_zero_point
QLinearSoftmax: X X_scale x_zero_point y_scale y_zero_point
QLinearWhere: condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point
QMoE: input router_probs fc1_experts_weights fc1_scales fc1_experts_bias fc2_experts_weights fc2_scales fc2_experts_bias fc3_experts_weights
QuantizeLinear: x y_scale y_zero_point
QuickGelu: X
ReduceSumInteger: data
RemovePadding: input sequence_token_count
RestorePadding: input token_offset
Rfft: X
RotaryEmbedding: input position_ids cos_cache sin_cache
SkipGroupNorm: X gamma beta skip bias
SkipLayerNormalization: input skip gamma beta bias
SkipSimplifiedLayerNormalization: input skip gamma bias
TorchEmbedding: weight indices padding_idx scale_grad_by_freq
TransposeMatMul: A B
Trilu: X k
SimplifiedLayerNormalization: X scale
"""

INPUTS: Mapping[str, tuple[str, ...]] = {
    name: tuple(inputs.split())
    for name, _, inputs in (line.partition(": ") for line in _INPUTS.strip().splitlines())
}  # fmt: skip


def names(kind: str) -> tuple[str, ...] | None:
    """The names of an operator's inputs, which has its domain in front ("com.microsoft.Gelu"); None for one not known here."""
    domain, _, name = kind.rpartition(".")
    return INPUTS.get(name) if domain in ("com.microsoft", "com.ms.internal.nhwc", "") else None
