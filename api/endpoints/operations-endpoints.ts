import type { Static } from '@sinclair/typebox';
import { load } from '../../domain/handle.ts';
import { holdCommand, operationsFold, releaseCommand } from '../../domain/operators/operations.ts';
import { streams } from '../../domain/streams.ts';
import {
  Held,
  HoldBody,
  Operations,
  ReleaseBody,
  Released,
} from '../schemas/answer-schemas-operations.ts';
import { ReadQuery } from '../schemas/schemas.ts';
import { endpoint, type Endpoint } from '../endpoint.ts';

const scopes = ['ops'] as const;

const show = endpoint({
  method: 'get',
  paths: ['/operations'],
  operationId: 'getOperations',
  summary: 'Says whether the service is on hold, by whom and why, and how the last hold ended',
  scopes,
  query: ReadQuery,
  answers: { 200: Operations },
  async handle({ dependencies }) {
    const { state } = await load(dependencies.store, streams.operations(), operationsFold);
    return { body: { held: state.hold !== null, ...state } };
  },
});

const hold = endpoint<Static<typeof HoldBody>>({
  method: 'post',
  paths: ['/operations/hold'],
  operationId: 'holdService',
  summary: 'Holds the service: nothing fires and no run starts until it is released',
  scopes,
  body: HoldBody,
  idempotent: true,
  answers: { 200: Held },
  async handle({ dependencies, body, context }) {
    const { state, position } = await holdCommand(dependencies.store, body.reason, context);
    const details = { held: true, ...state.hold };
    return { body: { success: true, message: 'the service is on hold', details }, position };
  },
});

const release = endpoint<Static<typeof ReleaseBody> | undefined>({
  method: 'post',
  paths: ['/operations/release'],
  operationId: 'releaseService',
  summary: 'Ends a hold; what was due meanwhile goes by the misfire policies, or by `missed`',
  scopes,
  body: ReleaseBody,
  bodyOptional: true,
  idempotent: true,
  answers: { 200: Released },
  async handle({ dependencies, body, context }) {
    const missed = body?.missed ?? null;
    const { state, position } = await releaseCommand(dependencies.store, missed, context);
    const details = { held: false, ...state.released };
    return { body: { success: true, message: 'the service goes on', details }, position };
  },
});

/** Orders to the whole service. */
export const operationsEndpoints: readonly Endpoint[] = [show, hold, release];
