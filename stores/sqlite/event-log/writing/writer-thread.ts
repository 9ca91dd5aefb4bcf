import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import {
  IncompatibleDatabaseError,
  describeFault,
  faultOf,
  type Database,
} from '../../database.ts';
import { WalCheckpointer, type CheckpointLimits } from '../../wal-checkpointer.ts';
import { LogWriter, UnsureCommitError } from './log-writer.ts';
import type {
  WriteFailure,
  WriteSequence,
  WriterAnswer,
  WriterRequest,
  WriterSettings,
} from './protocol.ts';
import { rehearseInMemory } from '../burst/rehearsal.ts';
import { LOG, openLogForWriting } from '../schema.ts';

/**
 * Appends per transaction: a quarter of the waiting ones. Callers of the first can then prepare the next ones while the
 * others are written. They are at least enough to make a disk sync cheap, and few enough for quick answers.
 */
const MIN_APPENDS = 200;
const MAX_APPENDS = 1_000;
const WAITING_FRACTION = 4;
/** A transaction ends early after about this many characters. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Moving more at once would stall a busy writer. */
const CHECKPOINT_LIMITS: CheckpointLimits = {
  busyPages: 8_000,
  idlePages: 2_000,
  busyCalls: 16,
  idleCalls: 4,
  patience: 10,
};
/** Most truncations per transaction. */
const MAX_TRUNCATIONS = 100;

type Task = WriteSequence | Exclude<WriterRequest, { readonly kind: 'appends' }>;

type TruncateTask = Extract<Task, { readonly kind: 'truncate' }>;

interface OpenLog {
  readonly database: Database;
  readonly writer: LogWriter;
  readonly checkpoints: WalCheckpointer;
}

/**
 * The thread through which a process writes the log, so that waiting for the disk or for other processes never blocks the
 * event loop. Requests that arrive during a commit go into the next one together.
 */
class WriterThread {
  readonly #port: MessagePort;
  readonly #settings: WriterSettings;
  readonly #tasks: Task[] = [];
  /** Sequences waiting in the queue. */
  #waiting = 0;
  #open: OpenLog | undefined;

  constructor(port: MessagePort, settings: WriterSettings) {
    this.#port = port;
    this.#settings = settings;
  }

  start(): void {
    try {
      this.#open = this.#openLog(this.#settings.create);
    } catch (error) {
      this.#answer({
        kind: 'refused',
        message:
          error instanceof IncompatibleDatabaseError
            ? error.message
            : describeFault(LOG, this.#settings.file, error),
        incompatible: error instanceof IncompatibleDatabaseError,
      });
      this.#port.close();
      return;
    }
    this.#port.on('message', (request: WriterRequest) => {
      this.#take(request);
      this.#work();
    });
    this.#answer({ kind: 'ready' });
  }

  #openLog(create: boolean): OpenLog {
    const { file, maxBytes, lockTimeout } = this.#settings;
    const database = openLogForWriting(file, create, maxBytes);
    try {
      const writer = new LogWriter(database, lockTimeout);
      return { database, writer, checkpoints: new WalCheckpointer(database, CHECKPOINT_LIMITS) };
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #take(request: WriterRequest): void {
    if (request.kind === 'appends') {
      for (const sequence of request.sequences) this.#tasks.push(sequence);
      this.#waiting += request.sequences.length;
    } else {
      this.#tasks.push(request);
    }
  }

  /** Handles all requests, including requests that arrive in the meantime. */
  #work(): void {
    for (;;) {
      this.#receive();
      const [task] = this.#tasks;
      if (task === undefined) {
        this.#checkpoint(true);
        return;
      }
      if ('appends' in task) {
        this.#write();
      } else {
        this.#tasks.shift();
        if (task.kind === 'close') return this.#close();
        if (task.kind === 'truncate') this.#truncate(task);
        else if (task.kind === 'rehearse') this.#rehearse(task);
        else this.#answer({ kind: 'done', ticket: task.ticket });
      }
      this.#checkpoint(false);
    }
  }

  /** Takes messages that arrived in the meantime. */
  #receive(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      this.#take(received.message as WriterRequest);
    }
  }

  /** The next sequences that fit into one transaction, at least one. */
  #nextBatch(): WriteSequence[] {
    const limit = Math.min(
      MAX_APPENDS,
      Math.max(MIN_APPENDS, Math.ceil(this.#waiting / WAITING_FRACTION)),
    );
    const batch: WriteSequence[] = [];
    let characters = 0;
    while (batch.length < limit && characters < MAX_CHARACTERS) {
      const [task] = this.#tasks;
      if (task === undefined || !('appends' in task)) break;
      this.#tasks.shift();
      batch.push(task);
      for (const { events } of task.appends) {
        for (const { data, metadata } of events) characters += data.length + metadata.length;
      }
    }
    this.#waiting -= batch.length;
    return batch;
  }

  /** Writes the next sequences, including those that arrive while another process holds the lock. */
  #write(): void {
    let sequences: readonly WriteSequence[] | undefined;
    const take = (): readonly WriteSequence[] => {
      this.#receive();
      return (sequences = this.#nextBatch());
    };
    try {
      this.#answer({ kind: 'appended', ...this.#opened().writer.write(take) });
    } catch (error) {
      const failure = this.#fail(error);
      for (const { ticket } of sequences ?? this.#nextBatch()) {
        this.#answer({ kind: 'failed', ticket, failure });
      }
    }
  }

  /** Truncates, together with further truncations right behind it; a long one in steps. */
  #truncate(first: TruncateTask): void {
    const cuts = [first];
    for (let [next] = this.#tasks; isTruncation(next); [next] = this.#tasks) {
      if (cuts.length === MAX_TRUNCATIONS) break;
      cuts.push(next);
      this.#tasks.shift();
    }
    try {
      const done = this.#opened().writer.truncate(cuts);
      for (const { ticket } of cuts.slice(0, done)) this.#answer({ kind: 'done', ticket });
      const [unfinished, ...untouched] = cuts.slice(done);
      if (unfinished === undefined) return;
      this.#tasks.unshift(...untouched);
      this.#requeue(unfinished);
    } catch (error) {
      const failure = this.#fail(error);
      for (const { ticket, stream } of cuts) {
        this.#answer({ kind: 'failed', ticket, failure: { stream, ...failure } });
      }
    }
  }

  /** Requeues the rest of a task behind all waiting ones, but before the end. */
  #requeue(task: Task): void {
    const end = this.#tasks.findIndex(isEnd);
    this.#tasks.splice(end === -1 ? this.#tasks.length : end, 0, task);
  }

  #rehearse({ ticket, sequences }: Extract<Task, { readonly kind: 'rehearse' }>): void {
    const fault = rehearseInMemory(sequences, this.#settings.lockTimeout);
    if (fault !== undefined) this.#answer({ kind: 'warning', message: fault });
    this.#answer({ kind: 'done', ticket });
  }

  /** The log, reopened after a fault, but never created anew. */
  #opened(): OpenLog {
    this.#open ??= this.#openLog(false);
    return this.#open;
  }

  /** Describes a failed transaction, and drops a connection that may have suffered. */
  #fail(error: unknown): WriteFailure {
    const unsure = error instanceof UnsureCommitError;
    const fault = faultOf(error);
    if (fault !== 'busy' && fault !== 'full') {
      try {
        this.#open?.database.close();
      } catch (closing) {
        this.#warn(closing);
      }
      this.#open = undefined;
    }
    return {
      code: unsure ? 'OUTCOME_UNKNOWN' : 'UNAVAILABLE',
      message: describeFault(LOG, this.#settings.file, unsure ? error.cause : error),
    };
  }

  #checkpoint(idle: boolean): void {
    try {
      this.#open?.checkpoints.run(idle);
    } catch (error) {
      this.#warn(error);
    }
  }

  #close(): void {
    try {
      // The driver keeps the file open until its statements are collected. A copy of a stopped service's file would
      // otherwise lack the last commits.
      this.#open?.database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      this.#open?.database.close();
    } catch (error) {
      this.#warn(error);
    }
    this.#open = undefined;
    this.#port.close();
  }

  #warn(error: unknown): void {
    this.#answer({ kind: 'warning', message: describeFault(LOG, this.#settings.file, error) });
  }

  #answer(answer: WriterAnswer): void {
    this.#port.postMessage(answer);
  }
}

function isEnd(task: Task): boolean {
  return 'kind' in task && task.kind === 'close';
}

function isTruncation(task: Task | undefined): task is TruncateTask {
  return task !== undefined && 'kind' in task && task.kind === 'truncate';
}

if (parentPort === null) throw new Error('this module is the entry of a thread');
new WriterThread(parentPort, workerData as WriterSettings).start();
