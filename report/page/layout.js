// SPDX-License-Identifier: Apache-2.0
// layout.js: draws a directed graph in layers (after Sugiyama): edges
// are reversed until there is no cycle, nodes get ranks, long edges get a point
// in every rank that they cross, the nodes of each rank are ordered so that few
// edges cross, then moved sideways until edges run straight. Deterministic, and
// without recursion.
'use strict';

const GAP = { node: 22, point: 10, rank: 34 };
// Limit on the points of long edges; if they need more, the longest edges are drawn
// straight.
const MAX_POINTS = 40000;

// Lay out nodes 0 .. n-1 of sizes w[i], h[i]. edges: {a, b, ax, bx} from the
// lower side of a to the upper side of b, ax and bx from their middles.
// pin[i] (or no pin): -1 for the first rank, 1 for the last, 0 between.
// Returns the middles x, y, and the size. Sets each edge's `points` [x, y, ...],
// and `drawFrom`, an index of `points`: earlier edges of the same origin draw the
// part before it.
function layOut(n, w, h, edges, pin) {
    const g = { n, w, h, pin, edges: edges.filter((e) => e.a !== e.b) };
    breakCycles(g);
    assignRanks(g);
    addPoints(g);
    orderRanks(g);
    placeRanks(g);
    return route(g);
}

// Group items by key: those of key k are at[from[k]..from[k+1]-1].
function groupByKey(n, items, key) {
    const from = new Int32Array(n + 1);
    for (const item of items)
        from[key(item) + 1]++;
    for (let i = 0; i < n; i++)
        from[i + 1] += from[i];
    const at = items.slice(), next = from.slice();
    for (const item of items)
        at[next[key(item)]++] = item;
    return { from, at };
}

// Reverse the back edges of a depth-first search: those to a node whose visit has
// not ended.
function breakCycles(g) {
    const { from, at } = groupByKey(g.n, g.edges, (e) => e.a);
    const next = from.slice(), state = new Uint8Array(g.n);
    for (const e of g.edges)
        e.reversed = false;
    for (let root = 0; root < g.n; root++) {
        const stack = state[root] ? [] : [root];
        state[root] ||= 1;
        while (stack.length) {
            const node = stack[stack.length - 1];
            if (next[node] === from[node + 1]) {
                state[node] = 2;
                stack.pop();
                continue;
            }
            const e = at[next[node]++];
            if (state[e.b] === 1)
                e.reversed = true;
            else if (!state[e.b]) {
                state[e.b] = 1;
                stack.push(e.b);
            }
        }
    }
    g.down = g.edges.map((e) => e.reversed
        ? { a: e.b, b: e.a, ax: e.bx, bx: e.ax, edge: e }
        : { a: e.a, b: e.b, ax: e.ax, bx: e.bx, edge: e });
}

// Rank each node by the longest path to it; then move it down to its readers if
// that does not make its edges longer in sum.
function assignRanks(g) {
    const { n, pin } = g;
    const outs = groupByKey(n, g.down, (e) => e.a);
    const ins = groupByKey(n, g.down, (e) => e.b);
    // waits: how many of a node's producers have no rank yet
    const waits = new Int32Array(n), rank = new Int32Array(n), order = [];
    const first = pin && pin.some((p) => p < 0) ? 1 : 0;
    let alone = 0;
    for (let i = 0; i < n; i++) {
        waits[i] = ins.from[i + 1] - ins.from[i];
        rank[i] = first && pin[i] >= 0 ? 1 : 0;
        if (!waits[i] && outs.from[i + 1] === outs.from[i])
            rank[i] += Math.floor(alone++ / 6); // not all in one wide rank
        if (!waits[i])
            order.push(i);
    }
    for (let k = 0; k < order.length; k++) {
        const a = order[k];
        for (let i = outs.from[a]; i < outs.from[a + 1]; i++) {
            const b = outs.at[i].b;
            rank[b] = Math.max(rank[b], rank[a] + 1);
            if (--waits[b] === 0)
                order.push(b);
        }
    }
    for (let k = n - 1; k >= 0; k--) {
        const a = order[k], fan = outs.from[a + 1] - outs.from[a];
        if (!fan || fan < ins.from[a + 1] - ins.from[a] || (pin && pin[a]))
            continue;
        let low = Infinity;
        for (let i = outs.from[a]; i < outs.from[a + 1]; i++)
            low = Math.min(low, rank[outs.at[i].b] - 1);
        rank[a] = low;
    }
    let last = 0;
    for (let i = 0; i < n; i++)
        if (!pin || pin[i] <= 0)
            last = Math.max(last, rank[i]);
    for (let i = 0; pin && i < n; i++)
        if (pin[i] > 0)
            rank[i] = last + 1;
    g.rank = rank;
}

// The largest span of an edge, in ranks, for which the edges of at most this span
// need no more than MAX_POINTS points.
function largestSpan(chains) {
    const spans = chains.map((c) => c.span).sort((x, y) => x - y);
    let total = 0;
    for (let i = 0; i < spans.length; i++) {
        total += spans[i] - 1;
        if (total > MAX_POINTS)
            return Math.max(1, spans[i] - 1);
    }
    return Infinity;
}

// Add the points of long edges. Edges of one origin share their points: one chain
// for each origin. From here on, nodes are 0 .. n-1 and points n .. total-1, and
// g.wide is their width; a segment joins two of them in neighbouring ranks.
function addPoints(g) {
    const chains = new Map();
    for (const e of g.down) {
        const key = e.a + ':' + e.ax;
        let chain = chains.get(key);
        if (!chain)
            chains.set(key, chain = { edges: [], span: 0, points: [] });
        chain.edges.push(e);
        chain.span = Math.max(chain.span, g.rank[e.b] - g.rank[e.a]);
    }
    const list = [...chains.values()], maxSpan = largestSpan(list);
    g.total = g.n;
    g.ranks = [];
    const segments = [];
    const rankOf = Array.from(g.rank);
    for (const chain of list) {
        chain.edges.sort((x, y) => g.rank[y.b] - g.rank[x.b]);
        const top = chain.edges[0];
        for (const e of chain.edges) {
            const span = g.rank[e.b] - g.rank[e.a];
            if (span > maxSpan)
                continue;
            while (chain.points.length < span - 1) {
                const k = chain.points.length, point = g.total++;
                rankOf.push(g.rank[e.a] + k + 1);
                segments.push(k
                    ? { a: chain.points[k - 1], b: point, ax: 0, bx: 0 }
                    : { a: e.a, b: point, ax: e.ax, bx: 0 });
                chain.points.push(point);
            }
            e.via = chain.points.slice(0, span - 1);
            const last = e.via[span - 2];
            segments.push(span > 1
                ? { a: last, b: e.b, ax: 0, bx: e.bx }
                : { a: e.a, b: e.b, ax: e.ax, bx: e.bx });
        }
        let drawn = 0;
        for (const e of chain.edges) {
            e.shared = e === top || !e.via ? 0
                : Math.min(drawn, e.via.length);
            drawn = Math.max(drawn, e.via ? e.via.length : 0);
        }
    }
    g.rank = Int32Array.from(rankOf);
    for (let i = 0; i < g.total; i++)
        (g.ranks[g.rank[i]] ||= []).push(i);
    for (let r = 0; r < g.ranks.length; r++)
        g.ranks[r] ||= [];
    // segments by number: ends a and b, the ports there, and `lean`, the distance
    // of the middles that makes the segment vertical
    const numbers = segments.map((_, i) => i);
    g.a = Int32Array.from(segments, (s) => s.a);
    g.b = Int32Array.from(segments, (s) => s.b);
    g.ax = Float64Array.from(segments, (s) => s.ax);
    g.bx = Float64Array.from(segments, (s) => s.bx);
    g.lean = g.ax.map((ax, i) => ax - g.bx[i]);
    g.wide = new Float64Array(g.total);
    g.wide.set(g.w);
    g.below = groupByKey(g.total, numbers, (s) => g.a[s]);
    g.above = groupByKey(g.total, numbers, (s) => g.b[s]);
}

// Count the crossings of segments between neighbouring ranks, with a Fenwick tree
// of the ends so far (after Barth, Juenger and Mutzel).
function countCrossings(g, position) {
    const { below, b } = g, tree = new Int32Array(g.total + 1), ends = [];
    let crossings = 0;
    for (let r = 0; r + 1 < g.ranks.length; r++) {
        const size = g.ranks[r + 1].length;
        let seen = 0;
        tree.fill(0, 0, size + 1);
        for (const node of g.ranks[r]) {
            ends.length = 0;
            for (let i = below.from[node]; i < below.from[node + 1]; i++)
                ends.push(position[b[below.at[i]]] + 1);
            for (const end of ends) {
                crossings += seen;
                for (let k = end; k > 0; k -= k & -k)
                    crossings -= tree[k];
            }
            for (const end of ends)
                for (let k = end; k <= size; k += k & -k)
                    tree[k]++;
            seen += ends.length;
        }
    }
    return crossings;
}

// Sort a rank by the mean positions of its neighbours on one side (barycentres).
// The place where a segment meets a wide neighbour has a small weight.
function sortRank(g, rank, position, mean, up) {
    const side = up ? g.above : g.below, far = up ? g.a : g.b;
    const port = up ? g.ax : g.bx;
    for (const node of rank) {
        const from = side.from[node], end = side.from[node + 1];
        let sum = 0;
        for (let i = from; i < end; i++) {
            const s = side.at[i], other = far[s];
            sum += position[other] +
                (port[s] ? 0.98 * port[s] / g.wide[other] : 0);
        }
        mean[node] = from < end ? sum / (end - from) : position[node];
    }
    rank.sort((p, q) => mean[p] - mean[q] || position[p] - position[q]);
    for (let i = 0; i < rank.length; i++)
        position[rank[i]] = i;
}

// Sweep down and up, and keep the order with the fewest crossings.
function orderRanks(g) {
    const position = new Int32Array(g.total), mean = new Float64Array(g.total);
    for (const rank of g.ranks)
        rank.forEach((node, i) => { position[node] = i; });
    const sweeps = g.total > 20000 ? 4 : g.total > 4000 ? 8 : 16;
    let best = null, fewest = Infinity;
    for (let sweep = 0; sweep <= sweeps && fewest; sweep++) {
        const crossings = countCrossings(g, position);
        if (crossings < fewest) {
            fewest = crossings;
            best = g.ranks.map((rank) => rank.slice());
        }
        for (let k = 0; k < g.ranks.length; k++) {
            const r = sweep % 2 ? g.ranks.length - 1 - k : k;
            sortRank(g, g.ranks[r], position, mean, sweep % 2 === 0);
        }
    }
    g.ranks = best;
}

// The least distance between the middles of neighbours in a rank.
function distance(g, p, q) {
    const gap = p >= g.n && q >= g.n ? GAP.point : GAP.node;
    return (g.wide[p] + g.wide[q]) / 2 + gap;
}

// Weight each segment: strongly for long edges, so that they run straight, and
// weakly for short dead ends, such as constants, which move out of the way.
function weigh(g) {
    const { a, b, n } = g, high = new Int32Array(g.total);
    const low = new Int32Array(g.total), last = g.ranks.length - 1;
    g.pull = new Float64Array(a.length);
    for (let r = 0; r <= last; r++) {
        for (const node of g.ranks[r])
            for (let i = g.above.from[node]; i < g.above.from[node + 1]; i++)
                high[node] = Math.max(high[node], high[a[g.above.at[i]]] + 1);
        for (const node of g.ranks[last - r])
            for (let i = g.below.from[node]; i < g.below.from[node + 1]; i++)
                low[node] = Math.max(low[node], low[b[g.below.at[i]]] + 1);
    }
    for (let s = 0; s < a.length; s++)
        g.pull[s] = (0.05 + Math.min(high[a[s]], low[b[s]], 3)) *
            (1 + 3 * (a[s] >= n) + 3 * (b[s] >= n));
}

// Place the nodes of a rank near their targets, in their order and at their
// distances: weighted isotonic regression by pooling adjacent violators.
function settle(g, rank, x, target, weight) {
    const { sums, weights, sizes, shifts } = g.pools;
    let n = 0, shift = 0;
    for (let i = 0; i < rank.length; i++, n++) {
        const node = rank[i];
        if (i)
            shift += distance(g, rank[i - 1], node);
        shifts[i] = shift;
        sums[n] = (target[node] - shift) * weight[node];
        weights[n] = weight[node];
        sizes[n] = 1;
        for (; n && sums[n - 1] / weights[n - 1] > sums[n] / weights[n]; n--) {
            sums[n - 1] += sums[n];
            weights[n - 1] += weights[n];
            sizes[n - 1] += sizes[n];
        }
    }
    for (let pool = 0, i = 0; pool < n; pool++)
        for (let k = 0; k < sizes[pool]; k++, i++)
            x[rank[i]] = sums[pool] / weights[pool] + shifts[i];
}

// Set the targets of the nodes of a rank: between those above and below.
function setTargets(g, rank, x, target, weight) {
    const { above, below, a, b, lean, pull } = g;
    for (const node of rank) {
        let sum = 0, total = 0;
        for (let i = above.from[node]; i < above.from[node + 1]; i++) {
            const s = above.at[i];
            sum += pull[s] * (x[a[s]] + lean[s]);
            total += pull[s];
        }
        for (let i = below.from[node]; i < below.from[node + 1]; i++) {
            const s = below.at[i];
            sum += pull[s] * (x[b[s]] - lean[s]);
            total += pull[s];
        }
        target[node] = total ? sum / total : x[node];
        weight[node] = total || 0.01;
    }
}

// Align paths of nodes that have one neighbour above and below, and of points,
// as far as there is room beside them.
function straighten(g, x) {
    const left = new Float64Array(g.total), right = new Float64Array(g.total);
    const seen = new Uint8Array(g.total), spot = new Int32Array(g.total);
    for (const rank of g.ranks)
        rank.forEach((node, i) => { spot[node] = i; });
    const findRoom = (node) => {
        const rank = g.ranks[g.rank[node]], i = spot[node];
        left[node] = i ? x[rank[i - 1]] + distance(g, rank[i - 1], node)
            : -Infinity;
        right[node] = i + 1 < rank.length
            ? x[rank[i + 1]] - distance(g, node, rank[i + 1]) : Infinity;
    };
    const outs = (node) => g.below.from[node + 1] - g.below.from[node];
    const ins = (node) => g.above.from[node + 1] - g.above.from[node];
    const next = (node) => {
        for (let i = g.below.from[node]; i < g.below.from[node + 1]; i++) {
            const s = g.below.at[i], to = g.b[s];
            if (!g.lean[s] && ((node >= g.n && to >= g.n) ||
                (outs(node) === 1 && ins(to) === 1)))
                return to;
        }
        return -1;
    };
    const align = (run) => {
        let low = -Infinity, high = Infinity, sum = 0;
        for (const node of run) {
            findRoom(node);
            low = Math.max(low, left[node]);
            high = Math.min(high, right[node]);
            sum += x[node];
        }
        const at = Math.min(high, Math.max(low, sum / run.length));
        for (const node of run)
            x[node] = at;
    };
    for (const rank of g.ranks)
        for (const start of rank) {
            let run = [], low = -Infinity, high = Infinity;
            for (let node = start; node >= 0 && !seen[node];
                node = next(node)) {
                seen[node] = 1;
                findRoom(node);
                if (Math.max(low, left[node]) > Math.min(high, right[node])) {
                    align(run);
                    run = [];
                    low = -Infinity;
                    high = Infinity;
                }
                low = Math.max(low, left[node]);
                high = Math.min(high, right[node]);
                run.push(node);
            }
            if (run.length > 1)
                align(run);
        }
}

// Set the x coordinate of every node and point: sweep over the ranks, down and
// up, then align paths.
function placeRanks(g) {
    const x = new Float64Array(g.total), target = new Float64Array(g.total);
    const weight = new Float64Array(g.total);
    const widest = g.ranks.reduce((m, rank) => Math.max(m, rank.length), 0);
    g.pools = { sums: new Float64Array(widest), sizes: new Int32Array(widest),
        weights: new Float64Array(widest), shifts: new Float64Array(widest) };
    weigh(g);
    for (const rank of g.ranks) {
        let at = 0;
        rank.forEach((node, i) => {
            at += i ? distance(g, rank[i - 1], node) : 0;
            x[node] = at;
        });
        for (const node of rank)
            x[node] -= at / 2;
    }
    const rounds = g.total > 20000 ? 8 : g.total > 4000 ? 16 : 32;
    const last = g.ranks.length - 1;
    for (let round = 0; round < rounds; round++)
        for (let k = 0; k <= last; k++) {
            const rank = g.ranks[round % 2 ? last - k : k];
            setTargets(g, rank, x, target, weight);
            settle(g, rank, x, target, weight);
        }
    straighten(g, x);
    g.x = x;
}

// Turn ranks and positions into coordinates, and edges into points.
function route(g) {
    const top = [], bottom = [];
    let at = 0, left = Infinity, right = -Infinity;
    for (const [r, rank] of g.ranks.entries()) {
        top[r] = at;
        bottom[r] = at + rank.reduce((m, i) =>
            Math.max(m, i < g.n ? g.h[i] : 0), 0);
        at = bottom[r] + GAP.rank + Math.min(60, 0.6 * rank.length);
        for (const i of rank) {
            left = Math.min(left, g.x[i] - g.wide[i] / 2);
            right = Math.max(right, g.x[i] + g.wide[i] / 2);
        }
    }
    if (!(left <= right))
        left = right = 0;
    const x = new Float64Array(g.n), y = new Float64Array(g.n);
    for (let i = 0; i < g.n; i++) {
        x[i] = g.x[i] - left;
        y[i] = (top[g.rank[i]] + bottom[g.rank[i]]) / 2;
    }
    for (const e of g.down) {
        const points = [x[e.a] + e.ax, y[e.a] + g.h[e.a] / 2];
        for (const p of e.via || [])
            points.push(g.x[p] - left, top[g.rank[p]],
                g.x[p] - left, bottom[g.rank[p]]);
        points.push(x[e.b] + e.bx, y[e.b] - g.h[e.b] / 2);
        e.edge.points = points;
        e.edge.drawFrom = 4 * e.shared;
    }
    return { x, y, width: right - left,
        height: bottom.length ? bottom[bottom.length - 1] : 0 };
}
