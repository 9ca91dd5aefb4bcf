import { spawn, type ChildProcess } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { setEngineOptions } from '../app/starting/engine-options.ts';
import { openStores, type Stores } from '../app/stores.ts';
import type { EventStore } from '../domain/event-store.ts';
import { newId } from '../domain/ids.ts';
import { createTaskCommand, requestManualRun } from '../domain/tasks/task-commands.ts';
import { requireTask, type LiveTask } from '../domain/tasks/task.ts';
import { taskDefaults, type TaskDefinition } from '../domain/tasks/task-definition.ts';
import type { CommandContext } from '../domain/handle.ts';
import { silent } from '../observability/telemetry.ts';
import { runsProjection } from '../projections/views/runs.ts';
import { projectRoot } from '../test/support/project-root.ts';
import { beforeBenchFoldersGo, makeBenchFolder, removeBenchFolder } from './bench-folder.ts';
import { cpuSecondsOf } from './process-figures.ts';

/** An agent that needs not exist: the commands are issued below the HTTP interface. */
const OWNER = newId(Date.now());

/** Between two looks at the views, as in the peers' benchmark. Milliseconds. */
const POLL = 5;

/** An empty store of its own, which this process writes to as an API process would. */
export class BenchStore {
  readonly directory: string;
  readonly stores: Stores;

  private constructor(directory: string, stores: Stores) {
    this.directory = directory;
    this.stores = stores;
  }

  /** @param kept a folder that is there, and stays; default: one that goes with {@link remove} */
  static async open(kept?: string): Promise<BenchStore> {
    setEngineOptions();
    const directory = kept ?? (await makeBenchFolder('service'));
    const settings = {
      dataDirectory: directory,
      eventStoreUrl: undefined,
      readModelUrl: undefined,
    };
    return new BenchStore(directory, await openStores(settings, silent));
  }

  get store(): EventStore {
    return this.stores.store;
  }

  async createTask(changes: Partial<TaskDefinition>): Promise<{ id: string; task: LiveTask }> {
    const id = newId(Date.now());
    const definition = { ...echoTask, ...changes } as TaskDefinition;
    const context = contextNow();
    const { state } = await createTaskCommand({
      store: this.store,
      taskId: id,
      definition,
      context,
    });
    return { id, task: requireTask(state) };
  }

  /** Requests one run. Resolves once that is durable. */
  async requestRun(id: string, task: LiveTask): Promise<string> {
    return (await requestManualRun(this.store, id, task, contextNow())).runId;
  }

  /** Until so many runs are in a state, as the view of runs tells it: recorded, projected, readable. */
  private async until(state: string, count: number): Promise<void> {
    const { readModel } = this.stores;
    const there = async (): Promise<boolean> =>
      (await readModel.liveGeneration(runsProjection)) !== null &&
      (await readModel.count(runsProjection, [{ field: 'state', op: 'eq', value: state }])) >=
        count;
    while (!(await there())) await pause(POLL);
  }

  untilQueued(count: number): Promise<void> {
    return this.until('queued', count);
  }

  untilEnded(count: number): Promise<void> {
    return this.until('succeeded', count);
  }

  /** Closes it; the folder stays. */
  close(): Promise<void> {
    return this.stores.close();
  }

  async remove(): Promise<void> {
    await this.close();
    await removeBenchFolder(this.directory);
  }
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

/** Further options of the service's Node, for looking closer: `BENCH_NODE_OPTIONS=--cpu-prof`. */
const furtherOptions = (process.env['BENCH_NODE_OPTIONS'] ?? '').split(' ').filter(Boolean);

/** The service, built, as a process of its own over the same store. */
export class BenchService {
  private readonly child: ChildProcess;
  readonly port: number;
  private stopping = false;

  private constructor(child: ChildProcess, port: number) {
    this.child = child;
    this.port = port;
  }

  /** @param entry what is started: the build, or `app/main.ts` with what translates it in `NODE_OPTIONS` */
  static async start(
    directory: string,
    settings: Readonly<Record<string, string>> = {},
    entry = 'dist/app/main.js',
  ): Promise<BenchService> {
    const env = {
      ...process.env,
      SVC_DATA_DIR: directory,
      SVC_PORT: '0',
      SVC_LOG_LEVEL: 'info',
      ...settings,
    };
    const child = spawn(process.execPath, [...furtherOptions, entry], {
      cwd: projectRoot,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const forget = beforeBenchFoldersGo(() => child.kill('SIGKILL'));
    child.once('exit', forget);
    const port = await new Promise<number>((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        const found = /"address":"http:\/\/[^"]*:(\d+)"/.exec(text);
        if (found) resolve(Number(found[1]));
      });
      child.once('exit', (code) => reject(new Error(`the service ended with ${code}:\n${text}`)));
    });
    const service = new BenchService(child, port);
    child.once('exit', (code) => {
      if (!service.stopping) throw new Error(`the service ended by itself, with ${code}`);
    });
    await service.untilReady();
    return service;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Seconds of processor time that the service has used in all its threads; NaN but on Linux. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.pid);
  }

  private async untilReady(): Promise<void> {
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${this.port}/health/ready`);
      await answer.arrayBuffer();
      if (answer.ok) return;
      await pause(10);
    }
  }

  async stop(): Promise<void> {
    this.stopping = true;
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
  }
}
