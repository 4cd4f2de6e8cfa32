// The module's functions of progress: count_steps, count_samples, count_tokens and set_total_steps.

#include "native.h"
#include "persia/metrics/progress.h"

namespace persia::metrics::python {
namespace {

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

PyMethodDef progress_functions[] = {
    {"count_steps", AsCFunction(&CountStepsBy), METH_FASTCALL,
     "count_steps(count=1, /)\n--\n\nThe process has done this many more steps of training."},
    {"count_samples", &Pass<&CountSamples>, METH_O,
     "count_samples(count, /)\n--\n\nThe process has trained on this many more samples."},
    {"count_tokens", &Pass<&CountTokens>, METH_O,
     "count_tokens(count, /)\n--\n\nThe process has trained on this many more tokens."},
    {"set_total_steps", &Pass<&SetTotalSteps>, METH_O, "set_total_steps(steps, /)\n--\n\nThe training ends with this step."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddProgressFunctions(PyObject* module) { return PyModule_AddFunctions(module, progress_functions) == 0; }

}  // namespace persia::metrics::python
