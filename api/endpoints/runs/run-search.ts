import { toIso } from '../../../domain/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { errorGroupOf } from '../../../domain/runs/error-group.ts';
import type { Filter, Query, ReadModel } from '../../../projections/read-model.ts';
import type { RunListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import type { EndpointResponse } from '../../endpoint.ts';
import { shownEvent } from '../../params/shown-event.ts';
import { shownParams } from '../../params/shown-params.ts';
import { behindCursor, cursorOf, ItemList, listJson, MAX_LISTED_BYTES } from '../listing.ts';
import { cutRuns, type RunSource } from './run-records.ts';

/** How many runs one page of a search examines at most, and for how many milliseconds. */
const MAX_EXAMINED = 5000;
const MAX_DURATION = 200;
/** How many runs, and how many bytes of them, are read at a time. */
const PAGE = 250;
const PAGE_BY_ID = 30;
const MAX_READ_BYTES = 2 * 1024 * 1024;

/** How much earlier than its event a run may seem to be queued, because clocks differ. Milliseconds. */
const EVENT_LEEWAY = 60_000;

/** The criteria of a search. A run must match all of them. */
export interface RunSearch {
  /** The start of the run's id, in lower case. */
  readonly id?: string | undefined;
  /** A part of the error, ignoring case. */
  readonly error?: string | undefined;
  /** The id of the error's group, as in `GET /stats/errors`. */
  readonly error_group?: string | undefined;
  /** A part of its params or of its event's payload, as JSON, ignoring case. */
  readonly input?: string | undefined;
  /** The event that triggered it, in lower case. */
  readonly event_id?: string | undefined;
}

export const isSearch = ({ id, error, error_group, input, event_id }: RunSearch): boolean =>
  (id ?? error ?? error_group ?? input ?? event_id) !== undefined;

/** Whether a run matches a search, as far as its document shows; {@link showsInput} checks the rest. */
export function matcherOf(search: RunSearch): (run: RunDocument) => boolean {
  const { id, event_id, error_group: group } = search;
  const error = search.error?.toLowerCase();
  const input = search.input?.toLowerCase();
  return (run) =>
    (id === undefined || run.id.startsWith(id)) &&
    (event_id === undefined || run.event?.id === event_id) &&
    (error === undefined || (run.error ?? '').toLowerCase().includes(error)) &&
    (group === undefined || (run.error !== null && errorGroupOf(run.error).id === group)) &&
    (input === undefined || isStoredOnce(run.event) || inputText(run).includes(input));
}

/** Documents of an older shape lack both. */
const inputText = ({ params = null, event = null }: Partial<RunDocument>): string =>
  inputOf(params, event?.payload ?? null);

const inputOf = (params: unknown, payload: unknown): string =>
  JSON.stringify([params, payload]).toLowerCase();

/** Whether the payload of an event is not in the document. Documents of an older shape lack the event. */
const isStoredOnce = (event: RunDocument['event'] | undefined): boolean =>
  (event ?? null) !== null && event?.payload === undefined;

/**
 * Whether the text that a search found in an input is also visible to readers, including in a payload that is stored
 * once. Readers see masked secrets, so a search must not reveal the values.
 */
export async function showsInput(
  source: RunSource,
  run: RunDocument,
  { input }: RunSearch,
): Promise<boolean> {
  if (input === undefined) return true;
  const params = await shownParams(source, run);
  const event = await shownEvent(source, run, MAX_LISTED_BYTES);
  return inputOf(params, event?.payload ?? null).includes(input.toLowerCase());
}

interface Place {
  readonly key: string;
  readonly document: RunDocument;
}

/**
 * A page of the runs that match a search. The start of an id is looked up in the index, in the order of ids. Any other
 * search examines the runs of the list in their order, a few thousand for each page. A page may therefore have few
 * items or none. Its cursor continues after the last run examined.
 * @throws HttpError 400 for a cursor of another list
 */
export async function searchPage(options: {
  readonly dependencies: Pick<ApiDependencies, 'readModel' | 'clock'> & RunSource;
  readonly search: RunSearch;
  readonly listing: RunListing;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly show: (run: RunDocument) => Promise<object>;
}): Promise<EndpointResponse> {
  const { dependencies, search, listing, limit, show } = options;
  const { readModel, clock } = dependencies;
  const order = orderOf(listing, search);
  const start = behindCursor(options.cursor, order.sort, runsProjection);
  const isMeant = meantBy(search, listing);
  const until = clock.steady() + MAX_DURATION;
  const items = new ItemList();
  let last: Place | undefined;
  let examined = 0;
  for await (const page of pagesOf(readModel, order, start)) {
    const end = (next: Place | undefined): EndpointResponse => {
      const next_cursor = next === undefined ? null : cursorOf(next, order.sort);
      const rest = { total: null, limit, offset: 0, has_more: next !== undefined, next_cursor };
      return { json: listJson('items', items.json, rest), readPosition: page.position };
    };
    for (const place of page.places) {
      if (!place.key.startsWith(search.id ?? '') && order.isById) return end(undefined);
      const { document } = place;
      if (isMeant(document) && (await showsInput(dependencies, document, search))) {
        const isFull = items.json.length === limit || !items.add(await show(document));
        if (isFull) return end(last);
      }
      last = place;
      examined += 1;
    }
    if (!page.hasMore) return end(undefined);
    if (examined >= MAX_EXAMINED || clock.steady() > until) return end(last);
  }
  throw new Error('a search ends with its last page');
}

/** The order in which runs are examined, and the first run to examine. */
interface Order extends RunListing {
  readonly isById: boolean;
  readonly first: Pick<Query, 'after'>;
}

function orderOf({ filters, sort }: RunListing, { id, event_id }: RunSearch): Order {
  // No index combines the filters with the order of ids. That is fine, because few runs share the
  // start of an id.
  if (id !== undefined) {
    return {
      filters: [],
      sort: [],
      isById: true,
      first: { after: { values: [], key: before(id) } },
    };
  }
  const published = event_id === undefined ? null : timeOf(event_id);
  const all = { filters, sort, isById: false, first: {} };
  if (published === null || sort[0]?.field !== 'queued_at') return all;
  const value = toIso(published - EVENT_LEEWAY);
  return {
    ...all,
    filters: [...filters, { field: 'queued_at', op: 'gte', value }],
    sort: [{ field: 'queued_at', direction: 'ascending' }],
  };
}

/** A string that sorts directly before all strings with a prefix. */
function before(prefix: string): string {
  const last = prefix.length - 1;
  return `${prefix.slice(0, last)}${String.fromCharCode(prefix.charCodeAt(last) - 1)}~`;
}

/** The time at the start of a version 7 id; null for other ids. */
function timeOf(id: string): number | null {
  return id[14] === '7' ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : null;
}

function meantBy(search: RunSearch, { filters }: RunListing): (run: RunDocument) => boolean {
  const matches = matcherOf(search);
  if (search.id === undefined) return matches;
  return (run) => matches(run) && filters.every((filter) => passes(run, filter));
}

/** Whether a run passes a filter of a list of runs. */
export function passes(run: RunDocument, filter: Filter): boolean {
  const known = (run as JsonObject)[filter.field] ?? null;
  switch (filter.op) {
    case 'eq':
      return known === filter.value;
    case 'in':
      return (filter.value as readonly unknown[]).includes(known);
    case 'gt':
      return known !== null && (known as string | number) > filter.value;
    case 'lt':
      return known !== null && (known as string | number) < filter.value;
    default:
      throw new Error(`lists of runs have no filter ${filter.op}`);
  }
}

async function* pagesOf(
  readModel: ReadModel,
  { filters, sort, first, isById }: Order,
  start: Pick<Query, 'after'>,
): AsyncGenerator<{
  readonly places: readonly Place[];
  readonly hasMore: boolean;
  readonly position: Position;
}> {
  // Few runs share the start of an id.
  const limit = isById ? PAGE_BY_ID : PAGE;
  const fixed = { filters, sort, limit, counted: null, mostBytes: MAX_READ_BYTES };
  for (let at = start.after === undefined ? first : start; ;) {
    const listed = await readModel.list(runsProjection, { ...fixed, ...at, cut: cutRuns });
    const places = listed.documents.map(({ key, text }) => ({
      key,
      document: JSON.parse(text) as RunDocument,
    }));
    const last = places.at(-1);
    yield { places, hasMore: listed.hasMore && last !== undefined, position: listed.position };
    if (last === undefined || !listed.hasMore) return;
    const values = sort.map(({ field }) => (last.document as JsonObject)[field] as string);
    at = { after: { values, key: last.key } };
  }
}
