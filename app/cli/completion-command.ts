import { Argument, type Command } from 'commander';
import type { CommandLine } from './program.ts';

/** A command by its words, such as `tasks list`, and the words that can follow. */
interface CompletedCommand {
  readonly path: string;
  readonly commands: readonly string[];
  readonly options: readonly string[];
  /** Options with a value, and their choices; none means any value. */
  readonly values: readonly {
    readonly flags: readonly string[];
    readonly choices: readonly string[];
  }[];
}

/** `svc completion` */
export function addCompletionCommand(line: CommandLine): void {
  const command = line.program
    .command('completion')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']));
  line.define(command, {
    description: 'print a completion script for a shell',
    examples: [
      'completion bash > ~/.local/share/bash-completion/completions/svc',
      'completion zsh > "${fpath[1]}/_svc"',
    ],
    run: async (session, _, [shell]) => {
      const tree = commandsOf(line.program);
      session.line(shell === 'zsh' ? zshScript(tree) : bashScript(tree));
    },
  });
}

function commandsOf(
  command: Command,
  words: readonly string[] = [],
  inherited: readonly string[] = [],
): CompletedCommand[] {
  const options = command.options.flatMap(namesOf);
  const values = command.options
    .filter(({ required, optional }) => required || optional)
    .map((option) => ({ flags: namesOf(option), choices: option.argChoices ?? [] }));
  const completed: CompletedCommand = {
    path: words.join(' '),
    commands: command.commands.map((each) => each.name()),
    options: [...options, '--help', ...inherited],
    values,
  };
  const below = words.length === 0 ? options : inherited;
  return [
    completed,
    ...command.commands.flatMap((each) => commandsOf(each, [...words, each.name()], below)),
  ];
}

const namesOf = (option: Command['options'][number]): string[] =>
  [option.short, option.long].filter((name) => name !== undefined && name !== null);

/** A `case` branch for each command: the words that can follow, and its options with a value. */
function cases(tree: readonly CompletedCommand[], indent: string): string {
  const global = tree[0]?.values ?? [];
  return tree
    .map(({ path, commands, options, values }) => {
      const all = path === '' ? values : [...values, ...global];
      const takes = all.flatMap(({ flags }) => flags).join(' ');
      const chosen = all
        .filter(({ choices }) => choices.length > 0)
        .map(({ flags, choices }) => `${flags.join('|')}) choices='${choices.join(' ')}' ;;`)
        .join(' ');
      const choose = chosen === '' ? '' : ` case "$previous" in ${chosen} esac;`;
      return `${indent}'${path}') commands='${commands.join(' ')}'; options='${options.join(' ')}'; takes=' ${takes} ';${choose} ;;`;
    })
    .join('\n');
}

function bashScript(tree: readonly CompletedCommand[]): string {
  return `# Completion of svc for bash: source it, or put it among the completions of the system.
_svc_lookup() {
  commands='' options='' takes='' choices=''
  case "$path" in
${cases(tree, '    ')}
  esac
}
_svc() {
  local path='' commands options takes choices previous='' word index=1
  local current="\${COMP_WORDS[COMP_CWORD]}"
  _svc_lookup
  while (( index < COMP_CWORD )); do
    word="\${COMP_WORDS[index]}"
    if [[ "$takes" == *" $previous "* && -n "$previous" ]]; then previous=''
    elif [[ "$word" == -* ]]; then previous="$word"
    elif [[ " $commands " == *" $word "* ]]; then path="\${path:+$path }$word"; previous=''
    else previous=''; fi
    _svc_lookup
    (( index += 1 ))
  done
  if [[ -n "$choices" ]]; then COMPREPLY=( $(compgen -W "$choices" -- "$current") )
  elif [[ -n "$previous" && "$takes" == *" $previous "* ]]; then COMPREPLY=( $(compgen -f -- "$current") )
  elif [[ "$current" == -* ]]; then COMPREPLY=( $(compgen -W "$options" -- "$current") )
  else COMPREPLY=( $(compgen -W "$commands" -- "$current") ); fi
}
complete -F _svc svc`;
}

function zshScript(tree: readonly CompletedCommand[]): string {
  return `#compdef svc
# Completion of svc for zsh: put it into a folder of $fpath as _svc.
_svc_lookup() {
  commands='' options='' takes='' choices=''
  case "$path_" in
${cases(tree, '    ')}
  esac
}
_svc() {
  local path_='' commands options takes choices previous='' word
  local -i index=2
  _svc_lookup
  while (( index < CURRENT )); do
    word="\${words[index]}"
    if [[ -n "$previous" && "$takes" == *" $previous "* ]]; then previous=''
    elif [[ "$word" == -* ]]; then previous="$word"
    elif [[ " $commands " == *" $word "* ]]; then path_="\${path_:+$path_ }$word"; previous=''
    else previous=''; fi
    _svc_lookup
    (( index += 1 ))
  done
  if [[ -n "$choices" ]]; then compadd -- \${=choices}
  elif [[ -n "$previous" && "$takes" == *" $previous "* ]]; then _files
  elif [[ "\${words[CURRENT]}" == -* ]]; then compadd -- \${=options}
  else compadd -- \${=commands}; fi
}
if [[ "$funcstack[1]" == _svc ]]; then _svc "$@"; else compdef _svc svc; fi`;
}
