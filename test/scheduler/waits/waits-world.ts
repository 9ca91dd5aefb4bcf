import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { EventOf } from '../../../domain/events/catalogue.ts';
import { load } from '../../../domain/handle.ts';
import { requireRun, runFold, type KnownRun } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand, requestManualRun } from '../../../domain/tasks/task-commands.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { MemoryArtifacts } from '../../support/memory-artifacts.ts';
import { World } from '../scheduler-world.ts';
import { WaitsProcess } from './waits-process.ts';
import { accessTo, plainSecrets } from '../../support/test-secrets.ts';

/** Workers over one log, with everything that ends waits. */
export class WaitsWorld {
  readonly world: World;
  readonly processes: WaitsProcess[] = [];
  readonly artifacts = new MemoryArtifacts();
  /** Functions that end steps of the tool `hold`, by step. */
  readonly gates = new Map<string, { readonly resolve: () => void }>();
  /** The values of `${secrets.NAME}`. */
  readonly secretValues = new Map<string, string>();
  readonly hold = { held: false, missed: null };

  private constructor(world: World) {
    this.world = world;
  }

  static async open(): Promise<WaitsWorld> {
    return new WaitsWorld(await World.open());
  }

  readonly secrets = accessTo(plainSecrets(this.secretValues));

  get clock(): World['clock'] {
    return this.world.clock;
  }

  /** Starts a process. Resolves when it follows the log, and the first process leads. */
  async start(id: string, telemetry: Telemetry = silent): Promise<WaitsProcess> {
    const process = new WaitsProcess(this, id, telemetry);
    this.processes.push(process);
    await process.ready.wait();
    if (this.processes.length === 1) await process.untilLeading();
    await this.world.idle();
    return process;
  }

  /** A task that is run manually. */
  task(
    id: string,
    pipeline: readonly object[],
    fields: Partial<TaskDefinition> = {},
  ): Promise<void> {
    const rule = { schedule_kind: 'event', schedule_expr: null } as const;
    const payload = { pipeline } as unknown as TaskDefinition['payload'];
    return this.world.createTask(id, { ...rule, payload, ...fields });
  }

  async request(taskId: string): Promise<string> {
    const task = await this.world.task(taskId);
    const { runId } = await requestManualRun(this.world.store, taskId, task, this.world.context());
    await this.world.idle();
    return runId;
  }

  async cancel(runId: string): Promise<void> {
    await cancelRunCommand(this.world.store, runId, this.world.context());
    await this.world.idle();
  }

  /** Holds the service, or releases it. */
  async setHold(held: boolean): Promise<void> {
    this.hold.held = held;
    for (const process of this.processes) if (!process.store.dead) process.holdChanged();
    await this.world.idle();
  }

  async run(runId: string): Promise<KnownRun> {
    return requireRun((await load(this.world.store, streams.run(runId), runFold)).state);
  }

  /** The runs of a task, in the order of their requests. */
  async runsOf(taskId: string): Promise<readonly string[]> {
    const events = await this.world.events('run-');
    return events.flatMap((event) => {
      const isFirst = event.type === 'RunRequested' || event.type === 'RunSkipped';
      return isFirst && event.data.task_id === taskId ? [event.stream.slice('run-'.length)] : [];
    });
  }

  async eventsOf(runId: string): Promise<readonly RecordedEvent[]> {
    return this.world.store.readStream(streams.run(runId));
  }

  /** The types of a run's events, in order. */
  async typesOf(runId: string): Promise<readonly string[]> {
    return (await this.eventsOf(runId)).map(({ type }) => type.replace(/^Run/, ''));
  }

  /** How the waits of a run ended, in order. */
  async resumptionsOf(runId: string): Promise<readonly EventOf<'RunStepResumed'>['data'][]> {
    const events = await this.eventsOf(runId);
    return events.flatMap((event) => (event.type === 'RunStepResumed' ? [event.data] : []));
  }

  /** Lets time pass until a condition is met. @param atMost milliseconds */
  async until(condition: () => Promise<boolean>, atMost = 120_000): Promise<void> {
    for (let passed = 0; ; passed += 500) {
      await this.world.idle();
      if (await condition()) return;
      if (passed >= atMost) throw new Error(`not met within ${atMost} ms`);
      await this.clock.advance(500);
    }
  }

  async untilEnded(runId: string, atMost?: number): Promise<KnownRun> {
    const ended = ['succeeded', 'failed', 'canceled', 'skipped'];
    await this.until(async () => ended.includes((await this.run(runId)).state), atMost);
    return this.run(runId);
  }

  async untilState(runId: string, state: KnownRun['state']): Promise<void> {
    await this.until(async () => (await this.run(runId)).state === state);
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.stop();
    await this.world.close();
  }
}
