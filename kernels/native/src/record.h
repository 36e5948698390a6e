// Ops recorded from Python: each is checked against the values it reads and writes, so that a program that was recorded
// stays inside of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "cache_ops.h"
#include "program.h"

namespace paceline {

// A weight that keeps its Python buffers alive.
struct OwnedWeight : Weight {
  py::object data_owner, bias_owner;
  using Weight::Weight;
};

inline std::optional<NormParameters> norm(const py::object& weight, float eps, int size) {
  if (weight.is_none()) return std::nullopt;
  return NormParameters{floats(weight, "norm", size), eps};
}

inline void check_value(const Program& program, int value, int width, bool sampled, const char* name) {
  if (program.width(value) != width)
    throw py::value_error(std::string(name) + " has width " + std::to_string(program.width(value)) + " where " +
                          std::to_string(width) + " is needed");
  if (program.sampled(value) != sampled)
    throw py::value_error(std::string(name) + " must have " + (sampled ? "the sampled rows" : "all rows"));
}

inline void record_embed(Program& program, std::shared_ptr<OwnedWeight> table, int out) {
  required(table, "the table");
  check_value(program, out, table->inputs, false, "the output");
  program.limit_vocabulary(table->outputs);
  program.add<EmbedOp>(std::move(table), out);
}

inline void record_feed(Program& program, int out) {
  check_value(program, out, program.width(out), false, "the output");
  program.read_features(program.width(out));
  program.add<FeedOp>(out);
}

inline void record_select(Program& program, int in, int out) {
  check_value(program, in, program.width(in), false, "the input");
  check_value(program, out, program.width(in), true, "the output");
  program.add<SelectOp>(in, out);
}

inline void record_linear(Program& program, int in, std::shared_ptr<OwnedWeight> weight, const py::object& norm_weight,
                   float eps, int residual, bool gate, bool silu, int out) {
  required(weight, "the weight");
  const bool sampled = program.sampled(in);
  check_value(program, in, weight->inputs, sampled, "the input");
  if (in == out) throw py::value_error("the output must not be the input");
  if (gate && weight->bias) throw py::value_error("a gated weight has no bias");
  if (gate && silu) throw py::value_error("a gated result has no silu of its own");
  const int outputs = gate ? weight->outputs / 2 : weight->outputs;
  const int width = program.width(out);
  check_value(program, out, width, sampled, "the output");
  if (gate ? weight->outputs % kBlock || width > outputs || width <= outputs - kLanes : width != outputs)
    throw py::value_error("the output's width does not fit the weight");
  if (residual >= 0) check_value(program, residual, width, sampled, "the residual");
  program.add<LinearOp>(in, std::move(weight), norm(norm_weight, eps, program.width(in)), residual, gate,
                        silu, out, program.precision);
}

// The number of query heads in a projection for this cache.
inline int check_cache(const Program& program, int qkv, const std::shared_ptr<Cache>& cache, int layer) {
  required(cache, "the cache");
  const int d = cache->head_dim, width = program.width(qkv), query_heads = width / d - 2 * cache->heads;
  if (width % d || query_heads < 1 || query_heads % cache->heads)
    throw py::value_error("the projection's width does not fit the cache's heads");
  check_value(program, qkv, width, false, "the projection");
  if (layer < 0 || layer >= cache->layers) throw py::value_error("the cache has no such layer");
  return query_heads;
}

inline void record_rope(Program& program, int qkv, std::shared_ptr<Cache> cache, int layer, std::shared_ptr<Rotation> rotation,
                 const py::object& q_norm, float q_eps, const py::object& k_norm, float k_eps) {
  required(rotation, "the rotation");
  check_cache(program, qkv, cache, layer);
  const int d = cache->head_dim;
  if (static_cast<int64_t>(rotation->cos.size()) != rotation->positions * (d / 2))
    throw py::value_error("the rotation's angles do not fit the head size");
  program.limit_positions(rotation->positions);
  program.limit_blocks(cache->blocks);
  program.add<RopeStoreOp>(qkv, std::move(cache), layer, std::move(rotation), norm(q_norm, q_eps, d),
                           norm(k_norm, k_eps, d));
}

inline void record_attention(Program& program, int qkv, std::shared_ptr<Cache> cache, int layer, int out) {
  const int query_heads = check_cache(program, qkv, cache, layer);
  check_value(program, out, query_heads * cache->head_dim, false, "the output");
  if (qkv == out) throw py::value_error("the output must not be the input");
  program.limit_blocks(cache->blocks);
  program.add<AttentionOp>(qkv, std::move(cache), layer, query_heads, out);
}

}  // namespace paceline
