// Declarations that the sources of the extension module `persia_metrics._native` share.
//
// A measurement from Python is one method call on an object that holds a C++ handle. CPython calls these methods without making
// a tuple or a frame (METH_FASTCALL). Calls of the library are noexcept; exceptions are raised for arguments of a wrong type or
// value only.
// The sources use the stable ABI of Python 3.10, so that one module serves all later Pythons.
//
// Any call of Python may give the GIL up. If the interpreter ends meanwhile, Python up to 3.13 ends the thread where it waits
// for the GIL, by pthread_exit, which unwinds the stack. So no function that calls Python is noexcept, and no destructor calls
// Python: references are released by statements.
//
// Thread safety: the caller holds the GIL, but a handle may be used from any thread without it.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "persia/metrics/labels.h"
#include "persia/metrics/values.h"

namespace persia::metrics::python {

// CPython's method tables hold functions of several types as one type.
template <class Method>
PyCFunction AsCFunction(Method* method) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method));
}

// Keeps C++ exceptions out of the interpreter. Not noexcept: see above.
template <auto kFunction, class... Arguments>
PyObject* Guarded(Arguments... arguments) {
  try {
    return kFunction(arguments...);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// Add the module's types and functions. False: a Python exception is set.
bool AddInstrumentTypes(PyObject* module);
bool AddFunctions(PyObject* module);
bool AddReading(PyObject* module);
bool AddTextTypes(PyObject* module);
bool AddCallables(PyObject* module);
bool AddPhaseType(PyObject* module);
bool AddMarkType(PyObject* module);
bool AddClientValues(PyObject* module);

// Gives a class its own descriptors of the native methods that it inherits. CPython calls a method by its fast path only if the
// descriptor belongs to the object's own class; otherwise `inc` takes half as long again. Overridden methods stay.
PyObject* OwnMethods(PyObject* module, PyObject* type);

// The text of a str, which is valid as long as the str. False for any other object, and for a str with a lone surrogate, which
// UTF-8 cannot encode: an exception that names the `argument` is set.
bool TextOf(PyObject* object, const char* argument, std::string_view* text);

// Reads a sequence of (name, value) pairs of str. A lone surrogate in a value is escaped: values come from training steps,
// which an exception would stop. False: an exception is set.
bool LabelsOf(PyObject* pairs, LabelSet* labels);
// The same labels, not owned.
std::vector<Label> ViewOf(const LabelSet& labels);

// A str. Bytes that are not UTF-8 are replaced.
PyObject* TextFrom(std::string_view text);

// What the methods `_read` return: of a histogram (count, sum, bounds, buckets), of a time cost (the histogram's, last), of a
// stream (count, sum, last); None instead of a value that was not set.
PyObject* ValueFrom(double value);
PyObject* ValueFrom(const std::optional<double>& value);
PyObject* ValueFrom(const HistogramValue& value);
PyObject* ValueFrom(const TimeCostValue& value);
PyObject* ValueFrom(const StreamValue& value);

// Sets the function of a gauge's or counter's object. A method.
template <class Handle>
PyObject* SetFunction(PyObject* self, PyObject* callable);

// The number of a float, an int, or an object with __float__ (of NumPy, or a tensor of one element). False: an exception is
// set.
inline bool NumberOf(PyObject* object, double* number) {
#ifndef Py_LIMITED_API  // the stable ABI has only the call
  if (PyFloat_CheckExact(object)) {
    *number = PyFloat_AS_DOUBLE(object);
    return true;
  }
#endif
  // PyFloat_AsDouble would first make a float object of an int.
  *number = PyLong_CheckExact(object) ? PyLong_AsDouble(object) : PyFloat_AsDouble(object);
  return *number != -1.0 || PyErr_Occurred() == nullptr;
}

// The whole number of an int, or of an object with __index__ (of NumPy, or a tensor of one element). False: an exception is
// set.
inline bool CountOf(PyObject* object, unsigned long long* count) {
  PyObject* index = PyNumber_Index(object);
  if (index == nullptr) return false;
  *count = PyLong_AsUnsignedLongLong(index);
  Py_DECREF(index);
  return PyErr_Occurred() == nullptr;
}

}  // namespace persia::metrics::python
