import { RefusalError, notFound } from '../errors.ts';
import type { NamespaceEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import { DEFAULT_NAMESPACE } from './namespace.ts';
import type { QuotaLevel, Quotas } from './quotas.ts';
import {
  noQuotas,
  quotasAfter,
  requireWithin,
  setQuotas,
  type StoredQuotas,
} from './stored-quotas.ts';

/**
 * A namespace.
 *
 *   none ──NamespaceCreated──► active ──NamespaceClosed──► closed ──NamespaceDeleted──► deleted (final)
 *                                 ▲                          │
 *                                 └────NamespaceReopened─────┘
 *
 * `default` is active from the start, and is never closed.
 */
export type NamespaceState =
  | { readonly status: 'none' }
  | { readonly status: 'deleted' }
  | KnownNamespace;

export interface KnownNamespace {
  /** `closed`: it is being deleted, and takes no more agents. */
  readonly status: 'active' | 'closed';
  readonly description: string | null;
  readonly quotas: StoredQuotas;
  /** null: `default` exists from the start. */
  readonly created_at: string | null;
  readonly updated_at: string | null;
}

/** The fold of `namespace-<name>`. */
export function namespaceFold(name: string): Fold<NamespaceState, NamespaceEvent> {
  const isDefault = name === DEFAULT_NAMESPACE;
  const times = { created_at: null, updated_at: null };
  const first = { description: null, quotas: noQuotas, ...times } as const;
  return {
    initial: isDefault ? { status: 'active', ...first } : { status: 'none' },
    // Its changes belong to its own audit.
    namespaceOf: () => name,
    evolve(state, event, { metadata: { occurredAt: at } }) {
      if (event.type === 'NamespaceCreated') {
        const { description } = event.data;
        const quotas = noQuotas;
        return { status: 'active', description, quotas, created_at: at, updated_at: at };
      }
      if (state.status === 'none' || state.status === 'deleted') return state;
      switch (event.type) {
        case 'NamespaceUpdated':
          return { ...state, description: event.data.description, updated_at: at };
        case 'NamespaceQuotasSet':
          return { ...state, quotas: quotasAfter(state.quotas, event), updated_at: at };
        case 'NamespaceClosed':
          return { ...state, status: 'closed' };
        case 'NamespaceReopened':
          return { ...state, status: 'active' };
        case 'NamespaceDeleted':
          return { status: 'deleted' };
      }
    },
  };
}

/** @throws RefusalError `STATE_CONFLICT` for a name that is or was used */
export function createNamespace(
  state: NamespaceState,
  name: string,
  { description, quotas }: NewNamespace,
): readonly NamespaceEvent[] {
  if (state.status === 'none') {
    const created: NamespaceEvent = { type: 'NamespaceCreated', data: { description } };
    return [created, ...setQuotas(noQuotas, 'bounds', quotas)];
  }
  const message =
    state.status === 'deleted'
      ? `the namespace ${name} was deleted, and its records keep the name; choose another one`
      : `the namespace ${name} exists`;
  throw new RefusalError('STATE_CONFLICT', message, { field: 'name', name });
}

/** The fields of a new namespace. */
export interface NewNamespace {
  readonly description: string | null;
  readonly quotas: Quotas;
}

/** Changes of a namespace. Fields that are left out keep their values. */
export interface NamespaceChanges {
  readonly description?: string | null | undefined;
  readonly quotas?: QuotaChange | undefined;
}

export interface QuotaChange {
  readonly level: QuotaLevel;
  /** Replaces all quotas of this level. */
  readonly quotas: Quotas;
  /** The quotas that the settings and an admin allow the namespace in a given state. */
  readonly boundsBy: (stored: StoredQuotas) => Quotas;
}

/**
 * No event if nothing changes.
 * @throws RefusalError `NOT_FOUND`; `FORBIDDEN` for own quotas beyond their bounds
 */
export function updateNamespace(
  state: NamespaceState,
  name: string,
  { description, quotas }: NamespaceChanges,
): readonly NamespaceEvent[] {
  const known = requireNamespace(state, name);
  const events: NamespaceEvent[] = [];
  if (description !== undefined && description !== known.description) {
    events.push({ type: 'NamespaceUpdated', data: { description } });
  }
  if (quotas === undefined) return events;
  if (quotas.level === 'own') requireWithin(quotas.boundsBy(known.quotas), quotas.quotas);
  return [...events, ...setQuotas(known.quotas, quotas.level, quotas.quotas)];
}

/** The first step of its deletion. No event if an interrupted deletion already took it. */
export function closeNamespace(state: NamespaceState, name: string): readonly NamespaceEvent[] {
  if (name === DEFAULT_NAMESPACE) {
    throw new RefusalError('STATE_CONFLICT', 'the namespace default cannot be deleted', { name });
  }
  const { status } = requireNamespace(state, name);
  return status === 'closed' ? [] : [{ type: 'NamespaceClosed', data: {} }];
}

/** The last step of its deletion. @param isEmpty if false, the namespace stays */
export function endClosing(state: NamespaceState, isEmpty: boolean): readonly NamespaceEvent[] {
  if (state.status !== 'closed') return [];
  return [{ type: isEmpty ? 'NamespaceDeleted' : 'NamespaceReopened', data: {} }];
}

/** @throws RefusalError `NOT_FOUND` */
export function requireNamespace(state: NamespaceState, name: string): KnownNamespace {
  if (state.status !== 'none' && state.status !== 'deleted') return state;
  throw notFound('namespace', name);
}
