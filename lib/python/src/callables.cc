// Python callables as the functions of gauges and counters, which a thread of the library calls.
//
// Rules:
//   1. A thread holds no mutex of the library while it waits for Python's global lock, and a Python thread releases that lock
//      while it waits for a running function.
//   2. The library may destroy a function in any thread, also under a mutex. So the callable is abandoned then, and released
//      by the next thread here that holds the global lock.
//   3. Before the interpreter ends, its exit handler calls EndFunctions. A function that still hangs then loses its thread at
//      its next use of the interpreter: Python ends the thread by pthread_exit, or, from 3.14 on, stops it. So the frames below
//      have no destructor that uses Python.
//   4. Functions are the main interpreter's only: Python up to 3.11 aborts if a subinterpreter ends while a thread of ours is
//      in it.
// A forked child has no functions, and does not release those of its parent.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "callbacks.h"
#include "instrument.h"
#include "native.h"
#include "persia/metrics/callback.h"
#include "persia/metrics/instruments.h"

namespace persia::metrics::python {
namespace {

struct Callable {
  PyObject* object;  // owned
  Callable* next = nullptr;
};

std::atomic<Callable*> abandoned = nullptr;

void Abandon(Callable* callable) noexcept {
  callable->next = abandoned.load(std::memory_order_relaxed);
  // Release: pairs with the acquire in ReleaseAbandoned, which reads the callable.
  while (!abandoned.compare_exchange_weak(callable->next, callable, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// REQUIRES: the thread holds the main interpreter's global lock.
void ReleaseAbandoned() {
  Callable* next = abandoned.exchange(nullptr, std::memory_order_acquire);
  while (Callable* callable = next) {
    next = callable->next;
    Py_DECREF(callable->object);
    delete callable;
  }
}

// The exception that is set, as `<function f at 0x7f...>: ValueError: text`. Clears it.
std::string TakeError(PyObject* callable) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* name = PyObject_GetAttrString(type, "__name__");
  PyObject* line = name == nullptr ? nullptr : PyUnicode_FromFormat("%R: %U: %S", callable, name, value);
  std::string_view text = "an exception without a text";
  if (line == nullptr || !TextOf(line, "the error", &text)) PyErr_Clear();
  std::string copy(text);
  for (PyObject* object : {line, name, type, value, traceback}) Py_XDECREF(object);
  return copy;
}

double Call(const Callable& callable) {
  const PyGILState_STATE state = PyGILState_Ensure();
  double value = 0;
  std::string error;
  PyObject* result = PyObject_CallObject(callable.object, nullptr);
  if (result == nullptr || !NumberOf(result, &value)) error = TakeError(callable.object);
  Py_XDECREF(result);
  ReleaseAbandoned();
  PyGILState_Release(state);
  if (!error.empty()) throw std::runtime_error(error);
  return value;
}

bool InMainInterpreter() { return PyInterpreterState_GetID(PyInterpreterState_Get()) == 0; }

// None is an empty function. False: an exception is set. REQUIRES: the main interpreter, in which the callable is released.
bool FunctionOf(PyObject* object, std::function<double()>* function) {
  if (object == Py_None) return true;
  if (PyCallable_Check(object) == 0) {
    PyErr_Format(PyExc_TypeError, "the function must be callable or None, not %R", object);
    return false;
  }
  Py_INCREF(object);  // until it is released
  const std::shared_ptr<Callable> shared(new Callable{object}, &Abandon);
  *function = [shared] { return Call(*shared); };
  return true;
}

PyObject* EndFunctions(PyObject*, PyObject*) {
  if (InMainInterpreter()) {
    Py_BEGIN_ALLOW_THREADS;
    StopCallbacks();
    Py_END_ALLOW_THREADS;
    ReleaseAbandoned();
  }
  Py_RETURN_NONE;
}

PyObject* CallSetPeriod(PyObject*, PyObject* args) {
  double seconds = 0;
  if (!PyArg_ParseTuple(args, "d:set_callback_period", &seconds)) return nullptr;
  if (!(seconds > 0)) {
    PyErr_SetString(PyExc_ValueError, "the period must be a positive number of seconds");
    return nullptr;
  }
  constexpr double kDay = 86400;
  SetCallbackPeriod(std::chrono::milliseconds(static_cast<int64_t>(std::min(seconds, kDay) * 1000)));
  Py_RETURN_NONE;
}

PyMethodDef callable_functions[] = {
    {"end_functions", &EndFunctions, METH_NOARGS,
     "end_functions()\n--\n\nIn the main interpreter, ends all functions of gauges and counters for ever. Waits for a running "
     "one, "
     "at most a second."},
    {"set_callback_period", &CallSetPeriod, METH_VARARGS,
     "set_callback_period(seconds, /)\n--\n\nSets the time between two calls of each function of a gauge or counter."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

template <class Handle>
PyObject* SetFunction(PyObject* self, PyObject* callable) {
  if (!InMainInterpreter()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "a subinterpreter's gauges and counters take no functions; set it in the main interpreter");
    return nullptr;
  }
  Handle* handle = HandleOf<Handle>(self);
  std::function<double()> function;
  if (handle == nullptr || !FunctionOf(callable, &function)) return nullptr;
  Py_BEGIN_ALLOW_THREADS;
  handle->SetFunction(std::move(function));
  Py_END_ALLOW_THREADS;
  ReleaseAbandoned();
  Py_RETURN_NONE;
}

template PyObject* SetFunction<Counter>(PyObject* self, PyObject* callable);
template PyObject* SetFunction<Gauge>(PyObject* self, PyObject* callable);

bool AddCallables(PyObject* module) { return PyModule_AddFunctions(module, callable_functions) == 0; }

}  // namespace persia::metrics::python
