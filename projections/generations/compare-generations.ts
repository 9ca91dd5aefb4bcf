import type { Clock } from '../../domain/clock.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { Comparison } from '../../domain/operators/projection-orders.ts';
import type { CatchUp } from './catch-up.ts';
import type { ViewWriter } from '../read-model.ts';
import type { GenerationWriter } from './generation-writer.ts';

/** How many keys are compared per side. */
const MAX_COMPARED = 10_000;

/** How many differing keys are reported. */
const MAX_REPORTED = 20;

const PAGE = 500;

/** How often differing keys are compared again once both sides have taken the same events. */
const MAX_RECHECKS = 3;

type Difference = Comparison['first'][number];

/**
 * Compares a built generation with the live one, while both are fed. Keys that differ are compared again once both
 * generations are further. To bound the work, all documents are counted, but only the first keys are compared.
 *
 * @param parts.clock for a pause between pages, as the same thread feeds the views
 */
export async function compareGenerations(
  before: GenerationWriter,
  after: GenerationWriter,
  parts: { readonly catchUp: CatchUp; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Comparison> {
  const { catchUp, clock, signal } = parts;
  const keys = new Set<string>();
  const different = new Map<string, Difference>();
  const rest = (): Promise<void> => clock.sleep(1, signal);
  const ends = [
    await collect(before, after, keys, different, rest),
    await collect(after, before, keys, different, rest),
  ];
  for (let check = 0; check < MAX_RECHECKS && different.size > 0; check += 1) {
    await catchUp.level(before, after, signal);
    const candidates = [...different.keys()];
    different.clear();
    for (let from = 0; from < candidates.length; from += PAGE) {
      const some = candidates.slice(from, from + PAGE);
      const [old, fresh] = [await before.documents.load(some), await after.documents.load(some)];
      for (const key of some) {
        const found = differenceOf(key, old.get(key)?.document, fresh.get(key)?.document);
        if (found !== null) different.set(key, found);
      }
    }
  }
  return {
    documents_before: await before.documents.count(),
    documents_after: await after.documents.count(),
    compared: keys.size,
    different: different.size,
    complete: ends.every((isEnd) => isEnd),
    first: [...different.values()].sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, MAX_REPORTED),
  };
}

/** Looks up one side's keys on both sides. @returns whether these were all of its keys */
async function collect(
  one: GenerationWriter,
  other: GenerationWriter,
  keys: Set<string>,
  different: Map<string, Difference>,
  rest: () => Promise<void>,
): Promise<boolean> {
  let last: string | null = null;
  for (let read = 0; read < MAX_COMPARED; read += PAGE) {
    const page: Awaited<ReturnType<ViewWriter['page']>> = await one.documents.page(last, PAGE);
    const facing = await other.documents.load(page.map(({ key }) => key));
    for (const { key, document } of page) {
      keys.add(key);
      // The direction of the difference is settled when the key is compared again.
      const found = differenceOf(key, document, facing.get(key)?.document);
      if (found !== null) different.set(key, found);
    }
    if (page.length < PAGE) return true;
    last = page.at(-1)?.key ?? null;
    await rest();
  }
  return (await one.documents.page(last, 1)).length === 0;
}

function differenceOf(
  key: string,
  before: JsonObject | null = null,
  after: JsonObject | null = null,
): Difference | null {
  if (before === null && after === null) return null;
  if (after === null || before === null) {
    return { key, difference: after === null ? 'only_before' : 'only_after', fields: [] };
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const fields = names.filter((name) => !isSame(before[name], after[name]));
  return fields.length === 0 ? null : { key, difference: 'changed', fields };
}

function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((each, index) => isSame(each, b[index]));
  }
  if (a === undefined || b === undefined || !isJsonObject(a) || !isJsonObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => isSame(a[name], b[name]));
}
