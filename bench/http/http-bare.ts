import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { beforeBenchFoldersGo } from '../bench-folder.ts';

/** What a bare Express server is to do. */
export interface BareOrder {
  /** What `GET /tasks/:id` answers, by the id. */
  readonly answers: Readonly<Record<string, string>>;
  /** Where `POST /tasks` keeps what it is sent. */
  readonly file: string;
}

/** A bare Express server, as a process of its own. */
export interface BareServer {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts what a service is measured beside; see `http-bare-process.ts`. */
export async function startBareServer(order: BareOrder): Promise<BareServer> {
  const child = fork(fileURLToPath(new URL('http-bare-process.ts', import.meta.url)), {
    // As the service does.
    execArgv: [...process.execArgv, '--enable-source-maps'],
  });
  const forget = beforeBenchFoldersGo(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit').finally(forget);
  const listening = once(child, 'message') as Promise<[number]>;
  child.send(order);
  const failed = ended.then(([code]): never => {
    throw new Error(`the bare server ended with ${String(code)}`);
  });
  const [port] = await Promise.race([listening, failed]);
  // From here on it ends when it is told to.
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
