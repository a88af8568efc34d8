"""EXPLAIN: what the attention learned."""
