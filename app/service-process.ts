import { serverProblemOf } from '../domain/server-problem.ts';
import { createTelemetry } from '../observability/create-telemetry.ts';
import type { Log } from '../observability/telemetry.ts';
import { SystemClock } from './clock.ts';
import { readConfiguration, type Configuration } from './configuration/configuration.ts';
import { withSecretFiles } from './configuration/secret-files.ts';
import { announce } from './starting/announcement.ts';
import { greeting } from './starting/greeting.ts';
import { requireAddress } from './roles/serving.ts';
import { limitIdleCollections } from './starting/idle-memory.ts';
import { createFilesPrivately } from './starting/private-files.ts';
import { setEngineOptions } from './starting/engine-options.ts';
import { useSqliteTempFolder } from './starting/sqlite-temp-folder.ts';
import type { RunningService } from './running-service.ts';
import { startService } from './service.ts';
import { version } from './version.ts';
import { ConfigurationError } from './configuration/setting-readers.ts';
import { openTraces, withTraces } from './watching/traces.ts';

/**
 * Runs the service as a process, with its settings from the environment. SIGTERM and SIGINT stop it with exit code 0;
 * SIGHUP reloads certificates and keys. A failed start prints one line; the exit code is 2 for an invalid setting.
 */
export async function serve(): Promise<void> {
  try {
    await run();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // One line: a stack trace does not help with an invalid setting.
    process.stderr.write(`${message.split('\n', 1)[0]}\n`);
    process.exit(error instanceof ConfigurationError ? 2 : 1);
  }
}

async function run(): Promise<void> {
  createFilesPrivately();
  ignoreOutputErrors();
  limitIdleCollections();
  setEngineOptions();
  const configuration = readConfiguration(withSecretFiles(process.env));
  await requireAddress(configuration);
  useSqliteTempFolder(configuration.dataDirectory);
  const bare = createTelemetry({ level: configuration.logLevel });
  for (const warning of configuration.warnings) bare.log.warn(warning);
  const traces = await openTraces(configuration.traces, { version, ...bare });
  const telemetry = withTraces(bare, traces);
  const starting = startService({
    configuration,
    clock: new SystemClock(),
    telemetry,
    env: process.env,
  });
  // Signals are handled from here on, as the service fires tasks and answers requests before its start is complete.
  let withdraw = (): void => {};
  stopOnSignals(async () => {
    const service = await starting;
    withdraw();
    await service.stop();
    await traces.close();
  }, telemetry.log);
  reloadOnHangup(starting, telemetry.log);
  const service = await starting;
  telemetry.log.info('listening', {
    address: service.address,
    version,
    roles: configuration.roles,
  });
  withdraw = announced(service, configuration, telemetry.log);
  void showProblems(service);
  await greet(service, configuration);
}

/** Records the service's address in the data directory, for `svc`. A failure is only logged. @returns removes it */
function announced(service: RunningService, configuration: Configuration, log: Log): () => void {
  if (!configuration.roles.includes('api')) return () => {};
  try {
    const remove = announce(configuration.dataDirectory, service, new Date().toISOString());
    return () => {
      try {
        remove();
      } catch (error) {
        // Harmless: svc checks the address before it uses it.
        log.warn('could not remove the address for svc', { error });
      }
    };
  } catch (error) {
    log.warn('could not record the address for svc; set SVC_URL for it', { error });
    return () => {};
  }
}

/** Keeps the process alive when its standard output or error is closed or full. */
function ignoreOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

/** The first signal stops the service once it has started; further ones have no effect. */
function stopOnSignals(stop: () => Promise<void>, log: Log): void {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      log.info('stopping', { signal });
      stop().then(
        () => {
          log.info('stopped');
          process.exit(0);
        },
        (error: unknown) => {
          log.error('could not stop cleanly', { error });
          process.exit(1);
        },
      );
    });
  }
}

/** SIGHUP reloads certificates and keys. */
function reloadOnHangup(starting: Promise<RunningService>, log: Log): void {
  const reload = (service: RunningService): void => {
    try {
      service.reload(readConfiguration(withSecretFiles(process.env)));
      log.info('reread certificates and keys');
    } catch (error) {
      // The service continues with its present keys.
      log.error('could not reread certificates and keys, kept the previous ones', { error });
    }
  };
  // A failed start reports itself.
  process.on('SIGHUP', () => void starting.then(reload, () => {}));
}

/** Prints which servers cannot be used, if only a person can fix that. The log says the same. Never rejects. */
async function showProblems({ stores }: RunningService): Promise<void> {
  const { store, readModel } = stores;
  const results = await Promise.allSettled([store.ping(), readModel.ping()]);
  for (const result of results) {
    const problem = result.status === 'rejected' ? serverProblemOf(result.reason) : null;
    if (problem?.lasting !== true) continue;
    const { message, remedy } = problem;
    process.stdout.write(`\nNot usable: ${message}.\nWhat to do: ${remedy}.\n\n`);
  }
}

/** Prints the address and the first steps. */
async function greet(service: RunningService, configuration: Configuration): Promise<void> {
  if (!configuration.roles.includes('api')) return;
  const admin = await service.firstAdmin;
  process.stdout.write(`\n${greeting(service.address, admin, configuration)}\n\n`);
}
