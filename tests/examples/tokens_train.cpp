/* SPDX-License-Identifier: Apache-2.0 */
/* tokens_train TEXT PREFIX VOCABULARY [LINE...]: train a unigram model of
 * VOCABULARY pieces on the file TEXT, and write it to PREFIX.model. Prints "bos ID eos
 * ID", then, for each LINE, a line with the pieces that the library splits it into, as
 * ID@BYTE, where BYTE is the offset at which the piece begins.
 */
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <iostream>
#include <string>

static int failed(const sentencepiece::util::Status &status)
{
    std::cerr << "tokens_train: " << status.ToString() << "\n";
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        std::cerr << "usage: tokens_train TEXT PREFIX VOCABULARY [LINE...]\n";
        return 2;
    }
    const std::string prefix = argv[2];
    const auto trained = sentencepiece::SentencePieceTrainer::Train(
        "--input=" + std::string(argv[1]) + " --model_prefix=" + prefix +
        " --vocab_size=" + argv[3] + " --minloglevel=2 --num_threads=1");
    if (!trained.ok())
        return failed(trained);
    sentencepiece::SentencePieceProcessor p;
    const auto loaded = p.Load(prefix + ".model");
    if (!loaded.ok())
        return failed(loaded);
    std::cout << "bos " << p.bos_id() << " eos " << p.eos_id() << "\n";
    for (int i = 4; i < argc; i++) {
        for (const auto &piece : p.EncodeAsImmutableProto(argv[i]).pieces())
            std::cout << piece.id() << "@" << piece.begin() << " ";
        std::cout << "\n";
    }
}
