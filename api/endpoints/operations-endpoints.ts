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
import { endpoint, success, type Endpoint } from '../endpoint.ts';

const scopes = ['ops'] as const;

const show = endpoint('GET /operations', {
  operationId: 'getOperations',
  summary: 'Shows whether the service is on hold, by whom and why, and how the last hold ended',
  scopes,
  query: ReadQuery,
  responses: { 200: Operations },
  async handle({ dependencies }) {
    const { state } = await load(dependencies.store, streams.operations(), operationsFold);
    return { body: { held: state.hold !== null, ...state } };
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
    return success('the service is on hold', { held: true, ...state.hold }, position);
  },
});

const release = endpoint('POST /operations/release', {
  operationId: 'releaseService',
  summary:
    'Ends a hold; `missed`, or else the misfire policies, decide on the fires missed meanwhile',
  scopes,
  body: ReleaseBody,
  bodyOptional: true,
  idempotent: true,
  responses: { 200: Released },
  async handle({ dependencies, body, context }) {
    const missed = body?.missed ?? null;
    const { state, position } = await releaseCommand(dependencies.store, missed, context);
    return success('the hold has ended', { held: false, ...state.released }, position);
  },
});

/** Holds the whole service, and releases it. */
export const operationsEndpoints: readonly Endpoint[] = [show, hold, release];
