// Reads the process's metrics, and the tables of the library: the catalog and the default bounds.

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "native.h"
#include "persia/metrics/catalog.h"
#include "persia/metrics/events.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/read.h"

namespace persia::metrics::python {
namespace {

using internal::FamilyValues;
using internal::SeriesValues;
using internal::ValueKind;

// A tuple of `count` objects that `make` makes of their index. Null: an exception is set.
template <class Make>
PyObject* TupleOf(size_t count, const Make& make) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; tuple != nullptr && i < count; ++i) {
    PyObject* item = make(i);
    if (item == nullptr || PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), item) != 0) Py_CLEAR(tuple);
  }
  return tuple;
}

PyObject* NumbersFrom(std::span<const double> numbers) {
  return TupleOf(
      numbers.size(), [&](size_t i) { return PyFloat_FromDouble(numbers[i]); });
}

PyObject* CountsFrom(std::span<const uint64_t> counts) {
  return TupleOf(
      counts.size(), [&](size_t i) { return PyLong_FromUnsignedLongLong(counts[i]); });
}

PyObject* LabelsFrom(const LabelSet& labels) {
  return TupleOf(
      labels.size(), [&](size_t i) { return Py_BuildValue("NN", TextFrom(labels[i].first), TextFrom(labels[i].second)); });
}

}  // namespace

PyObject* TextFrom(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* ValueFrom(double value) { return PyFloat_FromDouble(value); }

PyObject* ValueFrom(const std::optional<double>& value) {
  if (!value.has_value()) Py_RETURN_NONE;
  return PyFloat_FromDouble(*value);
}

PyObject* ValueFrom(const HistogramValue& value) {
  return Py_BuildValue("KdNN", static_cast<unsigned long long>(value.count), value.sum, NumbersFrom(value.bounds),
                       CountsFrom(value.buckets));
}

PyObject* ValueFrom(const TimeCostValue& value) {
  return Py_BuildValue("NN", ValueFrom(value.histogram), ValueFrom(value.last));
}

PyObject* ValueFrom(const StreamValue& value) {
  return Py_BuildValue("KdN", static_cast<unsigned long long>(value.count), value.sum, ValueFrom(value.last));
}

namespace {

// The number of a counter, an event, or a gauge or stream that was set, None of one that was not; of a histogram its sum and
// buckets.
PyObject* SeriesValueFrom(ValueKind kind, const SeriesValues& series) {
  if (kind == ValueKind::kHistogram) return Py_BuildValue("dN", series.sum, CountsFrom(series.buckets));
  if ((kind == ValueKind::kGauge || kind == ValueKind::kStream) && !series.set) Py_RETURN_NONE;
  return PyFloat_FromDouble(series.value);
}

PyObject* SeriesFrom(const FamilyValues& family) {
  return TupleOf(
      family.series.size(),
      [&](size_t i) {
        return Py_BuildValue("NN", LabelsFrom(*family.series[i].labels), SeriesValueFrom(family.kind, family.series[i]));
      });
}

PyObject* CallReadValues(PyObject*, PyObject* args) {
  const char* group = nullptr;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "|ss:read_values", &group, &name)) return nullptr;
  std::vector<FamilyValues> families;
  Py_BEGIN_ALLOW_THREADS;
  try {
    families = internal::ReadValues();
    std::erase_if(families, [&](const FamilyValues& family) {
      return (group != nullptr && family.group != group) || (name != nullptr && family.name != name);
    });
  } catch (const std::bad_alloc&) {
    Py_BLOCK_THREADS;
    return PyErr_NoMemory();
  }
  Py_END_ALLOW_THREADS;
  return TupleOf(families.size(), [&](size_t i) {
    const FamilyValues& family = families[i];
    return Py_BuildValue("iNNNNN", static_cast<int>(family.kind), TextFrom(family.group), TextFrom(family.name),
                         TextFrom(family.help), NumbersFrom(family.bounds), SeriesFrom(family));
  });
}

PyObject* CallReadValue(PyObject*, PyObject* args) {
  PyObject *group, *name, *labels;
  std::string_view group_text;
  std::string_view name_text;
  LabelSet set;
  if (!PyArg_ParseTuple(args, "OOO:read_value", &group, &name, &labels) || !TextOf(group, "group", &group_text) ||
      !TextOf(name, "name", &name_text) || !LabelsOf(labels, &set))
    return nullptr;
  return ValueFrom(ReadValue(group_text, name_text, ViewOf(set)));
}

PyObject* CallEventCount(PyObject*, PyObject* args) {
  PyObject *type, *name;
  std::string_view type_text;
  std::string_view name_text;
  if (!PyArg_ParseTuple(args, "OO:event_count", &type, &name) || !TextOf(type, "type", &type_text) ||
      !TextOf(name, "name", &name_text))
    return nullptr;
  return PyLong_FromUnsignedLongLong(events::Count(type_text, name_text));
}

PyMethodDef reading_functions[] = {
    {"read_value", &Guarded<&CallReadValue>, METH_VARARGS,
     "read_value(group, name, labels, /)\n--\n\nThe value of one series, a number, or None."},
    {"event_count", &Guarded<&CallEventCount>, METH_VARARGS,
     "event_count(type, name, /)\n--\n\nHow often this process has recorded an event."},
    {"read_values", &CallReadValues, METH_VARARGS,
     "read_values(group=None, name=None, /)\n--\n\nThe values of all families, or of one group and name."},
    {nullptr, nullptr, 0, nullptr}};

PyObject* CatalogTable() {
  return TupleOf(
      catalog::kEntries.size(),
      [](size_t i) {
        const catalog::Entry& entry = *catalog::kEntries[i];
        return Py_BuildValue("NiiNNN", TextFrom(entry.name), static_cast<int>(entry.table), static_cast<int>(entry.type),
                             TextFrom(entry.unit), TextFrom(entry.label), TextFrom(entry.help));
      });
}

bool AddObject(PyObject* module, const char* name, PyObject* object) {
  if (object != nullptr && PyModule_AddObject(module, name, object) == 0) return true;  // it takes the reference
  Py_XDECREF(object);
  return false;
}

}  // namespace

bool AddReading(PyObject* module) {
  return PyModule_AddFunctions(module, reading_functions) == 0 && AddObject(module, "CATALOG", CatalogTable()) &&
         AddObject(module, "CATALOG_GROUP", TextFrom(catalog::kGroup)) &&
         AddObject(module, "DEFAULT_BOUNDS", NumbersFrom(DefaultSecondsBounds()));
}

}  // namespace persia::metrics::python
