// What the module's instrument types share: an object that holds a C++ handle, and its constructor's arguments.
#pragma once

#include <new>
#include <string_view>
#include <type_traits>
#include <vector>

#include "native.h"
#include "persia/metrics/labels.h"

namespace persia::metrics::python {

template <class Handle>
struct Instrument {
  PyObject ob_base;
  char usable;  // 0: a family with label names; only its series record
  Handle handle;
};

// The object's handle. Null: it is a family, and an exception is set.
template <class Handle>
Handle* HandleOf(PyObject* self) {
  auto* object = reinterpret_cast<Instrument<Handle>*>(self);
  if (object->usable == 0) [[unlikely]] {
    PyErr_Format(PyExc_ValueError, "%R has label names: call labels() to get a series of it", self);
    return nullptr;
  }
  return &object->handle;
}

// The arguments of every constructor.
struct Naming {
  std::string_view group;
  std::string_view name;
  Description about;
  bool usable = true;
};

// False: an exception is set.
bool ReadNaming(PyObject* group, PyObject* name, PyObject* help, PyObject* unit, PyObject* labels, Naming* naming);
// Reads a tuple of numbers. False: an exception is set.
bool BoundsOf(PyObject* tuple, std::vector<double>* bounds);

template <class Handle>
PyObject* Make(PyTypeObject* type, bool usable, const Handle& handle) {
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self != nullptr) {
    auto* object = reinterpret_cast<Instrument<Handle>*>(self);
    object->usable = usable ? 1 : 0;
    new (&object->handle) Handle(handle);
  }
  return self;
}

template <class Handle>
void Destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<Instrument<Handle>*>(self)->handle.~Handle();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// Adds the type to the module. False: an exception is set.
template <class Handle>
bool AddType(PyObject* module, const char* name, newfunc make, PyMethodDef* methods, const char* doc) {
  static_assert(std::is_standard_layout_v<Instrument<Handle>>);
  // CPython frees an object faster without a function for it.
  constexpr bool kTrivial = std::is_trivially_destructible_v<Handle>;
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {kTrivial ? 0 : Py_tp_dealloc, kTrivial ? nullptr : reinterpret_cast<void*>(&Destroy<Handle>)},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(Instrument<Handle>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  const bool added = type != nullptr && PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) == 0;
  Py_XDECREF(type);
  return added;
}

}  // namespace persia::metrics::python
