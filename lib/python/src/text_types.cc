// The module's types Info and Enum. Their calls are rare: the classes in persia_metrics/instruments.py give them all arguments.

#include <string>
#include <string_view>
#include <vector>

#include "instrument.h"
#include "native.h"
#include "persia/metrics/info.h"

namespace persia::metrics::python {
namespace {

PyObject* NewInfo(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *group, *name, *help, *unit, *labels;
  Naming naming;
  if (!PyArg_ParseTuple(args, "OOOOO:Info", &group, &name, &help, &unit, &labels) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  return Make(type, naming.usable, Info(naming.group, naming.name, naming.about));
}

PyObject* SetInfo(PyObject* self, PyObject* pairs) {
  LabelSet texts;
  Info* info = HandleOf<Info>(self);
  if (info == nullptr || !LabelsOf(pairs, &texts)) return nullptr;
  info->Set(ViewOf(texts));
  Py_RETURN_NONE;
}

PyObject* UnsetInfo(PyObject* self, PyObject*) {
  Info* info = HandleOf<Info>(self);
  if (info == nullptr) return nullptr;
  info->Unset();
  Py_RETURN_NONE;
}

template <class Handle>
PyObject* Remove(PyObject* self, PyObject*) {
  Handle* handle = HandleOf<Handle>(self);
  if (handle == nullptr) return nullptr;
  bool removed = false;
  Py_BEGIN_ALLOW_THREADS;
  removed = handle->Remove();
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(removed ? 1 : 0);
}

PyObject* NewEnum(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *group, *name, *help, *unit, *labels, *items;
  Naming naming;
  if (!PyArg_ParseTuple(args, "OOOOOO!:Enum", &group, &name, &help, &unit, &labels, &PyTuple_Type, &items) ||
      !ReadNaming(group, name, help, unit, labels, &naming))
    return nullptr;
  std::vector<std::string_view> states(static_cast<size_t>(PyTuple_Size(items)));
  for (size_t i = 0; i < states.size(); ++i)
    if (!TextOf(PyTuple_GetItem(items, static_cast<Py_ssize_t>(i)), "a state", &states[i])) return nullptr;
  if (!naming.usable) states.clear();
  return Make(type, naming.usable, Enum(naming.group, naming.name, states, naming.about));
}

PyObject* SetEnum(PyObject* self, PyObject* state) {
  std::string_view text;
  Enum* handle = HandleOf<Enum>(self);
  if (handle == nullptr || !TextOf(state, "state", &text)) return nullptr;
  handle->Set(text);
  Py_RETURN_NONE;
}

PyObject* UnsetEnum(PyObject* self, PyObject*) {
  Enum* handle = HandleOf<Enum>(self);
  if (handle == nullptr) return nullptr;
  handle->Unset();
  Py_RETURN_NONE;
}

PyObject* ReadEnum(PyObject* self, PyObject*) {
  Enum* handle = HandleOf<Enum>(self);
  if (handle == nullptr) return nullptr;
  const std::string state = handle->Value();
  if (state.empty()) Py_RETURN_NONE;
  return TextFrom(state);
}

PyMethodDef info_methods[] = {
    {"_set", &Guarded<&SetInfo>, METH_O, "_set($self, texts, /)\n--\n\nReplaces the texts, pairs of a name and a value."},
    {"unset", &UnsetInfo, METH_NOARGS,
     "unset($self, /)\n--\n\nTakes the texts away: it is not exported until it is set again."},
    {"_remove", &Remove<Info>, METH_NOARGS, "_remove($self, /)\n--\n\nRemoves the series. Returns whether there was one."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef enum_methods[] = {
    {"_set", &SetEnum, METH_O,
     "_set($self, state, /)\n--\n\nChanges the state. An unknown one is ignored and counted as dropped."},
    {"unset", &UnsetEnum, METH_NOARGS,
     "unset($self, /)\n--\n\nTakes the state away: it is not exported until it is set again."},
    {"_remove", &Remove<Enum>, METH_NOARGS, "_remove($self, /)\n--\n\nRemoves the series. Returns whether there was one."},
    {"_read", &Guarded<&ReadEnum>, METH_NOARGS, "_read($self, /)\n--\n\nThe state, or None."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddTextTypes(PyObject* module) {
  return AddType<Info>(module, "persia_metrics._native.Info", &Guarded<&NewInfo>, info_methods,
                       "A series of texts, or with labels=None a family of them.") &&
         AddType<Enum>(module, "persia_metrics._native.Enum", &Guarded<&NewEnum>, enum_methods,
                       "A series of a state out of a few, or with labels=None a family of them.");
}

}  // namespace persia::metrics::python
