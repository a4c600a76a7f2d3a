"""Sparse Jacobians and Hessians: the pattern, its colours, and plans that keep both."""

from lineara.sparse.patterns import sparsity
from lineara.sparse.plan import SparsePlan, sparse_plan

__all__ = ["SparsePlan", "sparse_plan", "sparsity"]
