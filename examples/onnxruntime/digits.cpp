// SPDX-License-Identifier: Apache-2.0
// Classify the digits of ../digits with ONNX Runtime 1.23 or newer and byoc's
// execution provider; the classes go to stdout, one per line.
//     c++ -std=c++17 digits.cpp -I ORT/include -L ORT/lib -lonnxruntime
//     a.out PROVIDER digits.onnx batch0.input_0.npy
// PROVIDER is the absolute path of libbyoc_onnxruntime.so.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <unordered_map>
#include <vector>

#include <onnxruntime_cxx_api.h>

int main(int argc, char **argv)
try {
    if (argc != 4)
        throw std::runtime_error("usage: digits PROVIDER MODEL.onnx IMAGES.npy");
    Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "digits");
    env.RegisterExecutionProviderLibrary("byoc", argv[1]);

    std::vector<Ort::ConstEpDevice> devices;
    for (const auto &device : env.GetEpDevices())
        if (device.EpName() == std::string("ByocExecutionProvider"))
            devices.push_back(device);
    Ort::SessionOptions options;
    options.AppendExecutionProvider_V2(
        env, devices, std::unordered_map<std::string, std::string>{
                          {"partition_by", "greedy"}});
    Ort::Session session(env, argv[2], options);

    // a .npy file: the values follow a header, whose length is in bytes 8 and 9
    std::ifstream file(argv[3], std::ios::binary);
    std::string content(std::istreambuf_iterator<char>(file), {});
    if (content.size() < 10)
        throw std::runtime_error(std::string(argv[3]) +
                                 ": found another format, expected .npy");
    const size_t head = 10 + (content[8] & 255) + 256 * (content[9] & 255);
    std::vector<float> images((content.size() - head) / sizeof(float));
    std::copy_n(content.data() + head, images.size() * sizeof(float),
                reinterpret_cast<char *>(images.data()));

    const auto memory =
        Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const std::vector<int64_t> shape =
        session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
    const auto input = Ort::Value::CreateTensor<float>(
        memory, images.data(), images.size(), shape.data(), shape.size());
    const char *in = "image", *out = "probability";
    const auto results =
        session.Run(Ort::RunOptions{}, &in, &input, 1, &out, 1);

    const auto dims = results[0].GetTensorTypeAndShapeInfo().GetShape();
    const float *row = results[0].GetTensorData<float>();
    for (int64_t i = 0; i < dims[0]; i++, row += dims[1])
        std::printf("%td\n", std::max_element(row, row + dims[1]) - row);
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
