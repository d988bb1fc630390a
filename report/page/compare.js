// SPDX-License-Identifier: Apache-2.0
// compare.js: draws an old ledger beside the graph. Matches the nodes of the two
// graphs, finds their changes, and scrolls the older graph so that matching nodes
// are side by side.
'use strict';

// The kinds of changes of a node: key, text, and test of the older and the newer
// node. A node gets the first kind whose test holds.
const CHANGES = [
    ['lost', 'lost: a backend ran it', (a, b) => a.region && !b.region],
    ['gained', 'gained: a backend runs it', (a, b) => !a.region && b.region],
    ['moved', 'on another backend', (a, b) => a.where !== b.where && a.region &&
        b.region],
    ['other', 'other change of placement', (a, b) => a.where !== b.where],
];

// Keys by which the nodes of two graphs are matched: the node's name, or its
// operator if it has no name, then the number of earlier nodes with this name or
// operator.
function keysOf(graph) {
    const counts = new Map();
    return new Map(graph.nodes.map((node) => {
        const key = node.name || node.op + '\n';
        const n = counts.get(key) || 0;
        counts.set(key, n + 1);
        return [key + '\n' + n, node];
    }));
}

// Set `before`, `after` and `change` of the nodes of two graphs, and graph.added
// and graph.removed, the nodes that only the newer or only the older graph has.
function pair(graph, old) {
    const before = keysOf(old);
    for (const [key, node] of keysOf(graph)) {
        const counterpart = before.get(key);
        if (!counterpart)
            continue;
        node.before = counterpart;
        counterpart.after = node;
        node.change = CHANGES.find(([, , is]) => is(counterpart, node))?.[0];
    }
    graph.old = old;
    graph.added = graph.nodes.filter((n) => !n.before);
    graph.removed = old.nodes.filter((n) => !n.after);
    for (const node of graph.added)
        node.change = 'new';
    // one colour for a backend on both sides
    graph.names = old.names = [...new Set([...graph.names, ...old.names])];
}

// The older graph, on a separate canvas. A region that the user has expanded or
// collapsed here stays so; any other is open if one of its nodes is in an open
// region of the newer graph. The view follows the newer graph's.
class OlderGraph {
    constructor(canvas, graph) {
        Object.assign(this, { canvas, graph, drawing: new Drawing(canvas),
            toggled: new Map() }); // by region's name: whether it is open
    }

    isOpen(region, open) {
        return this.toggled.get(region.name) ?? region.members.some((n) =>
            n.after?.container && open.has(n.after.container.name));
    }

    rearrange(state) {
        const open = new Set(this.graph.regions.filter((r) =>
            this.isOpen(r, state.open)).map((r) => r.name));
        this.arrangement = arrange(this.graph, open, state.eliminated);
    }

    // Show what is selected and matched in the newer graph.
    show({ paint, selected, matches }) {
        const counterpart = (item) => item?.before ||
            this.regionOf(item?.members?.find((n) => n.before));
        this.drawing.show({ graph: this.graph, arrangement: this.arrangement,
            paint, selected: counterpart(selected) || null, path: null,
            matches: matches && new Set([...matches].map((n) => n.before)
                .filter(Boolean)) });
    }

    regionOf(node) {
        return node?.before.container;
    }

    // Scroll so that the counterpart of the selected box is beside it; without
    // one, the counterpart of the box nearest to the middle.
    follow(main, { selected }) {
        const { view } = main, size = main.size();
        const mx = view.x + size.w / 2 / view.scale;
        const my = view.y + size.h / 2 / view.scale;
        let best = null, nearest = Infinity;
        for (const box of main.scene.arrangement.boxes) {
            const node = box.item.kind === 'node' ? box.item
                : box.open ? null : box.item.members.find((n) => n.before);
            const { at } = this.arrangement;
            const counterpart = node?.before && (at.get(node.before) ||
                at.get(node.before.container));
            const distance = box.item === selected ? -1
                : Math.hypot(box.x + box.w / 2 - mx, box.y + box.h / 2 - my);
            if (counterpart && distance < nearest)
                [best, nearest] = [[box, counterpart], distance];
        }
        const older = this.drawing.view, { w, h } = this.drawing.size();
        older.scale = view.scale;
        if (best) {
            const [box, at] = best;
            older.x = at.x + at.w / 2 - (box.x + box.w / 2 - view.x) * w /
                size.w;
            older.y = at.y - (box.y - view.y) * h / size.h;
        } else {
            older.x = this.arrangement.width / 2 - w / 2 / older.scale;
            older.y = -32 / older.scale;
        }
    }

    draw(main, state) {
        this.follow(main, state);
        this.drawing.draw();
    }

    // Handle a press. On a node, return its counterpart, which the caller selects.
    // On a region, collapse or expand the region and return null. Elsewhere return
    // null.
    press(px, py, state) {
        const box = this.drawing.hit(px, py);
        if (box?.item.kind === 'region') {
            this.toggled.set(box.item.name, !this.isOpen(box.item, state.open));
            return null;
        }
        return box?.item.after || null;
    }
}
