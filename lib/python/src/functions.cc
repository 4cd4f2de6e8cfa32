// The module's functions: init, exporting, count_event, keep_event; and how Python's values become the library's.

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "event_record.h"
#include "native.h"
#include "persia/metrics/events.h"
#include "persia/metrics/init.h"

namespace persia::metrics::python {

bool TextOf(PyObject* object, std::string_view* text) {
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "must be str, not %s", Py_TYPE(object)->tp_name);
    return false;
  }
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) {
    return false;
  }
  *text = {utf8, static_cast<size_t>(size)};
  return true;
}

bool LabelsOf(PyObject* pairs, LabelSet* labels) {
  PyObject* items = PySequence_Fast(pairs, "labels must be pairs of a name and a value");
  if (items == nullptr) {
    return false;
  }
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(items); ++i) {
    PyObject* pair = PySequence_Fast_GET_ITEM(items, i);
    std::string_view name;
    std::string_view value;
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
      PyErr_SetString(PyExc_TypeError, "labels must be pairs of a name and a value");
      good = false;
    } else if (TextOf(PyTuple_GET_ITEM(pair, 0), &name) && TextOf(PyTuple_GET_ITEM(pair, 1), &value)) {
      labels->emplace_back(name, value);
    } else {
      good = false;
    }
  }
  Py_DECREF(items);
  return good;
}

namespace {

// Text of an object, which keeps what the events' views refer to.
struct OwnedText {
  PyObject* object = nullptr;
  std::string_view text;

  OwnedText() = default;
  OwnedText(const OwnedText&) = delete;
  OwnedText(OwnedText&& other) noexcept : object(std::exchange(other.object, nullptr)), text(other.text) {}
  ~OwnedText() { Py_XDECREF(object); }

  // The str itself, or str() of anything else; what UTF-8 does not have is written as an escape.
  bool Assign(PyObject* from) {
    object = PyObject_Str(from);
    if (object == nullptr) {
      return false;
    }
    if (TextOf(object, &text)) {
      return true;
    }
    PyErr_Clear();
    PyObject* bytes = PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace");
    if (bytes == nullptr) {
      return false;
    }
    Py_SETREF(object, bytes);
    text = {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
    return true;
  }
};

// Beyond this a record of the ring has long been full: the rest of the entries is only counted.
constexpr size_t kMostEntries = 256;

bool ValueOf(PyObject* object, OwnedText* text, events::MetadataValue* value) {
  if (object == Py_None) {
    *value = std::monostate();
  } else if (PyBool_Check(object)) {
    *value = object == Py_True;
  } else if (PyFloat_Check(object)) {
    *value = PyFloat_AS_DOUBLE(object);
  } else if (int overflow = 0; PyLong_Check(object)) {
    const int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
      *value = number;
      return true;
    }
    return text->Assign(object) && (*value = text->text, true);
  } else {
    return text->Assign(object) && (*value = text->text, true);
  }
  return true;
}

// Milliseconds since 1970, as an event has them; what is no positive number is now.
uint64_t TimeOf(PyObject* timestamp) {
  double ms = 0;
  if (!NumberOf(timestamp, &ms)) {
    PyErr_Clear();
  }
  constexpr double kMost = 9007199254740992.0;  // 2^53: whole as a double
  return ms >= 1 && ms < kMost ? static_cast<uint64_t>(ms) : events::NowInMilliseconds();
}

PyObject* CountEvent(PyObject*, PyObject* args) {
  PyObject *name_object, *type_object, *timestamp;
  OwnedText name;
  OwnedText type;
  if (!PyArg_ParseTuple(args, "OOO:count_event", &name_object, &type_object, &timestamp) || !name.Assign(name_object) ||
      !type.Assign(type_object)) {
    return nullptr;
  }
  return PyBool_FromLong(events::CountEvent(name.text, type.text, TimeOf(timestamp)) ? 1 : 0);
}

// The metadata of an event, and what owns their texts.
struct Metadata {
  std::vector<OwnedText> texts;
  std::vector<events::MetadataEntry> entries;
};

bool ReadMetadata(PyObject* dict, Metadata* metadata) {
  // A copy: str() of a value may run code that changes the dict.
  PyObject* items = PyDict_Items(dict);
  if (items == nullptr) {
    return false;
  }
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(items) && metadata->entries.size() < kMostEntries; ++i) {
    PyObject* pair = PyList_GET_ITEM(items, i);
    OwnedText key;
    OwnedText text;
    events::MetadataValue value;
    good = key.Assign(PyTuple_GET_ITEM(pair, 0)) && ValueOf(PyTuple_GET_ITEM(pair, 1), &text, &value);
    if (good) {
      metadata->entries.emplace_back(key.text, value);
      metadata->texts.push_back(std::move(key));
      metadata->texts.push_back(std::move(text));
    }
  }
  Py_DECREF(items);
  return good;
}

PyObject* KeepEvent(PyObject*, PyObject* args) {
  PyObject *name_object, *type_object, *dict, *timestamp;
  OwnedText name;
  OwnedText type;
  Metadata metadata;
  if (!PyArg_ParseTuple(args, "OOO!O:keep_event", &name_object, &type_object, &PyDict_Type, &dict, &timestamp) ||
      !name.Assign(name_object) || !type.Assign(type_object) || !ReadMetadata(dict, &metadata)) {
    return nullptr;
  }
  // Longer names are refused when they are counted, and have no record.
  constexpr size_t kMostNameBytes = 256;
  if (name.text.size() <= kMostNameBytes && type.text.size() <= kMostNameBytes) {
    events::KeepRecord(name.text, type.text, metadata.entries, TimeOf(timestamp));
  }
  Py_RETURN_NONE;
}

// None leaves the option as it is.
bool OptionalText(PyObject* object, std::string* option) {
  std::string_view text;
  if (object == Py_None) {
    return true;
  }
  if (!TextOf(object, &text)) {
    return false;
  }
  *option = text;
  return true;
}

PyObject* CallInit(PyObject*, PyObject* args) {
  PyObject *job_name, *role, *replica, *labels, *metrics_dir;
  int enabled = 1;
  Options options;
  if (!PyArg_ParseTuple(args, "OOOOOp:init", &job_name, &role, &replica, &labels, &metrics_dir, &enabled) ||
      !OptionalText(job_name, &options.job_name) || !OptionalText(role, &options.role) ||
      !OptionalText(metrics_dir, &options.metrics_dir) || !LabelsOf(labels, &options.labels)) {
    return nullptr;
  }
  if (replica != Py_None) {
    const long number = PyLong_AsLong(replica);
    if (number == -1 && PyErr_Occurred() != nullptr) {
      return nullptr;
    }
    if (number < 0 || number > INT32_MAX) {
      PyErr_Format(PyExc_ValueError, "replica must be from 0 to %d, not %ld", INT32_MAX, number);
      return nullptr;
    }
    options.replica = static_cast<int>(number);
  }
  options.enabled = enabled != 0;
  InitResult result;
  Py_BEGIN_ALLOW_THREADS;
  result = Init(options);
  Py_END_ALLOW_THREADS;
  return Py_BuildValue("Os#", result.exporting ? Py_True : Py_False, result.detail.data(),
                       static_cast<Py_ssize_t>(result.detail.size()));
}

PyObject* CallExporting(PyObject*, PyObject*) { return PyBool_FromLong(Exporting() ? 1 : 0); }

PyMethodDef functions[] = {
    {"init", &Guarded<&CallInit>, METH_VARARGS,
     "init(job_name, role, replica, labels, metrics_dir, enabled, /)\n--\n\nMakes this process's metrics visible to the agent: "
     "(whether they are, the segment's path or why not)."},
    {"exporting", &CallExporting, METH_NOARGS,
     "exporting()\n--\n\nWhether an agent can see this process's metrics, or could if there were one."},
    {"count_event", &Guarded<&CountEvent>, METH_VARARGS,
     "count_event(name, type, timestamp, /)\n--\n\nCounts an event; whether it has a place among the metrics."},
    {"keep_event", &Guarded<&KeepEvent>, METH_VARARGS,
     "keep_event(name, type, metadata, timestamp, /)\n--\n\nPuts the record of an event that was counted where the agent reads "
     "it."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddFunctions(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace persia::metrics::python
