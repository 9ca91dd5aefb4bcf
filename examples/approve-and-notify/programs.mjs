// The processes of the demo: the service, workers, the command line, curl, and a carrier to call.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

export const project = join(import.meta.dirname, '../..');

/** The environment without settings of another service. */
const plain = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_')),
);

/** Starts processes, and ends those that are left. */
export class Programs {
  #running = new Set();
  #others = [];

  /**
   * Starts a process. What it writes to standard error is shown after its name; repeated lines once.
   * @returns `{pid, killed}`; `killed()` is `kill -9`
   */
  start(name, program, words, env) {
    const stdio = ['ignore', 'ignore', 'pipe'];
    const child = spawn(program, words, { cwd: project, stdio, env: { ...plain, ...env } });
    const end = once(child, 'exit');
    let last = '';
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line !== last) console.log(`  ${name}: ${line}`);
      last = line;
    });
    this.#running.add(child);
    void end.finally(() => this.#running.delete(child));
    const killed = async () => {
      child.kill('SIGKILL');
      await end;
    };
    return { pid: child.pid, killed };
  }

  /** Runs a process to its end. @returns its output @throws Error where it fails */
  async run(program, words, env) {
    const stdio = ['ignore', 'pipe', 'pipe'];
    const child = spawn(program, words, { cwd: project, stdio, env: { ...plain, ...env } });
    const [[code], output, errors] = await Promise.all([
      once(child, 'close'),
      text(child.stdout),
      text(child.stderr),
    ]);
    if (code === 0) return output;
    throw new Error(`${program} ${words.join(' ')} ended with ${code}: ${errors}${output}`);
  }

  /** @param stop called at the end */
  alsoStop(stop) {
    this.#others.push(stop);
  }

  /** Ends all that still run. */
  stop() {
    for (const stop of this.#others) stop();
    for (const child of this.#running) child.kill('SIGKILL');
  }
}

/** A port that is free now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A carrier: takes an order of a parcel, and will tell later how it went. */
export async function startCarrier() {
  const { promise: booked, resolve } = deferred();
  const server = createServer(async (request, response) => {
    resolve(JSON.parse(await text(request)));
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"booked":true}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/parcels`,
    booked,
    close: () => server.close(),
  };
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

/** Looks every 100 ms until there is something. @throws Error after 60 s */
export async function until(what, look) {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited for a minute: ${what}`);
}
