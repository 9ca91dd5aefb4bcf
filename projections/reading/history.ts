import { changesBetween, type Change } from '../../domain/differences.ts';
import { sound, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { jsonBytes } from '../../domain/pipeline/size.ts';
import { streams } from '../../domain/streams.ts';
import { cutValue } from '../cut-document.ts';
import { agentsProjection, type AgentDocument } from '../views/agents.ts';
import { withFiresUpTo } from './as-of.ts';
import { runsProjection, type RunDocument } from '../views/runs.ts';
import { tasksProjection, type TaskDocument } from '../views/tasks.ts';

/** One event of a record's stream, and what it changed in the record. */
export interface HistoryItem {
  readonly revision: number;
  /** When it happened. */
  readonly at: string;
  /** The agent's id, or `service`. */
  readonly actor: string;
  /** The type of the event. */
  readonly type: string;
  /** In the actor's words; null where it gave none. */
  readonly reason: string | null;
  readonly changes: readonly Change[];
}

export interface HistoryPage {
  readonly items: readonly HistoryItem[];
  /** The revision to go on from; null at the end. */
  readonly next: number | null;
}

/** Which part of a history is wanted. */
export interface HistorySpan {
  /** The first revision. */
  readonly from: number;
  readonly limit: number;
}

/** Events that are read at a time. */
const READ = 100;

/** Bytes of items before which a page ends early, so that with the rest a response has no more than 4 MiB. */
const MOST_BYTES = 4 * 1024 * 1024 - 16 * 1024;

/** Bytes over which a value is left out of a change. The record as it was shows all of it. */
const MOST_VALUE = 64 * 1024;

/** Of a record that something happened to: how each event folds, and what of the record is compared. */
interface Recorded<D> {
  readonly stream: string;
  /** The record directly before an event of the wanted span, where folding the stream alone does not tell it. */
  readonly before?: (document: D | null, event: RecordedEvent) => Promise<D | null>;
  readonly evolve: (document: D | null, event: RecordedEvent) => D | null;
  readonly show: (document: D) => object;
}

/**
 * What was done to a task, event by event, with its next fire as the fires before each had left it; null for one
 * that never was.
 */
export function taskHistory(
  store: EventStore,
  id: string,
  span: HistorySpan,
): Promise<HistoryPage | null> {
  return historyOf<TaskDocument>(store, span, {
    stream: streams.task(id),
    before: (task, event) => withFiresUpTo(store, task, id, event.position),
    evolve: (task, event) => tasksProjection.evolve(task, event, id),
    show: ({ id: _id, rhythm: _rhythm, ...task }) => withoutMarks(task),
  });
}

/**
 * What became of a run, event by event; null for one that never was.
 * @param show the run as clients see it
 */
export function runHistory(
  store: EventStore,
  id: string,
  span: HistorySpan,
  show: (run: RunDocument) => object,
): Promise<HistoryPage | null> {
  return historyOf<RunDocument>(store, span, {
    stream: streams.run(id),
    evolve: (run, event) => runsProjection.evolve(run, event, id),
    show: (run) => {
      const { id: _id, ...shown } = show(run) as JsonObject;
      return withoutMarks(shown);
    },
  });
}

/** What was done to an agent, event by event, its removal included; null for one that never was. No secrets. */
export function agentHistory(
  store: EventStore,
  id: string,
  span: HistorySpan,
): Promise<HistoryPage | null> {
  return historyOf<AgentDocument>(store, span, {
    stream: streams.agent(id),
    evolve: (agent, event) => agentsProjection.evolve(agent, event, id),
    show: ({ id: _id, ...agent }) => withoutMarks(agent),
  });
}

/** What says only that, and when, something changed stands beside the changes already. */
function withoutMarks(shown: object): object {
  const {
    revision: _revision,
    created_at: _created,
    updated_at: _updated,
    ...rest
  } = shown as JsonObject;
  return rest;
}

/**
 * A part of a history. It ends before an event that can't be read: what those behind it changed can't be told.
 * @throws EventStoreError `CORRUPT_EVENT` where the part begins with such an event, or behind it
 */
async function historyOf<D>(
  store: EventStore,
  { from, limit }: HistorySpan,
  { stream, before, evolve, show }: Recorded<D>,
): Promise<HistoryPage | null> {
  const items: HistoryItem[] = [];
  let document: D | null = null;
  let bytes = 0;
  for (let next = 0; ;) {
    const page = await store.readStream(stream, { from: next, limit: READ, faulty: true });
    for (const event of page) {
      next = event.revision + 1;
      if (items.length === limit || (event.fault !== undefined && items.length > 0)) {
        return { items, next: event.revision };
      }
      sound(event);
      if (event.revision < from) {
        document = evolve(document, event);
        continue;
      }
      const known: D | null = before === undefined ? document : await before(document, event);
      document = evolve(known, event);
      const changes = changesBetween(shown(known, show), shown(document, show));
      const item = itemOf(event, changes.map(cutChange));
      bytes += jsonBytes(item) + 1;
      if (bytes > MOST_BYTES && items.length > 0) return { items, next: event.revision };
      items.push(item);
    }
    if (page.length < READ) return next === 0 ? null : { items, next: null };
  }
}

function shown<D>(document: D | null, show: (document: D) => object): JsonObject | null {
  return document === null ? null : (show(document) as JsonObject);
}

function cutChange({ path, before, after }: Change): Change {
  return { path, before: cutValue(before, MOST_VALUE), after: cutValue(after, MOST_VALUE) };
}

function itemOf(
  { revision, type, metadata: { occurredAt: at, actor, reason } }: RecordedEvent,
  changes: readonly Change[],
): HistoryItem {
  return { revision, at, actor, type, reason: reason ?? null, changes };
}
