// The module's type Phase, and the function set_step.

#include <string_view>

#include "instrument.h"
#include "native.h"
#include "persia/metrics/phase.h"

namespace persia::metrics::python {
namespace {

PyObject* NewPhase(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {const_cast<char*>("name"), nullptr};
  PyObject* name;
  std::string_view text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Phase", names, &name) || !TextOf(name, "name", &text)) return nullptr;
  return Make(type, true, Phase(text));
}

PyObject* EnterPhase(PyObject* self, PyObject*) {
  HandleOf<Phase>(self)->Enter();
  Py_INCREF(self);
  return self;
}

// Of `leave`, and of `__exit__`, whose arguments tell nothing that matters here.
PyObject* LeavePhase(PyObject* self, PyObject* const*, Py_ssize_t) {
  HandleOf<Phase>(self)->Leave();
  Py_RETURN_NONE;
}

PyObject* ReadPhase(PyObject* self, PyObject*) { return ValueFrom(HandleOf<Phase>(self)->Value()); }

PyObject* SetStepTo(PyObject*, PyObject* step) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(step);
  if (PyErr_Occurred() != nullptr) return nullptr;
  SetStep(number);
  Py_RETURN_NONE;
}

PyMethodDef phase_methods[] = {
    {"__enter__", &EnterPhase, METH_NOARGS, "__enter__($self, /)\n--\n\nThe process is in the phase from now on."},
    {"__exit__", AsCFunction(&LeavePhase), METH_FASTCALL, "__exit__($self, /, *error)\n--\n\nLeaves the phase."},
    {"value", &ReadPhase, METH_NOARGS,
     "value($self, /)\n--\n\nThe seconds that the process has spent in it, with those of now."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef phase_functions[] = {{"set_step", &SetStepTo, METH_O,
                                  "set_step(step, /)\n--\n\nThe step that the process trains now, as the program numbers it."},
                                 {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddPhaseType(PyObject* module) {
  return AddType<Phase>(module, "persia_metrics._native.Phase", &Guarded<&NewPhase>, phase_methods,
                        "A phase of the process.") &&
         PyModule_AddFunctions(module, phase_functions) == 0;
}

}  // namespace persia::metrics::python
