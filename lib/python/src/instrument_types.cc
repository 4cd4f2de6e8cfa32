// The module's types Counter, Gauge, Histogram and Stream: each holds a C++ handle, and has the methods that run in training
// steps.
//
// Calls that are rare (labels, timers, decorators) are in persia_metrics/instruments.py, whose classes derive from these.

#include <new>
#include <type_traits>
#include <vector>

#include "native.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/stream.h"

namespace persia::metrics::python {
namespace {

template <class Handle>
struct Instrument {
  static_assert(std::is_trivially_destructible_v<Handle>, "objects are freed without a destructor call");

  PyObject ob_base;
  bool usable;  // false: a family with label names; only its series record
  Handle handle;
};

// The object's handle. Null: it is a family, and an exception is set.
template <class Handle>
inline Handle* HandleOf(PyObject* self) {
  auto* object = reinterpret_cast<Instrument<Handle>*>(self);
  if (!object->usable) [[unlikely]] {
    PyErr_Format(PyExc_ValueError, "%R has label names: call labels() to get a series of it", self);
    return nullptr;
  }
  return &object->handle;
}

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
constexpr Parameter kAddOne = {"add", "value"};

constexpr auto kIncrement = [](Counter& counter, double by) { counter.Increment(by); };
constexpr auto kAdd = [](Gauge& gauge, double by) { gauge.Add(by); };
constexpr auto kSubtract = [](Gauge& gauge, double by) { gauge.Subtract(by); };
constexpr auto kSet = [](Gauge& gauge, double value) { gauge.Set(value); };
constexpr auto kAddValue = [](Stream& stream, double value) { stream.Add(value); };
constexpr auto kObserve = [](Histogram& histogram, double value) { histogram.Observe(value); };

// The arguments of every constructor.
struct Naming {
  std::string_view group;
  std::string_view name;
  Description about;
  bool usable = true;
};

bool ReadNaming(PyObject* group, PyObject* name, PyObject* help, PyObject* unit, PyObject* labels, Naming* naming) {
  std::string_view help_text;
  std::string_view unit_text;
  if (!TextOf(group, "group", &naming->group) || !TextOf(name, "name", &naming->name) ||
      !TextOf(help, "documentation", &help_text) || !TextOf(unit, "unit", &unit_text)) {
    return false;
  }
  naming->about.help = help_text;
  naming->about.unit = unit_text;
  naming->usable = labels != Py_None;
  return !naming->usable || LabelsOf(labels, &naming->about.labels);
}

template <class Handle>
PyObject* Make(PyTypeObject* type, bool usable, const Handle& handle) {
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self != nullptr) {
    auto* object = reinterpret_cast<Instrument<Handle>*>(self);
    object->usable = usable;
    new (&object->handle) Handle(handle);
  }
  return self;
}

char* kArguments[] = {const_cast<char*>("group"), const_cast<char*>("name"),   const_cast<char*>("help"),
                      const_cast<char*>("unit"),  const_cast<char*>("labels"), nullptr};

PyObject* NewCounter(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *group, *name, *help, *unit, *labels;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO:Counter", kArguments, &group, &name, &help, &unit, &labels) ||
      !ReadNaming(group, name, help, unit, labels, &naming)) {
    return nullptr;
  }
  return Make(type, naming.usable, naming.usable ? Counter(naming.group, naming.name, naming.about) : Counter());
}

PyObject* NewGauge(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {kArguments[0], kArguments[1], kArguments[2], kArguments[3], kArguments[4], const_cast<char*>("merge"),
                          nullptr};
  PyObject *group, *name, *help, *unit, *labels;
  unsigned char merge = 0;
  Naming naming;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOb:Gauge", names, &group, &name, &help, &unit, &labels, &merge) ||
      !ReadNaming(group, name, help, unit, labels, &naming)) {
    return nullptr;
  }
  if (merge > static_cast<unsigned char>(GaugeMerge::kEach)) {
    PyErr_Format(PyExc_ValueError, "%d is not a number of a merge policy", merge);
    return nullptr;
  }
  const auto how = static_cast<GaugeMerge>(merge);
  return Make(type, naming.usable, naming.usable ? Gauge(naming.group, naming.name, naming.about, how) : Gauge());
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
      !ReadNaming(group, name, help, unit, labels, &naming)) {
    return nullptr;
  }
  if (native != nullptr) {
    NativeBuckets buckets;
    if (!PyArg_ParseTuple(native, "dHdd", &buckets.factor, &buckets.max_buckets, &buckets.zero_threshold, &buckets.most)) {
      return nullptr;
    }
    return Make(type, naming.usable, naming.usable ? Histogram(naming.group, naming.name, buckets, naming.about) : Histogram());
  }
  std::vector<double> numbers(static_cast<size_t>(PyTuple_Size(bounds)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!NumberOf(PyTuple_GetItem(bounds, static_cast<Py_ssize_t>(i)), &numbers[i])) return nullptr;
  }
  return Make(type, naming.usable, naming.usable ? Histogram(naming.group, naming.name, numbers, naming.about) : Histogram());
}

PyObject* NewStream(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {kArguments[0], kArguments[1], nullptr};
  PyObject *group, *name;
  std::string_view group_text, name_text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:Stream", names, &group, &name) || !TextOf(group, "group", &group_text) ||
      !TextOf(name, "name", &name_text)) {
    return nullptr;
  }
  return Make(type, true, Stream(group_text, name_text));
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef counter_methods[] = {
    {"inc", AsCFunction(&NumberMethod<Counter, kIncrement, kInc>), kFast,
     "inc($self, /, amount=1)\n--\n\nAdds `amount`. A negative or non-finite one is ignored and counted as dropped."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef gauge_methods[] = {{"inc", AsCFunction(&NumberMethod<Gauge, kAdd, kInc>), kFast,
                                "inc($self, /, amount=1)\n--\n\nAdds `amount`; a gauge that was never set counts as 0."},
                               {"dec", AsCFunction(&NumberMethod<Gauge, kSubtract, kDec>), kFast,
                                "dec($self, /, amount=1)\n--\n\nTakes `amount` away; a gauge that was never set counts as 0."},
                               {"set", AsCFunction(&NumberMethod<Gauge, kSet, kSetTo>), kFast,
                                "set($self, /, value)\n--\n\nSets the value: any float, NaN and infinities too."},
                               {nullptr, nullptr, 0, nullptr}};

PyMethodDef histogram_methods[] = {
    {"observe", AsCFunction(&NumberMethod<Histogram, kObserve, kObserveOne>), kFast,
     "observe($self, /, amount)\n--\n\nAdds one observation. NaN is ignored and counted as dropped."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef stream_methods[] = {
    {"add", AsCFunction(&NumberMethod<Stream, kAddValue, kAddOne>), kFast,
     "add($self, /, value)\n--\n\nRecords a value. A NaN becomes the last value and has no part in sums and buckets."},
    {nullptr, nullptr, 0, nullptr}};

template <class Handle>
bool AddType(PyObject* module, const char* name, newfunc make, PyMethodDef* methods, const char* doc) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(make)}, {Py_tp_methods, methods}, {Py_tp_doc, const_cast<char*>(doc)}, {0, nullptr}};
  PyType_Spec spec = {name, sizeof(Instrument<Handle>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  const bool added = type != nullptr && PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) == 0;
  Py_XDECREF(type);
  return added;
}

// Whether the class has this method from `base` or from a descriptor that OwnMethods made. False with an exception set: looking
// it up raised one.
bool Inherits(PyObject* type, PyObject* base, const char* method) {
  PyObject* found = PyObject_GetAttrString(type, method);
  if (found == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
  }
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
      if (own != nullptr) {
        PyObject_SetAttrString(type, method->ml_name, own);
      }
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
  const bool done =
      OwnMethodsOf(module, "Counter", counter_methods, type) && OwnMethodsOf(module, "Gauge", gauge_methods, type) &&
      OwnMethodsOf(module, "Histogram", histogram_methods, type) && OwnMethodsOf(module, "Stream", stream_methods, type);
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

bool AddInstrumentTypes(PyObject* module) {
  return AddType<Counter>(module, "persia_metrics._native.Counter", &Guarded<&NewCounter>, counter_methods,
                          "A series of a counter, or with labels=None a family of them.") &&
         AddType<Gauge>(module, "persia_metrics._native.Gauge", &Guarded<&NewGauge>, gauge_methods,
                        "A series of a gauge, or with labels=None a family of them.") &&
         AddType<Histogram>(module, "persia_metrics._native.Histogram", &Guarded<&NewHistogram>, histogram_methods,
                            "A series of a histogram, or with labels=None a family of them.") &&
         AddType<Stream>(module, "persia_metrics._native.Stream", &Guarded<&NewStream>, stream_methods,
                         "Values that were measured; how they are shown is a rule of the agent.");
}

}  // namespace persia::metrics::python
