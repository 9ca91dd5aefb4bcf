// `npm run coverage`: compiles the service and its tests to an empty `coverage/build`, and measures them there.
// With tsx, the line numbers would be wrong.

import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const project = join(import.meta.dirname, '..');
const { resolve } = createRequire(import.meta.url);

/** Runs a program of a package with this Node. If its exit code is not 0, this process ends with it. */
function run(program, ...args) {
  const { status } = spawnSync(process.execPath, [program, ...args], {
    cwd: project,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

rmSync(join(project, 'coverage'), { recursive: true, force: true });
run(join(dirname(resolve('typescript/package.json')), 'bin/tsc'), '-p', 'tsconfig.coverage.json');
run(
  join(dirname(resolve('c8/package.json')), 'bin/c8.js'),
  ...['--config', '.c8rc.json', process.execPath, 'node_modules/mocha/bin/mocha.js', '--no-config'],
  ...['--extension', 'test.js', '--recursive', '--forbid-only', '--timeout', '20000'],
  'coverage/build/test',
);
