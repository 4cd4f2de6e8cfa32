// Declarations that the sources of the extension module `persia_metrics._native` share.
//
// A measurement from Python is one method call on an object that holds a C++ handle. CPython calls these methods without making
// a tuple or a frame (METH_FASTCALL). Calls of the library are noexcept; exceptions are raised for arguments of a wrong type or
// value only.
// The sources use the stable ABI of Python 3.10, so that one module serves all later Pythons.
// Thread safety: the caller holds the GIL, but a handle may be used from any thread without it.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <string_view>

#include "persia/metrics/labels.h"

namespace persia::metrics::python {

// CPython's method tables hold functions of several types as one type.
template <class Method>
PyCFunction AsCFunction(Method* method) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method));
}

// Keeps C++ exceptions out of the interpreter.
template <auto kFunction, class... Arguments>
PyObject* Guarded(Arguments... arguments) noexcept {
  try {
    return kFunction(arguments...);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// Add the module's types and functions. False: a Python exception is set.
bool AddInstrumentTypes(PyObject* module);
bool AddFunctions(PyObject* module);

// Gives a class its own descriptors of the native methods that it inherits. CPython calls a method by its fast path only if the
// descriptor belongs to the object's own class; otherwise `inc` takes half as long again. Overridden methods stay.
PyObject* OwnMethods(PyObject* module, PyObject* type);

// The text of a str, which is valid as long as the str. False for any other object, and for a str with a lone surrogate, which
// UTF-8 cannot encode: an exception that names the `argument` is set.
bool TextOf(PyObject* object, const char* argument, std::string_view* text);

// Reads a sequence of (name, value) pairs of str. A lone surrogate in a value is escaped: values come from training steps,
// which an exception would stop. False: an exception is set.
bool LabelsOf(PyObject* pairs, LabelSet* labels);

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

}  // namespace persia::metrics::python
