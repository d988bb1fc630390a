// SPDX-License-Identifier: Apache-2.0
// graph.js: turns a ledger into boxes and wires. A box is a node of the model or
// a region, collapsed or open. A wire joins boxes; several edges of the model may
// run through it.
'use strict';

const BOX = { node: [184, 40], line: 14, region: [232, 70], header: 34,
    pad: 18 };

// The box of a node with attributes is one line higher.
const sizeOf = (node) => [BOX.node[0],
    BOX.node[1] + (node.attributeLine ? BOX.line : 0)];

// Read the page's data: the graph of the ledger, with the older graph to compare
// and the times of a profile if there are any.
function readPage({ byoc, reasons, ledger, against, profile }) {
    const graph = Object.assign(readLedger(ledger), { byoc, reasons });
    if (profile)
        addTimes(graph, profile);
    if (against)
        pair(graph, Object.assign(readLedger(against), { reasons }));
    return graph;
}

// Read a ledger, and add the readers and the region of each node, the members of
// each region, and their texts.
function readLedger(ledger) {
    const nodes = ledger.nodes.map((node, index) => ({
        ...node, index, kind: 'node', readers: [],
        inputs: (node.inputs || []).filter((i) => ledger.nodes[i]),
        tried: node.tried || [], eliminated: isEliminated(node.where),
        title: node.op || '?', label: node.name || '#' + index,
        attributeLine: sayAttributes(node.attributes || '').split(DOT)
            .filter((a) => !USUAL.test(a)).join(DOT),
        types: (node.outputs || []).map(sayType),
    }));
    for (const node of nodes)
        for (const i of node.inputs)
            nodes[i].readers.push(node.index);
    const regions = new Map();
    for (const node of nodes) {
        if (!node.region)
            continue;
        if (!regions.has(node.region))
            regions.set(node.region, { kind: 'region', name: node.region,
                backend: node.where, title: node.region, members: [] });
        const region = regions.get(node.region);
        region.members.push(node);
        node.container = region;
    }
    const reverted = [];
    for (const entry of ledger.regions || [])
        if (entry.outcome !== 'kept')
            reverted.push({ ...entry, key: 'reverted' + reverted.length });
        else if (regions.has(entry.name))
            regions.get(entry.name).entry = entry;
    const shades = {};
    for (const region of regions.values()) {
        shades[region.backend] = (shades[region.backend] ?? -1) + 1;
        region.shade = shades[region.backend] % 3;
        region.flops = region.members.reduce((sum, n) => sum + n.flops, 0);
    }
    return { ...ledger, nodes, reverted,
        regions: [...regions.values()],
        names: ledger.backends.map((v) => v.name).filter((n) =>
            n !== 'native') };
}

// The separator of attributes.
const DOT = ' \u00b7 ';
// Attributes with their usual values, which a box does not show.
const USUAL = /^(dilations|strides) 1(\u00d71)*$|^pads 0(\u00d70)*$|^(group|alpha|beta) 1$|^\w+_mode 0$/;

// Types and attributes of the text form, shorter: "float32 1\u00d764\u00d7batch",
// "kernel_shape 3\u00d73 \u00b7 group 2".
function sayType(text) {
    return text.replace(/Tensor\[\(([^()]*)\), (\w+)\]/g, (_, dims, dtype) =>
        dtype + (dims ? ' ' + dims.replaceAll(', ', '\u00d7') : ''));
}

function sayAttributes(text) {
    return text.replace(/=\[([-\d.e]+(?:, [-\d.e]+)*)\]/g, (_, list) =>
        ' ' + list.replaceAll(', ', '\u00d7')).replace(/(^|, )(\w+)=/g, '$1$2 ')
        .replace(/, (?=[a-z_]+ )/gi, DOT)
        .replace(/\bpads (\d+)(\u00d7\1)+(?!\d)/, 'pads $1');
}

// Whether a node at this place does nothing when the model runs.
const isEliminated = (where) => where === 'folded' || where === 'removed';

// The edges between the nodes that are drawn: for each node the nodes that it
// reads and that read it. A removed node that is not drawn is replaced by the
// nodes that it reads; a folded one is a constant, so it is left out.
function visibleEdges(graph, showEliminated) {
    const reads = [], readers = graph.nodes.map(() => []);
    for (const node of graph.nodes) {
        const set = new Set();
        for (const i of node.inputs) {
            const from = graph.nodes[i];
            if (showEliminated || !from.eliminated)
                set.add(i);
            else if (from.where === 'removed')
                for (const k of reads[i] || [])
                    set.add(k);
        }
        set.delete(node.index);
        reads.push(set);
        for (const i of showEliminated || !node.eliminated ? set : [])
            readers[i].push(node.index);
    }
    return { reads, readers };
}

// A layered drawing under construction: boxes and wires by key.
class Layering {
    constructor() {
        this.items = [];
        this.numbers = new Map();
        this.wires = new Map();
    }

    add(key, w, h, pin) {
        let number = this.numbers.get(key);
        if (number === undefined) {
            number = this.items.length;
            this.numbers.set(key, number);
            this.items.push({ key, w, h, pin: pin || 0 });
        }
        return number;
    }

    // The wire from port ax of a to port bx of b. Ports are keys, for which
    // lay() finds positions.
    wire(a, ax, b, bx) {
        const key = a + ' ' + ax + ' ' + b + ' ' + bx;
        let wire = this.wires.get(key);
        if (!wire)
            this.wires.set(key, wire = { a, b, from: ax, to: bx });
        return wire;
    }

    lay(port) {
        const wires = [...this.wires.values()];
        for (const wire of wires) {
            wire.ax = port(wire.a, wire.from, 'outs');
            wire.bx = port(wire.b, wire.to, 'ins');
        }
        const at = (name) => this.items.map((item) => item[name]);
        const size = layOut(this.items.length, at('w'), at('h'), wires,
            at('pin'));
        this.items.forEach((item, i) => {
            item.x = size.x[i];
            item.y = size.y[i];
        });
        return { wires: wires.filter((w) => w.points),
            width: size.width, height: size.height };
    }
}

// An open region: its members and its ports. On its upper side it has a port
// for each box outside that it reads from. On its lower side it has a port for
// each member that is read outside.
function openRegion(graph, region, { reads, readers }, boxOf) {
    const layering = new Layering(), inside = new Set(), edges = [];
    for (const node of region.members)
        inside.add(node.index);
    for (const node of region.members)
        layering.add(node, ...sizeOf(node));
    for (const node of region.members) {
        const me = layering.numbers.get(node);
        for (const i of reads[node.index]) {
            const outside = boxOf(graph.nodes[i]);
            const from = inside.has(i) ? layering.numbers.get(graph.nodes[i])
                : layering.add('in' + outside, 0, 0, -1);
            edges.push({ s: i, t: node.index,
                wire: layering.wire(from, 0, me, 0) });
        }
    }
    for (const node of region.members)
        if (readers[node.index].some((r) => !inside.has(r))) {
            const port = layering.add('out' + node.index, 0, 0, 1);
            edges.push({ s: node.index, t: -1, wire:
                layering.wire(layering.numbers.get(node), 0, port, 0) });
        }
    const size = layering.lay(() => 0);
    const w = Math.max(size.width + 2 * BOX.pad, BOX.region[0]);
    const shift = (w - size.width) / 2, ins = new Map(), outs = new Map();
    for (const item of layering.items) {
        if (item.pin < 0)
            ins.set(item.key.slice(2), item.x + shift - w / 2);
        else if (item.pin > 0)
            outs.set(item.key.slice(3), item.x + shift - w / 2);
    }
    return { layering, edges, ins, outs, w, h: size.height + BOX.header + BOX.pad,
        wires: size.wires, shift };
}

// Everything that is drawn if the regions in `open` are open.
//   boxes  {node | region, x, y, w, h, open}: corners; open ones come first
//   wires  {points, drawFrom}: see layOut
//   paths  of an edge "s>t" of the model: the wires it runs through
function arrange(graph, open, showEliminated) {
    const edgeSets = visibleEdges(graph, showEliminated), layering = new Layering();
    const isCollapsed = (node) => node.container && !open.has(node.container.name);
    const boxOf = (node) => (isCollapsed(node) ? node.container.name + ' ' :
        node.index + '');
    const inner = new Map();
    for (const region of graph.regions)
        if (open.has(region.name))
            inner.set(region, openRegion(graph, region, edgeSets, boxOf));
    const numberOf = (node) => layering.numbers.get(node.container || node);
    for (const node of graph.nodes) {
        const region = node.container, inside = inner.get(region);
        if (inside)
            layering.add(region, inside.w, inside.h);
        else if (region)
            layering.add(region, ...BOX.region);
        else if (showEliminated || !node.eliminated)
            layering.add(node, ...sizeOf(node));
    }
    const edges = [];
    for (const node of graph.nodes) {
        const b = numberOf(node);
        for (const i of b === undefined ? [] : edgeSets.reads[node.index]) {
            const from = graph.nodes[i], a = numberOf(from);
            if (a !== b)
                edges.push({ s: i, t: node.index, wire: layering.wire(a,
                    inner.has(from.container) ? i : '', b,
                    inner.has(node.container) ? boxOf(from) : '') });
        }
    }
    const size = layering.lay((number, port, side) => {
        const inside = inner.get(layering.items[number].key);
        return inside ? inside[side].get(port + '') || 0 : 0;
    });
    return gather(graph, layering, size, inner, edges);
}

// Collect the boxes and wires of all layerings in one system of coordinates.
function gather(graph, layering, size, inner, edges) {
    const boxes = [], wires = [], paths = new Map(), at = new Map();
    const put = (item, x, y, more) => {
        const box = { item, x: x - (more.w || item.w) / 2,
            y: y - more.h / 2, ...more };
        boxes.push(box);
        at.set(item, box);
    };
    const note = (key, wire) => {
        if (wire.points)
            paths.set(key, (paths.get(key) || []).concat(wire));
    };
    for (const { key, x, y, w, h } of layering.items)
        if (inner.has(key))
            put(key, x, y, { w, h, open: true });
    for (const { key, x, y, w, h } of layering.items) {
        const inside = inner.get(key);
        if (!inside) {
            put(key, x, y, { w, h, open: false });
            continue;
        }
        const left = x - w / 2 + inside.shift, top = y - h / 2 + BOX.header;
        for (const item of inside.layering.items)
            if (!item.pin)
                put(item.key, left + item.x, top + item.y,
                    { w: item.w, h: item.h, open: false });
        for (const wire of inside.wires) {
            wire.points = wire.points.map((p, i) =>
                p + (i % 2 ? top : left));
            stretch(wire, inside, top - BOX.header, y + h / 2);
            wires.push(wire);
        }
        for (const e of inside.edges)
            note(e.t < 0 ? e.s + '>' : e.s + '>' + e.t, e.wire);
    }
    wires.push(...size.wires);
    for (const e of edges)
        note(e.s + '>' + e.t, e.wire);
    return { boxes, wires, paths, at, width: size.width,
        height: size.height };
}

// Extend a wire that begins or ends at a port to the region's side.
function stretch(wire, inside, top, bottom) {
    const p = wire.points, items = inside.layering.items;
    if (items[wire.a].pin < 0)
        p[1] = top;
    if (items[wire.b].pin > 0)
        p[p.length - 1] = bottom;
}
