// SPDX-License-Identifier: Apache-2.0
// times.js: adds the times of a profile (`byoc bench --html`) to the graph's
// nodes and regions.
'use strict';

// Set `steps` of each node to the steps that compute it, and `us` of nodes and
// regions to their times. The time of a step that computes several nodes is
// added to the node with the most work.
function addTimes(graph, profile) {
    const byName = new Map(graph.nodes.map((n) => [n.name || '#' + n.index, n]));
    let total = 0;
    graph.steps = profile.steps.map((step) => {
        const nodes = step.nodes.split(',').map((name) =>
            byName.get(name.trim())).filter(Boolean);
        const largest = nodes.reduce((best, n) => (!best || n.flops > best.flops
            ? n : best), null);
        total += step.median_us;
        for (const node of nodes)
            (node.steps ||= []).push(step);
        if (largest)
            largest.us = (largest.us || 0) + step.median_us;
        const region = largest?.container;
        if (region)
            region.us = (region.us || 0) + step.median_us;
        return Object.assign(step, { members: nodes, largest });
    });
    graph.profile = profile;
    graph.us = total;
    graph.maxNodeUs = Math.max(...graph.nodes.map((n) => n.us || 0));
}

// The time of a node: measured in a run, or by partitioning by cost.
const timeOf = (node) => node.us || (node.steps ? 0
    : node.region ? node.backend_us : node.native_us);
