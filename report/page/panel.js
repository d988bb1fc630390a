// SPDX-License-Identifier: Apache-2.0
// panel.js: writes the panel beside the graph, about the whole model, a region or
// a node. Strings of the ledger become text, never markup.
'use strict';

function sayCount(n) {
    return Math.round(n).toLocaleString('en');
}

function sayFlops(n) {
    const unit = n >= 1e12 ? [1e12, 'TFLOP'] : n >= 1e9 ? [1e9, 'GFLOP']
        : n >= 1e6 ? [1e6, 'MFLOP'] : n >= 1e3 ? [1e3, 'kFLOP'] : [1, 'FLOP'];
    const value = n / unit[0];
    return value.toFixed(unit[0] === 1 || value >= 100 ? 0 :
        value >= 10 ? 1 : 2) + ' ' + unit[1];
}

function sayTime(us) {
    return us >= 1e6 ? (us / 1e6).toFixed(2) + ' s'
        : us >= 1000 ? (us / 1000).toFixed(2) + ' ms'
        : us >= 100 ? us.toFixed(0) + ' \u00b5s' : us.toFixed(1) + ' \u00b5s';
}

// A percentage: 100% only above 99.9999%, and 0% only for 0.
function sayShare(part, whole) {
    const exact = whole > 0 ? 100 * part / whole : 0;
    const share = exact > 99.9999 ? 100 : exact;
    if (share > 0 && share < 0.1)
        return '<0.1%';
    return (share < 100 ? Math.min(share, 99.9) : 100).toFixed(
        share === 0 || share === 100 ? 0 : 1) + '%';
}

const several = (n, word) => sayCount(n) + ' ' + word + (n === 1 ? '' : 's');

// Create an element with attributes and children. An attribute "onNAME" is a
// listener; children that are text stay text.
function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
        if (name.startsWith('on'))
            element.addEventListener(name.slice(2), value);
        else if (value !== false && value != null)
            element.setAttribute(name, value === true ? '' : value);
    element.append(...children.flat(9).filter((c) => c != null && c !== ''));
    return element;
}

// "12 Conv, 3 Add": the most frequent first, at most `limit` of them.
function tally(items, name, limit) {
    const counts = new Map();
    for (const item of items)
        counts.set(name(item), (counts.get(name(item)) || 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1] ||
        (a[0] < b[0] ? -1 : 1));
    return sorted.slice(0, limit).map(([key, n]) => n + ' ' + key)
        .join(', ') + (sorted.length > limit ? ', \u2026' : '');
}

// The node's reason, and the detail of the last attempt with this reason.
function reasonOf(node, reasons) {
    const last = node.tried.filter((t) => t.reason === node.reason).pop();
    return { code: node.reason, detail: last?.detail ||
        reasons[node.reason] || '' };
}

// Group native nodes by operator and reason; the largest groups come first.
function groupReasons(graph) {
    const groups = new Map();
    for (const node of graph.nodes) {
        if (node.where !== 'native')
            continue;
        const { code, detail } = reasonOf(node, graph.reasons);
        const key = node.op + '\n' + code + '\n' + detail;
        if (!groups.has(key))
            groups.set(key, { key, op: node.op, code, detail, nodes: [] });
        groups.get(key).nodes.push(node);
    }
    return [...groups.values()].sort((a, b) => b.nodes.length -
        a.nodes.length || (a.key < b.key ? -1 : 1));
}

// The panel, with the parts of its text.
class Panel {
    // `act`: select(item), filter(name, value), toggle(region),
    // showEliminated(shown)
    constructor(element, graph, act) {
        Object.assign(this, { element, graph, act });
        this.groups = groupReasons(graph);
    }

    show(state, paint) {
        this.paint = paint;
        const { selected } = state;
        const parts = !selected ? this.overview(state)
            : selected.kind === 'region' ? this.region(selected, state)
            : this.node(selected, state);
        const changed = this.shown !== selected;
        this.shown = selected;
        this.element.replaceChildren(...parts.filter(Boolean));
        if (changed)
            this.element.scrollTop = 0;
    }

    swatch(where) {
        const colour = colourOf(this.paint, this.graph.names, where);
        return make('i', { style: '--c:' + colour,
            class: 'swatch' + (isEliminated(where) ? ' eliminated' : '') });
    }

    // --- the whole model ---------------------------------------------------

    overview(state) {
        return [this.changes(state), this.times(), this.legend(state),
            this.gates(), this.reasons(state),
            this.reverted(state), this.regions(), this.foot(state)];
    }

    // Both ledgers in figures, side by side, and what changed.
    changes(state) {
        const { graph } = this, { old } = graph;
        if (!old)
            return null;
        const count = (g, key) => sayCount(g.summary[key]);
        const facts = [
            ['Model', (g) => g.model || ''],
            ['Operators', (g) => count(g, 'operators')],
            ['Offloaded', (g) => count(g, 'offloaded')],
            ['Share of the work', (g) => sayShare(g.summary.flops_offloaded,
                g.summary.flops)],
            ['Regions', (g) => count(g, 'regions')],
            ['Native', (g) => count(g, 'native')],
        ].map(([name, say]) => make('tr', null, make('th', null, name),
            make('td', null, say(old)), make('td', null, say(graph))));
        const rows = [...CHANGES, ['new', 'only in the newer']]
            .map(([change, text]) => [change, text, graph.nodes.filter((n) =>
                n.change === change).length]).filter(([, , n]) => n)
            .map(([change, text, n]) => this.row('change', change, state, [
                make('span', { class: 'number' }, sayCount(n)),
                make('span', { class: 'body' }, make('b', { class: { lost:
                    'bad', gained: 'good' }[change] || false }, text))]));
        return make('section', { class: 'reasons' },
            make('table', { class: 'pairs' }, make('tr', null,
                make('th', null, ''), make('th', null, 'before'),
                make('th', null, 'after')), facts),
            make('h2', { class: 'next' }, 'Nodes that changed'),
            rows.length ? make('ul', null, rows)
                : make('p', { class: 'soft' }, 'None.'),
            graph.removed.length ? make('p', { class: 'soft' },
                several(graph.removed.length, 'node') + ' only in the older: ' +
                tally(graph.removed, (n) => n.title, 6)) : null);
    }

    // The steps of the profile, those with the most time first.
    times() {
        const { graph } = this, { steps, us } = graph;
        if (!steps)
            return null;
        const sorted = [...steps].sort((a, b) => b.median_us - a.median_us);
        return make('section', { class: 'times' }, make('h2', null, 'Time of a ' +
            'run', make('span', null, 'median of ' +
            sayCount(graph.profile.runs))),
        this.links(sorted, (s) => [make('b', null, s.largest?.title ||
            s.operators), make('small', null, make('bdi', null,
            s.implementation)), make('span', { class: 'number' },
            sayTime(s.median_us)), make('i', { class: 'bar', style: '--part:' +
            (100 * s.median_us / sorted[0].median_us).toFixed(1) + '%',
        title: sayShare(s.median_us, us) + ' of the run' })], 15,
        (s) => s.largest));
    }

    row(name, value, state, cells) {
        const on = state.filters[name] === value;
        return make('li', null, make('button', { type: 'button',
            'aria-pressed': String(on), class: on ? 'on' : false,
            onclick: () => this.act.filter(name, on ? null : value) },
        cells));
    }

    legend(state) {
        const { backends, summary } = this.graph;
        const rows = backends.filter((v) => v.nodes || v.name === 'native')
            .map((v) => this.row('where', v.name, state, [
                this.swatch(v.name), make('b', null, v.name),
                make('span', { class: 'version' }, v.version || ''),
                make('span', { class: 'number' }, sayCount(v.nodes)),
                make('span', { class: 'share' },
                    sayShare(v.flops, summary.flops)),
            ]));
        for (const where of ['folded', 'removed'])
            if (summary[where])
                rows.push(this.row('where', where, state, [
                    this.swatch(where), make('b', null, where),
                    make('span', { class: 'version' }, ''),
                    make('span', { class: 'number' },
                        sayCount(summary[where])),
                    make('span', { class: 'share' }, '')]));
        const eliminated = summary.folded + summary.removed;
        return make('section', { class: 'legend' },
            make('h2', null, 'Where nodes run',
                make('span', null, 'nodes'), make('span', null, 'work')),
            make('ul', null, rows),
            eliminated ? make('label', { class: 'switch' },
                make('input', { type: 'checkbox', checked: state.eliminated,
                    onchange: (e) => this.act.showEliminated(e.target.checked) }),
                'Draw folded and removed nodes') : null);
    }

    gates() {
        const gates = this.graph.gates || [];
        return gates.length ? make('section', null, make('h2', null, 'Gates'),
            make('ul', { class: 'lines' }, gates.map((g) => make('li', null,
                make('b', { class: g.passed ? 'good' : 'bad' },
                    g.passed ? '\u2713 ' : '\u2717 ', g.gate),
                make('small', null, 'found ' + g.found + ', expected ' +
                    g.wanted))))) : null;
    }

    reasons(state) {
        if (!this.groups.length)
            return make('section', null, make('h2', null, 'Why native'),
                make('p', { class: 'soft' },
                    'No node is native.'));
        return make('section', { class: 'reasons' },
            make('h2', null, 'Why native'),
            make('ul', null, this.groups.map((g) =>
                this.row('reason', g.key, state, [
                    make('span', { class: 'number' },
                        sayCount(g.nodes.length)),
                    make('span', { class: 'body' }, make('b', null, g.op),
                        ' ', make('code', null, g.code),
                        make('small', null, g.detail))]))));
    }

    reverted(state) {
        const { reverted } = this.graph;
        return reverted.length ? make('section', { class: 'reasons' },
            make('h2', null, 'Reverted to native'),
            make('ul', null, reverted.map((r) =>
                this.row('reverted', r.key, state, [
                    make('span', { class: 'number' },
                        sayCount(r.nodes.length)),
                    make('span', { class: 'body' }, make('b', null, r.name),
                        ' ', make('code', null, r.reason || r.outcome),
                        make('small', null, r.detail || '',
                            this.versus(r)))])))) : null;
    }

    versus(r) {
        return r.backend_us > 0 && r.native_us > 0
            ? (r.detail ? ' \u00b7 ' : '') + sayTime(r.backend_us) +
                ' on ' + r.backend + ', ' + sayTime(r.native_us) +
                ' native' : '';
    }

    regions() {
        const { regions } = this.graph;
        return regions.length ? make('section', null,
            make('h2', null, 'Regions'),
            this.links(regions, (r) => [this.swatch(r.backend), r.name,
                make('small', null, make('bdi', null, r.line))])) : null;
    }

    foot(state) {
        return make('footer', null,
            make('p', null, make('kbd', null, '/'), ' search ',
                make('kbd', null, '\u2190\u2191\u2193\u2192'), ' move ',
                make('kbd', null, 'Enter'), ' expand ',
                make('kbd', null, 'Esc'), ' back'),
            make('p', { id: 'timing' }, state.timing || ''));
    }

    // A list of buttons that select; long ones end in "and 80 more".
    links(items, say, limit = 40, of = (item) => item) {
        const list = make('ul', { class: 'links' });
        const add = (some) => list.append(...some.map((item) =>
            make('li', null, make('button', { type: 'button',
                onclick: () => this.act.select(of(item)) }, say(item)))));
        add(items.slice(0, limit));
        if (items.length > limit) {
            const more = make('li', null, make('button', { type: 'button',
                class: 'more', onclick: () => {
                    more.remove();
                    add(items.slice(limit));
                } }, 'and ' + sayCount(items.length - limit) + ' more'));
            list.append(more);
        }
        return list;
    }

    // --- one region, one node ----------------------------------------------

    back() {
        return make('button', { type: 'button', class: 'back',
            onclick: () => this.act.select(null) }, '\u2039 Overview');
    }

    facts(list) {
        return make('dl', null, list.filter((f) => f[1] != null &&
            f[1] !== '').map(([name, ...value]) =>
            [make('dt', null, name), make('dd', null, value)]));
    }

    work(flops) {
        return flops > 0 ? sayFlops(flops) + ' \u00b7 ' +
            sayShare(flops, this.graph.summary.flops) : 'none';
    }

    nodeLinks(title, nodes) {
        return nodes.length ? make('section', null,
            make('h2', null, title, make('span', null,
                sayCount(nodes.length))),
            this.links(nodes, (n) => [this.swatch(n.where),
                make('b', null, n.title), make('small', null,
                    make('bdi', null, n.label)), n.types[0] ? make('small',
                    { class: 'type' }, n.types[0]) : '']))
            : null;
    }

    region(region, state) {
        const entry = region.entry || {}, open = state.open.has(region.name);
        const speed = entry.native_us > 0 && entry.backend_us > 0
            ? ' \u00b7 ' + (entry.native_us / entry.backend_us).toFixed(2) +
                '\u00d7' : '';
        return [this.back(), make('h1', null, this.swatch(region.backend),
            region.name),
        make('p', { class: 'do' }, make('button', { type: 'button',
            onclick: () => this.act.toggle(region) },
        open ? 'Collapse' : 'Expand')),
        this.facts([
            ['Backend', region.backend],
            ['Outcome', entry.outcome],
            ['Reason', entry.reason && make('code', null, entry.reason),
                entry.detail ? make('p', null, entry.detail) : ''],
            ['Nodes', sayCount(region.members.length)],
            ['Work', this.work(region.flops)],
            ['Inputs', entry.inputs >= 0 ? several(entry.inputs, 'value') : ''],
            ['Outputs', entry.outputs >= 0 ? several(entry.outputs, 'value')
                : ''],
            [region.backend, entry.backend_us > 0
                ? sayTime(entry.backend_us) + speed : ''],
            ['Native', entry.native_us > 0 ? sayTime(entry.native_us) : ''],
            ['Measured', region.us > 0 ? sayTime(region.us) + ' \u00b7 ' +
                sayShare(region.us, this.graph.us) + ' of a run' : ''],
            ['Patterns', tally(region.members, (n) => n.pattern || '?', 99)],
        ]),
        this.nodeLinks('Nodes', region.members)];
    }

    node(node, state) {
        const { graph } = this, { code, detail } = reasonOf(node,
            graph.reasons);
        const link = node.container && make('button', { type: 'button',
            class: 'link', onclick: () => this.act.select(node.container) },
        node.region);
        const text = graph.reasons[code];
        return [this.back(),
            make('h1', null, this.swatch(node.where), node.title),
            make('p', { class: 'name' }, node.name),
            this.facts([
                ['Where', node.where],
                ['Result' + (node.types.length > 1 ? 's' : ''),
                    node.types.filter(Boolean).map((type) =>
                        make('p', null, type))],
                ['Attributes', node.attributes],
                ['Reason', make('code', null, code),
                    text ? make('p', null, text) : ''],
                ['Found', node.where === 'native' && detail !== text
                    ? detail : ''],
                ['Region', link],
                ['Pattern', node.pattern && make('code', null,
                    node.pattern)],
                ['Kernel', node.impl && make('code', null, node.impl)],
                ['Work', this.work(node.flops)],
                [node.region ? node.where : 'Backend', node.backend_us > 0
                    ? sayTime(node.backend_us) : ''],
                ['Native', node.native_us > 0 ? sayTime(node.native_us)
                    : ''],
                ['Measured', this.measured(node)],
                ['Before', node.before && node.before.where +
                    (node.before.region ? ', ' + node.before.region : ''),
                node.change && !node.before?.region && node.before?.reason
                    ? make('p', null, reasonOf(node.before,
                        graph.reasons).detail) : ''],
            ]),
            this.tried(node),
            this.nodeLinks('Reads', node.inputs.map((i) => graph.nodes[i])),
            this.nodeLinks('Read by', node.readers.map((i) =>
                graph.nodes[i]))];
    }

    // A line for each step: its time, its share of a run, and how many other nodes
    // it computes.
    measured(node) {
        return node.steps?.map((s) => make('p', null,
            sayTime(s.median_us) + ' \u00b7 ' +
            sayShare(s.median_us, this.graph.us) + ' of a run' +
            (s.members.length > 1 ? ', with ' +
                several(s.members.length - 1, 'other node') : '')));
    }

    tried(node) {
        return node.tried.length ? make('section', { class: 'tried' },
            make('h2', null, 'Tried', make('span', null,
                sayCount(node.tried.length))),
            make('ol', null, node.tried.map((t) => make('li', null,
                make('code', null, t.pattern || t.backend || ''), ' ',
                make('code', { class: 'soft' }, t.reason),
                make('small', null, t.detail || ''))))) : null;
    }
}
