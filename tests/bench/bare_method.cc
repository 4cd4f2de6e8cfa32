// The floor of tests/bench/python_calls.py: a method of a C extension that does nothing.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace {

PyObject* Call(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyMethodDef methods[] = {{"call", &Call, METH_NOARGS, "Does nothing."},
                         {"call_with", &Call, METH_O, "Does nothing, with an argument."},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot type_slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
PyType_Spec spec = {"bare_method.Bare", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, type_slots};

int Execute(PyObject* module) {
  PyObject* type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  const int added = type == nullptr ? -1 : PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type));
  Py_XDECREF(type);
  return added;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&Execute)}, {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bare_method", nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_bare_method() { return PyModuleDef_Init(&definition); }
