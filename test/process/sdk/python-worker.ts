import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../../support/project-root.ts';
import type { Credentials, ProcessEnd } from '../../support/service-process.ts';
import { Signal } from '../../support/signals.ts';

/** What a worker reports on standard output. */
export interface Said {
  readonly what: 'began' | 'ended' | 'canceled' | 'stopped';
  readonly key?: string;
  readonly attempt?: number;
}

/** The folder of the Python SDK. */
export const sdkFolder = join(projectRoot, 'sdk/python');

/** An environment without the settings of pip and Python that this machine may have. */
export function plainEnvironment(more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const { PATH = '' } = process.env;
  return { PATH, PYTHONDONTWRITEBYTECODE: '1', ...more };
}

/**
 * Creates a virtual environment and installs the SDK in it, without a package index.
 * @param folder an empty one
 * @returns the path of its interpreter
 */
export function installSdk(python: string, folder: string): string {
  const own = join(folder, 'bin/python');
  // `isolated` ignores settings that would make pip find packages elsewhere.
  const pip = ['-m', 'pip', '--isolated', '--disable-pip-version-check', 'install', '--no-index'];
  for (const [program, words] of [
    [python, ['-m', 'venv', folder]],
    [own, [...pip, sdkFolder]],
  ] as const) {
    const env = plainEnvironment({ HOME: folder });
    const { status, stdout, stderr } = spawnSync(program, words, { env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${words.join(' ')} failed: ${stdout}${stderr}`);
  }
  return own;
}

/** A real process of a Python worker. */
export class PythonWorker {
  readonly said = new Signal<Said>('the output of the worker');
  readonly #ended = new Signal<ProcessEnd>('the end of the worker');
  readonly #child: ChildProcess;
  #log = '';
  #partial = '';

  constructor(
    python: string,
    script: string,
    about: {
      readonly url: string;
      readonly name: string;
      /** The worker's working directory. */
      readonly folder: string;
      readonly credentials: Credentials;
    },
  ) {
    const { url, name, folder, credentials } = about;
    this.#child = spawn(python, [script], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: plainEnvironment({
        SVC_URL: url,
        SVC_AGENT_ID: credentials.agent_id,
        SVC_AGENT_SECRET: credentials.agent_secret,
        WORKER_NAME: name,
      }),
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    this.#child.once('close', (code, signal) => this.#ended.send({ code, signal }));
  }

  /** Its log so far. */
  get log(): string {
    return this.#log;
  }

  /** Ends it like a power failure. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended.wait();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  ended(): Promise<ProcessEnd> {
    return this.#ended.wait(undefined, { limitMs: 40_000, what: 'the worker to end' });
  }

  #read(text: string): void {
    const lines = (this.#partial + text).split('\n');
    this.#partial = lines.pop() ?? '';
    for (const line of lines) this.said.send(JSON.parse(line) as Said);
  }
}
