// The module's types ClientCounter, ClientGauge and ClientDistribution, which hold the values of prometheus_client's metrics
// (persia_metrics/prometheus_hook.py).
//
// An object has its value as the metric reads it back, and a handle of the series in this process's segment. The two may
// differ: objects of one name share the series, a forked child inherits the value while its series begins at 0, and the series
// of a counter does not fall when the counter is reset. With the labels None, an object has no series.
//
// Thread safety: the global lock guards an object.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "instrument.h"
#include "native.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/bridge.h"

namespace persia::metrics::python {
namespace {

// What a count that becomes `now` has increased by. One that fell was reset.
double Increase(double before, double now) { return now < before ? now : now - before; }

class ClientCounter {
 public:
  explicit ClientCounter(const Naming& naming)
      : series_(naming.usable ? Counter(naming.group, naming.name, naming.about) : Counter()) {}

  void Add(double by) {
    value_ += by;
    series_.Increment(by);
  }
  void Set(double value) {
    const double increase = Increase(value_, value);
    value_ = value;
    if (increase > 0) series_.Increment(increase);
  }
  void Detach() { series_ = Counter(); }
  [[nodiscard]] double value() const { return value_; }

 private:
  double value_ = 0;
  Counter series_;
};

class ClientGauge {
 public:
  ClientGauge(const Naming& naming, GaugeMerge merge)
      : series_(naming.usable ? Gauge(naming.group, naming.name, merge, naming.about) : Gauge()) {
    // A gauge of the same name may be dropped, and made again, for each push: the series keeps its value until the next one.
    if (!series_.Value().has_value()) series_.Set(0);
  }

  void Add(double by) {
    value_ += by;
    if (changed_)
      series_.Add(by);  // a forked child's series begins at 0
    else
      Set(value_);
  }
  void Set(double value) {
    value_ = value;
    changed_ = true;
    series_.Set(value);
  }
  void Detach() { series_ = Gauge(); }
  [[nodiscard]] double value() const { return value_; }

 private:
  double value_ = 0;
  bool changed_ = false;  // by this object
  Gauge series_;
};

// A histogram, or without bounds a summary: cell 0 is the sum, the others are the buckets, not cumulative.
class ClientDistribution {
 public:
  ClientDistribution(const Naming& naming, std::vector<double> bounds)
      : bounds_(std::move(bounds)), cells_(bounds_.size() + 2) {
    if (naming.usable) series_ = internal::BucketedHistogram(naming.group, naming.name, bounds_, naming.about);
  }

  void Observe(double value) {
    cells_[0] += value;
    if (std::isnan(value)) return;  // in no bucket, as in prometheus_client
    const auto bucket = static_cast<uint32_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
    cells_[1 + bucket] += 1;
    series_.Observe(bucket, value);
  }
  void Add(size_t cell, double by) {
    cells_[cell] += by;
    constexpr double kMost = 0x1p63;
    if (cell == 0 && !std::isnan(by)) {
      series_.Add({}, by);
    } else if (cell > 0 && by >= 1 && by < kMost) {
      std::vector<uint64_t> counts(cell);
      counts.back() = static_cast<uint64_t>(by);
      series_.Add(counts, 0);
    }
  }
  void Set(size_t cell, double value) {
    Add(cell, Increase(cells_[cell], value));
    cells_[cell] = value;
  }
  void Detach() { series_ = internal::BucketedHistogram(); }
  [[nodiscard]] size_t cells() const { return cells_.size(); }
  [[nodiscard]] double value(size_t cell) const { return cells_[cell]; }

 private:
  internal::BucketedHistogram series_;
  std::vector<double> bounds_;
  std::vector<double> cells_;
};

template <class Value>
Value& Stored(PyObject* self) {
  return reinterpret_cast<Instrument<Value>*>(self)->handle;
}

PyObject* NewClientCounter(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *group, *name, *help, *unit, *labels;
  Naming naming;
  if (!PyArg_ParseTuple(args, "OOOOO:ClientCounter", &group, &name, &help, &unit, &labels) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  return Make(type, true, ClientCounter(naming));
}

PyObject* NewClientGauge(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *group, *name, *help, *unit, *labels;
  unsigned char merge = 0;
  Naming naming;
  if (!PyArg_ParseTuple(args, "OOOOOb:ClientGauge", &group, &name, &help, &unit, &labels, &merge) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  return Make(type, true, ClientGauge(naming, static_cast<GaugeMerge>(merge)));
}

PyObject* NewClientDistribution(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *group, *name, *help, *unit, *labels, *bounds;
  std::vector<double> numbers;
  Naming naming;
  if (!PyArg_ParseTuple(args, "OOOOOO!:ClientDistribution", &group, &name, &help, &unit, &labels, &PyTuple_Type, &bounds) ||
      !ReadNaming(group, name, help, unit, labels, &naming) || !BoundsOf(bounds, &numbers))
    return nullptr;
  return Make(type, true, ClientDistribution(naming, std::move(numbers)));
}

// A method that calls `kDo` with the value and the argument.
template <class Value, auto kDo>
PyObject* OneClientNumber(PyObject* self, PyObject* argument) {
  double number = 0;
  if (!NumberOf(argument, &number)) return nullptr;
  kDo(Stored<Value>(self), number);
  Py_RETURN_NONE;
}

template <class Value>
PyObject* GetNumber(PyObject* self, PyObject*) {
  return PyFloat_FromDouble(Stored<Value>(self).value());
}

template <class Value>
PyObject* Detach(PyObject* self, PyObject*) {
  Stored<Value>(self).Detach();
  Py_RETURN_NONE;
}

// False: an exception is set.
bool CellOf(PyObject* self, Py_ssize_t cell) {
  if (cell >= 0 && static_cast<size_t>(cell) < Stored<ClientDistribution>(self).cells()) return true;
  PyErr_SetString(PyExc_IndexError, "there is no such cell");
  return false;
}

// A method that calls `kDo` with the distribution, the number of a cell, and a number.
template <auto kDo>
PyObject* OfCell(PyObject* self, PyObject* args) {
  Py_ssize_t cell = 0;
  double number = 0;
  if (!PyArg_ParseTuple(args, "nd", &cell, &number) || !CellOf(self, cell)) return nullptr;
  kDo(Stored<ClientDistribution>(self), static_cast<size_t>(cell), number);
  Py_RETURN_NONE;
}

PyObject* GetCell(PyObject* self, PyObject* args) {
  Py_ssize_t cell = 0;
  if (!PyArg_ParseTuple(args, "n:get", &cell) || !CellOf(self, cell)) return nullptr;
  return PyFloat_FromDouble(Stored<ClientDistribution>(self).value(static_cast<size_t>(cell)));
}

constexpr auto kAddTo = [](auto& value, double by) { value.Add(by); };
constexpr auto kPut = [](auto& value, double to) { value.Set(to); };
constexpr auto kObserveIn = [](ClientDistribution& value, double amount) { value.Observe(amount); };
constexpr auto kAddCell = [](ClientDistribution& value, size_t cell, double by) { value.Add(cell, by); };
constexpr auto kPutCell = [](ClientDistribution& value, size_t cell, double to) { value.Set(cell, to); };

constexpr char kIncDoc[] = "inc($self, amount, /)\n--\n\nAdds `amount`.";
constexpr char kPutDoc[] = "put($self, value, /)\n--\n\nSets the value. The series of a counter does not fall.";
constexpr char kGetDoc[] = "get($self, /)\n--\n\nThe value.";
constexpr char kDetachDoc[] = "detach($self, /)\n--\n\nFrom now on, nothing is recorded in the segment.";

template <class Value>
PyMethodDef number_methods[] = {{"inc", &OneClientNumber<Value, kAddTo>, METH_O, kIncDoc},
                                {"put", &OneClientNumber<Value, kPut>, METH_O, kPutDoc},
                                {"get", &GetNumber<Value>, METH_NOARGS, kGetDoc},
                                {"detach", &Detach<Value>, METH_NOARGS, kDetachDoc},
                                {nullptr, nullptr, 0, nullptr}};

PyMethodDef distribution_methods[] = {
    {"observe", &OneClientNumber<ClientDistribution, kObserveIn>, METH_O,
     "observe($self, amount, /)\n--\n\nAdds one observation."},
    {"inc", &Guarded<&OfCell<kAddCell>>, METH_VARARGS, "inc($self, cell, amount, /)\n--\n\nAdds to the sum (0) or a bucket."},
    {"put", &Guarded<&OfCell<kPutCell>>, METH_VARARGS, "put($self, cell, value, /)\n--\n\nSets the sum (0) or a bucket."},
    {"get", &GetCell, METH_VARARGS, "get($self, cell, /)\n--\n\nThe sum (0) or a bucket."},
    {"detach", &Detach<ClientDistribution>, METH_NOARGS, kDetachDoc},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddClientValues(PyObject* module) {
  return AddType<ClientCounter>(module, "persia_metrics._native.ClientCounter", &Guarded<&NewClientCounter>,
                                number_methods<ClientCounter>, "A value of a counter.") &&
         AddType<ClientGauge>(module, "persia_metrics._native.ClientGauge", &Guarded<&NewClientGauge>,
                              number_methods<ClientGauge>, "A value of a gauge.") &&
         AddType<ClientDistribution>(module, "persia_metrics._native.ClientDistribution", &Guarded<&NewClientDistribution>,
                                     distribution_methods, "The sum and the buckets of a histogram or summary.");
}

}  // namespace persia::metrics::python
