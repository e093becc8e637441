"""The completion script of each shell, from what the commands take."""

from collections.abc import Callable, Iterable, Sequence

from tools.launcher.cli.completion_words import CommandWords, Word

_HEAD = "# Completion of `launcher`. Written by `tools/bazel run //tools/launcher -- completion {shell}`.\n"

_NOWHERE = "launcher: $PWD is in no checkout of Slipway, which would have tools/bazel. Go into one"
_RUN = "tools/bazel run --ui_event_filters=-info --noshow_progress --show_result=0 //tools/launcher --"

_FUNCTION = f"""if ! command -v launcher >/dev/null 2>&1; then
  launcher() {{
    local root=$PWD
    while [ ! -x "$root/tools/bazel" ]; do
      if [ -z "$root" ]; then printf '%s\\n' "{_NOWHERE}" >&2; return 2; fi
      root=${{root%/*}}
    done
    "$root"/{_RUN} "$@"
  }}
fi
"""

_FISH_FUNCTION = f"""type -q launcher; or function launcher
  set -l root $PWD
  while not test -x "$root/tools/bazel"
    if test -z "$root"; echo "{_NOWHERE}" >&2; return 2; end
    set root (string replace -r '/[^/]*$' '' -- $root)
  end
  $root/{_RUN} $argv
end
# Not __fish_seen_subcommand_from: `local status` has the word of another command.
function __launcher_command
  set -l typed (commandline -opc)
  test (count $typed) -gt 1; and test "$typed[2]" = $argv[1]
end"""

_BASH = """_launcher() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{commands}' -- "$word"))
    return
  fi
  # `--flag=value` are three words to bash.
  if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  case "$command $before" in
{values}
  esac
  case "$command" in
{flags}
  esac
}}
complete -o default -F _launcher launcher
"""

_ZSH = """_launcher() {{
  local -a words_here choices_here
  local files_here= word=$words[CURRENT] before=$words[CURRENT-1] command=$words[2]
  if (( CURRENT == 2 )); then
    words_here=(
{commands}
    )
    _describe command words_here
    return
  fi
  if [[ $word == --*=* ]]; then
    before=${{word%%=*}}
    compset -P '*='
  fi
  case "$command $before" in
{values}
  esac
  case $command in
{flags}
  esac
  if [[ $word != -* ]] && (( $#choices_here )); then
    compadd -- $choices_here
  elif [[ $word != -* && -n $files_here ]]; then
    _files
  else
    _describe flag words_here
  fi
}}
compdef _launcher launcher
"""


def bash_script(commands: Sequence[CommandWords]) -> str:
    """Return what bash reads."""
    values = [
        f"    {_either(command, words)})\n"
        f"      COMPREPLY=($(compgen -W '{' '.join(choices)}' -- \"$word\"))\n      return ;;"
        for command in commands
        for choices, words in _by_choices(command)
    ]
    # A value that nobody can list is a file, or the user's to know: bash completes files then.
    values += [f"    {_either(command, _free(command))}) return ;;" for command in commands if _free(command)]
    flags = [
        f"    {command.name}) COMPREPLY=($(compgen -W '{' '.join(_typed(command))}' -- \"$word\")) ;;"
        for command in commands
    ]
    return (
        _HEAD.format(shell="bash")
        + _FUNCTION
        + _BASH.format(
            commands=" ".join(command.name for command in commands),
            values="\n".join(values),
            flags="\n".join(flags),
        )
    )


def zsh_script(commands: Sequence[CommandWords]) -> str:
    """Return what zsh reads."""
    values = [
        f"    {_either(command, words)}) compadd -- {' '.join(choices)}; return ;;"
        for command in commands
        for choices, words in _by_choices(command)
    ]
    values += [
        f"    {_either(command, free)}) {'_files' if path else "_message 'a value'"}; return ;;"
        for command in commands
        for path in (True, False)
        if (free := [word for word in _free(command) if word.takes_path == path])
    ]
    flags = []
    for command in commands:
        described = " ".join(_quoted(f"{word.name}:{word.help}") for word in command.flags)
        choices = " ".join(choice for word in command.positional for choice in word.choices)
        more = f" choices_here=({choices})" if choices else ""
        more += " files_here=yes" if any(word.takes_path for word in command.positional) else ""
        flags.append(f"    {command.name}) words_here=({described}){more} ;;")
    return (
        _HEAD.format(shell="zsh")
        + _FUNCTION
        + _ZSH.format(
            commands="\n".join(f"      {_quoted(f'{command.name}:{command.help}')}" for command in commands),
            values="\n".join(values),
            flags="\n".join(flags),
        )
    )


def fish_script(commands: Sequence[CommandWords]) -> str:
    """Return what fish reads."""
    lines = [
        _HEAD.format(shell="fish").rstrip("\n"),
        _FISH_FUNCTION,
        "complete -c launcher -f",
    ]
    for command in commands:
        seen = f"-n '__launcher_command {command.name}'"
        lines.append(
            "complete -c launcher -n 'test (count (commandline -opc)) -eq 1' "
            f"-a {command.name} -d {_fish(command.help)}"
        )
        for word in command.flags:
            lines.append(
                f"complete -c launcher {seen} -l {word.name.removeprefix('--')} -d {_fish(word.help)}"
                + (" -r -F" if word.takes_path else " -x" if word.takes_value else "")
                + (f" -a {_fish(' '.join(word.choices))}" if word.choices else "")
            )
        for word in command.positional:
            if word.choices:
                lines.append(f"complete -c launcher {seen} -a {_fish(' '.join(word.choices))}")
            elif word.takes_path:
                lines.append(f"complete -c launcher {seen} -F")
    return "\n".join(lines) + "\n"


SCRIPTS: dict[str, Callable[[Sequence[CommandWords]], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
"""Shell -> its script."""


def _typed(command: CommandWords) -> list[str]:
    """What may follow a command: the values of its positional arguments, and its flags."""
    return [choice for word in command.positional for choice in word.choices] + [
        word.name for word in command.flags
    ]


def _by_choices(command: CommandWords) -> list[tuple[tuple[str, ...], list[Word]]]:
    """The flags that take one of a few values, together where the values are the same."""
    found: dict[tuple[str, ...], list[Word]] = {}
    for word in command.flags:
        if word.choices:
            found.setdefault(word.choices, []).append(word)
    return list(found.items())


def _free(command: CommandWords) -> list[Word]:
    """The flags that take any value."""
    return [word for word in command.flags if word.takes_value and not word.choices]


def _either(command: CommandWords, words: Iterable[Word]) -> str:
    """A pattern of `case` that fits each of these flags of a command."""
    return " | ".join(f'"{command.name} {word.name}"' for word in words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
