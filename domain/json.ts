/** Values that survive JSON unchanged. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object: event data, payloads, results. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whether a value is an object, neither null nor an array. Does not look inside. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
