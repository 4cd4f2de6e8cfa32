"""The help as manual pages: one of the program, and one of each command."""


def _escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith((".", "'")) else text


def _entry(entry):
    flags, _, placeholder = entry.words.partition(" ")
    head = ", ".join(f"\\fB{_escape(flag)}\\fR" for flag in flags.split(","))
    if placeholder:
        head += f" \\fI{_escape(placeholder)}\\fR"
    return [".TP", head, "\n.br\n".join(_escape(line) for line in entry.text)]


def _paragraphs(lines):
    """A text; an indented line is kept as it is."""
    page, example = [], False
    for line in lines:
        if line.startswith("  ") != example:
            example = not example
            page.append(".PP\n.nf" if example else ".fi")
        page.append(_escape(line.removeprefix("  ")) if line else ".PP")
    if example:
        page.append(".fi")
    return page


_PROGRAM = "persia-metrics-agent"


def _head(name, version, summary, usages):
    title = f'.TH {_escape(name.upper())} 1 "" "{_escape(version)}" "User Commands"'
    synopsis = [line for usage in usages for line in (f"\\fB{_escape(usage)}\\fR", ".br")]
    return [title, ".SH NAME", f"{_escape(name)} \\- {_escape(summary[0].lower() + summary[1:].rstrip('.'))}", ".SH SYNOPSIS", *synopsis]


def _foot(whole, pages):
    settings = [".SH SETTINGS", *_paragraphs(whole.texts[""])]
    status = [".SH EXIT STATUS", *_paragraphs([line.strip() for line in whole.texts["Exit codes"]])]
    others = ",\n".join(f"\\fB{_escape(page)}\\fR(1)" for page in pages)
    documents = f"/usr/share/doc/{_PROGRAM} has all settings, all metrics of the agent, and README.Debian."
    return [*settings, *status, ".SH SEE ALSO", others, ".PP", _escape(documents)]


def _page_of_program(version, whole, commands):
    page = _head(_PROGRAM, version, whole.description, [help_.usage for help_ in commands.values()])
    page += [".SH DESCRIPTION", *_paragraphs([whole.description]), ".PP"]
    page += [_escape(f"{_PROGRAM}d is its second program, which it executes. It is not for direct use."), ".SH COMMANDS"]
    page += ["Each command has a separate page with its options."]
    page += [line for entry in whole.sections["Commands"] for line in _entry(entry)]
    page += [".SH OPTIONS"] + [line for entry in whole.sections["Options"] for line in _entry(entry)]
    page += [".SH EXAMPLES", *_paragraphs(whole.texts["Examples"])]
    return page + _foot(whole, [f"{_PROGRAM}-{name}" for name in commands])


def _page_of_command(version, whole, name, help_):
    page = _head(f"{_PROGRAM}-{name}", version, help_.description, [help_.usage])
    page += [".SH DESCRIPTION", _escape(help_.description) + ".", ".SH OPTIONS"]
    page += ["The last word in brackets is the default. A word after a dollar sign is the variable of the environment."]
    for i, (title, entries) in enumerate(help_.sections.items()):
        page += [] if i == 0 and title == "Options" else [f".SS {title}"]
        page += [line for entry in entries for line in _entry(entry)]
    page += [".SH NOTES", *_paragraphs(help_.texts.get("", []))] if help_.texts.get("") else []
    examples = [text for text in "\n".join(whole.texts["Examples"]).split("\n\n") if f"{_PROGRAM} {name} " in text]
    page += [".SH EXAMPLES", *_paragraphs("\n\n".join(examples).split("\n"))] if examples else []
    return page + _foot(whole, [_PROGRAM])


def man_pages(version, whole, commands):
    """The pages' texts by name. `version` is the output of --version."""
    pages = {_PROGRAM: _page_of_program(version, whole, commands)}
    pages |= {f"{_PROGRAM}-{name}": _page_of_command(version, whole, name, help_) for name, help_ in commands.items()}
    return {name: "\n".join(lines) + "\n" for name, lines in pages.items()}
