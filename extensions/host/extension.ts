import { types } from 'node:util';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import type { Capability, EndpointDescription, ExtensionInfo, SocketHandler } from '../contract.ts';
import type { DirectRoutes } from './routes/direct-routes.ts';
import type { DiscoveredExtension, ValidExtension, Source } from './discovery.ts';
import { RouteLabels } from './routes/route-labels.ts';

/**
 * The states of an extension:
 *
 *   discovered ──► loading ──► loaded
 *                     └──────► failed ◄── (broken manifest, duplicate id, process.exit)
 *   disabled (by its manifest)
 */
export const extensionStates = ['discovered', 'loading', 'loaded', 'failed', 'disabled'] as const;
export type ExtensionState = (typeof extensionStates)[number];

/** Metrics of an extension's routes in this process. */
export interface RouteMetrics {
  requests_total: number;
  errors_total: number;
  /** Milliseconds. */
  latency_ms_sum: number;
}

/** An extension in this process: its manifest, its state and what it registered. */
export class Extension {
  /** The key in the status: the id, or `<id>@<source>` for a duplicate. */
  readonly key: string;
  readonly source: Source;
  readonly info: ExtensionInfo;
  readonly found: ValidExtension | null;
  /** Capabilities that the manifest requests. */
  readonly requested: readonly Capability[];
  readonly granted: readonly Capability[];
  readonly metrics: RouteMetrics = { requests_total: 0, errors_total: 0, latency_ms_sum: 0 };
  /** null before setup, and without the capability ROUTES. */
  routes: DirectRoutes | null = null;
  readonly labels: RouteLabels;
  readonly sockets = new Map<string, SocketHandler>();
  /** Duration of setup in milliseconds; 0 before. */
  loadedMs = 0;
  /** Work that has exceeded its limit and still runs; `since` in milliseconds since 1970. */
  readonly overdue = new Map<object, { readonly what: string; readonly since: number }>();
  endpoints: readonly EndpointDescription[] = [];
  #state: ExtensionState;
  #reason: string | null = null;
  #errors = 0;
  #lastError: string | null = null;

  constructor(found: DiscoveredExtension, grants: readonly Capability[] | undefined) {
    const { manifest } = found;
    this.key = found.key;
    this.source = found.source;
    this.found = found.kind === 'valid' ? found : null;
    this.requested = manifest?.capabilities ?? [];
    this.granted = this.requested.filter((each) => grants?.includes(each) ?? true);
    this.info = {
      id: manifest?.id ?? found.key,
      name: manifest?.name ?? found.key,
      version: manifest?.version ?? '',
      description: manifest?.description ?? '',
    };
    this.labels = new RouteLabels(this.info.id);
    this.#state = manifest?.enabled === false ? 'disabled' : 'discovered';
    if (found.kind === 'broken') this.fail(found.reason);
  }

  get id(): string {
    return this.info.id;
  }

  get state(): ExtensionState {
    return this.#state;
  }

  /** Why it failed, or null. */
  get reason(): string | null {
    return this.#reason;
  }

  /**
   * Whether handlers have a time limit. Built-in extensions have none, as the service's own limits apply to their
   * calls.
   */
  get isLimited(): boolean {
    return this.source !== 'builtin';
  }

  has(capability: Capability): boolean {
    return this.granted.includes(capability);
  }

  startLoading(): void {
    this.#state = 'loading';
  }

  /** Marks it as loaded. @returns false for a setup that ends after it was abandoned */
  finishLoading(milliseconds: number): boolean {
    if (this.#state !== 'loading') return false;
    this.#state = 'loaded';
    this.loadedMs = milliseconds;
    return true;
  }

  /** @param reason for people, without paths */
  fail(reason: string): void {
    this.#state = 'failed';
    this.#reason = reason;
    this.routes = null;
    this.sockets.clear();
  }

  /** Counts a failure outside requests, or a request without a response. */
  noteError(what: string): void {
    this.#errors += 1;
    this.#lastError = what;
  }

  /** As `GET /ext/status` shows it. */
  status(): object {
    const { info, source, metrics } = this;
    const now = Date.now();
    const unsettled = [...this.overdue.values()].map(
      ({ what, since }) => `${what}, for ${Math.max(0, Math.round((now - since) / 1000))} s`,
    );
    return {
      state: this.#state,
      info: {
        ...info,
        source,
        ...(this.#reason === null ? {} : { reason: this.#reason }),
        ...(this.#errors === 0 ? {} : { faults: this.#errors, last_fault: this.#lastError }),
        ...(unsettled.length === 0 ? {} : { unsettled }),
      },
      capabilities: this.granted,
      loaded_ms: this.loadedMs,
      metrics: { ...metrics },
    };
  }
}

/** Error names that metrics use as labels; all others are `other`. */
const ERROR_TYPES: ReadonlySet<string> = new Set([
  'Error',
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'AggregateError',
  'AbortError',
  'TimeoutError',
]);

/** The metrics label of a thrown value, from {@link ERROR_TYPES}. */
export function errorTypeOf(error: unknown): string {
  const shown = toReadableError(error);
  const name = shown instanceof Error ? shown.name : 'other';
  return ERROR_TYPES.has(name) ? name : 'other';
}

const MAX_SUMMARY_CHARS = 300;

/** Summarizes an error in one line for people, without its stack and folder names. */
export function summarizeError(error: unknown): string {
  const [line = ''] = messageOf(error).split('\n', 1);
  const shown = line.replaceAll(/file:\/\/[^\s'"]+|(?<![\w.])\/(?:[^\s'"/:]+\/)+/g, '…/');
  return truncateString(shown, MAX_SUMMARY_CHARS);
}

/** Returns a thrown value in a form that is safe to read. Never throws. */
export function toReadableError(error: unknown): unknown {
  // A proxy may answer differently each time.
  if (types.isProxy(error)) return new Error(messageOf(error));
  try {
    if (!(error instanceof Error)) return error;
    const parts: readonly unknown[] = [error.name, error.message, error.stack];
    const isReadable = parts.every((each) => each === undefined || typeof each === 'string');
    return isReadable ? error : new Error(messageOf(error));
  } catch {
    return new Error(messageOf(error));
  }
}

function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${String(error)}`;
  } catch {
    // An object without a prototype, or whose string conversion throws.
    return 'thrown: a value without a string form';
  }
}
