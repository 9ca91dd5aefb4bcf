// Loaded before a command: kills the process by SIGKILL at the first output on standard error that contains the string
// in SVC_TEST_KILL_AT. Pretends that it is a terminal, so that bars are written too. Plain JavaScript, because compiling
// it would take longer than the command.

import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const text = process.env.SVC_TEST_KILL_AT;
  if (!text) throw new Error('SVC_TEST_KILL_AT must be a string of the output');
  const { stderr } = process;
  const write = stderr.write.bind(stderr);
  stderr.isTTY = true;
  stderr.columns = 100;
  stderr.write = (said, ...rest) => {
    if (String(said).includes(text)) process.kill(process.pid, 'SIGKILL');
    return write(said, ...rest);
  };
}
