// Arguments from Python, checked: what does not have the type, layout or size that a kernel reads raises.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace paceline {

namespace py = pybind11;

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

inline std::vector<float> floats(const py::object& object, const char* name, py::ssize_t size) {
  auto array = sized<float>(object, name, size);
  return {array.data(), array.data() + array.size()};
}

// None converts to a null pointer.
template <class T>
void required(const std::shared_ptr<T>& object, const char* name) {
  if (!object) throw py::type_error(std::string(name) + " must not be None");
}

}  // namespace paceline
