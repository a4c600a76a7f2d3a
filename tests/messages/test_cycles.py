"""Containers that contain themselves."""

from dataclasses import dataclass
from typing import Any

from lineara import grad, jacobian


@dataclass
class Node:
    value: float
    next: Any = None


def ring():
    node = Node(1.0)
    node.next = node
    return node


def dictionary():
    d = {"rate": 1.0}
    d["self"] = d
    return d


def ring_list(x=1.0):
    found = [x]
    found.append(found)
    return found


def test_dict_that_contains_itself(said):
    def f(p):
        return p["rate"] ** 2

    found = said(lambda: grad(f)(dictionary()))
    assert found == (
        "StructureError: the container at tree['self'] contains itself, so it has no "
        "last leaf; keep the link back out of the tree that is differentiated, or "
        "store an index instead"
        "\n  at <lambda>: found = said(lambda: grad(f)(dictionary()))"
    )


def test_list_that_contains_itself(said):
    def f(p):
        return p[0] ** 2

    found = said(lambda: grad(f)(ring_list()))
    assert found == (
        "StructureError: the container at tree[1] contains itself, so it has no last "
        "leaf; keep the link back out of the tree that is differentiated, or store an "
        "index instead"
        "\n  at <lambda>: found = said(lambda: grad(f)(ring_list()))"
    )


def test_record_that_contains_itself(said):
    def f(p):
        return p.value**2

    found = said(lambda: grad(f)(ring()))
    assert found == (
        "StructureError: the container at tree.next contains itself, so it has no last "
        "leaf; keep the link back out of the tree that is differentiated, or store an "
        "index instead"
        "\n  at <lambda>: found = said(lambda: grad(f)(ring()))"
    )


def test_argument_of_jacobian(said):
    def f(p):
        return p["rate"] ** 2

    found = said(lambda: jacobian(f)(dictionary()))
    assert found == (
        "StructureError: the container at tree['self'] contains itself, so it has "
        "no last leaf; keep the link back out of the tree that is differentiated, or "
        "store an index instead"
        "\n  at <lambda>: found = said(lambda: jacobian(f)(dictionary()))"
    )


def test_result_that_contains_itself(said):
    found = said(lambda: jacobian(ring_list)(1.0))
    assert found == (
        "StructureError: the container at tree[1] contains itself, so it has no last "
        "leaf; keep the link back out of the tree that is differentiated, or store an "
        "index instead"
        "\n  at <lambda>: found = said(lambda: jacobian(ring_list)(1.0))"
    )


def test_aux_that_contains_itself(said):
    def f(x):
        return x * x, ring_list(x)

    found = said(lambda: grad(f, has_aux=True)(1.0))
    assert found == (
        "StructureError: the container at tree[1] contains itself, so it has no last "
        "leaf; keep the link back out of the tree that is differentiated, or store an "
        "index instead"
        "\n  at <lambda>: found = said(lambda: grad(f, has_aux=True)(1.0))"
    )


def test_program_that_goes_round(said):
    def f(p):
        while p is not None:
            p = p.next
        return 1.0

    found = said(lambda: grad(f)(ring()))
    assert found == (
        "StructureError: the container at tree.next contains itself, so it has no last "
        "leaf; keep the link back out of the tree that is differentiated, or store an "
        "index instead"
        "\n  at f: p = p.next"
    )
