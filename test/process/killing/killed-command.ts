import { createCommandLine } from '../../../app/cli/commands.ts';
import { SystemClock } from '../../../app/clock.ts';

/**
 * `svc` as a process that dies by SIGKILL in the midst of what it does: at once when what it writes beside its answer
 * has the given text in it. On a pretended terminal, so that bars are written too.
 *
 * Arguments: the text, then the words of the command.
 */
const [text = '', ...words] = process.argv.slice(2);

const line = createCommandLine(
  {
    env: process.env,
    out: { write: (said) => void process.stdout.write(said), isTerminal: false, columns: 100 },
    err: {
      write(said) {
        if (text !== '' && said.includes(text)) process.kill(process.pid, 'SIGKILL');
        process.stderr.write(said);
      },
      isTerminal: true,
      columns: 100,
    },
    input: async () => '',
    clock: new SystemClock(),
    signal: new AbortController().signal,
  },
  '1.2.3',
);
process.exitCode = await line.run(words);
