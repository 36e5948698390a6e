// The Python face of the native kernels: plain arrays in, plain arrays out. Everything that could reach past the end of
// an array is checked here or in Layout, so that a wrong call raises instead of crashing.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pack.h"
#include "pool.h"
#include "program.h"
#include "sample.h"

namespace py = pybind11;
using namespace paceline;

namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style>;

// The array as it is: no silent conversion of type or layout.
template <class T>
Array<T> exact(const py::object& object, const char* name, py::ssize_t dimensions) {
  if (!py::isinstance<Array<T>>(object))
    throw py::type_error(std::string(name) + " must be a contiguous array of " + std::string(py::str(py::dtype::of<T>())));
  auto array = py::reinterpret_borrow<Array<T>>(object);
  if (reinterpret_cast<uintptr_t>(array.data()) % alignof(T))
    throw py::value_error(std::string(name) + " must be aligned in memory");
  if (array.ndim() != dimensions)
    throw py::value_error(std::string(name) + " must have " + std::to_string(dimensions) + " dimensions");
  return array;
}

template <class T>
Array<T> sized(const py::object& object, const char* name, py::ssize_t size) {
  auto array = exact<T>(object, name, 1);
  if (array.size() != size)
    throw py::value_error(std::string(name) + " must have " + std::to_string(size) + " entries");
  return array;
}

std::vector<float> floats(const py::object& object, const char* name, py::ssize_t size) {
  auto array = sized<float>(object, name, size);
  return {array.data(), array.data() + array.size()};
}

// None converts to a null pointer.
template <class T>
void required(const std::shared_ptr<T>& object, const char* name) {
  if (!object) throw py::type_error(std::string(name) + " must not be None");
}

// A weight that keeps its Python buffers alive.
struct OwnedWeight : Weight {
  py::object data_owner, bias_owner;
  using Weight::Weight;
};

size_t packed_bytes(Format format, int outputs, int inputs) {
  constexpr int most = 1 << 30;
  if (outputs < 1 || inputs < 1 || outputs > most || inputs > most)
    throw py::value_error("a weight has between 1 and 2^30 outputs and inputs");
  return Weight(format, outputs, inputs, nullptr, nullptr).stride * ((outputs + kBlock - 1) / kBlock);
}

std::shared_ptr<OwnedWeight> make_weight(Format format, int outputs, int inputs, py::object data, py::object bias) {
  auto bytes = sized<uint8_t>(data, "data", static_cast<py::ssize_t>(packed_bytes(format, outputs, inputs)));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 64) throw py::value_error("data must start at a cache line");
  const float* bias_data = bias.is_none() ? nullptr : sized<float>(bias, "bias", outputs).data();
  auto weight = std::make_shared<OwnedWeight>(format, outputs, inputs, bytes.data(), bias_data);
  weight->data_owner = data;
  weight->bias_owner = bias;
  return weight;
}

void pack(Format format, Source source, const py::object& rows, int inputs, int first, Part part, py::object out) {
  if (!packs(format, source)) throw py::value_error("this source cannot be packed into this format");
  auto data = exact<uint8_t>(rows, "rows", 2);
  auto target = exact<uint8_t>(out, "out", 1);
  if (source <= Source::q8_0 && inputs % kGroup) throw py::value_error("quantised rows need a multiple of 32 inputs");
  if (data.shape(1) != static_cast<py::ssize_t>(source_row_bytes(source, inputs)))
    throw py::value_error("rows do not have the bytes this source format needs");
  const py::ssize_t count = data.shape(0);
  if (first < 0 || count < 1 || first + count > (1 << 30) ||
      static_cast<size_t>(place(static_cast<int>(first + count) - 1, part).block + 1) * packed_bytes(format, 1, inputs) >
          static_cast<size_t>(target.size()))
    throw py::value_error("the rows do not fit the packed weight");
  uint8_t* memory = target.mutable_data();
  py::gil_scoped_release release;
  pack_rows(format, source, data.data(), static_cast<int>(count), inputs, first, part, memory);
}

Array<float> unpack(const OwnedWeight& weight, int first, int count) {
  if (first < 0 || count < 0 || first > weight.outputs - count) throw py::value_error("these rows do not exist");
  Array<float> out({count, weight.inputs});
  for (int i = 0; i < count; ++i) weight_row(weight, first + i, out.mutable_data(i));
  return out;
}

std::optional<NormParameters> norm(const py::object& weight, float eps, int size) {
  if (weight.is_none()) return std::nullopt;
  return NormParameters{floats(weight, "norm", size), eps};
}

void check_value(const Program& program, int value, int width, bool sampled, const char* name) {
  if (program.width(value) != width)
    throw py::value_error(std::string(name) + " has width " + std::to_string(program.width(value)) + " where " +
                          std::to_string(width) + " is needed");
  if (program.sampled(value) != sampled)
    throw py::value_error(std::string(name) + " must have " + (sampled ? "the sampled rows" : "all rows"));
}

void record_linear(Program& program, int in, std::shared_ptr<OwnedWeight> weight, const py::object& norm_weight,
                   float eps, int residual, bool gate, int out) {
  required(weight, "the weight");
  const bool sampled = program.sampled(in);
  check_value(program, in, weight->inputs, sampled, "the input");
  if (in == out) throw py::value_error("the output must not be the input");
  if (gate && weight->bias) throw py::value_error("a gated weight has no bias");
  const int outputs = gate ? weight->outputs / 2 : weight->outputs;
  const int width = program.width(out);
  check_value(program, out, width, sampled, "the output");
  if (gate ? weight->outputs % kBlock || width > outputs || width <= outputs - kLanes : width != outputs)
    throw py::value_error("the output's width does not fit the weight");
  if (residual >= 0) check_value(program, residual, width, sampled, "the residual");
  program.add<LinearOp>(in, std::move(weight), norm(norm_weight, eps, program.width(in)), residual, gate, out,
                        program.precision);
}

// The number of query heads in a projection for this cache.
int check_cache(const Program& program, int qkv, const std::shared_ptr<Cache>& cache, int layer) {
  required(cache, "the cache");
  const int d = cache->head_dim, width = program.width(qkv), query_heads = width / d - 2 * cache->heads;
  if (width % d || query_heads < 1 || query_heads % cache->heads)
    throw py::value_error("the projection's width does not fit the cache's heads");
  check_value(program, qkv, width, false, "the projection");
  if (layer < 0 || layer >= cache->layers) throw py::value_error("the cache has no such layer");
  return query_heads;
}

void record_rope(Program& program, int qkv, std::shared_ptr<Cache> cache, int layer, std::shared_ptr<Rotation> rotation,
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

void record_attention(Program& program, int qkv, std::shared_ptr<Cache> cache, int layer, int out) {
  const int query_heads = check_cache(program, qkv, cache, layer);
  check_value(program, out, query_heads * cache->head_dim, false, "the output");
  if (qkv == out) throw py::value_error("the output must not be the input");
  program.limit_blocks(cache->blocks);
  program.add<AttentionOp>(qkv, std::move(cache), layer, query_heads, out);
}

// batch: ids, positions, slots, sampled (int64), row_starts, contexts (int32), tables (int32, 2-d), causal (bool),
// ancestors (int64).
double run(Program& program, const py::tuple& batch, size_t begin, size_t end, int repeats) {
  if (batch.size() != 9) throw py::value_error("a batch has nine arrays");
  if (begin > end || end > program.size() || repeats < 1) throw py::value_error("there are no such ops");
  const auto ids = exact<int64_t>(batch[0], "ids", 1);
  const auto rows = ids.size();
  const auto positions = sized<int64_t>(batch[1], "positions", rows), slots = sized<int64_t>(batch[2], "slots", rows);
  const auto sampled = exact<int64_t>(batch[3], "sampled", 1);
  const auto starts = exact<int32_t>(batch[4], "row_starts", 1);
  const auto sequences = starts.size() - 1;
  if (sequences < 1) throw py::value_error("a pass needs at least one sequence");
  const auto contexts = sized<int32_t>(batch[5], "context_lens", sequences);
  const auto tables = exact<int32_t>(batch[6], "block_tables", 2);
  if (tables.shape(0) != sequences) throw py::value_error("block_tables must have one row per sequence");
  const auto causal = sized<bool>(batch[7], "causal", sequences);
  const auto ancestors = sized<int64_t>(batch[8], "ancestors", rows);
  const Batch b{rows, sampled.size(), sequences, tables.shape(1), ids.data(), positions.data(), slots.data(),
                sampled.data(), starts.data(), contexts.data(), tables.data(),
                reinterpret_cast<const uint8_t*>(causal.data()), ancestors.data()};
  py::gil_scoped_release release;
  return program.run(b, begin, end, repeats);
}

// A view of a value's first rows; the next run may write to it, but never takes it away.
py::array view(const Program& program, int value, int64_t rows) {
  using Memory = std::shared_ptr<std::vector<float>>;
  auto* memory = new Memory(program.data(value, rows));
  const py::capsule owner(memory, [](void* p) { delete static_cast<Memory*>(p); });
  const auto width = static_cast<py::ssize_t>(program.width(value));
  return py::array(py::dtype::of<float>(), {static_cast<py::ssize_t>(rows), width}, (*memory)->data(), owner);
}

using DrawTuple = std::tuple<uint64_t, uint64_t, double, int64_t, double, double>;
std::vector<int64_t> sample(const py::object& logits, const std::vector<DrawTuple>& draws) {
  const auto rows = exact<float>(logits, "logits", 2);
  if (rows.shape(0) != static_cast<py::ssize_t>(draws.size()) || rows.shape(1) < 1)
    throw py::value_error("logits need one row per draw");
  std::vector<int64_t> out;
  py::gil_scoped_release release;
  std::vector<float> scaled;
  for (size_t r = 0; r < draws.size(); ++r) {
    const auto [seed, position, temperature, top_k, top_p, min_p] = draws[r];
    out.push_back(sample_row(rows.data(r), rows.shape(1), {seed, position, temperature, top_k, top_p, min_p}, scaled));
  }
  return out;
}

}  // namespace

PYBIND11_MODULE(PACELINE_MODULE, m) {
  m.attr("ABI") = 3;  // compared by isa.py: raise both with every change of what this module takes or gives
  m.attr("LANES") = kLanes;
  m.attr("PAGE") = kPage;
  py::enum_<Format>(m, "Format", py::module_local())
      .value("q4", Format::q4).value("q4_128", Format::q4_128).value("q8", Format::q8).value("q8_128", Format::q8_128)
      .value("f32", Format::f32).value("f16", Format::f16).value("bf16", Format::bf16);
  py::enum_<Source>(m, "Source", py::module_local())
      .value("q4_0", Source::q4_0).value("q4_1", Source::q4_1).value("q8_0", Source::q8_0)
      .value("f32", Source::f32).value("f16", Source::f16).value("bf16", Source::bf16);
  py::enum_<Part>(m, "Part", py::module_local())
      .value("whole", Part::whole).value("gates", Part::gates).value("gated", Part::gated);
  py::enum_<KvFormat>(m, "KvFormat", py::module_local()).value("f16", KvFormat::f16).value("int8", KvFormat::int8);

  m.def("features", [] {  // instruction sets this processor has, of those kernels are compiled for
    std::vector<std::string> found{"generic"};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
      found.push_back("avx2");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
      found.push_back("avx512");
#endif
    return found;
  });
  m.def("packed_bytes", &packed_bytes);
  m.def("pack", &pack);
  m.def("unpack", &unpack);
  m.def("sample", &sample);

  py::class_<OwnedWeight, std::shared_ptr<OwnedWeight>>(m, "Weight", py::module_local())
      .def(py::init(&make_weight))
      .def_property_readonly("outputs", [](const OwnedWeight& w) { return w.outputs; })
      .def_property_readonly("inputs", [](const OwnedWeight& w) { return w.inputs; });
  py::class_<Pool, std::shared_ptr<Pool>>(m, "Pool", py::module_local())
      .def(py::init([](int threads) {
        if (threads < 1 || threads > 1024) throw py::value_error("a pool has between 1 and 1024 threads");
        return std::make_shared<Pool>(threads);
      }))
      .def_property_readonly("threads", &Pool::threads);
  py::class_<Rotation, std::shared_ptr<Rotation>>(m, "Rotation", py::module_local())
      .def(py::init([](const py::object& cos, const py::object& sin, int64_t positions) {
        const auto size = exact<float>(cos, "cos", 1).size();
        if (positions < 1 || positions > size) throw py::value_error("a rotation has at least one angle per position");
        return std::make_shared<Rotation>(Rotation{floats(cos, "cos", size), floats(sin, "sin", size), positions});
      }));
  py::class_<Cache, std::shared_ptr<Cache>>(m, "Cache", py::module_local())
      .def(py::init<KvFormat, int, int64_t, int, int>())
      .def_property_readonly("block_bytes", [](const Cache& c) { return c.block_bytes() * c.layers; })
      .def("move", [](Cache& cache, const py::object& source, const py::object& target) {
        const auto from = exact<int64_t>(source, "source", 1);
        const auto to = sized<int64_t>(target, "target", from.size());
        for (py::ssize_t i = 0; i < from.size(); ++i)
          for (const int64_t slot : {from.data()[i], to.data()[i]})
            if (slot < 0 || slot >= cache.blocks * kPage) throw py::value_error("a slot lies outside of the cache");
        py::gil_scoped_release release;
        cache.move(from.data(), to.data(), from.size());
      });
  py::class_<Program, std::shared_ptr<Program>>(m, "Program", py::module_local())
      .def(py::init([](std::shared_ptr<Pool> pool, float outlier) {
        required(pool, "the pool");
        if (!(outlier >= 0)) throw py::value_error("outlier must not be negative");
        return std::make_shared<Program>(std::move(pool), Precision{outlier});
      }))
      .def("value", &Program::value)
      .def("__len__", &Program::size)
      .def("embed", [](Program& p, std::shared_ptr<OwnedWeight> table, int out) {
        required(table, "the table");
        check_value(p, out, table->inputs, false, "the output");
        p.limit_vocabulary(table->outputs);
        p.add<EmbedOp>(std::move(table), out);
      })
      .def("select", [](Program& p, int in, int out) {
        check_value(p, in, p.width(in), false, "the input");
        check_value(p, out, p.width(in), true, "the output");
        p.add<SelectOp>(in, out);
      })
      .def("linear", &record_linear)
      .def("rope_store", &record_rope)
      .def("attention", &record_attention)
      .def("run", &run)
      .def("view", &view);
}
