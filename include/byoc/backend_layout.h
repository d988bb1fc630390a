/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/backend_layout.h: the structs of byoc/backend.h, S(struct), and their
 * members, M(struct, member), in order. Made by scripts/abi; not to be edited.
 */
#ifndef BYOC_BACKEND_LAYOUT_H
#define BYOC_BACKEND_LAYOUT_H

/* clang-format off */
#define BYOC_LAYOUT(S, M) \
    S(byoc_ext) M(byoc_ext, type) M(byoc_ext, size) M(byoc_ext, next) \
    S(byoc_view) M(byoc_view, dtype) M(byoc_view, rank) M(byoc_view, dims) \
      M(byoc_view, data) M(byoc_view, bytes) \
    S(byoc_host) M(byoc_host, struct_size) M(byoc_host, abi) \
      M(byoc_host, ctx) M(byoc_host, acquire) M(byoc_host, release) \
      M(byoc_host, fail) M(byoc_host, fail_text) M(byoc_host, fail_code) \
      M(byoc_host, fail_free) M(byoc_host, log) M(byoc_host, threads) \
      M(byoc_host, parallel_for) M(byoc_host, match_type) \
      M(byoc_host, match_const) M(byoc_host, match_n_ops) \
      M(byoc_host, match_op) M(byoc_host, match_op_type) \
      M(byoc_host, match_find) M(byoc_host, match_ints) \
      M(byoc_host, match_floats) M(byoc_host, match_strings) \
      M(byoc_host, match_float) M(byoc_host, match_string) \
      M(byoc_host, match_say) M(byoc_host, match_show) \
      M(byoc_host, match_show_op) M(byoc_host, ext) M(byoc_host, graph_open) \
      M(byoc_host, graph_close) \
    S(byoc_pattern) M(byoc_pattern, name) M(byoc_pattern, pattern) \
      M(byoc_pattern, accept) \
    S(byoc_probe) M(byoc_probe, struct_size) M(byoc_probe, reference) \
      M(byoc_probe, impl) \
    S(byoc_layout) M(byoc_layout, struct_size) M(byoc_layout, reserved) \
      M(byoc_layout, data) M(byoc_layout, kernel) \
    S(byoc_region) M(byoc_region, struct_size) M(byoc_region, n_consts) \
      M(byoc_region, json) M(byoc_region, json_bytes) M(byoc_region, consts) \
      M(byoc_region, symbol) M(byoc_region, code) M(byoc_region, ext) \
    S(byoc_codes) M(byoc_codes, at) M(byoc_codes, scales) M(byoc_codes, rows) \
      M(byoc_codes, transposed) \
    S(byoc_region_codes) M(byoc_region_codes, head) M(byoc_region_codes, at) \
      M(byoc_region_codes, ctx) M(byoc_region_codes, widen) \
    S(byoc_graph_value) M(byoc_graph_value, kind) M(byoc_graph_value, index) \
      M(byoc_graph_value, dtype) M(byoc_graph_value, rank) \
      M(byoc_graph_value, dims) M(byoc_graph_value, count) \
      M(byoc_graph_value, bytes) M(byoc_graph_value, data) \
      M(byoc_graph_value, at) \
    S(byoc_graph_attr) M(byoc_graph_attr, name) M(byoc_graph_attr, n) \
      M(byoc_graph_attr, reserved) M(byoc_graph_attr, ints) \
      M(byoc_graph_attr, floats) M(byoc_graph_attr, strings) \
    S(byoc_graph_step) M(byoc_graph_step, name) M(byoc_graph_step, n_args) \
      M(byoc_graph_step, n_outs) M(byoc_graph_step, args) \
      M(byoc_graph_step, outs) M(byoc_graph_step, kernel) \
      M(byoc_graph_step, n_attrs) M(byoc_graph_step, attrs) \
    S(byoc_graph_operand) M(byoc_graph_operand, name) \
      M(byoc_graph_operand, value) M(byoc_graph_operand, reserved) \
    S(byoc_graph_kernel) M(byoc_graph_kernel, pattern) \
      M(byoc_graph_kernel, first) M(byoc_graph_kernel, n_steps) \
      M(byoc_graph_kernel, n_operands) M(byoc_graph_kernel, n_outs) \
      M(byoc_graph_kernel, operands) M(byoc_graph_kernel, outs) \
      M(byoc_graph_kernel, exact) M(byoc_graph_kernel, reserved) \
      M(byoc_graph_kernel, source) \
    S(byoc_graph) M(byoc_graph, struct_size) M(byoc_graph, n_values) \
      M(byoc_graph, n_steps) M(byoc_graph, n_kernels) M(byoc_graph, n_inputs) \
      M(byoc_graph, n_outputs) M(byoc_graph, symbol) M(byoc_graph, values) \
      M(byoc_graph, steps) M(byoc_graph, kernels) M(byoc_graph, inputs) \
      M(byoc_graph, outputs) M(byoc_graph, bytes) \
    S(byoc_blob) M(byoc_blob, struct_size) M(byoc_blob, kind) \
      M(byoc_blob, data) M(byoc_blob, bytes) \
    S(byoc_run_args) M(byoc_run_args, struct_size) M(byoc_run_args, n_inputs) \
      M(byoc_run_args, n_outputs) M(byoc_run_args, reserved) \
      M(byoc_run_args, inputs) M(byoc_run_args, outputs) \
      M(byoc_run_args, trace) M(byoc_run_args, trace_ctx) \
      M(byoc_run_args, cancel) M(byoc_run_args, ext) \
      M(byoc_run_args, scratch) \
    S(byoc_backend) M(byoc_backend, struct_size) M(byoc_backend, flags) \
      M(byoc_backend, name) M(byoc_backend, version) M(byoc_backend, compat) \
      M(byoc_backend, patterns) M(byoc_backend, n_patterns) \
      M(byoc_backend, reserved) M(byoc_backend, probe) \
      M(byoc_backend, layout) M(byoc_backend, cost) M(byoc_backend, compile) \
      M(byoc_backend, check_compat) M(byoc_backend, load) \
      M(byoc_backend, unload) M(byoc_backend, state_bytes) \
      M(byoc_backend, state_new) M(byoc_backend, state_free) \
      M(byoc_backend, run) M(byoc_backend, quiesce) M(byoc_backend, ext) \
      M(byoc_backend, describe) M(byoc_backend, scratch_bytes) \
    S(byoc_place) M(byoc_place, name) M(byoc_place, offset) \
      M(byoc_place, size)
/* clang-format on */

#endif
