"""The help as a completion for bash."""

import shlex

_SCRIPT = r"""# Completion of persia-metrics-agent for bash, generated from its help.

_persia_metrics_agent() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
  # bash splits --flag=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W @FIRST@ -- "$current")
    return
  fi
  if [[ $command == exec ]]; then
    for ((i = 2; i < COMP_CWORD; ++i)); do
      if [[ ${COMP_WORDS[i]} == -- ]]; then
        _command_offset $((i + 1))
        return
      fi
    done
  fi
  case $previous in
@VALUES@
  esac
  case $command in
@FLAGS@
  esac
} && complete -F _persia_metrics_agent persia-metrics-agent
"""


def _branch(words, action):
    return f"    {'|'.join(words)}) {action} ;;"


def _value(placeholder):
    """The action that completes a value."""
    if placeholder == "FILE":
        return 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return'
    if placeholder == "DIR":
        return 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current"); return'
    if "|" in placeholder:
        return f"""mapfile -t COMPREPLY < <(compgen -W {shlex.quote(placeholder.replace("|", " "))} -- "$current"); return"""
    return "return"


def bash_completion(whole, commands):
    first = [*commands, *(flag for entry in whole.sections["Options"] for flag in entry.flags)]
    flags_by_action = {}
    for entry in dict.fromkeys(entry for help_ in commands.values() for entry in help_.entries()):
        if entry.flags and entry.placeholder:
            flags_by_action.setdefault(_value(entry.placeholder), []).extend(entry.flags)
    flags = []
    for name, help_ in commands.items():
        words = [flag for entry in help_.entries() for flag in entry.flags] + (["--"] if name == "exec" else [])
        flags.append(_branch([name], f'mapfile -t COMPREPLY < <(compgen -W {shlex.quote(" ".join(words))} -- "$current")'))
    return (
        _SCRIPT.replace("@FIRST@", shlex.quote(" ".join(first)))
        .replace("@VALUES@", "\n".join(_branch(flags, action) for action, flags in flags_by_action.items()))
        .replace("@FLAGS@", "\n".join(flags))
    )
