import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiClient } from './api-client.ts';
import { projectRoot } from './project-root.ts';
import { Signal, eventually, found } from './signals.ts';

/** How a process of the service exited. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Environment variables of the service; those of the tests' own environment are dropped. */
export type ServiceSettings = Readonly<Record<string, string>>;

export interface Credentials {
  readonly agent_id: string;
  readonly agent_secret: string;
}

/** Maximum start time of a process. Generous: both cores may be busy with other tests. */
const READY_LIMIT_MS = 30_000;
/** Maximum time for a process to exit after SIGTERM, drain included. */
const END_LIMIT_MS = 40_000;

let built = false;

/** Compiles the service once in a test run, if `dist/` is out of date. */
export function buildService(): void {
  if (built) return;
  const { status, stderr } = spawnSync(process.execPath, ['app/build.mjs', '--if-stale'], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the service does not compile: ${stderr}`);
  built = true;
}

/** A real process of the service, from the build, over stores of the test's choice. */
export class ServiceProcess {
  /** `http://127.0.0.1:<port>`; empty until it listens. */
  address = '';
  /** The process's log and other output. */
  readonly #output = new Signal<string>('the output of the service');
  readonly #lines = new LogLines();
  readonly #ended = new Signal<ProcessEnd>('the end of the service');
  readonly #child: ChildProcess;
  #client: ApiClient | undefined;

  private constructor(
    command: readonly [string, ...string[]],
    settings: ServiceSettings,
    folder?: string,
  ) {
    const [program, ...args] = command;
    this.#child = spawn(program, args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...strangersTo('SVC_', 'JWT_', 'NODE_ENV', 'OTEL_'), SVC_PORT: '0', ...settings },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#lines.add(text);
        this.#output.send(text);
      });
    }
    this.#child.once('error', (error) => this.#output.send(`could not be started: ${error}`));
    this.#child.once('close', (code, signal) => this.#ended.send({ code, signal }));
    alive.add(this);
    this.#child.once('close', () => {
      alive.delete(this);
      this.#client?.close();
    });
  }

  /**
   * Starts a process without waiting.
   * @param settings its environment: `SVC_DATA_DIR` and so on; `SVC_PORT` is any free port by
   * default
   * @param wrapper a program with its arguments that starts the service (`prlimit`, say)
   */
  static begin(settings: ServiceSettings, wrapper: readonly string[] = []): ServiceProcess {
    buildService();
    const service = [process.execPath, join(projectRoot, 'dist/app/main.js')];
    const [program = process.execPath, ...args] = [...wrapper, ...service];
    return new ServiceProcess([program, ...args], settings);
  }

  /** Starts the service by another command, such as that of an installed package, in a folder. */
  static beginCommand(
    command: readonly [string, ...string[]],
    folder: string,
    settings: ServiceSettings,
  ): ServiceProcess {
    return new ServiceProcess(command, settings, folder);
  }

  /** Starts a process and waits until it is ready. */
  static async start(
    settings: ServiceSettings,
    wrapper: readonly string[] = [],
  ): Promise<ServiceProcess> {
    const service = ServiceProcess.begin(settings, wrapper);
    await service.ready();
    return service;
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('the service could not be started');
    return this.#child.pid;
  }

  /** Its output so far. */
  get output(): string {
    return this.#output.values.join('');
  }

  /** How it exited; undefined while it runs. */
  get end(): ProcessEnd | undefined {
    return this.#ended.values[0];
  }

  /** The lines of its log so far, parsed. */
  get log(): readonly LogLine[] {
    return [...this.#lines.parsed];
  }

  /** Waits until it listens. Rejects if it exits instead. */
  async listening(limitMs = READY_LIMIT_MS): Promise<string> {
    const line = await found(
      () => {
        this.#refuseEnd();
        return this.log.find(({ message }) => message === 'listening');
      },
      { limitMs, what: 'the service to listen' },
    );
    this.address = String(line['address']);
    return this.address;
  }

  /** Waits until `/health/ready` reports it ready. Rejects if it exits instead. */
  async ready(limitMs = READY_LIMIT_MS): Promise<void> {
    await this.listening(limitMs);
    const client = this.client();
    await eventually(
      async () => {
        this.#refuseEnd();
        const { status, text } = await client.get('/health/ready');
        if (status !== 200) throw new Error(text);
      },
      // Each check slows the start down.
      { limitMs, what: 'the service to be ready', everyMs: 50 },
    );
  }

  /** A client, closed when the process exits. Call it once the process listens. */
  client(token: string | null = null): ApiClient {
    this.#client ??= ApiClient.readingOwnWrites(this.address);
    return this.#client.as(token);
  }

  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it like a power failure. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended();
  }

  /** Stops it gracefully. Returns how it exited. */
  terminate(): Promise<ProcessEnd> {
    this.#child.kill('SIGTERM');
    return this.ended();
  }

  /** Waits for its exit. */
  async ended(limitMs = END_LIMIT_MS): Promise<ProcessEnd> {
    try {
      return await this.#ended.wait(undefined, { limitMs, what: 'the service to end' });
    } catch (error) {
      throw new Error(`${String(error)}: ${this.output.slice(-4000)}`, { cause: error });
    }
  }

  #refuseEnd(): void {
    if (this.end === undefined) return;
    const { code, signal } = this.end;
    throw new Error(`the service ended (${code ?? signal}): ${this.output.slice(-2000)}`);
  }
}

type LogLine = Readonly<Record<string, unknown>>;

/** The lines of a log as they arrive. Each is parsed once, however often a test reads them. */
class LogLines {
  readonly parsed: LogLine[] = [];
  #rest = '';

  add(text: string): void {
    const lines = `${this.#rest}${text}`.split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('{')) continue;
      try {
        this.parsed.push(JSON.parse(line) as LogLine);
      } catch {
        // The line is incomplete, or does not belong to the log.
      }
    }
  }
}

/** The running processes. */
const alive = new Set<ServiceProcess>();

/** Called inside a `describe`: kills the processes that a test has left running. */
export function endsItsProcesses(): void {
  afterEach(killAll);
  after(killAll);
}

/** Called inside a `describe` whose tests share processes: kills those left running at its end. */
export function endsItsProcessesAtTheEnd(): void {
  after(killAll);
}

async function killAll(): Promise<void> {
  await Promise.all([...alive].map((service) => service.kill()));
}

/** The credentials of the first admin, as stored in the service's data directory. */
export function credentialsIn(dataDirectory: string): Credentials {
  const text = readFileSync(join(dataDirectory, 'admin-credentials.json'), 'utf8');
  return JSON.parse(text) as Credentials;
}

/** Logs in, and returns the access token. */
export async function signIn(client: ApiClient, credentials: Credentials): Promise<string> {
  const { status, json, text } = await client.post('/agents/auth/token', credentials);
  if (status !== 200) throw new Error(`no token: ${status} ${text}`);
  return json['access_token'] as string;
}

/** The environment without the variables that have this prefix. */
function strangersTo(...prefixes: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !prefixes.some((prefix) => name.startsWith(prefix)),
    ),
  );
}
