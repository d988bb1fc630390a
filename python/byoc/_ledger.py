# SPDX-License-Identifier: Apache-2.0
"""The ledger of a compile: where each node of the model runs, and why."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from . import _byoc


@dataclasses.dataclass(frozen=True)
class Node:
    """One node of the model. docs/ledger.md describes the members."""

    name: str
    op: str
    where: str
    reason: str
    region: str | None = None
    pattern: str | None = None
    impl: str | None = None
    detail: str | None = None
    flops: float = 0.0
    backend_us: float | None = None
    native_us: float | None = None


_members = [field.name for field in dataclasses.fields(Node)]


class Ledger:
    """A ledger, from Model.ledger or from the JSON that `--report` writes.

    >>> import byoc
    >>> ledger = byoc.compile("digits.onnx").ledger
    >>> ledger.offloaded
    100.0
    >>> ledger.nodes[0].op, ledger.nodes[0].where
    ('Conv', 'dnnl')
    >>> sorted(ledger.rows()[0])[:3]
    ['backend_us', 'detail', 'flops']

    `pandas.DataFrame(ledger.rows())` is a table with a row for each node.
    """

    def __init__(self, text: str):
        self.json = text
        self.data: dict[str, Any] = json.loads(text)

    @property
    def nodes(self) -> list[Node]:
        """Every node of the model, in its order."""
        return [
            Node(**{k: node[k] for k in _members if k in node})
            for node in self.data["nodes"]
        ]

    def rows(self) -> list[dict[str, Any]]:
        """The nodes as dicts that all have the same keys."""
        return [dataclasses.asdict(node) for node in self.nodes]

    @property
    def regions(self) -> list[dict[str, Any]]:
        """The regions: kept, split into others, or reverted (docs/ledger.md)."""
        return self.data["regions"]

    @property
    def summary(self) -> dict[str, Any]:
        """Counts of nodes, regions and operations (docs/ledger.md)."""
        return self.data["summary"]

    @property
    def offloaded(self) -> float:
        """Percent of the floating-point operations that backends run."""
        summary = self.summary
        if not summary["flops"]:
            return 0.0
        return 100.0 * summary["flops_offloaded"] / summary["flops"]

    def text(self, every_node: bool = False) -> str:
        """The report of `byoc check`; every_node: list every node."""
        return _byoc.report(self.json, "text", "", every_node)

    def explain(self, node: str) -> str:
        """The report on one node: the patterns that were tried, and their results."""
        return _byoc.report(self.json, "explain", node, 0)

    def diff(self, newer: Ledger, tolerance: float = 0.0) -> dict[str, Any]:
        """The changes to a newer ledger.

        ["worse"] is true if the offloaded share of the nodes or operations shrinks by
        more than `tolerance` percentage points.
        """
        return json.loads(_byoc.report(self.json, "diff", newer.json, tolerance))

    def __repr__(self) -> str:
        s = self.summary
        return (
            f"<byoc.Ledger {s['offloaded']} of {s['operators']} operators "
            f"offloaded, {s['regions']} regions>"
        )
