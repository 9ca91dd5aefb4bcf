import { types } from 'node:util';
import { start } from '../../domain/pipeline/size.ts';
import type { Capability, EndpointDescription, ExtensionInfo, SocketHandler } from '../contract.ts';
import type { DirectRoutes } from './routes/direct-routes.ts';
import type { Found, FoundExtension, Source } from './discovery.ts';
import { RouteLabels } from './routes/route-labels.ts';

/**
 * The life of an extension:
 *
 *   discovered ──► loading ──► loaded
 *                     └──────► failed ◄── (broken manifest, double id, process.exit)
 *   disabled (its manifest says so)
 */
export const extensionStates = ['discovered', 'loading', 'loaded', 'failed', 'disabled'] as const;
export type ExtensionState = (typeof extensionStates)[number];

/** What the routes of an extension have done in this process. */
export interface RouteMetrics {
  requests_total: number;
  errors_total: number;
  /** Milliseconds. */
  latency_ms_sum: number;
}

/** An extension in this process: what it is, how it is doing, what it has set up. */
export class Extension {
  /** What it is listed under: its id, but for those that could not be taken as what they say. */
  readonly key: string;
  readonly source: Source;
  readonly info: ExtensionInfo;
  readonly found: FoundExtension | null;
  /** Asked for. */
  readonly wanted: readonly Capability[];
  readonly granted: readonly Capability[];
  readonly metrics: RouteMetrics = { requests_total: 0, errors_total: 0, latency_ms_sum: 0 };
  /** Where requests go; null before its setup, and without the capability ROUTES. */
  routes: DirectRoutes | null = null;
  readonly labels: RouteLabels;
  readonly sockets = new Map<string, SocketHandler>();
  /** How long its setup took, in milliseconds; 0 before. */
  loadedMs = 0;
  /** What takes longer than it may, and is waited for; `since` in milliseconds since 1970. */
  readonly unsettled = new Map<object, { readonly what: string; readonly since: number }>();
  /** What its module says of them. */
  endpoints: readonly EndpointDescription[] = [];
  #state: ExtensionState;
  #reason: string | null = null;
  #faults = 0;
  #lastFault: string | null = null;

  constructor(found: Found, grants: readonly Capability[] | undefined) {
    const { manifest } = found;
    this.key = found.key;
    this.source = found.source;
    this.found = found.kind === 'extension' ? found : null;
    this.wanted = manifest?.capabilities ?? [];
    this.granted =
      grants === undefined ? this.wanted : this.wanted.filter((each) => grants.includes(each));
    this.info = {
      id: manifest?.id ?? found.key,
      name: manifest?.name ?? found.key,
      version: manifest?.version ?? '',
      description: manifest?.description ?? '',
    };
    this.labels = new RouteLabels(this.info.id);
    this.#state = manifest?.enabled === false ? 'disabled' : 'discovered';
    if (found.kind === 'fault') this.fail(found.reason);
  }

  get id(): string {
    return this.info.id;
  }

  get state(): ExtensionState {
    return this.#state;
  }

  /** Why it failed; null where it did not. */
  get reason(): string | null {
    return this.#reason;
  }

  /** Whether its handlers have only so much time to answer; what those of this service wait for has its own limits. */
  get isLimited(): boolean {
    return this.source !== 'builtin';
  }

  has(capability: Capability): boolean {
    return this.granted.includes(capability);
  }

  begin(): void {
    this.#state = 'loading';
  }

  /** A setup that ends after it was given up changes nothing. @returns whether it counts */
  complete(milliseconds: number): boolean {
    if (this.#state !== 'loading') return false;
    this.#state = 'loaded';
    this.loadedMs = milliseconds;
    return true;
  }

  /** @param reason for people; without paths */
  fail(reason: string): void {
    this.#state = 'failed';
    this.#reason = reason;
    this.routes = null;
    this.sockets.clear();
  }

  /** Something of it went wrong that no answer tells of as it is: a subscriber, a background task, a timer, a silence. */
  noteFault(what: string): void {
    this.#faults += 1;
    this.#lastFault = what;
  }

  /** As `GET /ext/status` shows it. */
  status(): object {
    const { info, source, metrics } = this;
    const now = Date.now();
    const unsettled = [...this.unsettled.values()].map(
      ({ what, since }) => `${what}, for ${Math.max(0, Math.round((now - since) / 1000))} s`,
    );
    return {
      state: this.#state,
      info: {
        ...info,
        source,
        ...(this.#reason === null ? {} : { reason: this.#reason }),
        ...(this.#faults === 0 ? {} : { faults: this.#faults, last_fault: this.#lastFault }),
        ...(unsettled.length === 0 ? {} : { unsettled }),
      },
      capabilities: this.granted,
      loaded_ms: this.loadedMs,
      metrics: { ...metrics },
    };
  }
}

/** Names of errors that are labels; what else an extension throws is `other`. */
const errorTypes: ReadonlySet<string> = new Set([
  'Error',
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'AggregateError',
  'AbortError',
  'TimeoutError',
]);

/** What was thrown, as the metrics know it: from a closed set. */
export function errorTypeOf(error: unknown): string {
  const shown = readable(error);
  const name = shown instanceof Error ? shown.name : 'other';
  return errorTypes.has(name) ? name : 'other';
}

/** Most of what is told of a fault. Characters. */
const LONGEST_FAULT = 300;

/** What went wrong, in a line for people: no stack, no folder of the machine. */
export function faultText(error: unknown): string {
  const text = textOf(error);
  const [line = ''] = text.split('\n', 1);
  const told = line.replaceAll(/file:\/\/[^\s'"]+|(?<![\w.])\/(?:[^\s'"/:]+\/)+/g, '…/');
  return start(told, LONGEST_FAULT);
}

/** What was thrown, as far as it can be looked at without being thrown at. Never throws. */
export function readable(error: unknown): unknown {
  // What a proxy answers the next time is anybody's guess.
  if (types.isProxy(error)) return new Error(textOf(error));
  try {
    if (!(error instanceof Error)) return error;
    return [error.name, error.message, error.stack].every(isText)
      ? error
      : new Error(textOf(error));
  } catch {
    return new Error(textOf(error));
  }
}

const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';

function textOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${String(error)}`;
  } catch {
    // An object without a prototype, or with a trap in place of its text.
    return 'thrown: something that has no text';
  }
}
