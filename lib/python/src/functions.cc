// The module's functions, and the conversion of Python's values to the library's.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "emit_pipe.h"
#include "event_record.h"
#include "native.h"
#include "persia/metrics/events.h"
#include "persia/metrics/init.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/remove.h"
#include "removal.h"

namespace persia::metrics::python {

namespace {

// The name of the object's type, for an error. Null: an exception is set.
PyObject* TypeNameOf(PyObject* object) {
  return PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__");
}

// Raises TypeError. Returns false.
bool WrongType(const char* argument, const char* expected, PyObject* object) {
  if (PyObject* name = TypeNameOf(object)) {
    PyErr_Format(PyExc_TypeError, "%s must be %s, not %U", argument, expected, name);
    Py_DECREF(name);
  }
  return false;
}

}  // namespace

bool TextOf(PyObject* object, const char* argument, std::string_view* text) {
  if (!PyUnicode_Check(object)) return WrongType(argument, "str", object);
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) return false;
  *text = {utf8, static_cast<size_t>(size)};
  return true;
}

namespace {

// The objects that own the texts of a call, to be released.
using Owners = std::vector<PyObject*>;

void Release(const Owners& owners) {
  for (PyObject* owner : owners) Py_DECREF(owner);
}

// Takes str() of the object, and adds its owner. A lone surrogate is escaped. False: an exception is set.
bool TakeText(PyObject* from, Owners* owners, std::string_view* text) {
  PyObject* owner = PyObject_Str(from);
  if (owner == nullptr) return false;
  owners->push_back(owner);
  if (TextOf(owner, "str()", text)) return true;
  PyErr_Clear();
  PyObject* bytes = PyUnicode_AsEncodedString(owner, "utf-8", "backslashreplace");
  if (bytes == nullptr) return false;
  owners->push_back(bytes);
  *text = {PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
  return true;
}

bool LabelOf(PyObject* pair, LabelSet* labels) {
  if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
    PyErr_SetString(PyExc_TypeError, "labels must be pairs of a name and a value");
    return false;
  }
  PyObject* value = PyTuple_GetItem(pair, 1);
  std::string_view name;
  std::string_view text;
  if (!TextOf(PyTuple_GetItem(pair, 0), "a label's name", &name)) return false;
  if (!PyUnicode_Check(value)) {
    if (PyObject* type = TypeNameOf(value)) {
      PyErr_Format(PyExc_TypeError, "the value of label %R must be str, not %U", PyTuple_GetItem(pair, 0), type);
      Py_DECREF(type);
    }
    return false;
  }
  Owners owners;
  const bool good = TakeText(value, &owners, &text);
  if (good) labels->emplace_back(name, text);
  Release(owners);
  return good;
}

}  // namespace

bool LabelsOf(PyObject* pairs, LabelSet* labels) {
  PyObject* items = PySequence_Tuple(pairs);
  if (items == nullptr) return false;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PyTuple_Size(items); ++i) good = LabelOf(PyTuple_GetItem(items, i), labels);
  Py_DECREF(items);
  return good;
}

std::vector<Label> ViewOf(const LabelSet& labels) {
  std::vector<Label> view;
  view.reserve(labels.size());
  for (const auto& [name, value] : labels) view.push_back({name, value});
  return view;
}

namespace {

// More entries than a record of the ring can hold. The rest is only counted.
constexpr size_t kMaxEntries = 256;

// False: an exception is set.
bool ValueOf(PyObject* object, Owners* owners, events::MetadataValue* value) {
  if (object == Py_None) {
    *value = std::monostate();
  } else if (PyBool_Check(object)) {
    *value = object == Py_True;
  } else if (PyFloat_Check(object)) {
    *value = PyFloat_AsDouble(object);
  } else {
    int overflow = 1;
    const int64_t number = PyLong_Check(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : 0;
    if (overflow == 0) {
      *value = number;
      return true;
    }
    std::string_view text;
    if (!TakeText(object, owners, &text)) return false;
    *value = text;
  }
  return true;
}

// The timestamp in milliseconds since 1970; the current time if it is not a positive number.
uint64_t TimeOf(PyObject* timestamp) {
  double ms = 0;
  if (!NumberOf(timestamp, &ms)) PyErr_Clear();
  constexpr double kLimit = 9007199254740992.0;  // 2^53
  return ms >= 1 && ms < kLimit ? static_cast<uint64_t>(ms) : events::NowInMilliseconds();
}

PyObject* CountEvent(PyObject*, PyObject* args) {
  PyObject *name_object, *type_object, *timestamp;
  std::string_view name, type;
  Owners owners;
  const bool good = PyArg_ParseTuple(args, "OOO:count_event", &name_object, &type_object, &timestamp) &&
                    TakeText(name_object, &owners, &name) && TakeText(type_object, &owners, &type);
  PyObject* result = good ? PyBool_FromLong(events::CountEvent(name, type, TimeOf(timestamp)) ? 1 : 0) : nullptr;
  Release(owners);
  return result;
}

struct Metadata {
  std::vector<events::MetadataEntry> entries;
  size_t more = 0;  // entries beyond kMaxEntries
};

bool ReadMetadata(PyObject* dict, Owners* owners, Metadata* metadata) {
  // A copy, since str() of a value may run code that changes the dict.
  PyObject* items = PyDict_Items(dict);
  if (items == nullptr) return false;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PyList_Size(items) && metadata->entries.size() < kMaxEntries; ++i) {
    PyObject* pair = PyList_GetItem(items, i);
    std::string_view key;
    events::MetadataValue value;
    good = TakeText(PyTuple_GetItem(pair, 0), owners, &key) && ValueOf(PyTuple_GetItem(pair, 1), owners, &value);
    if (good) metadata->entries.emplace_back(key, value);
  }
  metadata->more = static_cast<size_t>(PyList_Size(items)) - metadata->entries.size();
  Py_DECREF(items);
  return good;
}

PyObject* KeepEvent(PyObject*, PyObject* args) {
  PyObject *name_object, *type_object, *dict, *timestamp;
  std::string_view name, type;
  Owners owners;
  Metadata metadata;
  const bool good = PyArg_ParseTuple(args, "OOO!O:keep_event", &name_object, &type_object, &PyDict_Type, &dict, &timestamp) &&
                    TakeText(name_object, &owners, &name) && TakeText(type_object, &owners, &type) &&
                    ReadMetadata(dict, &owners, &metadata);
  // CountEvent refuses longer names, and an event that is not counted gets no record.
  constexpr size_t kMaxNameBytes = 256;
  if (good && name.size() <= kMaxNameBytes && type.size() <= kMaxNameBytes)
    events::AppendToRing(name, type, metadata.entries, TimeOf(timestamp), metadata.more);
  Release(owners);
  if (!good) return nullptr;
  Py_RETURN_NONE;
}

// None leaves the option unchanged.
bool OptionalText(PyObject* object, const char* argument, std::string* option) {
  std::string_view text;
  if (object == Py_None) return true;
  if (!TextOf(object, argument, &text)) return false;
  *option = text;
  return true;
}

// A path may have bytes that are not UTF-8, which a str holds as surrogates.
bool OptionalPath(PyObject* object, const char* argument, std::string* option) {
  if (object == Py_None) return true;
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object, &bytes) == 0) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      WrongType(argument, "str or os.PathLike", object);
    }
    return false;
  }
  option->assign(PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes)));
  Py_DECREF(bytes);
  return true;
}

bool OptionalReplica(PyObject* object, int* option) {
  if (object == Py_None) return true;
  if (!PyIndex_Check(object)) return WrongType("replica", "int", object);
  int overflow = 0;
  const long number = PyLong_AsLongAndOverflow(object, &overflow);
  if (number == -1 && PyErr_Occurred() != nullptr) return false;
  if (overflow != 0 || number < 0 || number > INT32_MAX) {
    PyErr_Format(PyExc_ValueError, "replica must be from 0 to %d, not %R", INT32_MAX, object);
    return false;
  }
  *option = static_cast<int>(number);
  return true;
}

PyObject* CallInit(PyObject*, PyObject* args) {
  PyObject *job_name, *role, *replica, *labels, *metrics_dir;
  int enabled = 1;
  Options options;
  if (!PyArg_ParseTuple(args, "OOOOOp:init", &job_name, &role, &replica, &labels, &metrics_dir, &enabled) ||
      !OptionalText(job_name, "job_name", &options.job_name) || !OptionalText(role, "role", &options.role) ||
      !OptionalPath(metrics_dir, "metrics_dir", &options.metrics_dir) || !LabelsOf(labels, &options.labels))
    return nullptr;
  int number = 0;
  if (!OptionalReplica(replica, &number)) return nullptr;
  if (replica != Py_None) options.replica = number;
  options.enabled = enabled != 0;
  InitResult result;
  Py_BEGIN_ALLOW_THREADS;
  result = Init(options);
  Py_END_ALLOW_THREADS;
  // It may contain a path.
  PyObject* detail = PyUnicode_DecodeFSDefaultAndSize(result.detail.data(), static_cast<Py_ssize_t>(result.detail.size()));
  return detail == nullptr ? nullptr : Py_BuildValue("ON", result.exporting ? Py_True : Py_False, detail);
}

PyObject* CallMarkExit(PyObject*, PyObject* code) {
  const long number = PyLong_AsLong(code);
  if (number == -1 && PyErr_Occurred() != nullptr) return nullptr;
  internal::MarkExit(static_cast<int>(number));
  Py_RETURN_NONE;
}

PyObject* CallSetProcessGroupRank(PyObject*, PyObject* rank) {
  int number = 0;
  if (!OptionalReplica(rank, &number)) return nullptr;
  Py_BEGIN_ALLOW_THREADS;
  internal::SetProcessGroupRank(number);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

// The fast path of labels(): looks up a series by its label values. Only values that are str: an object that equals a str may
// have another str().
PyObject* FindSeries(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyDict_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])) {
    PyErr_SetString(PyExc_TypeError, "find_series() takes a dict and a tuple");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(args[1]); ++i)
    if (!PyUnicode_CheckExact(PyTuple_GetItem(args[1], i))) Py_RETURN_NONE;
  PyObject* found = PyDict_GetItemWithError(args[0], args[1]);
  if (found == nullptr && PyErr_Occurred() == nullptr) Py_RETURN_NONE;
  Py_XINCREF(found);
  return found;
}

// The group, name and labels of a series. False: an exception is set.
bool SeriesOf(PyObject* args, const char* format, std::string_view* group, std::string_view* name, LabelSet* labels) {
  PyObject *group_object, *name_object, *pairs;
  return PyArg_ParseTuple(args, format, &group_object, &name_object, &pairs) && TextOf(group_object, "group", group) &&
         TextOf(name_object, "name", name) && LabelsOf(pairs, labels);
}

// Waits for a function of the series that another thread runs, which may need the GIL.
PyObject* CallRemoveSeries(PyObject*, PyObject* args) {
  std::string_view group, name;
  LabelSet labels;
  if (!SeriesOf(args, "OOO:remove_series", &group, &name, &labels)) return nullptr;
  const std::vector<Label> views = ViewOf(labels);
  bool removed = false;
  Py_BEGIN_ALLOW_THREADS;
  removed = RemoveSeries(group, name, views);
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(removed ? 1 : 0);
}

PyObject* CallHasSeries(PyObject*, PyObject* args) {
  std::string_view group, name;
  LabelSet labels;
  if (!SeriesOf(args, "OOO:has_series", &group, &name, &labels)) return nullptr;
  return PyBool_FromLong(HasSeries(group, name, ViewOf(labels)) ? 1 : 0);
}

// Waits for the pipe, in which handlers of Python's `signal` run: they may raise, and end the wait.
PyObject* CallEmitToPipe(PyObject*, PyObject* list) {
  std::vector<std::string> entries;
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    std::string_view entry;
    if (!TextOf(PyList_GetItem(list, i), "entry", &entry)) return nullptr;
    entries.emplace_back(entry);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // no list
  PyThreadState* state = PyEval_SaveThread();
  const benchmarkai::PipeResult result = benchmarkai::WriteToPipe(entries, [&state] {
    PyEval_RestoreThread(state);
    const bool raised = PyErr_CheckSignals() != 0;
    state = PyEval_SaveThread();
    return raised;
  });
  PyEval_RestoreThread(state);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (result.status == benchmarkai::EmitStatus::kDone) Py_RETURN_NONE;
  if (result.status == benchmarkai::EmitStatus::kOutOfMemory) return PyErr_NoMemory();
  if (result.status == benchmarkai::EmitStatus::kNameTooLong) {
    PyErr_SetString(PyExc_ValueError, result.text.c_str());
    return nullptr;
  }
  // OSError makes the subclass of the error number.
  if (PyObject* arguments = Py_BuildValue("isN", result.error, result.text.c_str(), TextFrom(result.path))) {
    PyErr_SetObject(PyExc_OSError, arguments);
    Py_DECREF(arguments);
  }
  return nullptr;
}

PyObject* CallExporting(PyObject*, PyObject*) { return PyBool_FromLong(Exporting() ? 1 : 0); }

PyMethodDef functions[] = {
    {"init", &Guarded<&CallInit>, METH_VARARGS,
     "init(job_name, role, replica, labels, metrics_dir, enabled, /)\n--\n\nMakes this process's metrics visible to the agent. "
     "Returns whether they are, and the segment's path or the reason why not."},
    {"exporting", &CallExporting, METH_NOARGS,
     "exporting()\n--\n\nWhether this process's metrics are visible to an agent, if one runs."},
    {"mark_exit", &CallMarkExit, METH_O,
     "mark_exit(code, /)\n--\n\nMarks this process as left by a normal exit: for one that ends by os._exit on purpose."},
    {"set_process_group_rank", &CallSetProcessGroupRank, METH_O,
     "set_process_group_rank(rank, /)\n--\n\nThe rank of this process in its group of several processes."},
    {"remove_series", &Guarded<&CallRemoveSeries>, METH_VARARGS,
     "remove_series(group, name, labels, /)\n--\n\nRemoves a series. Returns whether there was one."},
    {"has_series", &Guarded<&CallHasSeries>, METH_VARARGS,
     "has_series(group, name, labels, /)\n--\n\nWhether there is a series."},
    {"emit_to_pipe", &Guarded<&CallEmitToPipe>, METH_O,
     "emit_to_pipe(entries, /)\n--\n\nWrites entries of JSON objects to the pipe of emit. Raises ValueError if one is too long "
     "for a line, TimeoutError if there is no pipe or no reader in time, and OSError."},
    {"find_series", AsCFunction(&FindSeries), METH_FASTCALL,
     "find_series(series, label_values, /)\n--\n\nThe dict's value for these label values. None if there is none, or if a "
     "label "
     "value is not a str."},
    {"own_methods", &OwnMethods, METH_O,
     "own_methods(type, /)\n--\n\nGives a class its own descriptors of the native methods that it inherits, which are called "
     "faster."},
    {"count_event", &Guarded<&CountEvent>, METH_VARARGS,
     "count_event(name, type, timestamp, /)\n--\n\nCounts an event. Returns False if its series was refused."},
    {"keep_event", &Guarded<&KeepEvent>, METH_VARARGS,
     "keep_event(name, type, metadata, timestamp, /)\n--\n\nWrites the record of a counted event to the ring, from which the "
     "agent reads it."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddFunctions(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace persia::metrics::python
