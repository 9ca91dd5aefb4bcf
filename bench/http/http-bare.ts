import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onBenchExit } from '../bench-folder.ts';

/** The work of a bare Express server. */
export interface BareOrder {
  /** The responses to `GET /tasks/:id`, by id. */
  readonly answers: Readonly<Record<string, string>>;
  /** The database of `POST /tasks`. */
  readonly file: string;
}

/** A bare Express server as a process. */
interface BareServer {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts the server that the service is compared with; see `http-bare-process.ts`. */
export async function startBareServer(order: BareOrder): Promise<BareServer> {
  const child = fork(fileURLToPath(new URL('http-bare-process.ts', import.meta.url)), {
    // The service has this option too.
    execArgv: [...process.execArgv, '--enable-source-maps'],
  });
  const forget = onBenchExit(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit').finally(forget);
  const listening = once(child, 'message') as Promise<[number]>;
  child.send(order);
  const failed = ended.then(([code]): never => {
    throw new Error(`the bare server ended with ${String(code)}`);
  });
  const [port] = await Promise.race([listening, failed]);
  // From here on its end is expected.
  failed.catch(() => undefined);
  return {
    port,
    pid: child.pid ?? 0,
    async stop() {
      child.kill();
      await ended;
    },
  };
}
