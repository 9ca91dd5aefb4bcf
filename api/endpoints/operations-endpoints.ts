import { load } from '../../domain/handle.ts';
import { holdCommand, operationsFold, releaseCommand } from '../../domain/operators/operations.ts';
import { streams } from '../../domain/streams.ts';
import {
  Held,
  HoldBody,
  Operations,
  ReleaseBody,
  Released,
} from '../schemas/response-schemas-operations.ts';
import { ReadQuery } from '../schemas/schemas.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { endpoint, success, type Endpoint } from '../endpoint.ts';
import { actorName } from './agent-names.ts';

const scopes = ['ops'] as const;

/** An order with the name of its agent. */
async function named<T extends { readonly by: string }>(
  dependencies: ApiDependencies,
  order: T | null,
): Promise<(T & { readonly by_name: string | null }) | null> {
  return order && { ...order, by_name: await actorName(dependencies, order.by) };
}

const show = endpoint('GET /operations', {
  operationId: 'getOperations',
  summary:
    'Shows whether the service is on hold, who ordered it and why, and how the last hold ended',
  scopes,
  query: ReadQuery,
  responses: { 200: Operations },
  async handle({ dependencies }) {
    const { state } = await load(dependencies.store, streams.operations(), operationsFold);
    const [hold, released] = await Promise.all([
      named(dependencies, state.hold),
      named(dependencies, state.released),
    ]);
    return { body: { held: hold !== null, hold, released } };
  },
});

const hold = endpoint('POST /operations/hold', {
  operationId: 'holdService',
  summary: 'Holds the service: nothing fires and no run starts until it is released',
  scopes,
  body: HoldBody,
  idempotent: true,
  responses: { 200: Held },
  async handle({ dependencies, body, context }) {
    const { state, position } = await holdCommand(dependencies.store, body.reason, context);
    const hold = await named(dependencies, state.hold);
    return success('the service is on hold', { held: true, ...hold }, position);
  },
});

const release = endpoint('POST /operations/release', {
  operationId: 'releaseService',
  summary: 'Ends a hold; `missed` or the misfire policies decide which missed fires run',
  scopes,
  body: ReleaseBody,
  bodyOptional: true,
  idempotent: true,
  responses: { 200: Released },
  async handle({ dependencies, body, context }) {
    const missed = body?.missed ?? null;
    const { state, position } = await releaseCommand(dependencies.store, missed, context);
    const released = await named(dependencies, state.released);
    return success('the hold has ended', { held: false, ...released }, position);
  },
});

/** Holds the whole service, and releases it. */
export const operationsEndpoints: readonly Endpoint[] = [show, hold, release];
