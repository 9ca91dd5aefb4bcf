#!/usr/bin/env node
import { lackOfFiles, mostOpenFiles } from './starting/open-files.ts';
import { endWithNpmShell } from './starting/npm-shell.ts';
import { errandOf, help } from './starting/process-arguments.ts';

/** The service as a process, and the other commands of the package by its first argument. */

// Whoever starts it, with whatever options of Node: stack traces name the TypeScript.
process.setSourceMapsEnabled(true);
endWithNpmShell();

const errand = errandOf(process.argv.slice(2));
switch (errand.kind) {
  case 'serve':
    await serveWithEnoughFiles();
    break;
  case 'command line':
    // As if `svc` had been started itself.
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
  case 'refuse':
    refuse(errand.message);
}

/** Checks the limit before the rest is loaded: loading alone has more files open at a time than a low limit allows. */
async function serveWithEnoughFiles(): Promise<void> {
  // Until the service itself heeds it. By default it ends a process: a certificate may be renewed during a start.
  process.on('SIGHUP', () => {});
  const lack = lackOfFiles(mostOpenFiles());
  if (lack !== null) return refuse(lack);
  const { serve } = await import('./service-process.ts');
  await serve();
}

function refuse(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 2;
}
