// A pass with every op, run by several threads under ThreadSanitizer: the pool's barriers must order all that the ops
// share. Prints what differs from one thread's result, and returns 1 then.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "pack.h"
#include "pool.h"
#include "cache_ops.h"
#include "program.h"

using namespace paceline;

namespace {

constexpr int kHidden = 48, kHeads = 6, kKeyHeads = 2, kHeadDim = 16, kInner = 40, kVocabulary = 60, kBlocks = 40;
constexpr int kPositions = 16 * kBlocks;
constexpr Precision kPrecision{4.0f};

struct Model {
  std::vector<std::vector<uint8_t>> memory;

  std::shared_ptr<Weight> weight(Format format, int outputs, int inputs, bool gate = false) {
    const int padded = gate ? 2 * ((outputs / 2 + kLanes - 1) / kLanes * kLanes) : outputs;
    const Weight shape(format, padded, inputs, nullptr, nullptr);
    memory.emplace_back(shape.stride * shape.blocks() + 64);
    uint8_t* data = memory.back().data();
    data += (64 - reinterpret_cast<uintptr_t>(data) % 64) % 64;
    std::vector<float> rows(static_cast<size_t>(outputs) * inputs);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>((i * 2654435761u >> 8) % 1000) / 4000 - 0.125f;
    const auto put = [&](int first, int count, Part part) {
      pack_rows(format, Source::f32, reinterpret_cast<const uint8_t*>(rows.data() + first * inputs), count, inputs, 0, part,
                data);
    };
    if (gate) {
      put(0, outputs / 2, Part::gates);
      put(outputs / 2, outputs / 2, Part::gated);
    } else {
      put(0, outputs, Part::whole);
    }
    return std::make_shared<Weight>(format, padded, inputs, data, nullptr);
  }
};

struct Decoder {
  Model model;
  std::shared_ptr<Cache> cache;
  Program program;
  int logits;

  Decoder(int threads, KvFormat kv)
      : cache(std::make_shared<Cache>(kv, 1, kBlocks, kKeyHeads, kHeadDim)),
        program(std::make_shared<Pool>(threads), kPrecision) {
    const int width = (kHeads + 2 * kKeyHeads) * kHeadDim;
    NormParameters norm{std::vector<float>(kHidden, 1.0f), 1e-5f};
    norm.weight[40] = 20;  // an outlier: second terms in one group of two
    auto rotation = std::make_shared<Rotation>(Rotation{std::vector<float>(kPositions * kHeadDim / 2, 0.8f),
                                                        std::vector<float>(kPositions * kHeadDim / 2, 0.6f), kPositions});
    const int x = program.value(kHidden, false), qkv = program.value(width, false);
    const int seen = program.value(kHeads * kHeadDim, false), inner = program.value(kInner, false);
    const int last = program.value(kHidden, true), fed = program.value(kHidden, false);
    logits = program.value(kVocabulary, true);
    auto table = model.weight(Format::f32, kVocabulary, kHidden);
    program.add<EmbedOp>(table, x);
    program.add<FeedOp>(fed);
    program.read_features(kHidden);
    program.add<LinearOp>(fed, model.weight(Format::q8, kHidden, kHidden), std::nullopt, x, false, true, x, kPrecision);
    program.add<LinearOp>(x, model.weight(Format::q4, width, kHidden), norm, -1, false, false, qkv, kPrecision);
    program.add<RopeStoreOp>(qkv, cache, 0, rotation, std::nullopt, std::nullopt);
    program.add<AttentionOp>(qkv, cache, 0, kHeads, seen);
    program.add<LinearOp>(seen, model.weight(Format::q8, kHidden, kHeads * kHeadDim), std::nullopt, x, false, false, x,
                          kPrecision);
    program.add<LinearOp>(x, model.weight(Format::q4, 2 * kInner, kHidden, true), norm, -1, true, false, inner, kPrecision);
    program.add<LinearOp>(inner, model.weight(Format::q4_128, kHidden, kInner), std::nullopt, x, false, false, x, kPrecision);
    program.add<SelectOp>(x, last);
    program.add<LinearOp>(last, table, norm, -1, false, false, logits, kPrecision);
    program.limit_vocabulary(kVocabulary);
    program.limit_positions(kPositions);
    program.limit_blocks(kBlocks);
  }

  // A chain of `rows` rows after `context` others, or a tree of one root with leaves.
  std::vector<float> run(int64_t context, int64_t rows, bool tree) {
    std::vector<int64_t> ids(rows), positions(rows), slots(rows), sampled{0, rows - 1}, ancestors(rows);
    std::vector<int32_t> starts{0, static_cast<int32_t>(rows)}, contexts{static_cast<int32_t>(context)}, tables(kBlocks);
    for (int i = 0; i < kBlocks; ++i) tables[i] = (i * 7) % kBlocks;  // 7 and 40 share no factor
    for (int64_t r = 0; r < rows; ++r) {
      ids[r] = (context + r) * 13 % kVocabulary;
      positions[r] = tree ? context + (r > 0) : context + r;
      slots[r] = tables[(context + r) / kPage] * kPage + (context + r) % kPage;
      ancestors[r] = 1 | int64_t{1} << r % 64;
    }
    std::vector<float> features(rows * kHidden);
    for (size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(i % 17) / 17;
    const uint8_t causal = !tree;
    const Batch batch{rows, 2, 1, kBlocks, ids.data(), positions.data(), slots.data(), sampled.data(), starts.data(),
                      contexts.data(), tables.data(), &causal, ancestors.data(), features.data(), kHidden};
    program.run(batch, 0, program.size(), 1);
    const auto memory = program.data(logits, 2);
    return {memory->begin(), memory->begin() + 2 * kVocabulary};
  }
};

struct Step { int64_t context, rows; bool tree; };
// Few rows and many, several chunks of keys, trees that gather; workers spin in between, or sleep.
constexpr Step kSteps[] = {{0, 70, false}, {70, 1, false}, {71, 4, true}, {71, 3, false}, {74, 9, true},
                           {74, 200, false}, {274, 1, false}, {275, 64, true}, {275, 5, false}};

}  // namespace

int main() {
  int wrong = 0;
  for (const KvFormat kv : {KvFormat::f16, KvFormat::int8}) {
    Decoder one(1, kv), two(2, kv), three(3, kv);
    for (int turn = 0; turn < 3; ++turn) {
      for (const auto& step : kSteps) {
        const auto expected = one.run(step.context, step.rows, step.tree);
        for (Decoder* other : {&two, &three}) {
          const auto found = other->run(step.context, step.rows, step.tree);
          if (std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)) == 0) continue;
          std::printf("%lld rows after %lld differ\n", static_cast<long long>(step.rows), static_cast<long long>(step.context));
          ++wrong;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(turn * 5));  // long enough to fall asleep
    }
  }
  // Pools that come and go, used once or not at all.
  for (int i = 0; i < 20; ++i) {
    Pool pool(3);
    std::atomic<int> calls{0};
    if (i % 2) pool.run([&](int) { pool.barrier(), ++calls, pool.barrier(); });
    wrong += calls != (i % 2 ? 3 : 0);
  }
  // Two callers of one pool take turns.
  Pool pool(3);
  int64_t total = 0;  // guarded by the pool alone
  std::vector<std::thread> callers;
  for (int c = 0; c < 2; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) pool.run([&](int thread) { if (thread == 0) ++total; });
    });
  for (auto& caller : callers) caller.join();
  wrong += total != 100;
  std::puts(wrong ? "wrong results" : "all threads agree");
  return wrong ? 1 : 0;
}
