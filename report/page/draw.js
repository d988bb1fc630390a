// SPDX-License-Identifier: Apache-2.0
// draw.js: draws the boxes and wires in view on a canvas, as detailed as their
// size allows. Also draws the strip at the side, which shows all of a tall graph.
'use strict';

const FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif';
const STRIP = 76; // width of the strip in pixels

// Colours that colour-blind people can tell apart (after Okabe and Ito), for
// light and dark paper. Backends get theirs in the order of the ledger.
const PAINT = {
    light: {
        backends: ['#0072b2', '#009e73', '#b0609a', '#8a7a00', '#4d4dcc'],
        native: '#d55e00', eliminated: '#9aa3ab', paper: '#f7f8f9',
        box: '#ffffff', text: '#1b2026', soft: '#5c6670', wire: '#aeb7bf',
        mark: '#111418', good: '#00704f', bad: '#b23a00', heat: '#c2185b',
    },
    dark: {
        backends: ['#56b4e9', '#2fc79a', '#dd92c4', '#e3cf4a', '#9b9bff'],
        native: '#ff8a3d', eliminated: '#69737c', paper: '#14171a',
        box: '#1e2327', text: '#e8ebed', soft: '#9ba6af', wire: '#4a545c',
        mark: '#ffffff', good: '#2fc79a', bad: '#ff8a3d', heat: '#ff6d9e',
    },
};

// Mix `share` of colour b into a; colours are #rrggbb.
function mix(a, b, share) {
    const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
    return '#' + [0, 1, 2].map((i) =>
        Math.round(part(a, i) * (1 - share) + part(b, i) * share)
            .toString(16).padStart(2, '0')).join('');
}

// The colour of where a node is: a backend, native, folded or removed.
function colourOf(paint, backends, where) {
    if (isEliminated(where))
        return paint.eliminated;
    const i = backends.indexOf(where);
    return where === 'native' || i < 0 ? paint.native
        : paint.backends[i % paint.backends.length];
}

// The results of fit, by font, room, end that is cut, and text.
const fitCache = new Map();

// Cut `text` to `room` pixels: at its start if `start`, as for names, which
// differ at their ends; otherwise at its end.
function fit(pen, text, room, start) {
    const key = pen.font + room + (start ? '<' : '>') + text;
    let result = fitCache.get(key);
    if (result === undefined) {
        result = text;
        if (pen.measureText(text).width > room) {
            let low = 0, high = Math.min(text.length, 200);
            const cut = (n) => (start ? '\u2026' + text.slice(-n || Infinity)
                : text.slice(0, n) + '\u2026');
            while (low < high) {
                const n = (low + high + 1) >> 1;
                if (pen.measureText(cut(n)).width <= room)
                    low = n;
                else
                    high = n - 1;
            }
            result = cut(low);
        }
        fitCache.set(key, result);
    }
    return result;
}

// Add a wire to the pen's path, from the point at index `from` of
// [x, y, x, y, ...].
function trace(pen, points, from) {
    pen.moveTo(points[from], points[from + 1]);
    for (let i = from + 2; i < points.length; i += 2) {
        const x0 = points[i - 2], y0 = points[i - 1];
        const x1 = points[i], y1 = points[i + 1], bend = (y1 - y0) / 2;
        if (x0 === x1)
            pen.lineTo(x1, y1);
        else
            pen.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
    }
}

// A canvas with a graph. `view` is the graph's coordinates of the upper left
// corner, and the pixels per unit. `edge` is the visible part of the graph.
class Drawing {
    constructor(canvas) {
        this.canvas = canvas;
        this.isOlder = canvas.id !== 'graph'; // drawn for comparison: no strip
        this.pen = canvas.getContext('2d');
        this.view = { x: 0, y: 0, scale: 1 };
        this.strip = document.createElement('canvas');
    }

    // Set what draw() draws: {graph, arrangement, paint, selected, matches,
    // path}.
    show(scene) {
        this.scene = scene;
        this.stripStale = true;
    }

    size() {
        return { w: this.canvas.clientWidth, h: this.canvas.clientHeight };
    }

    toGraph(px, py) {
        const { x, y, scale } = this.view;
        return { x: px / scale + x, y: py / scale + y };
    }

    // The top box under a pixel.
    hit(px, py) {
        const { x, y } = this.toGraph(px, py);
        const { boxes } = this.scene.arrangement;
        for (let i = boxes.length - 1; i >= 0; i--) {
            const b = boxes[i];
            if (x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h)
                return b;
        }
        return null;
    }

    // Whether the graph is so much higher than the canvas that the strip helps.
    hasStrip() {
        const { w, h } = this.size(), { arrangement } = this.scene;
        return !this.isOlder && w > 480 &&
            arrangement.height * this.view.scale > 1.6 * h;
    }

    draw() {
        const { canvas, pen, view, scene } = this, { w, h } = this.size();
        const dots = window.devicePixelRatio || 1;
        if (canvas.width !== Math.round(w * dots) ||
            canvas.height !== Math.round(h * dots)) {
            canvas.width = Math.round(w * dots);
            canvas.height = Math.round(h * dots);
        }
        pen.setTransform(1, 0, 0, 1, 0, 0);
        pen.fillStyle = scene.paint.paper;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        const s = view.scale * dots;
        pen.setTransform(s, 0, 0, s, -view.x * s, -view.y * s);
        this.edge = { left: view.x, top: view.y,
            right: view.x + w / view.scale, bottom: view.y + h / view.scale };
        const boxes = scene.arrangement.boxes.filter((b) => this.inView(b));
        for (const box of boxes)
            if (box.open)
                this.drawOpen(box);
        this.drawWires();
        for (const box of boxes)
            if (!box.open)
                this.drawBox(box);
        if (this.hasStrip())
            this.drawStrip(dots);
        this.drawn = boxes.length;
    }

    inView(b) {
        const e = this.edge;
        return b.x < e.right && b.x + b.w > e.left && b.y < e.bottom &&
            b.y + b.h > e.top;
    }

    drawWires() {
        const { pen, scene, edge } = this, thin = 1 / this.view.scale;
        pen.lineWidth = Math.max(1, Math.min(1.25, thin));
        pen.strokeStyle = scene.matches ? mix(scene.paint.wire,
            scene.paint.paper, 0.5) : scene.paint.wire;
        pen.beginPath();
        for (const { points, drawFrom } of scene.arrangement.wires) {
            const start = points[drawFrom + 1];
            const high = Math.min(start, points[points.length - 1]);
            const low = Math.max(start, points[points.length - 1]);
            if (low >= edge.top && high <= edge.bottom)
                trace(pen, points, drawFrom);
        }
        pen.stroke();
        if (!scene.path)
            return;
        pen.lineWidth = Math.max(2, 1.5 * thin);
        pen.strokeStyle = scene.paint.mark;
        pen.beginPath();
        for (const wire of scene.path)
            trace(pen, wire.points, 0);
        pen.stroke();
    }

    colour(item) {
        const { paint, graph } = this.scene;
        return colourOf(paint, graph.names, item.backend || item.where);
    }

    // The share of paint.box in the colour of a box, which distinguishes
    // regions.
    tint(item) {
        const region = item.kind === 'region' ? item : item.container;
        return region ? [0.8, 0.7, 0.88][region.shade] : 1;
    }

    outline(box, radius, grow) {
        const { pen } = this;
        pen.beginPath();
        pen.roundRect(box.x - grow, box.y - grow, box.w + 2 * grow,
            box.h + 2 * grow, radius + grow);
    }

    mark(box, radius) {
        const { pen, scene, view } = this;
        if (scene.selected !== box.item)
            return;
        this.outline(box, radius, Math.max(3, 2 / view.scale));
        pen.lineWidth = Math.max(2, 2 / view.scale);
        pen.strokeStyle = scene.paint.mark;
        pen.stroke();
    }

    drawOpen(box) {
        const { pen, scene } = this, { paint } = scene;
        const colour = this.colour(box.item);
        this.outline(box, 12, 0);
        pen.fillStyle = mix(colour, paint.paper, 0.92);
        pen.fill();
        pen.lineWidth = Math.max(1, 0.8 / this.view.scale);
        pen.strokeStyle = mix(colour, paint.paper, 0.45);
        pen.stroke();
        this.mark(box, 12);
        if (this.view.scale < 0.3)
            return;
        const x = Math.max(box.x, this.edge.left) + BOX.pad;
        pen.textBaseline = 'middle';
        pen.font = '600 13px ' + FONT;
        pen.fillStyle = mix(colour, paint.text, 0.35);
        pen.fillText('\u2212', x, box.y + 18);
        pen.fillText(fit(pen, box.item.title, box.w - 90), x + 18,
            box.y + 18);
    }

    drawBox(box) {
        const { pen, scene, view } = this, { paint, matches } = scene;
        const { item } = box, colour = this.colour(item);
        const region = item.kind === 'region', radius = region ? 10 : 5;
        const count = region ? item.members.filter((m) => matches?.has(m))
            .length : matches?.has(item) ? 1 : 0;
        pen.globalAlpha = matches && !count ? 0.22 : 1;
        if (region && view.scale > 0.15)
            this.drawStack(box, colour);
        this.outline(box, radius, 0);
        pen.fillStyle = item.eliminated ? paint.paper
            : mix(colour, paint.box, this.tint(item));
        if (view.scale < 0.2)
            pen.fillStyle = colour;
        pen.fill();
        pen.lineWidth = 1;
        pen.strokeStyle = mix(colour, paint.paper, 0.35);
        pen.setLineDash(item.eliminated ? [4, 3] : []);
        pen.stroke();
        pen.setLineDash([]);
        if (view.scale >= 0.2)
            this.drawStripe(box, colour, radius);
        if (view.scale >= 0.32)
            (region ? this.writeRegion : this.writeNode).call(this, box);
        if (view.scale >= 0.2)
            this.drawHeat(box);
        this.drawChange(box, radius);
        if (count && region)
            this.writeMatchCount(box, count);
        pen.globalAlpha = 1;
        this.mark(box, radius);
    }

    // Draw a collapsed region as a stack of boxes.
    drawStack(box, colour) {
        const { pen, scene } = this;
        for (const k of [2, 1]) {
            pen.beginPath();
            pen.roundRect(box.x + 6 * k, box.y + box.h + 4 * k - 4,
                box.w - 12 * k, 4, [0, 0, 4, 4]);
            pen.fillStyle = mix(colour, scene.paint.box,
                this.tint(box.item));
            pen.fill();
            pen.lineWidth = 1;
            pen.strokeStyle = mix(colour, scene.paint.paper, 0.5);
            pen.stroke();
        }
    }

    // Draw the measured time as a bar on the lower edge: full for the slowest node,
    // or for a region that takes all of the run.
    drawHeat(box) {
        const { pen, scene } = this, { paint, graph } = scene;
        const full = box.item.kind === 'region' ? graph.us : graph.maxNodeUs;
        if (!(box.item.us > 0) || !(full > 0))
            return;
        pen.fillStyle = paint.heat;
        pen.fillRect(box.x + 8, box.y + box.h - 4,
            (box.w - 16) * Math.min(1, box.item.us / full), 3);
    }

    // Draw a frame around boxes that differ from the old ledger.
    drawChange(box, radius) {
        const { pen, scene, view } = this, { paint } = scene;
        const nodes = box.item.members || [box.item];
        const changes = nodes.map((n) => n.change || n.after?.change)
            .filter(Boolean);
        if (!changes.length)
            return;
        this.outline(box, radius, 1.5);
        pen.lineWidth = Math.max(3, 2 / view.scale);
        pen.strokeStyle = changes.includes('lost') ? paint.bad
            : changes.includes('gained') ? paint.good : paint.soft;
        pen.stroke();
    }

    drawStripe(box, colour, radius) {
        const { pen } = this;
        if (box.item.eliminated)
            return;
        pen.save();
        this.outline(box, radius, 0);
        pen.clip();
        pen.fillStyle = colour;
        pen.fillRect(box.x, box.y, 4, box.h);
        pen.restore();
    }

    writeNode(box) {
        const { pen, scene } = this, { item } = box, { paint } = scene;
        const us = timeOf(item);
        let room = box.w - 24;
        pen.textBaseline = 'middle';
        if (us > 0) {
            pen.font = '11px ' + FONT;
            pen.fillStyle = paint.soft;
            pen.textAlign = 'right';
            pen.fillText(sayTime(us), box.x + box.w - 9, box.y + 14);
            pen.textAlign = 'left';
            room -= pen.measureText(sayTime(us)).width + 8;
        }
        pen.font = '600 12.5px ' + FONT;
        pen.fillStyle = item.eliminated ? paint.soft : paint.text;
        pen.fillText(fit(pen, item.title, room), box.x + 13, box.y + 14);
        pen.font = '11px ' + FONT;
        pen.fillStyle = paint.soft;
        pen.fillText(fit(pen, item.label, box.w - 24, true), box.x + 13,
            box.y + 29);
        if (item.attributeLine)
            pen.fillText(fit(pen, item.attributeLine, box.w - 24), box.x + 13,
                box.y + 29 + BOX.line);
        this.writeType(box);
    }

    // Write the type of the first result beside the wire that leaves the box, with a
    // rim that covers wires that turn below it. Most are float32, which is left out.
    writeType(box) {
        const { pen, scene, view } = this, { types } = box.item;
        if (!types[0] || view.scale < 0.5)
            return;
        pen.font = '10px ' + FONT;
        const type = fit(pen, types[0].replace(/^float32 /, ''), box.w / 2 + 6);
        const x = box.x + box.w / 2 + 5, y = box.y + box.h + 9;
        pen.lineJoin = 'round';
        pen.lineWidth = 3;
        pen.strokeStyle = scene.paint.paper;
        pen.strokeText(type, x, y);
        pen.fillStyle = scene.paint.soft;
        pen.fillText(type, x, y);
    }

    writeRegion(box) {
        const { pen, scene } = this, { item } = box, { paint } = scene;
        const x = box.x + 15, room = box.w - 30;
        pen.textBaseline = 'middle';
        pen.font = '600 14px ' + FONT;
        pen.fillStyle = paint.text;
        pen.fillText('+', x, box.y + 17);
        pen.fillText(fit(pen, item.title, room - 18), x + 16, box.y + 17);
        pen.font = '12px ' + FONT;
        pen.fillText(fit(pen, item.line, room), x, box.y + 36);
        pen.fillStyle = paint.soft;
        pen.fillText(fit(pen, item.operators, room), x, box.y + 54);
    }

    // Write how many of a collapsed region's nodes match.
    writeMatchCount(box, count) {
        const { pen, scene, view } = this, { paint } = scene;
        if (view.scale < 0.2)
            return;
        pen.font = '600 11px ' + FONT;
        const w = pen.measureText(count).width + 14;
        pen.beginPath();
        pen.roundRect(box.x + box.w - w + 8, box.y - 9, w, 18, 9);
        pen.fillStyle = paint.mark;
        pen.fill();
        pen.fillStyle = paint.paper;
        pen.textAlign = 'center';
        pen.fillText(count, box.x + box.w - w / 2 + 8, box.y + 0.5);
        pen.textAlign = 'left';
    }

    // --- the strip ---------------------------------------------------------

    drawStrip(dots) {
        const { pen, strip, scene, view } = this, { w, h } = this.size();
        const { arrangement, paint } = scene;
        if (this.stripStale || strip.height !== Math.round(h * dots)) {
            strip.width = STRIP * dots;
            strip.height = Math.round(h * dots);
            this.paintStrip(strip.getContext('2d'), dots, h);
            this.stripStale = false;
        }
        pen.setTransform(1, 0, 0, 1, 0, 0);
        pen.drawImage(strip, (w - STRIP) * dots, 0);
        pen.setTransform(dots, 0, 0, dots, 0, 0);
        const unit = h / arrangement.height;
        const top = Math.max(0, view.y * unit);
        const end = Math.min(h, (view.y + h / view.scale) * unit);
        pen.fillStyle = mix(paint.mark, paint.paper, 0.5) + '2e';
        pen.fillRect(w - STRIP, top, STRIP, Math.max(4, end - top));
        pen.fillStyle = paint.mark;
        pen.fillRect(w - STRIP, top, 2, Math.max(4, end - top));
    }

    paintStrip(pen, dots, h) {
        const { arrangement, paint, matches, selected } = this.scene;
        pen.setTransform(dots, 0, 0, dots, 0, 0);
        pen.fillStyle = mix(paint.paper, paint.soft, 0.06);
        pen.fillRect(0, 0, STRIP, h);
        const sx = (STRIP - 16) / Math.max(arrangement.width, 1);
        const sy = h / Math.max(arrangement.height, 1);
        for (const box of arrangement.boxes) {
            const { item } = box, colour = this.colour(item);
            const matched = !matches || matches.has(item) || (!box.open &&
                item.members?.some((m) => matches.has(m)));
            pen.globalAlpha = matched ? 1 : 0.15;
            pen.fillStyle = box.open ? mix(colour, paint.paper, 0.85)
                : item === selected ? paint.mark : colour;
            pen.fillRect(8 + box.x * sx, box.y * sy,
                Math.max(1.5, box.w * sx), Math.max(1, box.h * sy));
        }
        pen.globalAlpha = 1;
    }

    // The y coordinate in the graph of a pixel of the strip; null: no strip there.
    stripTo(px, py) {
        const { w, h } = this.size();
        if (!this.hasStrip() || px < w - STRIP)
            return null;
        return py / h * this.scene.arrangement.height;
    }
}
