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
import { Checkpoints, type CheckpointLimits } from '../../checkpoints.ts';
import { LogWriter, UnsureCommit } from './log-writer.ts';
import {
  PackedSequences,
  type WriteFailure,
  type WriteSequence,
  type WriterAnswer,
  type WriterRequest,
  type WriterSettings,
} from './protocol.ts';
import { WalRoom } from './wal-room.ts';
import { LOG, openLogForWriting, openLogInMemory } from '../schema.ts';

/**
 * How many appends go into one transaction: a quarter of those that wait, so that the first are answered,
 * and their callers prepare the next, while the others are being written; but enough to make waiting for
 * the disk cheap, and few enough to be answered soon.
 */
const FEWEST_APPENDS = 200;
const MOST_APPENDS = 1_000;
const SHARE = 4;
/** Bytes of a transaction, about, above which it is closed early. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** To move more at once would stall a busy writer for longer; a commit may bring some hundred pages. */
const LIMITS: CheckpointLimits = {
  ...{ busyPages: 8_000, idlePages: 2_000 },
  ...{ busyCalls: 16, idleCalls: 4 },
  patience: 10,
};
/** Tasks that are done and have not been forgotten, at most. */
const MOST_DONE = 16;
/** Streams that one transaction cuts at most. */
const MOST_CUTS = 100;

type Task = PackedSequences | Exclude<WriterRequest, { readonly kind: 'appends' }>;

type MakingRoom = Extract<Task, { readonly kind: 'make-room' }>;
type Truncation = Extract<Task, { readonly kind: 'truncate' }>;

/** An open log. */
interface Open {
  readonly database: Database;
  readonly writer: LogWriter;
  readonly checkpoints: Checkpoints;
  readonly room: WalRoom;
}

/**
 * The thread through which a process writes the log, so that waiting for the disk or for another
 * process never stops its event loop. What is asked while a transaction is being made durable goes into
 * the next one together.
 */
class WriterThread {
  readonly #port: MessagePort;
  readonly #settings: WriterSettings;
  readonly #tasks: Task[] = [];
  /** Index of the first task not done yet. */
  #next = 0;
  /** Sequences among them. */
  #waiting = 0;
  #open: Open | undefined;

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

  #openLog(create: boolean): Open {
    const { file, maxBytes, lockTimeout } = this.#settings;
    const database = openLogForWriting(file, create, maxBytes);
    try {
      const writer = new LogWriter(database, lockTimeout);
      const checkpoints = new Checkpoints(database, LIMITS);
      return { database, writer, checkpoints, room: new WalRoom(file) };
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #take(request: WriterRequest): void {
    if (request.kind === 'appends') {
      const { packed } = request;
      this.#tasks.push(new PackedSequences(packed));
      this.#waiting += packed.size;
    } else {
      this.#tasks.push(request);
    }
  }

  /** Everything that has been asked, also what comes meanwhile. */
  #work(): void {
    for (;;) {
      this.#receive();
      if (this.#next >= MOST_DONE) this.#forgetDone();
      const task = this.#tasks[this.#next];
      if (task === undefined) {
        this.#forgetDone();
        this.#checkpoint(true);
        return;
      }
      if (task instanceof PackedSequences) {
        this.#write();
      } else {
        this.#next += 1;
        if (task.kind === 'close') return this.#close();
        if (task.kind === 'truncate') this.#truncate(task);
        else if (task.kind === 'make-room') this.#makeRoom(task);
        else if (task.kind === 'rehearse') this.#rehearse(task);
        else this.#answer({ kind: 'done', ticket: task.ticket });
      }
      this.#checkpoint(false);
    }
  }

  /** Takes what was sent meanwhile. */
  #receive(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      this.#take(received.message as WriterRequest);
    }
  }

  /** What is done holds its texts: a queue that is never empty would keep all that ever went through it. */
  #forgetDone(): void {
    this.#tasks.splice(0, this.#next);
    this.#next = 0;
  }

  /** As many of the next sequences as fit into one transaction; at least one. */
  #nextBatch(): WriteSequence[] {
    const most = Math.min(MOST_APPENDS, Math.max(FEWEST_APPENDS, Math.ceil(this.#waiting / SHARE)));
    const batch: WriteSequence[] = [];
    let characters = 0;
    while (batch.length < most && characters < MAX_CHARACTERS) {
      const task = this.#tasks[this.#next];
      if (!(task instanceof PackedSequences)) break;
      const before = task.characters;
      batch.push(task.take());
      characters += task.characters - before;
      if (task.left === 0) this.#next += 1;
    }
    this.#waiting -= batch.length;
    return batch;
  }

  /** The next sequences, also those that come while another process keeps the lock. */
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
        this.#answer({ kind: 'failed', failure: { ticket, ...failure } });
      }
    }
  }

  /**
   * It, and those that wait right behind it, in one commit; of a long one a part.
   */
  #truncate(first: Truncation): void {
    const cuts = [first];
    for (let next = this.#tasks[this.#next]; isTruncation(next); next = this.#tasks[this.#next]) {
      if (cuts.length === MOST_CUTS) break;
      cuts.push(next);
      this.#next += 1;
    }
    try {
      const done = this.#opened().writer.truncate(cuts);
      for (const { ticket } of cuts.slice(0, done)) this.#answer({ kind: 'done', ticket });
      const [begun, ...untouched] = cuts.slice(done);
      if (begun === undefined) return;
      this.#next -= untouched.length;
      this.#goOnLater(begun);
    } catch (error) {
      const failure = this.#fail(error);
      for (const { ticket, stream } of cuts) {
        this.#answer({ kind: 'failed', failure: { ticket, stream, ...failure } });
      }
    }
  }

  /** Puts what is left of a task behind all that waits, whose callers shall not wait for the whole; before the end. */
  #goOnLater(task: Task): void {
    const end = this.#tasks.findIndex(isEnd);
    this.#tasks.splice(end === -1 ? this.#tasks.length : end, 0, task);
  }

  /** A part of it; the rest behind all that waits, unless that is the end. */
  #makeRoom(task: MakingRoom): void {
    try {
      const { writer, room } = this.#opened();
      const isMore = room.grow((work) => writer.alone(work));
      if (isMore && !this.#tasks.some(isEnd)) return this.#goOnLater(task);
    } catch (error) {
      // What could not be made ready is made by the commits that need it.
      this.#answer({ kind: 'warning', message: this.#fail(error).message });
    }
    this.#answer({ kind: 'done', ticket: task.ticket });
  }

  /** Nothing of it comes near the log. */
  #rehearse(task: Extract<Task, { readonly kind: 'rehearse' }>): void {
    let database: Database | undefined;
    try {
      database = openLogInMemory();
      const packed = new PackedSequences(task.packed);
      const sequences = Array.from({ length: packed.left }, () => packed.take());
      new LogWriter(database, this.#settings.lockTimeout).write(() => sequences);
    } catch (error) {
      this.#warn(error);
    } finally {
      database?.close();
    }
    this.#answer({ kind: 'done', ticket: task.ticket });
  }

  /** The log; opened again after a fault, but never begun anew where it has gone. */
  #opened(): Open {
    this.#open ??= this.#openLog(false);
    return this.#open;
  }

  /** What to say of a transaction that failed; a connection that may have suffered is given up. */
  #fail(error: unknown): Omit<WriteFailure, 'ticket'> {
    const unsure = error instanceof UnsureCommit;
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
      this.#open?.checkpoints.make(idle);
    } catch (error) {
      this.#warn(error);
    }
  }

  #close(): void {
    try {
      // The driver keeps the file open until its statements are collected, so nothing else would move the last
      // commits there: whoever copies the file of a service that has stopped would miss them.
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

function isTruncation(task: Task | undefined): task is Truncation {
  return task !== undefined && 'kind' in task && task.kind === 'truncate';
}

if (parentPort === null) throw new Error('this is the entry of a thread');
new WriterThread(parentPort, workerData as WriterSettings).start();
