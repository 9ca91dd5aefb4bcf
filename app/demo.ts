import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError } from '../api/client/client.ts';
import { createTelemetry } from '../observability/create-telemetry.ts';
import { SystemClock } from './clock.ts';
import { readConfiguration } from './configuration/configuration.ts';
import { startReceiver, type Received } from './demo/demo-receiver.ts';
import { DemoError, DemoScenario, type DemoOutcome } from './demo/demo-scenario.ts';
import { runsTable, streamTable } from './demo/demo-tables.ts';
import { problemsOf } from './demo/demo-check.ts';
import { startService } from './service.ts';
import { endWithNpmShell } from './starting/npm-shell.ts';

/**
 * `npm run demo`: a service for a few seconds on a temporary store and port. Exit code 0 if all went as expected, 1 if
 * something did not (which it prints), 130 if it was interrupted. Leaves nothing behind.
 */
async function main(): Promise<number> {
  const stop = stopOnSignals();
  try {
    const { outcome, received } = await inDemoService(stop);
    return report(outcome, received);
  } catch (error) {
    if (stop.aborted) {
      say('\nStopped.');
      return 130;
    }
    const isExpected = error instanceof DemoError || error instanceof ApiError;
    const message = isExpected ? error.message : String(error);
    process.stderr.write(`The demo failed: ${message}\n`);
    return 1;
  }
}

interface Played {
  readonly outcome: DemoOutcome;
  readonly received: readonly Received[];
}

/** Plays the scenario with a temporary service and receiver. */
async function inDemoService(signal: AbortSignal): Promise<Played> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  try {
    const receiver = await startReceiver();
    try {
      return await serveAndPlay(directory, receiver, signal);
    } finally {
      await receiver.close();
    }
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function serveAndPlay(
  directory: string,
  receiver: { readonly address: string; readonly received: readonly Received[] },
  signal: AbortSignal,
): Promise<Played> {
  const clock = new SystemClock();
  const configuration = readConfiguration({
    SVC_PORT: '0',
    SVC_DATA_DIR: directory,
    SVC_LOG_LEVEL: 'error',
    // The receiver is on this machine.
    SVC_HTTP_ALLOW_PRIVATE: 'true',
  });
  const telemetry = createTelemetry({ level: configuration.logLevel });
  const service = await startService({
    configuration,
    clock,
    telemetry,
    env: {},
  });
  try {
    signal.throwIfAborted();
    say(`A service on ${service.address}, with its data in ${directory}\n`);
    const admin = await service.firstAdmin;
    if (admin === null) throw new DemoError('an empty store has no first agent');
    const scenario = new DemoScenario({
      admin,
      address: service.address,
      store: service.stores.store,
      receiver: receiver.address,
      clock,
      signal,
      say: (line) => say(`  ${line}`),
    });
    return { outcome: await scenario.play(), received: receiver.received };
  } finally {
    await service.stop();
  }
}

/** Prints the outcome. Returns the exit code. */
function report(outcome: DemoOutcome, received: readonly Received[]): number {
  say('\nThe runs: GET /runs\n');
  say(runsTable(outcome.tasks));
  const [first] = outcome.calling;
  if (first !== undefined) {
    say(`\nThe run that called twice, in the log: ${first.stream}\n`);
    say(streamTable(outcome.calling));
  }
  const problems = problemsOf(outcome, received);
  if (problems.length > 0) {
    process.stderr.write(`\nNot as expected:\n${problems.map((each) => `- ${each}\n`).join('')}`);
    return 1;
  }
  const runs = outcome.tasks.reduce((sum, { seen }) => sum + seen.length, 0);
  say(`\nAs expected: ${outcome.tasks.length} tasks, ${runs} runs, ${received.length} calls.`);
  say('The service is stopped and its data deleted. What to try next:\n');
  say('  npm start                  a service that keeps running and prints its first call;');
  say('                             from the installed package: npx task-scheduling-service');
  say('  README.md                  a task of your own, by curl');
  say('  docs/README.md             the map of the documentation');
  return 0;
}

/** Aborted by Ctrl-C, SIGTERM, the end of the terminal, or a closed pipe (`… | head`). */
function stopOnSignals(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  }
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error) => stop.abort(error));
  }
  return stop.signal;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

endWithNpmShell();
process.exitCode = await main();
