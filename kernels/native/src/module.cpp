// The Python face of the native kernels: plain arrays in, plain arrays out. Everything that could reach past the end of
// an array is checked here, in record.h or in Layout, so that a wrong call raises instead of crashing.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "pack.h"
#include "pool.h"
#include "program.h"
#include "rank.h"
#include "record.h"
#include "sample.h"

using namespace paceline;

namespace {

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

// batch: ids, positions, slots, sampled (int64), row_starts, contexts (int32), tables (int32, 2-d), causal (bool),
// ancestors (int64), features (float32, 2-d, or None).
double run(Program& program, const py::tuple& batch, size_t begin, size_t end, int repeats) {
  if (batch.size() != 10) throw py::value_error("a batch has ten arrays");
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
  std::optional<Array<float>> features;
  if (!batch[9].is_none()) {
    features = exact<float>(batch[9], "features", 2);
    if (features->shape(0) != rows) throw py::value_error("features must have one row per id");
  }
  const Batch b{rows, sampled.size(), sequences, tables.shape(1), ids.data(), positions.data(), slots.data(),
                sampled.data(), starts.data(), contexts.data(), tables.data(),
                reinterpret_cast<const uint8_t*>(causal.data()), ancestors.data(), features ? features->data() : nullptr,
                features ? features->shape(1) : 0};
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

Draw draw_of(const DrawTuple& draw) {
  const auto [seed, position, temperature, top_k, top_p, min_p] = draw;
  return {seed, position, temperature, top_k, top_p, min_p};
}

Array<float> drawn_rows(const py::object& logits, size_t draws) {
  auto rows = exact<float>(logits, "logits", 2);
  if (rows.shape(0) != static_cast<py::ssize_t>(draws) || rows.shape(1) < 1)
    throw py::value_error("logits need one row per draw");
  return rows;
}

std::vector<int64_t> sample(const py::object& logits, const std::vector<DrawTuple>& draws) {
  const auto rows = drawn_rows(logits, draws.size());
  std::vector<int64_t> out;
  py::gil_scoped_release release;
  std::vector<float> scaled;
  for (size_t r = 0; r < draws.size(); ++r)
    out.push_back(sample_row(rows.data(r), rows.shape(1), draw_of(draws[r]), scaled));
  return out;
}

// vocabulary: the id of each column (int64), or None where they are the ids.
std::pair<Array<int64_t>, Array<float>> rank(const py::object& logits, const py::object& vocabulary,
                                             const std::vector<DrawTuple>& draws, int64_t k) {
  const auto rows = drawn_rows(logits, draws.size());
  const py::ssize_t columns = rows.shape(1), count = rows.shape(0);
  if (k < 1 || k > columns) throw py::value_error("k must be between 1 and the number of columns");
  std::optional<Array<int64_t>> ids;
  if (!vocabulary.is_none()) {
    ids = sized<int64_t>(vocabulary, "vocabulary", columns);
    int64_t signs = 0;
    for (py::ssize_t i = 0; i < columns; ++i) signs |= ids->data()[i];
    if (signs < 0) throw py::value_error("a token id is negative");
  }
  std::pair<Array<int64_t>, Array<float>> out{Array<int64_t>({count, py::ssize_t{k}}), Array<float>({count, py::ssize_t{k}})};
  int64_t* tokens = out.first.mutable_data();
  float* probabilities = out.second.mutable_data();
  {
    py::gil_scoped_release release;
    RankScratch scratch;
    for (py::ssize_t r = 0; r < count; ++r)
      rank_row(rows.data() + r * columns, ids ? ids->data() : nullptr, columns, draw_of(draws[r]), k, scratch,
               tokens + r * k, probabilities + r * k);
  }
  return out;
}

}  // namespace

PYBIND11_MODULE(PACELINE_MODULE, m) {
  m.attr("ABI") = 4;  // compared by isa.py: raise both with every change of what this module takes or gives
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
  m.def("rank", &rank);

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
      .def("embed", &record_embed)
      .def("feed", &record_feed)
      .def("select", &record_select)
      .def("linear", &record_linear)
      .def("rope_store", &record_rope)
      .def("attention", &record_attention)
      .def("run", &run)
      .def("view", &view);
}
