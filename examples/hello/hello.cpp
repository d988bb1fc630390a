// SPDX-License-Identifier: Apache-2.0
// Compile a model and run it: 64 images from stdin, their digits to stdout.
//     c++ hello.cpp $(pkg-config --cflags --libs byoc) -o hello
//     tail -c +129 batch0.input_0.npy | ./hello digits.onnx
#include <algorithm>
#include <byoc/byoc.h>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    std::vector<float> images(64 * 8 * 8);
    int64_t shape[] = {64, 1, 8, 8};
    DLTensor in{images.data(), {kDLCPU, 0}, 4, {kDLFloat, 32, 1},
                shape,         nullptr,     0};
    DLTensor out{}; // without data: the state's own memory
    byoc_error err{BYOC_EINVAL, "usage: hello MODEL.onnx <IMAGES"};
    byoc_compiled *compiled = nullptr;
    byoc_model *model = nullptr;
    byoc_state *state = nullptr;
    std::cin.read(reinterpret_cast<char *>(images.data()),
                  static_cast<std::streamsize>(images.size() * sizeof(float)));
    if (argc != 2 || byoc_compile(argv[1], nullptr, &compiled, &err) ||
        byoc_compiled_load(compiled, nullptr, &model, &err) ||
        byoc_state_new(model, &state, &err) ||
        byoc_run(state, &in, 1, &out, 1, &err)) {
        std::cerr << err.text << '\n';
        return 2;
    }
    auto row = static_cast<const float *>(out.data);
    for (int64_t i = 0; i < out.shape[0]; i++, row += out.shape[1])
        std::cout << std::max_element(row, row + out.shape[1]) - row << '\n';
    byoc_state_free(&state);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
}
