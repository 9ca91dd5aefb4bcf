import { fromIso, toIso } from '../../../domain/clock.ts';
import type { Decision } from '../../../domain/explain/decisions.ts';
import type { Cut, Filter, ReadModel } from '../../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { MAX_LISTED_BYTES } from '../listing.ts';

/** How much later than its fire a run may be requested, in milliseconds. It is delayed only after a crash. */
const LATEST_REQUEST = 60_000;

/** Runs are shown with their state and times only, so the rest of large ones is not read. */
export const cutOutcomes: Cut = {
  maxBytes: MAX_LISTED_BYTES / 16,
  values: [],
  omitted: ['attempts', 'log', 'steps', 'output', 'event', 'params'],
};

/**
 * The runs of decided fires by id, without those that were removed or that the view does not know yet.
 * @throws ReadModelError
 */
export async function runsOfDecisions(
  readModel: ReadModel,
  taskId: string,
  decisions: readonly Decision[],
): Promise<ReadonlyMap<string, RunDocument>> {
  const wanted = new Set(
    decisions.flatMap((each) => (each.type === 'Fired' ? [each.data.run_id] : [])),
  );
  const found = new Map<string, RunDocument>();
  if (wanted.size === 0) return found;
  const times = decisions.map(({ metadata }) => fromIso(metadata.occurredAt));
  const [first, last] = [Math.min(...times), Math.max(...times) + LATEST_REQUEST];
  const read = async (listed: boolean): Promise<void> => {
    const filters: readonly Filter[] = [
      { field: 'task_id', op: 'eq', value: taskId },
      { field: 'listed', op: 'eq', value: listed },
      { field: 'trigger', op: 'eq', value: 'schedule' },
      { field: 'queued_at', op: 'gte', value: toIso(first) },
      { field: 'queued_at', op: 'lte', value: toIso(last) },
    ];
    const { documents } = await readModel.list(runsProjection, {
      filters,
      sort: [{ field: 'queued_at', direction: 'descending' }],
      limit: 2 * wanted.size,
      counted: null,
      isLoose: true,
      cut: cutOutcomes,
    });
    for (const { key, text } of documents) {
      if (wanted.has(key)) found.set(key, JSON.parse(text) as RunDocument);
    }
  };
  await Promise.all([read(true), read(false)]);
  for (const id of wanted) {
    if (found.has(id)) continue;
    const kept = await readModel.get(runsProjection, id);
    if (kept !== null) found.set(id, kept.document);
  }
  return found;
}
