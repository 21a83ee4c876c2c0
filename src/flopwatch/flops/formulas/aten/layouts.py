"""Sparse and nested tensors: from one layout to another, and what their parts are."""

from __future__ import annotations

from flopwatch.flops.formulas import free

_LOOKS = """
    indices _indices values _values crow_indices col_indices ccol_indices row_indices _nnz sparse_dim dense_dim _dimI _dimV
    is_coalesced _coalesced _sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors sparse_coo_tensor
    sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor
    _sparse_csr_tensor_unsafe _sparse_csc_tensor_unsafe _sparse_bsr_tensor_unsafe _sparse_bsc_tensor_unsafe
    _sparse_compressed_tensor_unsafe _sparse_compressed_tensor_with_dims _sparse_coo_tensor_with_dims
    sparse_resize sparse_resize_and_clear resize_as_sparse
    _nested_view_from_buffer _nested_view_from_jagged _nested_get_values _nested_get_offsets _nested_get_lengths
    _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_ragged_idx _nested_get_jagged_dummy _nested_tensor_size
    _nested_tensor_strides _nested_tensor_storage_offsets _nested_compute_contiguous_strides_offsets
"""
_MOVES = """
    indices_copy _indices_copy values_copy _values_copy crow_indices_copy col_indices_copy ccol_indices_copy row_indices_copy
    to_sparse to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc _to_sparse _to_sparse_csr _to_sparse_csc _to_sparse_bsr
    _to_sparse_bsc to_dense _to_dense to_dense_backward sparse_mask copy_sparse_to_sparse _sparse_broadcast_to
    _sparse_broadcast_to_copy _spdiags _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo
    _to_sparse_semi_structured _cslt_compress _nested_from_padded _nested_from_padded_and_nested_example
    _nested_from_padded_tensor _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned
    _nested_tensor_from_tensor_list _nested_view_from_buffer_copy _nested_view_from_jagged_copy _nested_get_values_copy
    _nested_select_backward nested_to_padded_tensor to_padded_tensor _jagged_to_padded_dense_forward
    _padded_dense_to_jagged_forward
"""

free(
    "looks at data in another way",
    *(f"aten::{name}" for name in _LOOKS.split()),
    moves=False,
)
free(
    "checks indices",
    *(
        f"aten::_validate_sparse_{kind}_args"
        for kind in ("coo_tensor", "csr_tensor", "csc_tensor", "bsr_tensor", "bsc_tensor", "compressed_tensor")
    ),
    "aten::_validate_compressed_sparse_indices",
    moves=False,
)
free(
    "moves data from one layout to another",
    *(f"aten::{name}" for name in _MOVES.split()),
)
