import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** Turns data of an older version into the next one, using nothing but the data. */
export type Upcaster = (data: JsonObject) => JsonObject;

/** By event type and the version to start from. A stored sample in `test/domain/events/samples/` proves each. */
export const upcasters: Readonly<Record<string, Readonly<Record<number, Upcaster>>>> = {
  TaskCreated: {
    /** Version 1 lacked `params_schema`. */
    1: (data) => data,
    /** Version 2 lacked `namespace`. */
    2: (data) => data,
  },
  TaskUpdated: {
    /** Version 1 lacked `params_schema`. */
    1: (data) => data,
  },
  TaskPaused: {
    /** Version 1 lacked `cause`. */
    1: (data) => data,
  },
  RunRequested: {
    /** Version 1 had no overlap policies, and a retry began at the start. */
    1: (data) => ({ ...data, prior_steps: [], overlap_policy: 'allow' }),
    /** Version 2 held all prior results itself. */
    2: (data) => data,
    /** Version 3 lacked `params` and `parent`. */
    3: (data) => data,
    /** Version 4 lacked `namespace`. */
    4: (data) => data,
    /** Version 5 lacked `prior_results.before`. */
    5: (data) => data,
    /** Version 6 held the payload of its event itself. */
    6: (data) => data,
  },
  RunRetried: {
    /** Version 1 lacked `step`. */
    1: (data) => data,
  },
  RunSkipped: {
    /** Version 1 lacked `retry_of`. */
    1: (data) => data,
    /** Version 2 lacked `params` and `parent`. */
    2: (data) => data,
    /** Version 3 lacked `namespace`. */
    3: (data) => data,
  },
  RunStepCompleted: {
    /** Version 1 lacked `arguments_hash` and `now`. */
    1: (data) => data,
  },
  RunSucceeded: {
    /** Version 1 had steps without `arguments_hash` and `now`. */
    1: (data) => data,
    /** Version 2 lacked `namespace`. */
    2: (data) => data,
  },
  RunFailed: {
    /** As RunSucceeded. */
    1: (data) => data,
    2: (data) => data,
  },
  RunCanceled: {
    /** Version 1 lacked `output`. */
    1: (data) => data,
  },
  RunRemoved: {
    /** Version 1 lacked `started`. */
    1: (data) => data,
    /** Version 2 lacked `artifact_bytes`. */
    2: (data) => data,
  },
  BackfillRequested: {
    /** Version 1 lacked `params`. */
    1: (data) => data,
    /** Version 2 lacked `namespace`. */
    2: (data) => data,
  },
  AgentRegistered: {
    /** Version 1 lacked `namespace`. */
    1: (data) => data,
  },
  RunStepSuspended: {
    /** Version 1 lacked `namespace`. */
    1: (data) => data,
  },
  EventPublished: {
    /** Version 1 lacked `namespace`. */
    1: (data) => data,
  },
  WebhookScheduled: {
    /** Version 1 lacked `namespace`. */
    1: (data) => data,
  },
  WorkerRegistered: {
    /** Version 1 lacked `namespace`. */
    1: (data) => data,
  },
  SecretSet: {
    /** Version 1 lacked `expires_at`. */
    1: (data) => ({ ...data, expires_at: null }),
  },
  RecordsRemoved: {
    /** Version 1 had no payloads. */
    1: (data) => data,
  },
  StatisticsKept: {
    /** Version 1 had no namespaces. */
    1: (data) => data,
    /** Version 2 had no quarter hours, errors and skipped runs. */
    2: (data) => data,
  },
};

/** Upcasts data step by step. Data that is not an object stays unchanged, and the schema then rejects it. */
export function upcast(type: string, data: JsonValue, from: number, to: number): JsonValue {
  let current = data;
  for (let version = from; version < to && isJsonObject(current); version += 1) {
    const upcast = upcasters[type]?.[version];
    if (!upcast) throw new Error(`${type} has no upcaster from version ${version}`);
    current = upcast(current);
  }
  return current;
}
