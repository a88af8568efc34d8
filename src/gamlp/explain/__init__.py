"""EXPLAIN: what a run learned, node by node and as a whole: its attention, its mistakes, its report page."""
