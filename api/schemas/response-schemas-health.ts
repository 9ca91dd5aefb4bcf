import { Type, type Static } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { time } from './response-schemas.ts';

/** Responses of the health endpoints. */

const Check = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    status: OneOf(['healthy', 'degraded', 'unhealthy'] as const),
    message: Type.String(),
  },
  { title: 'HealthCheck', description: 'some parts add fields' },
);

export const HealthReport = Type.Object(
  {
    status: OneOf(['healthy', 'degraded', 'unhealthy'] as const),
    timestamp: time,
    version: Type.String(),
    checks: Type.Array(Check),
  },
  { title: 'HealthReport', additionalProperties: false },
);
export type HealthReport = Static<typeof HealthReport>;

export const Readiness = Type.Object(
  { status: OneOf(['ready', 'not_ready'] as const), checks: Type.Array(Check) },
  { title: 'Readiness', additionalProperties: false },
);
export type Readiness = Static<typeof Readiness>;

export const Liveness = Type.Object(
  {
    status: Type.Literal('alive'),
    timestamp: time,
    version: Type.String(),
    instance: Type.String({ description: 'random id of this start of the process' }),
  },
  { title: 'Liveness', additionalProperties: false },
);
export type Liveness = Static<typeof Liveness>;
