import { Type, type Static } from '@sinclair/typebox';
import { ComparisonSchema } from '../../domain/events/projection-events.ts';
import { Nullable, OneOf, closed, withDefault } from '../../domain/events/schema-parts.ts';
import { parkedOrders, rebuildSwitches } from '../../domain/vocabulary.ts';
import { projectionStates, rebuildStates } from '../../projections/projector/projection-status.ts';
import { count, done, pageOf, time } from './response-schemas.ts';

/** Responses and bodies about views. */

const version = Type.Integer({ minimum: 0 });
const name = Type.String();

const Rebuild = Type.Object(
  {
    version,
    state: OneOf(rebuildStates),
    handled: count,
    left_out: count,
    progress: Type.Number({ minimum: 0, maximum: 1 }),
    events_per_second: count,
    seconds_left: Nullable(Type.Number()),
    detail: Nullable(Type.String()),
    rate: Nullable(Type.Number()),
    switch: OneOf(rebuildSwitches),
    comparison: Nullable(ComparisonSchema),
  },
  { title: 'Rebuild', additionalProperties: false },
);

const Projection = Type.Object(
  {
    name,
    version,
    schema: Type.Integer({ minimum: 1 }),
    state: OneOf(projectionStates),
    position: Type.String(),
    lag_seconds: Type.Number({ minimum: 0 }),
    caught_up: Type.Boolean(),
    handled: count,
    parked: count,
    rebuild: Nullable(Rebuild),
    previous: Nullable(closed({ version, until: time })),
    detail: Nullable(Type.String()),
  },
  { title: 'Projection', additionalProperties: false },
);
export type Projection = Static<typeof Projection>;

export const Projections = closed({ projections: Type.Array(Projection) });

export const RebuildOrdered = done({
  name,
  version,
  rate: Nullable(Type.Number()),
  switch: OneOf(rebuildSwitches),
});

/** A rebuild was paused, resumed or discarded. */
export const RebuildChanged = done({ name, version });

/** Another generation is live. */
export const Switched = done({
  name,
  version,
  previous: Nullable(version),
  done: Type.Boolean({ description: 'false: accepted, but no projector carried it out in time' }),
});

const ParkedKey = Type.Object(
  {
    key: Type.String(),
    position: Type.String(),
    stream: Type.String(),
    type: Type.String(),
    error: Type.String(),
  },
  { title: 'ParkedKey', additionalProperties: false },
);
export const ParkedKeyPage = pageOf('ParkedKeyPage', ParkedKey);

export const ParkedKeyDone = done({
  name,
  key: Type.String(),
  order: OneOf(parkedOrders),
  done: Type.Boolean(),
  /** Why it is still parked. */
  error: Nullable(Type.String()),
});

/** The body of switch and rollback. */
export const SwitchBody = Type.Partial(closed({ expected_version: version }));
export type SwitchBody = Static<typeof SwitchBody>;

/** Body of `POST /projections/{name}/rebuild`. */
export const RebuildBody = Type.Partial(
  closed({
    rate: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
    switch: withDefault(OneOf(rebuildSwitches), 'auto'),
  }),
);
export type RebuildBody = Static<typeof RebuildBody>;
