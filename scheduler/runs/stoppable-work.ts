import type { LateSignal } from './late-signal.ts';
import type { Work } from './run-work.ts';

/**
 * Work whose signal is made when it is first asked for. A class, as a literal with a getter is made anew for each run,
 * property by property, and slow to read ever after.
 */
export class StoppableWork implements Work {
  readonly run: Work['run'];
  readonly task: Work['task'];
  readonly known: Work['known'];
  readonly attempt: number;
  readonly span: Work['span'];
  readonly record: Work['record'];
  readonly isStopped: () => boolean;
  private readonly stop: LateSignal;

  constructor(about: Omit<Work, 'signal' | 'isStopped'>, stop: LateSignal) {
    this.run = about.run;
    this.task = about.task;
    this.known = about.known;
    this.attempt = about.attempt;
    this.span = about.span;
    this.record = about.record;
    this.isStopped = () => stop.aborted;
    this.stop = stop;
  }

  get signal(): AbortSignal {
    return this.stop.signal;
  }
}
