// SPDX-License-Identifier: Apache-2.0
// browser.js CHROMIUM BYOC WORK [SHOTS|--docs [MODEL...]]: tests the page of a
// ledger in a browser without a window. It opens, expands and searches pages, and
// operates them with the keyboard; some ledgers are large, or have hostile names.
// Writes pages to the folder WORK and screenshots to the folder SHOTS; with --docs,
// only the screenshots that the documents show, to docs/pictures. Talks to the
// browser through its debugging pipe, which needs no package of Node. The exit code
// is 0 if all checks passed, 1 otherwise.
'use strict';

const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');

const [chromium, byoc, work, given] = process.argv.slice(2);
const root = path.join(__dirname, '../..');
// the names of the screenshots in docs/pictures, by their names in this file
const PICTURES = { selected: 'page', 'times-expanded': 'times', 'times-chart':
    'chart', 'compare-selected': 'compare', 'compare-narrow': 'narrow' };
const forDocs = given === '--docs';
const shots = forDocs ? path.join(root, 'docs/pictures') : given;
let passed = 0, failed = 0;

function check(what, ok, found) {
    if (ok)
        passed++;
    else {
        failed++;
        console.log('FAILED: ' + what + (found === undefined ? ''
            : ': found ' + JSON.stringify(found)));
    }
}

const same = (what, found, expected) =>
    check(what + ', expected ' + JSON.stringify(expected),
        JSON.stringify(found) === JSON.stringify(expected), found);

// --- the browser -----------------------------------------------------------

class Browser {
    constructor() {
        this.process = spawn(chromium, ['--headless', '--no-sandbox',
            '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe',
            '--user-data-dir=' + path.join(work, 'profile'), 'about:blank'],
        { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
        this.next = 1;
        this.waiting = new Map();
        this.events = [];
        let rest = Buffer.alloc(0);
        this.process.stdio[4].on('data', (bytes) => {
            rest = Buffer.concat([rest, bytes]);
            for (let end; (end = rest.indexOf(0)) >= 0;
                rest = rest.subarray(end + 1))
                this.receive(JSON.parse(rest.subarray(0, end).toString()));
        });
        this.process.on('exit', () => {
            for (const { reject } of this.waiting.values())
                reject(new Error('the browser ended'));
        });
    }

    receive(message) {
        const waiting = this.waiting.get(message.id);
        if (!waiting) {
            this.events.push(message);
            return;
        }
        this.waiting.delete(message.id);
        if (message.error)
            waiting.reject(new Error(message.error.message));
        else
            waiting.resolve(message.result);
    }

    send(method, params = {}) {
        const id = this.next++;
        this.process.stdio[3].write(JSON.stringify({ id, method, params,
            sessionId: this.session }) + '\0');
        return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    }

    async start() {
        const { targetInfos } = await this.send('Target.getTargets');
        const page = targetInfos.find((t) => t.type === 'page');
        const { sessionId } = await this.send('Target.attachToTarget',
            { targetId: page.targetId, flatten: true });
        this.session = sessionId;
        for (const domain of ['Page', 'Runtime', 'Log', 'Network'])
            await this.send(domain + '.enable');
        await this.size(1400, 860);
    }

    size(width, height) {
        return this.send('Emulation.setDeviceMetricsOverride',
            { width, height, deviceScaleFactor: 1, mobile: false });
    }

    // Open a page; then `fetched` has the addresses that it fetched, and `events` its
    // errors.
    async open(file, hash = '') {
        await this.send('Page.navigate', { url: 'about:blank' });
        this.events = [];
        const url = pathToFileURL(file).href;
        await this.send('Page.navigate', { url: url + hash });
        for (let i = 0; i < 1200; i++) {
            if (await this.evaluate('document.readyState === "complete" && ' +
                'Boolean(document.querySelector("#timing")?.textContent)'))
                break;
            await new Promise((resolve) => setTimeout(resolve, 25));
        }
        this.fetched = this.events.filter((e) =>
            e.method === 'Network.requestWillBeSent')
            .map((e) => e.params.request.url.split('#')[0])
            .filter((u) => u !== url);
    }

    // Errors since the page was opened.
    errors() {
        return this.events.filter((e) =>
            e.method === 'Runtime.exceptionThrown' ||
            e.method === 'Log.entryAdded' ||
            (e.method === 'Runtime.consoleAPICalled' &&
                e.params.type === 'error')).map((e) =>
            e.params.exceptionDetails?.exception?.description ||
            e.params.entry?.text || 'console.error');
    }

    async evaluate(expression) {
        const { result, exceptionDetails } = await this.send(
            'Runtime.evaluate', { expression, returnByValue: true,
                awaitPromise: true });
        if (exceptionDetails)
            throw new Error(expression + ': ' +
                exceptionDetails.exception.description);
        return result.value;
    }

    async click(x, y) {
        for (const type of ['mousePressed', 'mouseReleased'])
            await this.send('Input.dispatchMouseEvent', { type, x, y,
                button: 'left', clickCount: 1 });
    }

    async key(key, text, modifiers = 0) {
        const windowsVirtualKeyCode = { Enter: 13, Escape: 27, Tab: 9,
            ArrowUp: 38, ArrowDown: 40, ArrowLeft: 37, ArrowRight: 39 }[key];
        await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key,
            code: key, text, windowsVirtualKeyCode, modifiers });
        await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key,
            code: key, windowsVirtualKeyCode, modifiers });
    }

    async type(text) {
        for (const letter of text)
            await this.key(letter, letter);
    }

    // Write a picture of the window, or of the part of it that is `clip`.
    async screenshot(name, clip) {
        if (!shots || (forDocs && !PICTURES[name]))
            return;
        await this.evaluate('new Promise((resolve) => requestAnimationFrame(() => ' +
            'requestAnimationFrame(resolve)))');
        const { data } = await this.send('Page.captureScreenshot',
            forDocs ? { format: 'webp', quality: 78, clip } : { clip });
        fs.writeFileSync(path.join(shots, forDocs ? PICTURES[name] + '.webp'
            : name + '.png'), Buffer.from(data, 'base64'));
    }

    async stop() {
        const ended = new Promise((resolve) => this.process.on('exit', resolve));
        this.send('Browser.close').catch(() => {});
        await ended;
    }
}

// --- pages -----------------------------------------------------------------

const inWork = (name) => path.join(work, name);

function pageOf(model, name, options = []) {
    execFileSync(byoc, ['check', model, '--html', inWork(name), ...options],
        { stdio: ['ignore', 'ignore', 'inherit'] });
    return inWork(name);
}

// Write a copy of the page `like`, with another ledger in it.
function pageWith(ledger, like, name) {
    const page = fs.readFileSync(like, 'utf8');
    const at = page.indexOf('id="ledger">') + 'id="ledger">'.length;
    const json = JSON.parse(page.slice(at, page.indexOf('</script>', at)));
    fs.writeFileSync(inWork(name), page.slice(0, at) +
        JSON.stringify({ ...json, ledger }).replaceAll('<', '\\u003c') +
        page.slice(page.indexOf('</script>', at)));
    return inWork(name);
}

// n nodes in blocks with skips; every fourth block has native nodes.
function largeLedger(n) {
    const nodes = [], regions = new Map();
    for (let i = 0; i < n; i++) {
        const block = Math.floor(i / 10), native = block % 4 === 3;
        const inputs = i ? [i - 1] : [];
        if (i % 10 === 9)
            inputs.unshift(i - 9);
        if (i % 97 === 96)
            inputs.unshift(i - 90);
        const region = 'dnnl_' + Math.floor(block / 4);
        const node = { name: 'block' + block + '/node' + i, op: ['Conv',
            'Relu', 'Add', 'Resize'][i % 4], where: native ? 'native' : 'dnnl',
        reason: native ? 'no-pattern' : 'offloaded', flops: 1000, inputs,
        tried: native ? [{ reason: 'no-pattern', backend: 'dnnl',
            detail: 'none' }] : [] };
        if (!native) {
            node.region = region;
            node.pattern = 'dnnl.conv';
            if (!regions.has(region))
                regions.set(region, { name: region, backend: 'dnnl',
                    outcome: 'kept', flops: 0, inputs: 1, outputs: 1,
                    nodes: [] });
            regions.get(region).nodes.push(i);
        }
        nodes.push(node);
    }
    return ledgerOf(nodes, [...regions.values()]);
}

function ledgerOf(nodes, regions, more = {}) {
    const of = (where) => nodes.filter((n) => n.where === where);
    const flops = (list) => list.reduce((sum, n) => sum + n.flops, 0);
    const kept = regions.filter((r) => r.outcome === 'kept').length;
    const names = [...new Set(regions.map((r) => r.backend)), 'native'];
    return { format: 'byoc-ledger', version: 4, model: 'made.onnx',
        threads: 2, cpu: 'x86_64', gates: [],
        backends: names.map((name) => ({ name, version: '1', regions: kept,
            nodes: of(name).length, flops: flops(of(name)) })),
        summary: { nodes: nodes.length, regions: kept,
            operators: nodes.filter((n) => n.region).length +
                of('native').length,
            offloaded: nodes.filter((n) => n.region).length,
            native: of('native').length, folded: of('folded').length,
            removed: of('removed').length, flops: flops(nodes),
            flops_offloaded: flops(nodes.filter((n) => n.region)) },
        regions, nodes, ...more };
}

// Names that must stay text; reverted regions, gates, times, a cycle.
function hostileLedger() {
    const names = ['</script><script>window.bad = 1</script>',
        '<img src=x onerror="window.bad = 2">', '"quoted" \\ \'single\'',
        '\u0001\u001f\n\ttab', '\ud83d\ude00 gr\u00fc\u00df \u202e',
        '&lt;b&gt;', 'constructor', '__proto__'];
    const nodes = names.map((name, i) => ({ name, op: i === 1 ? name : 'Op',
        where: ['dnnl', 'native', 'folded', 'removed'][i % 4],
        reason: ['offloaded', 'predicate', 'folded', 'removed'][i % 4],
        flops: i, inputs: i ? [i - 1, (i + 1) % names.length] : [],
        tried: i % 4 === 1 ? [{ reason: 'predicate', backend: name,
            pattern: name, detail: name }] : [] }));
    for (const i of [0, 4])
        Object.assign(nodes[i], { region: '__proto__', pattern: names[0],
            impl: names[1], backend_us: 12.5, native_us: 31 });
    return ledgerOf(nodes, [{ name: '__proto__', backend: 'dnnl',
        outcome: 'kept', flops: 4, inputs: 1, outputs: 1, nodes: [0, 4],
        backend_us: 25, native_us: 62 }, { name: names[0], backend: 'dnnl',
        outcome: 'reverted', reason: 'region-too-small', detail: names[1],
        flops: 1, inputs: 1, outputs: 1, nodes: [1] }], { gates: [{
        gate: 'require-offload', wanted: 95, found: 12, passed: false }] });
}

// --- checks ----------------------------------------------------------------
// No two boxes overlap, except an open region and its members. Wires end at
// boxes. Each node that is drawn has its own box or is in a collapsed region.
const CHECK_LAYOUT = `(() => {
    const inside = (a, b) => a.x >= b.x && a.y >= b.y &&
        a.x + a.w <= b.x + b.w + 0.01 && a.y + a.h <= b.y + b.h + 0.01;
    const boxes = [...arrangement.boxes].sort((a, b) => a.y - b.y);
    for (let i = 0; i < boxes.length; i++)
        for (let k = i + 1; k < boxes.length; k++) {
            const a = boxes[i], b = boxes[k];
            if (b.y >= a.y + a.h)
                break;
            const outer = a.open && b.item.container === a.item ? [b, a]
                : b.open && a.item.container === b.item ? [a, b] : null;
            if (outer ? !inside(...outer) : a.x < b.x + b.w && b.x < a.x + a.w)
                return 'overlap: ' + a.item.title + ', ' + b.item.title;
        }
    for (const node of graph.nodes) {
        const own = arrangement.at.get(node);
        const outer = arrangement.at.get(node.container);
        const expected = node.container ? (outer.open ? 1 : 0)
            : !node.eliminated || state.eliminated ? 1 : 0;
        if (Number(Boolean(own)) !== expected)
            return 'node ' + node.index + ' is not drawn once';
    }
    for (const w of arrangement.wires)
        if (w.points.some((p) => !Number.isFinite(p)))
            return 'a wire has a point without coordinates';
    return boxes.length === arrangement.at.size ? 'valid'
        : 'an item has two boxes';
})()`;

const CENTRE = (item) => `(() => {
    const b = arrangement.at.get(${item}), v = drawing.view;
    const r = document.getElementById('graph').getBoundingClientRect();
    return { x: r.left + (b.x + b.w / 2 - v.x) * v.scale,
        y: r.top + (b.y + (b.open ? 16 : b.h / 2) - v.y) * v.scale };
})()`;

async function clickItem(browser, item) {
    const { x, y } = await browser.evaluate(CENTRE(item));
    await browser.click(x, y);
}

async function testOpening(browser, file, name) {
    await browser.open(file);
    if (await browser.evaluate('state.open.size && (toggleAll(), true)'))
        await browser.screenshot(name + '-opened');
    same(name + ': fetches', browser.fetched, []);
    same(name + ': as it opens', await browser.evaluate(CHECK_LAYOUT), 'valid');
    const { offloaded, operators } = await browser.evaluate('graph.summary');
    const counts = (await browser.evaluate('document.getElementById("sum")' +
        '.innerText')).replace(/(?<=\d)[^0-9a-z](?=\d{3}\b)/gi, '')
        .replace(/[^0-9a-z]+/gi, ' '); // thousands are set apart
    check(name + ': the counts of the JSON', counts.startsWith(offloaded +
        ' of ' + operators + ' operator'), counts);
    await browser.screenshot(name);
    await browser.evaluate('toggleAll()');
    same(name + ': expanded', await browser.evaluate(CHECK_LAYOUT), 'valid');
    const shown = await browser.evaluate('arrangement.boxes.filter((b) => ' +
        'b.item.kind === "node").map((b) => b.item.index)');
    const nodes = await browser.evaluate('graph.nodes.filter((n) => !n.eliminated)' +
        '.map((n) => n.index)');
    same(name + ': every node once', shown.sort((a, b) => a - b), nodes);
    await browser.screenshot(name + '-expanded');
    await browser.evaluate('showEliminated(true)');
    same(name + ': with folded nodes', await browser.evaluate(CHECK_LAYOUT), 'valid');
    await browser.evaluate('showEliminated(false); toggleAll()');
    same(name + ': errors', browser.errors(), []);
}

async function testInteraction(browser, file) {
    await browser.open(file);
    same('one region opens', await browser.evaluate('state.open.size'), 1);
    await browser.evaluate('toggleAll()');
    const collapsed = await browser.evaluate('arrangement.boxes.length');
    await clickItem(browser, 'graph.regions[0]');
    check('a click expands',
        await browser.evaluate('arrangement.boxes.length') > collapsed);
    check('the panel shows the region', await browser.evaluate('document' +
        '.querySelector("aside h1").textContent === graph.regions[0].name'));
    await clickItem(browser, 'graph.regions[0].members[0]');
    same('a click selects', await browser.evaluate('state.selected.index'),
        await browser.evaluate('graph.regions[0].members[0].index'));
    const text = await browser.evaluate('document.querySelector("aside").innerText');
    const node = await browser.evaluate('({...state.selected, container: 0})');
    for (const key of ['name', 'op', 'where', 'reason', 'region', 'pattern'])
        check('the panel has the ' + key, text.includes(node[key]), node[key]);
    for (const words of ['float32 64\u00d732\u00d78\u00d78', 'kernel_shape=[3, 3]'])
        check('the panel has ' + words, text.includes(words), text);
    same('a box has attributes', await browser.evaluate('state.selected.attributeLine'),
        'kernel_shape 3\u00d73 \u00b7 pads 1');
    same('short types and attributes', await browser.evaluate('[sayType("Tensor[()' +
        ', int64]"), sayType("Seq[Tensor[(N, 3), float32]]"), sayType(""), ' +
        'sayAttributes("a=[1, 2], b=\\"x\\", pads=[0, 1]")]'),
    ['int64', 'Seq[float32 N\u00d73]', '', 'a 1\u00d72 \u00b7 b "x" ' +
        '\u00b7 pads 0\u00d71']);
    await browser.screenshot('selected');
    await clickItem(browser, 'graph.regions[0]');
    same('a click on the header collapses',
        await browser.evaluate('arrangement.boxes.length'),
        collapsed);

    await browser.key('Escape');
    same('Escape deselects', await browser.evaluate('state.selected'), null);
    await browser.key('/', '/');
    same('/ leads to the search', await browser.evaluate(
        'document.activeElement.id'), 'find');
    const op = await browser.evaluate('graph.regions[0].members[0].op');
    await browser.type(op.toLowerCase());
    const hits = await browser.evaluate('state.matches.size');
    check('search finds', hits > 0 && hits === await browser.evaluate(
        `graph.nodes.filter((n) => n.text.includes(${JSON.stringify(
            op.toLowerCase())})).length`), hits);
    check('and counts', await browser.evaluate('document.getElementById("count")' +
        '.textContent.startsWith(String(state.matches.size))'));
    await browser.screenshot('search');
    await browser.key('Enter', '\r');
    check('Enter goes to a match', await browser.evaluate(
        'state.matches.has(state.selected) && state.matchIndex === 0'));
    check('in view', await browser.evaluate('(() => { const b = ' +
        'arrangement.at.get(' +
        'state.selected), v = drawing.view, s = drawing.size(); return ' +
        'b.x >= v.x && b.y >= v.y && b.x + b.w <= v.x + s.w / v.scale && ' +
        'b.y + b.h <= v.y + s.h / v.scale; })()'));
    await browser.key('Escape');
    same('Escape ends the search', await browser.evaluate('state.matches'), null);
    same('and leads to the graph', await browser.evaluate(
        'document.activeElement.id'), 'graph');

    const before = await browser.evaluate('state.selected.index');
    await browser.key('ArrowDown');
    check('an arrow follows an edge', await browser.evaluate('graph.nodes[' +
        before + '].readers.includes(state.selected.index)'));
    await browser.key('ArrowUp');
    check('and back', await browser.evaluate('graph.nodes[' + before + '].readers' +
        '.some((i) => graph.nodes[i].inputs.includes(state.selected.index))'));
    await browser.key('Tab');
    check('Tab goes on to the buttons', await browser.evaluate(
        'document.activeElement.tagName === "BUTTON"'));
    const hash = await browser.evaluate('location.hash');
    await browser.open(file, hash);
    same('the address brings it back', await browser.evaluate(
        'state.selected.index'), before);
    await browser.evaluate('document.getElementById("theme").click()');
    check('the dark page is dark', await browser.evaluate('(() => { const [r] = ' +
        'getComputedStyle(document.body).backgroundColor.match(/\\d+/g); ' +
        'return isDark() === r < 60; })()'));
    await browser.screenshot('dark');
    same('errors', browser.errors(), []);
}

async function testHostileNames(browser, file) {
    await testOpening(browser, file, 'hostile');
    for (let i = 0; i < 8; i++) {
        await browser.evaluate(`select(graph.nodes[${i}], true)`);
        same('hostile: name ' + i, await browser.evaluate(
            'document.querySelector("aside .name").textContent'),
        await browser.evaluate(`graph.nodes[${i}].name`));
    }
    same('hostile: scripts that ran', await browser.evaluate('typeof window.bad'),
        'undefined');
    same('hostile: images', await browser.evaluate(
        'document.querySelectorAll("img").length'), 0);
    await browser.evaluate('select(graph.regions[0], true)');
    check('times of a region', (await browser.evaluate(
        'document.querySelector("aside").innerText')).includes('2.48\u00d7'));
    await browser.evaluate('select(null)');
    const text = await browser.evaluate('document.querySelector("aside").innerText');
    check('reverted', text.includes('region-too-small'));
    check('gates', text.includes('require-offload') && text.includes('95'));
    await browser.evaluate('filter("reverted", "reverted0")');
    same('reverted: its nodes', await browser.evaluate(
        '[...state.matches].map((n) => n.index)'), [1]);
    await testNarrowScreen(browser, 'narrow');
    same('hostile: errors', browser.errors(), []);
}

// The page that is open, on a narrow screen, and then wide again.
async function testNarrowScreen(browser, name) {
    await browser.size(420, 800);
    await browser.evaluate('new Promise((resolve) => setTimeout(resolve, 100))');
    await browser.screenshot(name);
    check(name + ': nothing is cut off', await browser.evaluate(
        'document.documentElement.scrollWidth <= 420'));
    await browser.size(1400, 860);
    await browser.evaluate('new Promise((resolve) => setTimeout(resolve, 100))');
}

// A selected node comes into view, from wherever the view was.
async function testSelectionInView(browser, name) {
    for (const expression of ['graph.nodes.filter((n) => !n.eliminated).pop()',
        'graph.nodes.find((n) => !n.eliminated)']) {
        await browser.evaluate(`select(${expression}, true)`);
        check(name + ': a selected node is in view', await browser.evaluate(
            '(() => { const b = arrangement.at.get(state.selected), v = ' +
            'drawing.view, s = drawing.size(); return b.x >= v.x && b.y >= v.y ' +
            '&& b.x + b.w <= v.x + s.w / v.scale && b.y + b.h <= v.y + s.h / ' +
            'v.scale; })()'));
    }
}

// Times of runs: of each step in the panel, at the nodes, and as a chart.
async function testTimes(browser) {
    const page = inWork('times.html'), chart = inWork('times.svg');
    execFileSync(byoc, ['bench', path.join(root,
        'examples/digits/digits.onnx'), '--html', page, '--svg', chart,
    '--seconds', '0.1'], { stdio: ['ignore', 'ignore', 'inherit'] });
    await testOpening(browser, page, 'times');
    const { sum, us, nodes, bars } = await browser.evaluate('({ us: graph.us, sum: ' +
        'graph.steps.reduce((t, s) => t + s.median_us, 0), nodes: graph.nodes' +
        '.reduce((t, n) => t + (n.us || 0), 0), bars: document' +
        '.querySelectorAll(".times .bar").length })');
    check('times: the sum is that of the nodes', us > 0 && us === sum &&
        Math.abs(nodes - us) < 1e-6 * us, [us, sum, nodes]);
    same('times: a bar for each step', bars, await browser.evaluate(
        'Math.min(15, graph.steps.length)'));
    await browser.evaluate('document.querySelector(".times button").click()');
    same('times: a step leads to its node', await browser.evaluate('state.selected' +
        ' === [...graph.steps].sort((a, b) => b.median_us - a.median_us)[0]' +
        '.largest'), true);
    check('times: the panel says so', (await browser.evaluate('document' +
        '.querySelector("aside").innerText')).includes('% of a run'));
    await testSelectionInView(browser, 'times');
    await browser.evaluate('select(null); fitStart()');
    await browser.screenshot('times-expanded');
    await testNarrowScreen(browser, 'times-narrow');
    same('times: errors', browser.errors(), []);
    await browser.send('Page.navigate', { url: pathToFileURL(chart).href });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const steps = await browser.evaluate('document.querySelectorAll("g rect").length');
    check('chart: a bar for the run, each operator, each step', steps >= 3 &&
        steps === 1 + await browser.evaluate('document.querySelectorAll(' +
        '"rect.operator").length + document.querySelectorAll("rect.backend, ' +
        'rect.native").length'), steps);
    const right = await browser.evaluate('Math.max(...[...document' +
        '.querySelectorAll("g rect")].map((r) => +r.getAttribute("x") + ' +
        '+r.getAttribute("width")))');
    check('chart: within the picture', right <= 1211, right);
    const [width, height] = await browser.evaluate('["width", "height"].map((name) ' +
        '=> +document.documentElement.getAttribute(name))');
    await browser.screenshot('times-chart', { x: 0, y: 0, width, height, scale: 1 });
}

// Two compiles of a model, side by side: one of them keeps Softmax and MaxPool native.
async function testComparison(browser) {
    const model = path.join(root, 'examples/digits/digits.onnx');
    const old = inWork('old.json'), page = inWork('compare.html');
    const options = { stdio: ['ignore', 'ignore', 'inherit'] };
    execFileSync(byoc, ['check', model, '--report', old, '--exclude',
        'Softmax'], options);
    execFileSync(byoc, ['check', model, '--html', page, '--against', old,
        '--exclude', 'MaxPool'], options);
    await testOpening(browser, page, 'compare');
    same('compare: what changed', await browser.evaluate('graph.nodes.filter((n) => ' +
        'n.change).map((n) => [n.op, n.change])'),
    [['MaxPool', 'lost'], ['Softmax', 'gained']]);
    same('compare: both have names for their regions', await browser.evaluate(
        '[...graph.regions, ...graph.old.regions].every((r) => r.line && ' +
        'r.operators)'),
    true);
    same('compare: the same again', await browser.evaluate('[graph.added.length, ' +
        'graph.removed.length]'), [0, 0]);
    const text = await browser.evaluate('document.querySelector("aside").innerText');
    for (const words of ['before', 'after', 'lost: a backend ran it',
        'gained: a backend runs it'])
        check('compare: the panel says ' + words, text.includes(words), text);
    await browser.evaluate('filter("change", "lost")');
    same('compare: a filter', await browser.evaluate(
        '[...state.matches].map((n) => n.op)'), ['MaxPool']);
    await browser.evaluate('clear(); select(graph.nodes.find((n) => n.change === ' +
        '"lost"), true); drawing.draw(); before.draw(drawing, state)');
    const apart = await browser.evaluate('(() => { const at = (d, p, n) => { const ' +
        'b = p.at.get(n) || p.at.get(n.container); return (b.y - d.view.y) * ' +
        'd.view.scale; }; return at(drawing, arrangement, state.selected) - ' +
        'at(before.drawing, before.arrangement, state.selected.before); })()');
    check('compare: the same node side by side', Math.abs(apart) < 1, apart);
    await testSelectionInView(browser, 'compare');
    await browser.evaluate('state.open.size || toggleAll(); select(graph.nodes.find(' +
        '(n) => n.change === "lost"), true)');
    await browser.screenshot('compare-selected');
    await testNarrowScreen(browser, 'compare-narrow');
    await browser.evaluate('select(graph.nodes.find((n) => n.op === "Mul"), true); ' +
        'drawing.draw(); before.draw(drawing, state); select(null)');
    const { x, y } = await browser.evaluate('(() => { const b = ' +
        'before.arrangement.boxes' +
        '.find((b) => b.item.op === "Mul"), v = before.drawing.view, r = ' +
        'document.getElementById("before").getBoundingClientRect(); return ' +
        '{ x: r.left + (b.x + b.w / 2 - v.x) * v.scale, y: r.top + (b.y + ' +
        'b.h / 2 - v.y) * v.scale }; })()');
    await browser.click(x, y);
    same('compare: a click in the older graph selects', await browser.evaluate(
        'state.selected?.op'), 'Mul');
    same('compare: errors', browser.errors(), []);
}

// Print how long a large page takes to open. The test does not bound the time, which
// depends on the load of the machine.
async function printOpeningTime(browser, file, n) {
    const times = [];
    for (let i = 0; i < 5; i++) {
        await browser.open(file);
        times.push(Number(/opened in (\d+) ms/.exec(await browser.evaluate(
            'document.getElementById("timing").textContent'))[1]));
    }
    times.sort((a, b) => a - b);
    await browser.open(file, '#open=*');
    same(n + ' nodes', await browser.evaluate('graph.nodes.length'), n);
    console.log('note: ' + n + ' nodes opened in ' + times[2] + ' ms (median ' +
        'of 5, ' + times[0] + ' to ' + times[4] + '); all expanded: ' +
        await browser.evaluate('document.getElementById("timing").textContent'));
}

async function main() {
    const browser = new Browser();
    await browser.start();
    const digits = pageOf(path.join(root, 'examples/digits/digits.onnx'),
        'digits.html');
    await testOpening(browser, digits, 'digits');
    await testInteraction(browser, digits);
    await testHostileNames(browser, pageWith(hostileLedger(), digits,
        'hostile.html'));
    const empty = pageWith(ledgerOf([], []), digits, 'empty.html');
    await testOpening(browser, empty, 'empty');
    await browser.evaluate('select(null); document.getElementById("graph").focus()');
    await browser.key('ArrowDown');
    same('nothing to select', await browser.evaluate('state.selected'), null);
    await testTimes(browser);
    await testComparison(browser);
    const large = pageWith(largeLedger(5000), digits, 'large.html');
    await printOpeningTime(browser, large, 5000);
    await testOpening(browser, large, 'large');
    for (const model of process.argv.slice(6)) {
        const name = path.basename(model).replace(/\.[a-z]*$/, '');
        await testOpening(browser, pageOf(model, name + '.html'), name);
    }
    await browser.stop();
    console.log(passed + ' passed, ' + failed + ' failed');
    process.exitCode = failed ? 1 : 0;
}

main().catch((error) => {
    console.log('FAILED: ' + error.stack);
    process.exit(1);
});
