// The module's type Phase, and the functions of steps and progress.

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "instrument.h"
#include "native.h"
#include "persia/metrics/phase.h"
#include "persia/metrics/progress.h"

namespace persia::metrics::python {
namespace {

// With its name, shortened, for an exception that leaves it.
struct NamedPhase {
  Phase phase;
  char name[64];
};

// The attribute of an exception: the name of the first phase that it left. uncaught.py reads it.
constexpr const char* kLeftPhase = "_persia_metrics_phase";

PyObject* NewPhase(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {const_cast<char*>("name"), nullptr};
  PyObject* name;
  std::string_view text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Phase", names, &name) || !TextOf(name, "name", &text)) return nullptr;
  NamedPhase named{.phase = Phase(text), .name = {}};
  size_t size = std::min(text.size(), sizeof named.name - 1);
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  text.copy(named.name, size);
  return Make(type, true, named);
}

PyObject* EnterPhase(PyObject* self, PyObject*) {
  HandleOf<NamedPhase>(self)->phase.Enter();
  Py_INCREF(self);
  return self;
}

// Notes the first phase that the exception leaves. An exception that takes no attributes stays without.
void NoteLeft(const NamedPhase& named, PyObject* exception) {
  if (PyObject_IsInstance(exception, PyExc_Exception) != 1 || PyObject_HasAttrString(exception, kLeftPhase) == 1)
    return PyErr_Clear();
  PyObject* const name = PyUnicode_FromString(named.name);
  if (name == nullptr || PyObject_SetAttrString(exception, kLeftPhase, name) != 0) PyErr_Clear();
  Py_XDECREF(name);
}

// `error`: of `__exit__`: type, exception, traceback.
PyObject* LeavePhase(PyObject* self, PyObject* const* error, Py_ssize_t count) {
  const NamedPhase& named = *HandleOf<NamedPhase>(self);
  named.phase.Leave();
  if (count == 3 && error[1] != Py_None) NoteLeft(named, error[1]);
  Py_RETURN_NONE;
}

PyObject* ReadPhase(PyObject* self, PyObject*) { return ValueFrom(HandleOf<NamedPhase>(self)->phase.Value()); }

PyObject* CountStepsBy(PyObject*, PyObject* const* args, Py_ssize_t size) {
  unsigned long long count = 1;
  if (size > 1) {
    PyErr_Format(PyExc_TypeError, "count_steps() takes at most 1 argument (%zd given)", size);
    return nullptr;
  }
  if (size == 1 && !CountOf(args[0], &count)) return nullptr;
  CountSteps(count);
  Py_RETURN_NONE;
}

template <auto kFunction>
PyObject* Pass(PyObject*, PyObject* argument) {
  unsigned long long count = 0;
  if (!CountOf(argument, &count)) return nullptr;
  kFunction(count);
  Py_RETURN_NONE;
}

PyMethodDef phase_methods[] = {
    {"__enter__", &EnterPhase, METH_NOARGS, "__enter__($self, /)\n--\n\nThe process is in the phase from now on."},
    {"__exit__", AsCFunction(&LeavePhase), METH_FASTCALL, "__exit__($self, /, *error)\n--\n\nLeaves the phase."},
    {"value", &ReadPhase, METH_NOARGS,
     "value($self, /)\n--\n\nThe seconds that the process has spent in it, with those of now."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef phase_functions[] = {
    {"set_step", &Pass<&SetStep>, METH_O,
     "set_step(step, /)\n--\n\nThe step that the process trains now, as the program numbers it."},
    {"count_steps", AsCFunction(&CountStepsBy), METH_FASTCALL,
     "count_steps(count=1, /)\n--\n\nThe process has done this many more steps of training."},
    {"count_samples", &Pass<&CountSamples>, METH_O,
     "count_samples(count, /)\n--\n\nThe process has trained on this many more samples."},
    {"count_tokens", &Pass<&CountTokens>, METH_O,
     "count_tokens(count, /)\n--\n\nThe process has trained on this many more tokens."},
    {"set_total_steps", &Pass<&SetTotalSteps>, METH_O, "set_total_steps(steps, /)\n--\n\nThe training ends with this step."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddPhaseType(PyObject* module) {
  return AddType<NamedPhase>(module, "persia_metrics._native.Phase", &Guarded<&NewPhase>, phase_methods,
                             "A phase of the process.") &&
         PyModule_AddFunctions(module, phase_functions) == 0;
}

}  // namespace persia::metrics::python
