import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PositionWaiter } from '../../projections/reading/position-waiter.ts';
import { startThread } from '../../stores/sqlite/start-thread.ts';
import type { Stores } from '../stores.ts';
import type { LeadingViews } from '../watching/leading-views.ts';
import { reportProblem, reportWork } from './projector-failures.ts';
import { runProjector } from './projector-host.ts';
import type {
  ProjectorThreadData,
  ToProjectorThread,
  ProjectorMessage,
} from './projector-protocol.ts';

export interface RunningProjector {
  stop(): Promise<void>;
}

/**
 * The limit of the heap of the projector's thread, in MiB. Folding creates many short-lived objects: a larger young
 * generation copies fewer of them, but beyond this size cache misses cost more.
 */
export const PROJECTOR_HEAP = { maxYoungGenerationSizeMb: 48 } as const;

/** Milliseconds after which another projector replaces a dead one. */
const LEASE_MS = 3000;

/** The message that reports a crash. */
const CRASHED = 'the projector crashed; restarting';

/** Milliseconds before a crashed projector is restarted. */
const RESTART_DELAY_MS = 1000;

/** A projector that has run this long works again. Longer than the lease that it needs to lead. Milliseconds. */
const STABLE_AFTER_MS = 10_000;

/** The settings that a projector needs, as a message to its thread. */
export function projectorData(
  configuration: ProjectorThreadData['settings'],
  identity: Pick<ProjectorThreadData, 'version' | 'owner'>,
): ProjectorThreadData {
  const { dataDirectory, eventStoreUrl, readModelUrl, logLevel, roles, traces } = configuration;
  const settings = { dataDirectory, eventStoreUrl, readModelUrl, logLevel, roles, traces };
  return { settings, lease: LEASE_MS, ...identity };
}

/**
 * Starts the projector: in a thread of its own if the views are embedded, as folding into files keeps a thread busy; in
 * this thread if they are on a server. Restarts it if it crashes.
 */
export function startProjector(options: {
  readonly data: ProjectorThreadData;
  /** Used if it has no separate thread, because a process reads the log only once. They stay open. */
  readonly stores: Stores;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Notified of the positions that the views have reached. */
  readonly positions: Pick<PositionWaiter, 'notify'>;
  /** Receives the status of the views while this process's projector leads, then null. */
  readonly views: Pick<LeadingViews, 'update'>;
}): RunningProjector {
  const { data, stores, clock, telemetry, positions, views } = options;
  const stop = new AbortController();
  const send = (message: ProjectorMessage): void => {
    switch (message.kind) {
      case 'checkpoints':
        for (const [name, position] of message.views) positions.notify(name, position);
        break;
      case 'status':
        views.update(message.leads ? message.views : null);
        break;
      case 'count':
        telemetry.count(message.name, message.labels, message.by);
        break;
      case 'observe':
        telemetry.observe(message.name, message.value, message.labels);
        break;
      case 'work':
        reportWork(telemetry.failures, message);
        break;
      case 'problem':
        reportProblem(telemetry.failures, 'could not build views', message);
        break;
    }
  };
  const runOnce = (): Promise<void> =>
    data.settings.readModelUrl === undefined
      ? runInThread(data, stop.signal, send)
      : runProjector({ data, stores, clock, signal: stop.signal, send, traces: telemetry.traces });
  const running = (async () => {
    while (!stop.signal.aborted) {
      const stable = (): void => telemetry.failures.worked(CRASHED);
      const forget = clock.after(STABLE_AFTER_MS, stable, { background: true });
      try {
        await runOnce().finally(forget);
      } catch (error) {
        if (stop.signal.aborted) throw error;
        telemetry.failures.failed(CRASHED, error);
        await clock.sleep(RESTART_DELAY_MS, stop.signal).catch(() => {});
      }
    }
  })();
  return {
    async stop() {
      stop.abort();
      await running;
    },
  };
}

function runInThread(
  data: ProjectorThreadData,
  signal: AbortSignal,
  onMessage: (message: ProjectorMessage) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const thread: Worker = startThread('./projector-thread', import.meta.url, data, PROJECTOR_HEAP);
    const stop = (): void => {
      thread.postMessage({ kind: 'stop' } satisfies ToProjectorThread);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    thread.on('message', onMessage);
    thread.once('error', reject);
    thread.once('exit', (code) => {
      signal.removeEventListener('abort', stop);
      if (code === 0) resolve();
      else reject(new Error(`the projector's thread exited with code ${code}`));
    });
  });
}
