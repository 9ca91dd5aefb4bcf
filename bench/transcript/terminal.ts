import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '../../test/support/project-root.ts';

/** A command and its output. */
export interface Typed {
  readonly command: string;
  readonly output: string;
  readonly seconds: number;
  /** null if a signal ended it. */
  readonly code: number | null;
}

/** Runs commands in a folder, with the built `svc`. */
export class Terminal {
  readonly folder: string;
  readonly #programs: string;
  readonly #env: Readonly<Record<string, string>>;

  /** @param env more variables, such as `SVC_URL` */
  constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#env = env;
    this.#programs = join(folder, '.programs');
    mkdirSync(this.#programs, { recursive: true });
    this.#program('svc', 'dist/app/cli.js');
    this.#program('table', 'examples/analysis/table.mjs');
  }

  /** A program and not a shell function, so that `timeout` can start it. */
  #program(name: string, script: string): void {
    const line = `exec "${process.execPath}" "${join(projectRoot, script)}" "$@"`;
    writeFileSync(join(this.#programs, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  }

  /** Runs a command to its end, whatever its exit code. */
  type(command: string): Promise<Typed> {
    const { PATH = '', HOME = '' } = process.env;
    const path = `${this.#programs}:${PATH}`;
    const begun = performance.now();
    const child = spawn('bash', ['-o', 'pipefail', '-c', command], {
      cwd: this.folder,
      env: { PATH: path, HOME, NO_COLOR: '1', COLUMNS: '120', ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const take = (text: string): void => {
      output += text;
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        const seconds = (performance.now() - begun) / 1000;
        resolve({ command, output: this.#withoutMachine(output), seconds, code });
      });
    });
  }

  /** Removes the folder and host, so that the page is the same on every machine. */
  #withoutMachine(output: string): string {
    return output.replaceAll(`${this.folder}/`, '').replaceAll(hostname(), 'host');
  }
}
