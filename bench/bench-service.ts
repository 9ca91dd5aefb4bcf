import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { setEngineOptions } from '../app/starting/engine-options.ts';
import { openStores, type Stores, type StoreSettings } from '../app/stores.ts';
import { registerAgentCommand } from '../domain/agents/agent-registration.ts';
import { TASKS_SCOPE } from '../domain/agents/scopes.ts';
import type { EventStore } from '../domain/event-store.ts';
import type { CommandContext } from '../domain/handle.ts';
import { newId } from '../domain/ids.ts';
import { streams } from '../domain/streams.ts';
import {
  cancelTaskCommand,
  createTaskCommand,
  requestManualRun,
} from '../domain/tasks/task-commands.ts';
import { taskDefaults, type TaskDefinition } from '../domain/tasks/task-definition.ts';
import { requireTask, type LiveTask } from '../domain/tasks/task.ts';
import { silent } from '../observability/telemetry.ts';
import type { Projection } from '../projections/read-model.ts';
import { runsProjection } from '../projections/views/runs.ts';
import { projectRoot } from '../test/support/project-root.ts';
import { onBenchExit, withBenchFolder } from './bench-folder.ts';
import { cpuSecondsOf } from './process-figures.ts';

/** The agent that owns all tasks. */
const OWNER = newId(Date.now());

/** Milliseconds between two polls of a view, as in the peers' benchmark. */
const POLL_INTERVAL = 5;

/** A store that this process writes to as an API process would. */
export class BenchStore {
  readonly directory: string;
  readonly stores: Stores;
  #registering: Promise<unknown> | undefined;

  private constructor(directory: string, stores: Stores) {
    this.directory = directory;
    this.stores = stores;
  }

  /**
   * Opens the stores of a folder. The caller closes them.
   * @param servers default: the embedded stores
   */
  static async open(
    directory: string,
    servers: Partial<Pick<StoreSettings, 'eventStoreUrl' | 'readModelUrl'>> = {},
  ): Promise<BenchStore> {
    setEngineOptions();
    const settings = {
      dataDirectory: directory,
      eventStoreUrl: undefined,
      readModelUrl: undefined,
      ...servers,
    };
    return new BenchStore(directory, await openStores(settings, silent));
  }

  get store(): EventStore {
    return this.stores.store;
  }

  async createTask(changes: Partial<TaskDefinition>): Promise<{ id: string; task: LiveTask }> {
    const { store } = this;
    await (this.#registering ??= registerOwner(store));
    const id = newId(Date.now());
    const definition = { ...echoTask, ...changes } as TaskDefinition;
    const command = { store, taskId: id, definition, context: contextNow() };
    return { id, task: requireTask((await createTaskCommand(command)).state) };
  }

  /** Cancels a task, so that it does not fire again. */
  async cancelTask(id: string): Promise<void> {
    const command = { store: this.store, taskId: id, context: contextNow() };
    await cancelTaskCommand({ ...command, mayChange: () => {} });
  }

  /** Requests one run. Resolves when that is durable. */
  async requestRun(id: string, task: LiveTask): Promise<string> {
    return (await requestManualRun(this.store, id, task, contextNow())).runId;
  }

  /** Resolves when the given number of runs are readable in a state. */
  untilRuns(state: 'queued' | 'succeeded', count: number): Promise<void> {
    return this.untilDocuments(runsProjection, count, [{ field: 'state', op: 'eq', value: state }]);
  }

  /** Resolves when a view has the given number of documents. */
  async untilDocuments(
    projection: Projection,
    count: number,
    filters: Parameters<Stores['readModel']['count']>[1] = [],
  ): Promise<void> {
    const { readModel } = this.stores;
    while ((await readModel.liveGeneration(projection)) === null) await pause(POLL_INTERVAL);
    while ((await readModel.count(projection, filters)) < count) await pause(POLL_INTERVAL);
  }

  close(): Promise<void> {
    return this.stores.close();
  }
}

/** Registers the owner unless an earlier use of this store has. A worker looks its owner up for each run. */
async function registerOwner(store: EventStore): Promise<void> {
  const [known] = await store.readStream(streams.agent(OWNER), { limit: 1 });
  if (known !== undefined) return;
  const fields = { name: 'bench', scopes: [TASKS_SCOPE], webhook_url: null };
  await registerAgentCommand(store, OWNER, fields, null, contextNow());
}

/** Works with an empty store and removes it. */
export function withBenchStore<T>(work: (bench: BenchStore) => Promise<T>): Promise<T> {
  return withBenchFolder('service', async (folder) => {
    const bench = await BenchStore.open(folder);
    try {
      return await work(bench);
    } finally {
      await bench.close();
    }
  });
}

export const contextNow = (): CommandContext => {
  const now = Date.now();
  const id = newId(now);
  return { commandId: id, actor: OWNER, source: 'bench', correlationId: id, now };
};

const echoTask = {
  ...taskDefaults,
  title: 'echo',
  description: 'returns its input',
  schedule_kind: 'event',
  schedule_expr: 'bench.none',
  created_by: OWNER,
  payload: { pipeline: [{ uses: 'echo', with: { index: 1 } }] },
};

/** More options for the service's Node, such as `BENCH_NODE_OPTIONS=--cpu-prof`. */
const nodeOptions = (process.env['BENCH_NODE_OPTIONS'] ?? '').split(' ').filter(Boolean);

/** The built service as a process. */
export class BenchService {
  readonly #child: ChildProcess;
  readonly port: number;
  #isStopping = false;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
    child.once('exit', (code) => {
      if (!this.#isStopping) throw new Error(`the service ended by itself, with ${code}`);
    });
  }

  /**
   * Starts the service and waits until it is ready.
   * @param entry the build, or `app/main.ts` with a loader in `NODE_OPTIONS`
   */
  static async start(
    directory: string,
    settings: Readonly<Record<string, string>> = {},
    entry = 'dist/app/main.js',
  ): Promise<BenchService> {
    const own = { SVC_DATA_DIR: directory, SVC_PORT: '0', SVC_LOG_LEVEL: 'info' };
    const child = spawn(process.execPath, [...nodeOptions, entry], {
      cwd: projectRoot,
      env: { ...process.env, ...own, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.once(
      'exit',
      onBenchExit(() => child.kill('SIGKILL')),
    );
    const port = await new Promise<number>((resolve, reject) => {
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const found = /"address":"http:\/\/[^"]*:(\d+)"/.exec(output);
        if (found) resolve(Number(found[1]));
      });
      child.once('exit', (code) => reject(new Error(`the service ended with ${code}:\n${output}`)));
    });
    const service = new BenchService(child, port);
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${port}/health/ready`);
      await response.arrayBuffer();
      if (response.ok) return service;
      await pause(10);
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Seconds of processor time of all its threads; NaN except on Linux. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.pid);
  }

  /** The service's processor time over some seconds, in percent of one core. */
  async cpuPercent(seconds: number): Promise<number> {
    const before = this.cpuSeconds();
    await pause(seconds * 1000);
    return ((this.cpuSeconds() - before) / seconds) * 100;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}

/** The seconds that some work takes. */
export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}
