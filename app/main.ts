#!/usr/bin/env node
import { tooFewOpenFiles, maxOpenFiles } from './starting/open-files.ts';
import { endWithNpmShell } from './starting/npm-shell.ts';
import { parseArguments, help } from './starting/process-arguments.ts';

// The service as a process, and the package's other commands.

// Stack traces name the TypeScript, whatever Node's options are.
process.setSourceMapsEnabled(true);
endWithNpmShell();

const action = parseArguments(process.argv.slice(2));
switch (action.kind) {
  case 'serve':
    await serveWithEnoughFiles();
    break;
  case 'command line':
    // As if `svc` had been started.
    process.argv.splice(2, 1);
    await import('./cli.ts');
    break;
  case 'demo':
    await import('./demo.ts');
    break;
  case 'help':
    process.stdout.write(help);
    break;
  case 'version':
    process.stdout.write(`${(await import('./version.ts')).version}\n`);
    break;
  case 'reject':
    reject(action.message);
}

/** Checks the limit of open files first, because loading the service can already exceed it. */
async function serveWithEnoughFiles(): Promise<void> {
  // By default SIGHUP ends a process. The service handles it later, but a certificate can be renewed during the start.
  process.on('SIGHUP', () => {});
  const problem = tooFewOpenFiles(maxOpenFiles());
  if (problem !== null) return reject(problem);
  const { serve } = await import('./service-process.ts');
  await serve();
}

function reject(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 2;
}
