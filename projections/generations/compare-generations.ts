import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { Comparison } from '../../domain/operators/projection-orders.ts';
import type { GenerationFeeder } from './generation-feeder.ts';

/** Most keys that are looked at, of each side. */
const MOST_COMPARED = 10_000;

/** Most keys that are told. */
const MOST_TOLD = 20;

/** Documents at a time. */
const PAGE = 500;

/** How often what differs is looked at again once both sides have taken the same events. */
const LOOKS = 3;

type Difference = Comparison['first'][number];

/**
 * How a generation in the making differs from the one that is read, while both are fed: what differs is looked at again
 * once both are further. Bounded: all documents are counted, the first keys are compared.
 *
 * @param level resolves when both have passed what either has passed now
 * @param rest lets others have a turn: the views are fed by the same thread
 */
export async function compareGenerations(
  before: GenerationFeeder,
  after: GenerationFeeder,
  level: () => Promise<void>,
  rest: () => Promise<void>,
): Promise<Comparison> {
  const keys = new Set<string>();
  const different = new Map<string, Difference>();
  const ends = [
    await collect(before, after, keys, different, rest),
    await collect(after, before, keys, different, rest),
  ];
  for (let look = 0; look < LOOKS && different.size > 0; look += 1) {
    await level();
    const candidates = [...different.keys()];
    different.clear();
    for (let from = 0; from < candidates.length; from += PAGE) {
      const some = candidates.slice(from, from + PAGE);
      const [old, fresh] = [await before.load(some), await after.load(some)];
      for (const key of some) {
        const found = differenceOf(key, old.get(key)?.document, fresh.get(key)?.document);
        if (found !== null) different.set(key, found);
      }
    }
  }
  return {
    documents_before: await before.count(),
    documents_after: await after.count(),
    compared: keys.size,
    different: different.size,
    complete: ends.every((isEnd) => isEnd),
    first: [...different.values()].sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, MOST_TOLD),
  };
}

/** Looks at one side's keys on both sides. @returns whether these were all */
async function collect(
  one: GenerationFeeder,
  other: GenerationFeeder,
  keys: Set<string>,
  different: Map<string, Difference>,
  rest: () => Promise<void>,
): Promise<boolean> {
  let last: string | null = null;
  for (let looked = 0; looked < MOST_COMPARED; looked += PAGE) {
    const page: Awaited<ReturnType<GenerationFeeder['page']>> = await one.page(last, PAGE);
    const facing = await other.load(page.map(({ key }) => key));
    for (const { key, document } of page) {
      keys.add(key);
      // Which side is which is told when it is looked at again.
      const found = differenceOf(key, document, facing.get(key)?.document);
      if (found !== null) different.set(key, found);
    }
    if (page.length < PAGE) return true;
    last = page.at(-1)?.key ?? null;
    await rest();
  }
  return (await one.page(last, 1)).length === 0;
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
