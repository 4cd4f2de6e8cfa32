// What the files of the extension module `persia_metrics._native` share.
//
// A measurement from Python is one call of a method that CPython calls without making a tuple or a frame (METH_FASTCALL), on an
// object that holds a C++ handle. All calls of the library are noexcept; what raises here are arguments that are no numbers or
// no strings.
// Thread safety: the caller holds the GIL, but nothing relies on that: a handle may be used from any thread.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <string_view>

#include "persia/metrics/labels.h"

namespace persia::metrics::python {

// A method table holds functions of several types under one, as CPython prescribes.
template <class Method>
PyCFunction AsCFunction(Method* method) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method));
}

// Lets no C++ exception into the interpreter.
template <auto kFunction, class... Arguments>
PyObject* Guarded(Arguments... arguments) noexcept {
  try {
    return kFunction(arguments...);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// The module's types and functions; each returns false with a Python exception set.
bool AddInstrumentTypes(PyObject* module);
bool AddFunctions(PyObject* module);

// The text of a str, good for as long as the str is. False, with an exception set that names the `argument`, for anything else.
// A lone surrogate, which UTF-8 does not have, is an error here.
bool TextOf(PyObject* object, const char* argument, std::string_view* text);

// Reads a sequence of (name, value) pairs of str. In a value, which comes in a training step, a lone surrogate is written as an
// escape. False: an exception is set.
bool LabelsOf(PyObject* pairs, LabelSet* labels);

// The number that an object stands for: float, int, or what has __float__ (NumPy's, a tensor of one element).
inline bool NumberOf(PyObject* object, double* number) {
  if (PyFloat_CheckExact(object)) {
    *number = PyFloat_AS_DOUBLE(object);
    return true;
  }
  // Straight from the int: PyFloat_AsDouble would make a float first.
  *number = PyLong_CheckExact(object) ? PyLong_AsDouble(object) : PyFloat_AsDouble(object);
  return *number != -1.0 || PyErr_Occurred() == nullptr;
}

}  // namespace persia::metrics::python
