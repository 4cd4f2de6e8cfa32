// The module's types Counter, Gauge, Histogram, TimeCost and Stream: each holds a C++ handle, and has the methods that run in
// training steps.
//
// Calls that are rare (labels, timers, decorators) are in persia_metrics/instruments.py, whose classes derive from these.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "instrument.h"
#include "native.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/stream.h"

namespace persia::metrics::python {

bool ReadNaming(PyObject* group, PyObject* name, PyObject* help, PyObject* unit, PyObject* labels, Naming* naming) {
  std::string_view help_text;
  std::string_view unit_text;
  if (!TextOf(group, "group", &naming->group) || !TextOf(name, "name", &naming->name) ||
      !TextOf(help, "documentation", &help_text) || !TextOf(unit, "unit", &unit_text))
    return false;
  naming->about.help = help_text;
  naming->about.unit = unit_text;
  naming->usable = labels != Py_None;
  return !naming->usable || LabelsOf(labels, &naming->about.labels);
}

bool BoundsOf(PyObject* tuple, std::vector<double>* bounds) {
  bounds->resize(static_cast<size_t>(PyTuple_Size(tuple)));
  for (size_t i = 0; i < bounds->size(); ++i)
    if (!NumberOf(PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i)), &(*bounds)[i])) return false;
  return true;
}

namespace {

// A method's parameter: one number, by position or as `keyword`.
struct Parameter {
  const char* method;
  const char* keyword;
  bool optional = false;
};

// Not inlined, to keep the usual call short.
[[gnu::noinline]] bool ReadNumber(const Parameter& parameter, PyObject* const* args, Py_ssize_t count, PyObject* names,
                                  double* number) {
  const auto& [method, keyword, optional] = parameter;
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  if (count + named > 1 || (count + named == 0 && !optional)) {
    PyErr_Format(PyExc_TypeError, "%s() takes one number, '%s', not %zd arguments", method, keyword, count + named);
    return false;
  }
  if (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), keyword) != 0) {
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U' (there is '%s')", method,
                 PyTuple_GetItem(names, 0), keyword);
    return false;
  }
  return count + named == 0 || NumberOf(args[0], number);
}

// Reads the argument. If it is optional and not given, leaves `*number` unchanged.
inline bool OneNumber(const Parameter& parameter, PyObject* const* args, Py_ssize_t count, PyObject* names, double* number) {
  if (names == nullptr) [[likely]] {
    if (count == 1) return NumberOf(args[0], number);
    if (count == 0 && parameter.optional) return true;
  }
  return ReadNumber(parameter, args, count, names, number);
}

// A method that calls `kDo` with the handle and the argument, or with 1 if an optional argument is not given.
template <class Handle, auto kDo, const Parameter& kParameter>
PyObject* NumberMethod(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  double number = 1;
  Handle* handle = HandleOf<Handle>(self);
  if (handle == nullptr || !OneNumber(kParameter, args, count, names, &number)) return nullptr;
  kDo(*handle, number);
  Py_RETURN_NONE;
}

constexpr Parameter kInc = {"inc", "amount", true};
constexpr Parameter kDec = {"dec", "amount", true};
constexpr Parameter kSetTo = {"set", "value"};
constexpr Parameter kObserveOne = {"observe", "amount"};
constexpr Parameter kObserveSeconds = {"observe", "seconds"};
constexpr Parameter kAddOne = {"add", "value"};

constexpr auto kIncrement = [](Counter& counter, double by) { counter.Increment(by); };
constexpr auto kAdd = [](Gauge& gauge, double by) { gauge.Add(by); };
constexpr auto kSubtract = [](Gauge& gauge, double by) { gauge.Subtract(by); };
constexpr auto kSet = [](Gauge& gauge, double value) { gauge.Set(value); };
constexpr auto kAddValue = [](Stream& stream, double value) { stream.Add(value); };
constexpr auto kObserve = [](Histogram& histogram, double value) { histogram.Observe(value); };
constexpr auto kObserveTime = [](TimeCost& cost, double seconds) { cost.Observe(seconds); };

char* kArguments[] = {const_cast<char*>("group"), const_cast<char*>("name"),   const_cast<char*>("help"),
                      const_cast<char*>("unit"),  const_cast<char*>("labels"), nullptr};

PyObject* NewCounter(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *group, *name, *help, *unit, *labels;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO:Counter", kArguments, &group, &name, &help, &unit, &labels) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  return Make(type, naming.usable, naming.usable ? Counter(naming.group, naming.name, naming.about) : Counter());
}

PyObject* NewGauge(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {kArguments[0], kArguments[1], kArguments[2], kArguments[3], kArguments[4], const_cast<char*>("merge"),
                          nullptr};
  PyObject *group, *name, *help, *unit, *labels;
  unsigned char merge = 0;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOb:Gauge", names, &group, &name, &help, &unit, &labels, &merge) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  if (merge > static_cast<unsigned char>(GaugeMerge::kEach)) {
    PyErr_Format(PyExc_ValueError, "%d is not a number of a merge policy", merge);
    return nullptr;
  }
  const auto how = static_cast<GaugeMerge>(merge);
  return Make(type, naming.usable, naming.usable ? Gauge(naming.group, naming.name, how, naming.about) : Gauge());
}

PyObject* NewHistogram(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {kArguments[0],
                          kArguments[1],
                          kArguments[2],
                          kArguments[3],
                          kArguments[4],
                          const_cast<char*>("bounds"),
                          const_cast<char*>("native"),
                          nullptr};
  PyObject *group, *name, *help, *unit, *labels, *bounds;
  PyObject* native = nullptr;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO!|O!:Histogram", names, &group, &name, &help, &unit, &labels,
                                   &PyTuple_Type, &bounds, &PyTuple_Type, &native) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  if (native != nullptr) {
    NativeBuckets buckets;
    if (!PyArg_ParseTuple(native, "dHdd", &buckets.factor, &buckets.max_buckets, &buckets.zero_threshold, &buckets.most))
      return nullptr;
    return Make(type, naming.usable, naming.usable ? Histogram(naming.group, naming.name, buckets, naming.about) : Histogram());
  }
  std::vector<double> numbers;
  if (!BoundsOf(bounds, &numbers)) return nullptr;
  return Make(type, naming.usable, naming.usable ? Histogram(naming.group, naming.name, numbers, naming.about) : Histogram());
}

char* bounded_arguments[] = {
    kArguments[0], kArguments[1], kArguments[2], kArguments[3], kArguments[4], const_cast<char*>("bounds"), nullptr};

PyObject* NewTimeCost(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *group, *name, *help, *unit, *labels, *bounds;
  std::vector<double> numbers;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO!:TimeCost", bounded_arguments, &group, &name, &help, &unit, &labels,
                                   &PyTuple_Type, &bounds) ||
      !ReadNaming(group, name, help, unit, labels, &naming) || !BoundsOf(bounds, &numbers))
    return nullptr;
  return Make(type, naming.usable, naming.usable ? TimeCost(naming.group, naming.name, numbers, naming.about) : TimeCost());
}

PyObject* NewStream(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *group, *name, *help, *unit, *labels;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO:Stream", kArguments, &group, &name, &help, &unit, &labels) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  return Make(type, naming.usable, naming.usable ? Stream(naming.group, naming.name, naming.about) : Stream());
}

PyObject* NewBucketedHistogram(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *group, *name, *help, *unit, *labels, *bounds;
  std::vector<double> numbers;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO!:BucketedHistogram", bounded_arguments, &group, &name, &help, &unit,
                                   &labels, &PyTuple_Type, &bounds) ||
      !ReadNaming(group, name, help, unit, labels, &naming) || !BoundsOf(bounds, &numbers))
    return nullptr;
  return Make(type, true, internal::BucketedHistogram(naming.group, naming.name, numbers, naming.about));
}

PyObject* AddBuckets(PyObject* self, PyObject* args) {
  PyObject* items;
  double sum = 0;
  if (!PyArg_ParseTuple(args, "O!d:add", &PyTuple_Type, &items, &sum)) return nullptr;
  std::vector<uint64_t> counts(static_cast<size_t>(PyTuple_Size(items)));
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(items, static_cast<Py_ssize_t>(i)));
    if (PyErr_Occurred() != nullptr) return nullptr;
  }
  reinterpret_cast<Instrument<internal::BucketedHistogram>*>(self)->handle.Add(counts, sum);
  Py_RETURN_NONE;
}

PyObject* UnsetGauge(PyObject* self, PyObject*) {
  reinterpret_cast<Instrument<Gauge>*>(self)->handle.Unset();
  Py_RETURN_NONE;
}

template <class Handle>
PyObject* Read(PyObject* self, PyObject*) {
  const Handle* handle = HandleOf<Handle>(self);
  return handle == nullptr ? nullptr : ValueFrom(handle->Value());
}

constexpr char kReadDoc[] = "_read($self, /)\n--\n\nWhat this process has counted.";
constexpr char kSetFunctionDoc[] =
    "_set_function($self, function, /)\n--\n\nTakes the value from a callable from now on; None ends this.";
constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef counter_methods[] = {
    {"inc", AsCFunction(&NumberMethod<Counter, kIncrement, kInc>), kFast,
     "inc($self, /, amount=1)\n--\n\nAdds `amount`. A negative or non-finite one is ignored and counted as dropped."},
    {"_set_function", &Guarded<&SetFunction<Counter>>, METH_O, kSetFunctionDoc},
    {"_read", &Guarded<&Read<Counter>>, METH_NOARGS, kReadDoc},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef gauge_methods[] = {
    {"inc", AsCFunction(&NumberMethod<Gauge, kAdd, kInc>), kFast,
     "inc($self, /, amount=1)\n--\n\nAdds `amount`; a gauge that was never set counts as 0."},
    {"dec", AsCFunction(&NumberMethod<Gauge, kSubtract, kDec>), kFast,
     "dec($self, /, amount=1)\n--\n\nTakes `amount` away; a gauge that was never set counts as 0."},
    {"set", AsCFunction(&NumberMethod<Gauge, kSet, kSetTo>), kFast,
     "set($self, /, value)\n--\n\nSets the value: any float, NaN and infinities too."},
    {"unset", &UnsetGauge, METH_NOARGS, "unset($self, /)\n--\n\nMakes it a gauge that was never set."},
    {"_set_function", &Guarded<&SetFunction<Gauge>>, METH_O, kSetFunctionDoc},
    {"_read", &Guarded<&Read<Gauge>>, METH_NOARGS, kReadDoc},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef histogram_methods[] = {
    {"observe", AsCFunction(&NumberMethod<Histogram, kObserve, kObserveOne>), kFast,
     "observe($self, /, amount)\n--\n\nAdds one observation. NaN is ignored and counted as dropped."},
    {"_read", &Guarded<&Read<Histogram>>, METH_NOARGS, kReadDoc},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef stream_methods[] = {
    {"add", AsCFunction(&NumberMethod<Stream, kAddValue, kAddOne>), kFast,
     "add($self, /, value)\n--\n\nRecords a value. A NaN becomes the last value and has no part in sums and buckets."},
    {"_read", &Guarded<&Read<Stream>>, METH_NOARGS, kReadDoc},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef time_cost_methods[] = {
    {"observe", AsCFunction(&NumberMethod<TimeCost, kObserveTime, kObserveSeconds>), kFast,
     "observe($self, /, seconds)\n--\n\nAdds one duration to the histogram, and sets the gauge to it."},
    {"_read", &Guarded<&Read<TimeCost>>, METH_NOARGS, kReadDoc},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef bucketed_histogram_methods[] = {
    {"add", &Guarded<&AddBuckets>, METH_VARARGS,
     "add($self, counts, sum, /)\n--\n\nAdds the counts to the buckets, and the sum to the sum."},
    {nullptr, nullptr, 0, nullptr}};

// Whether the class has this method from `base` or from a descriptor that OwnMethods made. False with an exception set: looking
// it up raised one.
bool Inherits(PyObject* type, PyObject* base, const char* method) {
  PyObject* found = PyObject_GetAttrString(type, method);
  if (found == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  bool same = false;
  if (found != nullptr && Py_IS_TYPE(found, &PyMethodDescr_Type)) {
    PyObject* owner = PyObject_GetAttrString(found, "__objclass__");
    same = owner != nullptr && PyObject_IsSubclass(owner, base) == 1;
    Py_XDECREF(owner);
  }
  Py_XDECREF(found);
  return same;
}

// Gives the class its own descriptors of the methods that it inherits from the module's type `name`. False: an exception is
// set.
bool OwnMethodsOf(PyObject* module, const char* name, PyMethodDef* methods, PyObject* type) {
  PyObject* base = PyObject_GetAttrString(module, name);
  if (base == nullptr) return false;
  for (PyMethodDef* method = methods; method->ml_name != nullptr && PyErr_Occurred() == nullptr; ++method) {
    if (Inherits(type, base, method->ml_name)) {
      PyObject* own = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type), method);
      if (own != nullptr) PyObject_SetAttrString(type, method->ml_name, own);
      Py_XDECREF(own);
    }
  }
  Py_DECREF(base);
  return PyErr_Occurred() == nullptr;
}

}  // namespace

PyObject* OwnMethods(PyObject* module, PyObject* type) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "own_methods() takes a class");
    return nullptr;
  }
  if (!OwnMethodsOf(module, "Counter", counter_methods, type) || !OwnMethodsOf(module, "Gauge", gauge_methods, type) ||
      !OwnMethodsOf(module, "Histogram", histogram_methods, type) ||
      !OwnMethodsOf(module, "TimeCost", time_cost_methods, type) || !OwnMethodsOf(module, "Stream", stream_methods, type))
    return nullptr;
  Py_RETURN_NONE;
}

bool AddInstrumentTypes(PyObject* module) {
  return AddType<Counter>(module, "persia_metrics._native.Counter", &Guarded<&NewCounter>, counter_methods,
                          "A series of a counter, or with labels=None a family of them.") &&
         AddType<Gauge>(module, "persia_metrics._native.Gauge", &Guarded<&NewGauge>, gauge_methods,
                        "A series of a gauge, or with labels=None a family of them.") &&
         AddType<Histogram>(module, "persia_metrics._native.Histogram", &Guarded<&NewHistogram>, histogram_methods,
                            "A series of a histogram, or with labels=None a family of them.") &&
         AddType<TimeCost>(module, "persia_metrics._native.TimeCost", &Guarded<&NewTimeCost>, time_cost_methods,
                           "A series of a time cost, or with labels=None a family of them.") &&
         AddType<internal::BucketedHistogram>(module, "persia_metrics._native.BucketedHistogram",
                                              &Guarded<&NewBucketedHistogram>, bucketed_histogram_methods,
                                              "A histogram that receives whole buckets of observations.") &&
         AddType<Stream>(module, "persia_metrics._native.Stream", &Guarded<&NewStream>, stream_methods,
                         "Values that were measured; how they are shown is a rule of the agent.");
}

}  // namespace persia::metrics::python
