import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** Turns an older version's data into the next one's. Never asks anything but the data. */
export type Upcaster = (data: JsonObject) => JsonObject;

/**
 * By event type and the version that it starts from. Each is proven by a stored sample in
 * `test/domain/events/samples/`.
 */
export const upcasters: Readonly<Record<string, Readonly<Record<number, Upcaster>>>> = {
  RunRequested: {
    /** Version 1 knew no overlap policies, and a retried run began from the start. */
    1: (data) => ({ ...data, prior_steps: [], overlap_policy: 'allow' }),
    /** All results to begin with stood in version 2 itself. */
    2: (data) => data,
  },
  RunSkipped: {
    /** Version 1 did not say what was to be retried. */
    1: (data) => data,
  },
  RunCanceled: {
    /** Version 1 did not say under which names results stand. */
    1: (data) => data,
  },
  RunRemoved: {
    /** Version 1 did not say when it had started. */
    1: (data) => data,
  },
};

/** Brings data up to a version, a step at a time. Data that is not an object is left for the schema to refuse. */
export function bringUp(type: string, data: JsonValue, from: number, to: number): JsonValue {
  let current = data;
  for (let version = from; version < to && isJsonObject(current); version += 1) {
    const upcast = upcasters[type]?.[version];
    if (!upcast) throw new Error(`${type} has no upcaster from version ${version}`);
    current = upcast(current);
  }
  return current;
}
