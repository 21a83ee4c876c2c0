"""What an estimated or measured model looks like: sheets by layer, operator or function, and the document for machines."""

from __future__ import annotations

from flopwatch.model_views.documents import document
from flopwatch.model_views.rows import AXES, NO_OP, SORTS, rows_of, sides
from flopwatch.model_views.sheets import COLUMNS, full_sheet, sheet

__all__ = ["AXES", "COLUMNS", "NO_OP", "SORTS", "document", "full_sheet", "rows_of", "sheet", "sides"]
