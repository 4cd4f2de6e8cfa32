"""The help as a manual page."""


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


def man_page(version, whole, commands):
    """`version` is the output of --version."""
    # Options that all commands have, with the same meaning.
    common = set.intersection(*(set(help_.entries()) for help_ in commands.values()))
    page = [f'.TH PERSIA\\-METRICS\\-AGENT 1 "" "{_escape(version)}" "User Commands"']
    summary = whole.description[0].lower() + whole.description[1:].rstrip(".")
    page += [".SH NAME", f"persia\\-metrics\\-agent \\- {_escape(summary)}", ".SH SYNOPSIS"]
    for help_ in commands.values():
        page += [f"\\fB{_escape(help_.usage)}\\fR", ".br"]
    page += [".SH DESCRIPTION", *_paragraphs([whole.description]), ".PP"]
    page += ["persia\\-metrics\\-agentd is its second program, which it executes. It is not for direct use.", ".SH COMMANDS"]
    shared = set.intersection(*({"\n".join(help_.texts.get("", []))[:40]} for help_ in commands.values()))
    for name, help_ in commands.items():
        page += [f".SS {_escape(name)}", _escape(help_.description) + "."]
        for entry in help_.entries():
            if entry not in common:
                page += _entry(entry)
        own = "\n".join(help_.texts.get("", [])).split("\n\n")[1 if shared else 0 :]
        for text in own:
            page += [".PP", *_paragraphs(text.split("\n"))]
    first = next(iter(commands.values()))
    page += [".SH OPTIONS", "All commands have these options. The last word in brackets is the default."]
    for title, entries in first.sections.items():
        entries = [entry for entry in entries if entry in common]
        if entries:
            page += [f".SS {title}"] + [line for entry in entries for line in _entry(entry)]
    page += [".SS Without a command"] + [line for entry in whole.sections["Options"] for line in _entry(entry)]
    if shared:
        page += [".SS Secrets", *_paragraphs("\n".join(first.texts[""]).split("\n\n")[0].split("\n"))]
    page += [".SH EXAMPLES", *_paragraphs(whole.texts["Examples"])]
    page += [".SH SETTINGS", *_paragraphs(whole.texts[""])]
    page += [".SH EXIT STATUS", *_paragraphs([line.strip() for line in whole.texts["Exit codes"]])]
    documents = "has all settings, all metrics of the agent, and README.Debian."
    page += [".SH SEE ALSO", "/usr/share/doc/persia\\-metrics\\-agent " + documents]
    return "\n".join(page) + "\n"
