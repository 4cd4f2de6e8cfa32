// The extension module `persia_metrics._native`.
//
// The library is linked into it statically, with hidden symbols. So a process that also uses the C++ library has two segments,
// which the agent merges like those of two processes of one identity.

#include <cstdint>
#include <cstdlib>

#include "native.h"
#include "persia/metrics/internal/process.h"

namespace persia::metrics::python {
namespace {

int Execute(PyObject* module) {
  internal::SetLanguage("python");
  return PyModule_AddStringConstant(module, "__version__", PERSIA_METRICS_VERSION) == 0 && AddInstrumentTypes(module) &&
                 AddTextTypes(module) && AddFunctions(module) && AddCallables(module) && AddPhaseType(module) &&
                 AddMarkType(module) && AddClientValues(module) && AddReading(module)
             ? 0
             : -1;
}

// Python 3.12 loads a module into an interpreter with a lock of its own only if this slot says so. Earlier ones refuse a module
// with a slot that they do not know, so it is there at run time if Python is new enough. The module has no state: its objects
// belong to the interpreter that made them, and the library takes calls from any thread.
constexpr int kMultipleInterpreters = 3;               // Py_mod_multiple_interpreters
constexpr uintptr_t kPerInterpreterLockSupported = 2;  // Py_MOD_PER_INTERPRETER_GIL_SUPPORTED
constexpr int kLastSlot = 0;

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&Execute)}, {kLastSlot, nullptr}, {kLastSlot, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "persia_metrics._native",
                          "The library's handles, for use by persia_metrics only.",
                          0,
                          nullptr,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

// Whether this Python is 3.12 or newer: of "3.12.1 (main, ...".
bool KnowsMultipleInterpreters() {
  char* rest = nullptr;
  const long major = std::strtol(Py_GetVersion(), &rest, 10);
  const long minor = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
  return major > 3 || (major == 3 && minor >= 12);
}

}  // namespace
}  // namespace persia::metrics::python

PyMODINIT_FUNC PyInit__native() {
  using namespace persia::metrics::python;
  if (KnowsMultipleInterpreters()) slots[1] = {kMultipleInterpreters, reinterpret_cast<void*>(kPerInterpreterLockSupported)};
  return PyModuleDef_Init(&definition);
}
