// The extension module `persia_metrics._native`.
//
// The library is linked into it statically, with hidden symbols. So a process that also uses the C++ library has two segments,
// which the agent merges like those of two processes of one identity.

#include "native.h"
#include "persia/metrics/internal/language.h"

namespace persia::metrics::python {
namespace {

int Execute(PyObject* module) {
  internal::SetLanguage("python");
  return PyModule_AddStringConstant(module, "__version__", PERSIA_METRICS_VERSION) == 0 && AddInstrumentTypes(module) &&
                 AddFunctions(module)
             ? 0
             : -1;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&Execute)}, {0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "persia_metrics._native",
                          "The library's handles, for use by persia_metrics only.",
                          0,
                          nullptr,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace persia::metrics::python

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&persia::metrics::python::definition); }
