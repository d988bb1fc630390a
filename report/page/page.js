// SPDX-License-Identifier: Apache-2.0
// page.js: handles the user's actions: select, expand, search, filter, and move
// the view.
'use strict';

const $ = (id) => document.getElementById(id);
const graph = readPage(JSON.parse($('ledger').textContent));
for (const region of [...graph.regions, ...graph.old?.regions || []]) {
    const us = region.us || region.entry?.backend_us;
    region.line = several(region.members.length, 'node') + ' \u00b7 ' +
        sayFlops(region.flops) + (us > 0 ? ' \u00b7 ' + sayTime(us) : '');
    region.operators = tally(region.members, (n) => n.title, 4);
}

// What the page shows, as the user chose it.
const state = {
    w: 0, h: 0, // size of the canvas
    open: new Set(), // names of open regions
    selected: null, // a node or a region
    eliminated: false, // folded and removed nodes are drawn
    query: '', // the search text
    filters: { where: null, reason: null, reverted: null, change: null },
    matches: null, // nodes that pass search and filters; null: there are none
    matchIndex: -1, // in `matches`: the last one visited by step()
    theme: null, // 'light' or 'dark'; null: the system's
    fit: null, // refits the view after a resize; null: the user moved the view
    arrangeMs: 0, // how long arrange() took
    timing: '', // the panel's text about times
};
const drawing = new Drawing($('graph'));
const panel = new Panel($('panel'), graph, {
    select: (item) => select(item, true),
    filter, toggle, showEliminated,
});
const before = graph.old && new OlderGraph($('before'), graph.old);
let arrangement, redrawIsPending = false;

// --- drawing ---------------------------------------------------------------

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (state.theme || (systemIsDark.matches ? 'dark'
    : 'light')) === 'dark';

function scene() {
    return { graph, arrangement, paint: PAINT[isDark() ? 'dark' : 'light'],
        selected: state.selected, matches: state.matches, path: pathOf() };
}

// The wires at the selected node.
function pathOf() {
    const node = state.selected, wires = [];
    if (!node || node.kind === 'region')
        return null;
    const add = (key) => wires.push(...(arrangement.paths.get(key) || []));
    for (const i of node.inputs) {
        add(i + '>' + node.index);
        if (graph.nodes[i].container !== node.container)
            add(i + '>');
    }
    for (const i of node.readers) {
        add(node.index + '>' + i);
        if (graph.nodes[i].container !== node.container)
            add(node.index + '>');
    }
    return wires;
}

function redraw() {
    if (redrawIsPending)
        return;
    redrawIsPending = true;
    requestAnimationFrame(() => {
        redrawIsPending = false;
        drawing.draw();
        before?.draw(drawing, state);
    });
}

function rearrange() {
    const start = performance.now();
    arrangement = arrange(graph, state.open, state.eliminated);
    before?.rearrange(state);
    state.arrangeMs = performance.now() - start;
}

// Show the state on the page, and save it to the URL.
function update() {
    drawing.show(scene());
    before?.show(drawing.scene);
    panel.show(state, drawing.scene.paint);
    showMatchCount();
    const open = graph.regions.some((r) => state.open.has(r.name));
    $('expand').textContent = open ? 'Collapse all' : 'Expand all';
    $('expand').hidden = !graph.regions.length;
    redraw();
    saveToUrl();
}

// --- the view --------------------------------------------------------------

// Keep part of the graph visible, and stop refitting when the canvas resizes.
function clampView() {
    const { view } = drawing, { w, h } = drawing.size();
    state.fit = null;
    view.scale = Math.min(3, Math.max(view.scale, 0.004));
    const keep = 60 / view.scale;
    view.x = Math.min(arrangement.width - keep, Math.max(view.x,
        keep - w / view.scale));
    view.y = Math.min(arrangement.height - keep, Math.max(view.y,
        keep - h / view.scale));
}

function fitAll() {
    const { view } = drawing, { w, h } = drawing.size(), pad = 48;
    view.scale = Math.min(1.1, (w - 2 * pad) / Math.max(arrangement.width, 1),
        (h - 2 * pad) / Math.max(arrangement.height, 1));
    view.scale = Math.max(view.scale, 0.004);
    view.x = arrangement.width / 2 - w / 2 / view.scale;
    view.y = arrangement.height / 2 - h / 2 / view.scale;
    state.fit = fitAll;
    redraw();
}

// Fit all of the graph, or its beginning if all would be too small to read.
function fitStart() {
    const { view } = drawing, { w } = drawing.size();
    fitAll();
    state.fit = fitStart;
    if (view.scale >= 0.5)
        return;
    view.scale = Math.min(0.9, Math.max(0.5, (w - 180) / arrangement.width));
    const first = arrangement.boxes.reduce((best, b) =>
        (!b.open && (!best || b.y < best.y) ? b : best), null);
    const inside = arrangement.width * view.scale <= w - 100;
    const middle = inside ? arrangement.width / 2 : first.x + first.w / 2;
    view.x = middle - w / 2 / view.scale;
    view.y = -32 / view.scale;
    redraw();
}

function zoom(factor, px, py) {
    const { view } = drawing, fixed = drawing.toGraph(px, py);
    view.scale = Math.min(3, Math.max(view.scale * factor, 0.004));
    view.x = fixed.x - px / view.scale;
    view.y = fixed.y - py / view.scale;
    clampView();
    redraw();
}

// Adapt the view to a new size of the canvas: fit it again unless it was moved by
// hand; otherwise keep its centre.
function resize() {
    const { view } = drawing, { w, h } = drawing.size();
    if (state.fit) {
        state.fit();
    } else {
        view.x += (state.w - w) / 2 / view.scale;
        view.y += (state.h - h) / 2 / view.scale;
    }
    Object.assign(state, { w, h });
    redraw();
}

const boxOf = (item) => arrangement.at.get(item) ||
    arrangement.at.get(item?.container);

// Centre a box if it is not in view, or if `centre` is set; zoom in first if it
// would be illegible.
function reveal(item, centre) {
    const box = boxOf(item), { view } = drawing;
    const { w, h } = drawing.size();
    if (!box)
        return;
    if (view.scale < 0.45 && !box.open) {
        view.scale = 0.8;
        centre = true;
    }
    const pad = 60 / view.scale, vw = w / view.scale, vh = h / view.scale;
    const high = Math.min(box.h, vh - 2 * pad);
    const inside = box.x > view.x + pad && box.x + box.w < view.x + vw - pad &&
        box.y > view.y + pad && box.y + high < view.y + vh - pad;
    if (inside && !centre)
        return;
    view.x = box.x + box.w / 2 - vw / 2;
    view.y = box.y + high / 2 - vh / 2;
    clampView();
}

// --- selecting, expanding --------------------------------------------------

function select(item, show) {
    state.selected = item;
    if (item && item.kind === 'node') {
        let changed = false;
        if (item.container && show && !state.open.has(item.container.name)) {
            state.open.add(item.container.name);
            changed = true;
        }
        if (item.eliminated && !state.eliminated)
            changed = state.eliminated = true;
        if (changed)
            rearrange();
    }
    if (item && show)
        reveal(item, false);
    $('announcement').textContent = item ? item.title + ' ' +
        (item.label || '') + ', ' + (item.where || item.backend) : '';
    update();
}

// Expand or collapse a region. Its upper left corner keeps its position on the
// screen, unless scrolling shows more of an expanded region.
function toggle(region) {
    const { view } = drawing, old = arrangement.at.get(region);
    const dx = old ? old.x - view.x : 0;
    const dy = old ? old.y - view.y : 0;
    if (!state.open.delete(region.name))
        state.open.add(region.name);
    rearrange();
    const after = arrangement.at.get(region);
    view.x = after.x - dx;
    view.y = after.y - dy;
    if (after.open) {
        const w = drawing.size().w / view.scale;
        const h = drawing.size().h / view.scale, edge = 24 / view.scale;
        view.y = Math.max(view.y, Math.min(after.y - edge,
            after.y + after.h - h + edge));
        view.x = after.w < w ? Math.min(Math.max(view.x,
            after.x + after.w - w + 20), after.x - 20)
            : after.x + after.w / 2 - w / 2;
    }
    clampView();
    select(region, false);
}

function toggleAll() {
    const anyOpen = graph.regions.some((r) => state.open.has(r.name));
    state.open = new Set(anyOpen ? [] : graph.regions.map((r) => r.name));
    rearrange();
    fitStart();
    update();
}

function showEliminated(shown) {
    state.eliminated = shown;
    rearrange();
    fitStart();
    update();
}

function setTheme(theme) {
    state.theme = theme;
    document.documentElement.dataset.theme = theme;
    update();
}

// --- searching, filtering --------------------------------------------------

function filter(name, value) {
    state.filters[name] = value;
    if (isEliminated(value) && !state.eliminated) {
        state.eliminated = true;
        rearrange();
    }
    match();
}

// Set state.matches to the nodes that pass the search and the filters.
function match() {
    const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
    const { where, reason, reverted, change } = state.filters;
    state.matchIndex = -1;
    state.matches = null;
    if (words.length || where || reason || reverted || change) {
        const group = panel.groups.find((g) => g.key === reason);
        const inGroup = group && new Set(group.nodes);
        const region = graph.reverted.find((r) => r.key === reverted);
        const inRegion = region && new Set(region.nodes);
        state.matches = new Set(graph.nodes.filter((n) =>
            (!where || n.where === where) && (!group || inGroup.has(n)) &&
            (!region || inRegion.has(n.index)) &&
            (!change || n.change === change) && words.every((word) =>
                n.text.includes(word))));
        seekMatch();
    }
    update();
}

// Bring a match into view, unless one is there.
function seekMatch() {
    const { w, h } = drawing.size(), { view } = drawing;
    const seen = (b) => b && b.x >= view.x && b.y >= view.y &&
        b.x + b.w <= view.x + w / view.scale &&
        b.y + b.h <= view.y + h / view.scale;
    let first = null;
    for (const node of state.matches) {
        const box = boxOf(node);
        if (seen(box))
            return;
        first ||= box;
    }
    if (first)
        reveal(first.item, true);
}

function showMatchCount() {
    const { matches } = state;
    $('matches').hidden = !matches;
    if (matches)
        $('count').textContent = (state.matchIndex >= 0
            ? sayCount(state.matchIndex + 1) + ' of ' : '') +
            several(matches.size, 'node');
    for (const id of ['previous', 'next'])
        $(id).disabled = !matches?.size;
}

function step(by) {
    const { matches } = state;
    if (!matches?.size)
        return;
    const list = [...matches];
    state.matchIndex = state.matchIndex < 0 && by < 0 ? list.length - 1
        : (state.matchIndex + by + list.length) % list.length;
    select(list[state.matchIndex], true);
}

function clear() {
    state.query = $('find').value = '';
    state.filters = { where: null, reason: null, reverted: null, change: null };
    match();
}

// Clear the search and filters or, if there are none, the selection.
function goBack() {
    if (state.matches)
        clear();
    else if (state.selected)
        select(null);
}

// --- moving along edges ----------------------------------------------------

// Return the item whose box is nearest to `from` in the direction of an arrow
// key. Up and down prefer boxes that a wire connects to `from`; left and right
// consider only boxes beside it.
function neighbour(from, key) {
    const box = boxOf(from), mx = box.x + box.w / 2, my = box.y + box.h / 2;
    const sides = key === 'ArrowLeft' || key === 'ArrowRight';
    const sign = key === 'ArrowLeft' || key === 'ArrowUp' ? -1 : 1;
    const linked = new Set();
    const members = from.kind === 'region' && !box.open ? from.members
        : from.kind === 'region' ? [] : [from];
    for (const node of members)
        for (const i of sign < 0 ? node.inputs : node.readers)
            linked.add(boxOf(graph.nodes[i]));
    let best = null, shortest = Infinity;
    for (const b of arrangement.boxes) {
        if (b === box ||
            (b.open && from.container !== b.item && !linked.has(b)))
            continue;
        const dx = b.x + b.w / 2 - mx, dy = b.y + b.h / 2 - my;
        const ahead = sides ? sign * dx : sign * dy;
        const aside = sides ? Math.abs(dy) * 8 : Math.abs(dx) * 2;
        if (ahead <= 0 || (b.open && sides) || (sides && Math.abs(dy) > b.h))
            continue;
        const far = ahead + aside + (sides || linked.has(b) ? 0 : 1e6);
        if (far < shortest) {
            shortest = far;
            best = b;
        }
    }
    return best?.item;
}

function firstInView() {
    const { x, y } = drawing.toGraph(0, 0);
    let best = arrangement.boxes[0];
    for (const b of arrangement.boxes)
        if (b.y >= y && b.x + b.w >= x && (best.y < y || b.y < best.y))
            best = b;
    return best?.item;
}

// --- events ----------------------------------------------------------------

function onGraphKey(e) {
    const { w, h } = drawing.size(), item = state.selected;
    if (e.ctrlKey || e.metaKey || e.altKey)
        return;
    if (e.key.startsWith('Arrow')) {
        const next = item ? neighbour(item, e.key) : firstInView();
        if (next)
            select(next, true);
    } else if (e.key === 'Enter' && item) {
        if (item.kind === 'region')
            toggle(item);
        else
            $('panel').querySelector('button')?.focus();
    } else if (e.key === '+' || e.key === '=') {
        zoom(1.25, w / 2, h / 2);
    } else if (e.key === '-') {
        zoom(0.8, w / 2, h / 2);
    } else if (e.key === '0') {
        fitAll();
    } else {
        return;
    }
    e.preventDefault();
}

function onKey(e) {
    if (e.key === '/' && e.target !== $('find')) {
        e.preventDefault();
        $('find').focus();
        $('find').select();
    } else if (e.key === 'Escape') {
        goBack();
        $('graph').focus();
    } else if (e.key === 'Enter' && e.target === $('find')) {
        step(e.shiftKey ? -1 : 1);
    }
}

// One finger or the mouse pans, two fingers pinch, a press without movement
// clicks.
function watchPointer(canvas, press) {
    const down = new Map();
    let moved = 0, onStrip = false;
    const place = (e) => {
        const r = canvas.getBoundingClientRect();
        return { x: e.clientX - r.left, y: e.clientY - r.top };
    };
    const toStrip = (at) => {
        const y = drawing.stripTo(at.x, at.y);
        if (y === null)
            return false;
        drawing.view.y = y - drawing.size().h / 2 / drawing.view.scale;
        clampView();
        redraw();
        return true;
    };
    canvas.addEventListener('pointerdown', (e) => {
        canvas.setPointerCapture(e.pointerId);
        down.set(e.pointerId, place(e));
        moved = 0;
        onStrip = canvas === drawing.canvas && down.size === 1 &&
            toStrip(place(e));
    });
    canvas.addEventListener('pointermove', (e) => {
        const last = down.get(e.pointerId), at = place(e), { view } = drawing;
        if (!last) {
            const on = canvas === drawing.canvas ? drawing : before.drawing;
            const strip = on.stripTo(at.x, at.y) !== null;
            canvas.style.cursor = strip || on.hit(at.x, at.y) ? 'pointer'
                : 'grab';
            return;
        }
        const dx = at.x - last.x, dy = at.y - last.y;
        moved += Math.hypot(dx, dy);
        if (onStrip) {
            toStrip({ x: drawing.size().w, y: at.y });
        } else if (down.size === 2) {
            const [a, b] = [...down.values()];
            const far = Math.hypot(a.x - b.x, a.y - b.y);
            const other = a === last ? b : a;
            zoom(Math.hypot(at.x - other.x, at.y - other.y) /
                Math.max(far, 1), other.x, other.y);
        } else if (moved > 4) {
            view.x -= dx / view.scale;
            view.y -= dy / view.scale;
            canvas.style.cursor = 'grabbing';
            clampView();
            redraw();
        } else {
            return;
        }
        down.set(e.pointerId, at);
    });
    const up = (e) => {
        const single = down.size === 1;
        if (!down.delete(e.pointerId) || !single || onStrip || moved > 4 ||
            e.type === 'pointercancel')
            return;
        press(place(e));
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('wheel', (e) => {
        const at = place(e), { view } = drawing;
        e.preventDefault();
        const unit = e.deltaMode === 1 ? 16 : 1;
        if (e.ctrlKey || e.metaKey) {
            zoom(Math.exp(-e.deltaY * unit * 0.01), at.x, at.y);
            return;
        }
        if (e.shiftKey && !e.deltaX) {
            view.x += e.deltaY * unit / view.scale;
        } else {
            view.x += e.deltaX * unit / view.scale;
            view.y += e.deltaY * unit / view.scale;
        }
        clampView();
        redraw();
    }, { passive: false });
}

// Handle a press: expand a collapsed region, collapse an open one by its header, or
// select the box.
function press(at) {
    const box = drawing.hit(at.x, at.y);
    if (!box) {
        select(null);
        return;
    }
    const { y } = drawing.toGraph(at.x, at.y);
    if (box.item.kind === 'region' && (!box.open || y < box.y + BOX.header))
        toggle(box.item);
    else
        select(box.item, false);
}

// Handle a press in the older graph.
function pressBefore(at) {
    const item = before.press(at.x, at.y, state);
    if (item) {
        select(item, true);
        return;
    }
    rearrange();
    update();
}

function addListeners() {
    $('find').addEventListener('input', (e) => {
        state.query = e.target.value;
        match();
    });
    $('theme').addEventListener('click', () =>
        setTheme(isDark() ? 'light' : 'dark'));
    $('expand').addEventListener('click', toggleAll);
    $('all').addEventListener('click', fitAll);
    $('previous').addEventListener('click', () => step(-1));
    $('next').addEventListener('click', () => step(1));
    $('clear').addEventListener('click', clear);
    for (const [id, factor] of [['in', 1.25], ['out', 0.8]])
        $(id).addEventListener('click', () => {
            const { w, h } = drawing.size();
            zoom(factor, w / 2, h / 2);
        });
    systemIsDark.addEventListener('change', update);
    document.addEventListener('keydown', onKey);
    $('graph').addEventListener('keydown', onGraphKey);
    new ResizeObserver(resize).observe($('graph'));
    watchPointer($('graph'), press);
    if (before)
        watchPointer($('before'), pressBefore);
}

// --- the URL ---------------------------------------------------------------

// Save to the URL the selection, open regions, search text, the filter by place,
// whether folded and removed nodes are drawn, and the theme. The other filters and
// the position of the view are not saved.
function saveToUrl() {
    const params = new URLSearchParams();
    if (state.open.size)
        params.set('open', state.open.size === graph.regions.length ? '*'
            : [...state.open].join(','));
    if (state.selected)
        params.set(state.selected.kind, state.selected.index ??
            state.selected.name);
    if (state.query)
        params.set('find', state.query);
    if (state.filters.where)
        params.set('where', state.filters.where);
    if (state.eliminated)
        params.set('eliminated', 1);
    if (state.theme)
        params.set('theme', state.theme);
    const url = params.size ? '#' + params : location.pathname;
    try {
        history.replaceState(null, '', url);
    } catch {
        // some browsers allow few changes a second; the next one is saved
    }
}

function restoreFromUrl() {
    const params = new URLSearchParams(location.hash.slice(1));
    const open = params.get('open');
    for (const region of graph.regions)
        if (open === '*' || open?.split(',').includes(region.name))
            state.open.add(region.name);
    const node = graph.nodes[params.get('node') ?? -1];
    if (node?.container)
        state.open.add(node.container.name);
    state.eliminated = params.has('eliminated') || Boolean(node?.eliminated);
    state.query = $('find').value = params.get('find') || '';
    state.filters.where = params.get('where');
    state.theme = params.get('theme');
    if (state.theme)
        document.documentElement.dataset.theme = state.theme;
    return node || graph.regions.find((r) => r.name === params.get('region'));
}

// --- the header ------------------------------------------------------------

function figure(value, label) {
    return make('div', { class: 'figure' }, make('b', null, value),
        make('span', null, label));
}

function showHeader() {
    const { summary, backends, paint } = { ...graph, ...scene() };
    const name = graph.model || 'model';
    document.title = name + ' \u00b7 byoc';
    $('model').textContent = name;
    $('made').textContent = ['byoc ' + (graph.byoc || ''),
        ...backends.filter((v) => v.name !== 'native').map((v) =>
            (v.name + ' ' + (v.version || '')).trim()),
        graph.cpu, graph.threads && several(graph.threads, 'thread'),
    ].filter(Boolean).join(' \u00b7 ');
    const timed = graph.regions.filter((r) => r.entry?.backend_us > 0);
    const sum = (key) => timed.reduce((t, r) => t + (r.entry[key] || 0), 0);
    $('sum').replaceChildren(
        figure(sayCount(summary.offloaded), 'of ' +
            several(summary.operators, 'operator') + ' offloaded'),
        figure(sayShare(summary.flops_offloaded, summary.flops), 'of ' +
            sayFlops(summary.flops)),
        figure(sayCount(summary.regions), 'region' +
            (summary.regions === 1 ? '' : 's')));
    if (graph.profile)
        $('sum').append(figure(sayTime(graph.us), 'a run'));
    else if (timed.length)
        $('sum').append(figure(sayTime(sum('backend_us')), 'in regions, ' +
            sayTime(sum('native_us')) + ' native'));
}

// --- start -----------------------------------------------------------------

for (const node of graph.nodes)
    node.text = (node.name + ' ' + node.op + ' ' + (node.region || ''))
        .toLowerCase();
const restored = restoreFromUrl();
// expand the region of a model that has only one: collapsed, it would be one box
if (!location.hash && graph.regions.length === 1 &&
    graph.nodes.every((n) => n.container || n.eliminated))
    state.open.add(graph.regions[0].name);
$('before').parentElement.classList.toggle('two', Boolean(before));
for (const side of document.querySelectorAll('.side'))
    side.hidden = !before;
rearrange();
showHeader();
addListeners();
drawing.show(scene());
before?.show(drawing.scene);
fitStart();
match();
if (restored)
    select(restored, true);
drawing.draw();
before?.draw(drawing, state);
state.timing = (arrangement.boxes.length === 1 ? '1 box' :
    sayCount(arrangement.boxes.length) + ' boxes') + ' laid out in ' +
    state.arrangeMs.toFixed(0) + ' ms, opened in ' +
    performance.now().toFixed(0) + ' ms';
update();
