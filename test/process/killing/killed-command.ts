import { createCommandLine } from '../../../app/cli/commands.ts';
import { SystemClock } from '../../../app/clock.ts';

/**
 * `svc` as a process that dies by SIGKILL at the first output on standard error that contains a
 * given string. It pretends to have a terminal, so that bars are written too. Arguments: the
 * string, then the words of the command.
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
