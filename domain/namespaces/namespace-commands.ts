import { RefusalError } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { NamespaceEvent } from '../events/catalogue.ts';
import { handle, load, type CommandContext, type Handled, type SeenRevision } from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import { streams } from '../streams.ts';
import { DEFAULT_NAMESPACE } from './namespace.ts';
import {
  closeNamespace,
  createNamespace,
  endClosing,
  namespaceFold,
  requireNamespace,
  updateNamespace,
  type NamespaceChanges,
  type NamespaceState,
  type NewNamespace,
} from './namespace-state.ts';

/** A command on a namespace. */
export interface NamespaceCommand {
  readonly store: EventStore;
  readonly name: string;
  readonly context: CommandContext;
  /** The revision that the caller saw (`If-Match`). */
  readonly expectedRevision?: SeenRevision | undefined;
}

/** @throws RefusalError `STATE_CONFLICT` for a name that is or was used */
export function createNamespaceCommand(
  command: NamespaceCommand,
  given: NewNamespace,
): Promise<Handled<NamespaceState>> {
  return onNamespace(command, (state) => createNamespace(state, command.name, given));
}

/** @throws RefusalError `NOT_FOUND`, `REVISION_MISMATCH`; `FORBIDDEN` for own quotas beyond their bounds */
export function updateNamespaceCommand(
  command: NamespaceCommand,
  changes: NamespaceChanges,
): Promise<Handled<NamespaceState>> {
  return onNamespace(command, (state) => updateNamespace(state, command.name, changes));
}

/**
 * Deletes a namespace that is empty. It is closed first, so that an agent that is registered at the same time is either
 * found here or rejected. If the process crashes in between, the namespace takes no agents until the command is
 * repeated.
 *
 * @param isEmpty whether it is empty at the log's present end
 * @throws RefusalError `NOT_FOUND`; `STATE_CONFLICT` for one that is not empty, and for `default`
 */
export async function deleteNamespaceCommand(
  command: NamespaceCommand,
  isEmpty: () => Promise<boolean>,
): Promise<Handled<NamespaceState>> {
  const { name, context } = command;
  await onNamespace(command, (state) => closeNamespace(state, name));
  const canEnd = await isEmpty();
  const commandId = nameBasedId('end closing', context.commandId, name);
  const ending = { ...command, context: { ...context, commandId }, expectedRevision: undefined };
  const handled = await onNamespace(ending, (state) => endClosing(state, canEnd));
  if (canEnd) return handled;
  const message = `the namespace ${name} is not empty; remove its agents and secrets first`;
  throw new RefusalError('STATE_CONFLICT', message, { name });
}

/**
 * Checks that agents may be registered in a namespace.
 * @throws RefusalError `NOT_FOUND`; `STATE_CONFLICT` while it is being deleted
 */
export async function requireOpenNamespace(store: EventStore, name: string): Promise<void> {
  if (name === DEFAULT_NAMESPACE) return;
  const { state } = await load(store, streams.namespace(name), namespaceFold(name));
  if (requireNamespace(state, name).status === 'active') return;
  const message = `the namespace ${name} is being deleted`;
  throw new RefusalError('STATE_CONFLICT', message, { name });
}

function onNamespace(
  { store, name, context, expectedRevision }: NamespaceCommand,
  decide: (state: NamespaceState) => readonly NamespaceEvent[],
): Promise<Handled<NamespaceState>> {
  const stream = streams.namespace(name);
  return handle({ store, stream, fold: namespaceFold(name), decide, context, expectedRevision });
}
