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

/** Runs that one page of a search examines, and for how long. Milliseconds. */
const MAX_EXAMINED = 5000;
const MAX_DURATION = 200;
/** Runs that are read at a time, and their bytes. */
const PAGE = 250;
const PAGE_BY_ID = 30;
const MAX_READ_BYTES = 2 * 1024 * 1024;

/** How long before its event a run may seem to be queued, as clocks differ. Milliseconds. */
const EVENT_LEEWAY = 60_000;

/** What a search looks for in runs; a run must have all of it. */
export interface RunSearch {
  /** The beginning of the run's id, in lower case. */
  readonly id?: string | undefined;
  /** A part of the error, in any case. */
  readonly error?: string | undefined;
  /** The id of the error's group, as in `GET /stats/errors`. */
  readonly error_group?: string | undefined;
  /** A part of its params or of the payload of its event, as JSON and in any case. */
  readonly input?: string | undefined;
  /** The event that triggered it, in lower case. */
  readonly event_id?: string | undefined;
}

export const isSearch = ({ id, error, error_group, input, event_id }: RunSearch): boolean =>
  (id ?? error ?? error_group ?? input ?? event_id) !== undefined;

/** Whether a run is one that a search looks for, as far as its document tells; {@link showsInput} tells the rest. */
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
 * Whether what a search for an input has found is shown to readers, in a payload that is stored once too. Values of
 * secrets are masked, and a search must not tell them.
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
 * A page of the runs that match a search. The beginning of an id finds its runs by the index, in the order of ids. Any
 * other search examines the runs of the list in their order, some thousands for each page. A page may therefore have few
 * items or none, and its cursor continues after the last run that was examined.
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

/** In which order runs are examined, and from where. */
interface Order extends RunListing {
  readonly isById: boolean;
  readonly first: Pick<Query, 'after'>;
}

function orderOf({ filters, sort }: RunListing, { id, event_id }: RunSearch): Order {
  // No index has the filters in the order of ids: few runs share the beginning of an id.
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

/** A string directly before all that begin with another. */
function before(prefix: string): string {
  const last = prefix.length - 1;
  return `${prefix.slice(0, last)}${String.fromCharCode(prefix.charCodeAt(last) - 1)}~`;
}

/** The time with which an id of version 7 begins; null for other ids. */
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
  // Few runs share the beginning of an id.
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
