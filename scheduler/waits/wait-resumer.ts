import { keptResult, type ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import { isConflict } from '../../domain/event-store.ts';
import { RefusalError } from '../../domain/errors.ts';
import { handle, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { toPlainJson } from '../../domain/pipeline/json-size.ts';
import { pipelineSecrets, type SecretValues } from '../../domain/pipeline/pipeline-secrets.ts';
import { resumeStep, type Resumption } from '../../domain/runs/run-waits.ts';
import { runFold } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { RunParts } from '../runs/run-work.ts';
import type { QueuedRun } from '../runs/queued-run.ts';

export type ResumerParts = Pick<RunParts, 'store' | 'queue' | 'tasks' | 'clock'> & {
  /** This process, in the metadata. */
  readonly source: string;
  /** Values to mask. */
  readonly secrets: SecretValues;
  /** Stores large results. Default: they are cut. */
  readonly artifacts?: ArtifactKeeping | undefined;
};

/** Ends of a wait whose value comes from outside, so that it may contain a secret of the run's task. */
const broughtIn: ReadonlySet<string> = new Set<Resumption['by']['kind']>(['event', 'run']);

/** Ends the waits of runs in this process's queue, each once, as decided by the append. */
export class WaitResumer {
  readonly #parts: ResumerParts;

  constructor(parts: ResumerParts) {
    this.#parts = parts;
  }

  /**
   * Ends a wait at the run's revision that this process knows; after a lost race, at the revision of the stream. The
   * secrets of the run's task are masked, and a large result becomes an artifact.
   * @returns false if the wait has ended in another way
   * @throws EventStoreError, except for lost races; ArtifactError; SecretError
   */
  async resume(run: QueuedRun, waitId: string, given: Resumption): Promise<boolean> {
    const resumption = broughtIn.has(given.by.kind) ? await this.#kept(run, given) : given;
    const { store, queue, clock, source } = this.#parts;
    const now = clock.now();
    const context = { commandId: newId(now), actor: 'service', source, correlationId: run.id, now };
    const stream = streams.run(run.id);
    try {
      const event = resumeStep(run.waits, waitId, resumption);
      const { revision } = await store.append(
        stream,
        toNewEvents(stream, [event], context),
        run.revision,
      );
      // If the run is executed here, its execution learns of the event from the log.
      if (!run.taken) queue.applied(run, event, revision);
      return true;
    } catch (error) {
      if (error instanceof RefusalError) return false;
      if (!isConflict(error)) throw error;
      return this.#resumeInStream(stream, waitId, resumption, context);
    }
  }

  async #kept(run: QueuedRun, given: Resumption): Promise<Resumption> {
    const { tasks, secrets: values, artifacts } = this.#parts;
    const { taskId, taskRevision } = run;
    const task = tasks.peek(taskId, taskRevision) ?? (await tasks.at(taskId, taskRevision));
    const payload = task.definition.payload as JsonObject;
    const secrets = await pipelineSecrets(payload, task.namespace, values);
    const masked = secrets.mask(given) as Resumption;
    if (masked.result === undefined) return masked;
    const { value: result } = await keptResult(artifacts, run, toPlainJson(masked.result));
    return { ...masked, result };
  }

  async #resumeInStream(
    stream: string,
    waitId: string,
    resumption: Resumption,
    context: CommandContext,
  ): Promise<boolean> {
    const { store } = this.#parts;
    const { events } = await handle({
      store,
      stream,
      fold: runFold,
      decide: (state) => {
        const waits = 'request' in state ? state.waits : [];
        const isOpen = waits.some((wait) => wait.wait_id === waitId && wait.resumed === null);
        return isOpen ? [resumeStep(waits, waitId, resumption)] : [];
      },
      context,
    });
    return events.length > 0;
  }
}
