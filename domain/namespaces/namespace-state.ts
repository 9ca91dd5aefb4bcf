import { RefusalError, notFound } from '../errors.ts';
import type { NamespaceEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import { DEFAULT_NAMESPACE } from './namespace.ts';

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
  { readonly status: 'none' } | { readonly status: 'deleted' } | KnownNamespace;

export interface KnownNamespace {
  /** `closed`: it is being deleted, and takes no more agents. */
  readonly status: 'active' | 'closed';
  readonly description: string | null;
  /** null: `default` exists from the start. */
  readonly created_at: string | null;
  readonly updated_at: string | null;
}

/** The fold of `namespace-<name>`. */
export function namespaceFold(name: string): Fold<NamespaceState, NamespaceEvent> {
  const isDefault = name === DEFAULT_NAMESPACE;
  const first = { description: null, created_at: null, updated_at: null } as const;
  return {
    initial: isDefault ? { status: 'active', ...first } : { status: 'none' },
    // Its changes are in its own audit.
    namespaceOf: () => name,
    evolve(state, event, { metadata: { occurredAt: at } }) {
      if (event.type === 'NamespaceCreated') {
        const { description } = event.data;
        return { status: 'active', description, created_at: at, updated_at: at };
      }
      if (state.status === 'none' || state.status === 'deleted') return state;
      switch (event.type) {
        case 'NamespaceUpdated':
          return { ...state, description: event.data.description, updated_at: at };
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
  description: string | null,
): readonly NamespaceEvent[] {
  if (state.status === 'none') return [{ type: 'NamespaceCreated', data: { description } }];
  const message =
    state.status === 'deleted'
      ? `the namespace ${name} was deleted, and its records keep the name; choose another one`
      : `the namespace ${name} exists`;
  throw new RefusalError('STATE_CONFLICT', message, { field: 'name', name });
}

/** No event where nothing changes. */
export function updateNamespace(
  state: NamespaceState,
  name: string,
  description: string | null,
): readonly NamespaceEvent[] {
  if (requireNamespace(state, name).description === description) return [];
  return [{ type: 'NamespaceUpdated', data: { description } }];
}

/** The first step of its deletion. No event where an interrupted deletion took it before. */
export function closeNamespace(state: NamespaceState, name: string): readonly NamespaceEvent[] {
  if (name === DEFAULT_NAMESPACE) {
    throw new RefusalError('STATE_CONFLICT', 'the namespace default cannot be deleted', { name });
  }
  const { status } = requireNamespace(state, name);
  return status === 'closed' ? [] : [{ type: 'NamespaceClosed', data: {} }];
}

/** The last step of its deletion. @param isEmpty otherwise it stays */
export function endClosing(state: NamespaceState, isEmpty: boolean): readonly NamespaceEvent[] {
  if (state.status !== 'closed') return [];
  return [{ type: isEmpty ? 'NamespaceDeleted' : 'NamespaceReopened', data: {} }];
}

/** @throws RefusalError `NOT_FOUND` */
export function requireNamespace(state: NamespaceState, name: string): KnownNamespace {
  if (state.status !== 'none' && state.status !== 'deleted') return state;
  throw notFound('namespace', name);
}
