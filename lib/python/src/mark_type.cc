// The module's type Mark: a phase that persia_metrics.torch enters and leaves, except inside marks that count the same time.
//
// A thread's marks nest. Each has a kind, one bit, and a mask of kinds: it is left out inside a mark of any of them, as a
// model's modules are inside the model. Inside a phase that the program has entered itself it is entered silently: it leaves
// out others, but the time belongs to the program's phase.

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "instrument.h"
#include "native.h"
#include "persia/metrics/phase.h"
#include "phase_track.h"

namespace persia::metrics::python {
namespace {

struct Entered {
  uint32_t kind = 0;
  uint32_t kinds = 0;        // its own, and those around it
  uint32_t phase_depth = 0;  // in it
  bool is_silent = false;    // the program's phase has the time
  bool has_phase = false;    // that is left with it
};

// The marks that a thread is in. Trivially destructible, so that it may be used as long as the thread lives.
struct Nest {
  std::array<Entered, 16> entered;  // the first one is no mark; its kinds: all, if the thread enters none
  uint32_t depth = 0;

  [[nodiscard]] const Entered& Innermost() const { return entered[depth]; }
};

thread_local constinit Nest nest;

// No mark is entered any more in this process and those that it forks.
constinit std::atomic<bool> all_are_left_out = false;

struct Mark {
  std::string name;
  uint32_t kind;
  uint32_t left_out_in;
  bool in_programs_phases;
  bool made;  // the phase is made when the mark is first entered: a process without marks has no phases
  Phase phase;
};

bool IsLeftOut(const Mark& mark) {
  if (all_are_left_out.load(std::memory_order_relaxed)) return true;
  return (nest.Innermost().kinds & mark.left_out_in) != 0 || nest.depth + 1 == nest.entered.size();
}

PyObject* NewMark(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {const_cast<char*>("name"), const_cast<char*>("kind"), const_cast<char*>("left_out_in"),
                          const_cast<char*>("in_programs_phases"), nullptr};
  PyObject* name;
  unsigned int kind = 0;
  unsigned int left_out_in = 0;
  int in_programs_phases = 0;
  std::string_view text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OII|p:Mark", names, &name, &kind, &left_out_in, &in_programs_phases) ||
      !TextOf(name, "name", &text))
    return nullptr;
  return Make(type, true, Mark{std::string(text), kind, left_out_in, in_programs_phases != 0, false, Phase()});
}

PyObject* AskMark(PyObject* self, PyObject*) { return PyBool_FromLong(IsLeftOut(*HandleOf<Mark>(self)) ? 1 : 0); }

PyObject* EnterMark(PyObject* self, PyObject*) {
  Mark& mark = *HandleOf<Mark>(self);
  if (IsLeftOut(mark)) Py_RETURN_FALSE;
  const Entered& around = nest.Innermost();
  const bool is_silent = around.is_silent || PhaseDepth() != around.phase_depth;
  const bool has_phase = !is_silent || mark.in_programs_phases;
  if (has_phase) {
    if (!mark.made) {
      mark.phase = Phase(mark.name);
      mark.made = true;
    }
    mark.phase.Enter();
  }
  const uint32_t kinds = around.kinds | mark.kind;
  nest.entered[++nest.depth] = {mark.kind, kinds, PhaseDepth(), is_silent, has_phase};
  Py_RETURN_TRUE;
}

// Nothing happens if the innermost mark of the thread is another one.
PyObject* LeaveMark(PyObject* self, PyObject*) {
  const Mark& mark = *HandleOf<Mark>(self);
  if (nest.depth == 0 || nest.Innermost().kind != mark.kind) Py_RETURN_FALSE;
  const bool has_phase = nest.Innermost().has_phase;
  --nest.depth;
  if (has_phase) mark.phase.Leave();
  Py_RETURN_TRUE;
}

PyObject* LeaveOutMarks(PyObject*, PyObject* thread_alone) {
  if (thread_alone == Py_True)
    nest.entered[0].kinds = UINT32_MAX;
  else
    all_are_left_out.store(true, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

PyMethodDef mark_methods[] = {
    {"is_left_out", &AskMark, METH_NOARGS, "is_left_out($self, /)\n--\n\nWhether enter() would do nothing now."},
    {"enter", &EnterMark, METH_NOARGS,
     "enter($self, /)\n--\n\nEnters the phase, unless the program is in one of its own. False: it is left out."},
    {"leave", &LeaveMark, METH_NOARGS,
     "leave($self, /)\n--\n\nLeaves the phase. False: the thread's innermost mark is another one."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef mark_functions[] = {{"leave_out_marks", &LeaveOutMarks, METH_O,
                                 "leave_out_marks(thread_alone, /)\n--\n\nFrom now on, no mark is entered in this process and "
                                 "those that it forks; or in the calling thread, which must be in none."},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddMarkType(PyObject* module) {
  static const int forks = pthread_atfork(nullptr, nullptr, [] { nest.depth = 0; });
  (void)forks;  // without memory for it, a forked child goes on inside its parent's marks
  return AddType<Mark>(module, "persia_metrics._native.Mark", &Guarded<&NewMark>, mark_methods,
                       "A phase of persia_metrics.torch.") &&
         PyModule_AddFunctions(module, mark_functions) == 0;
}

}  // namespace persia::metrics::python
