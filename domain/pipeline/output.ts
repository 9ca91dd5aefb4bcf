import type { StepEnd } from '../events/catalogue.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { setOwn } from './set-own.ts';
import {
  markerWithoutPreview,
  jsonBytes,
  serializedMarker,
  toPlainJson,
  utf8Length,
} from './json-size.ts';

/** The most bytes of a run's output as JSON; results that do not fit are truncated. */
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

/**
 * The data that an output needs in addition to the step ends. It is stored in the run's last event (`output` of
 * RunSucceeded and RunFailed). So the output, which may exceed an event's size, can be folded from the run's stream
 * alone.
 */
export interface OutputLayout {
  /** Pairs of a step's id and its `save_as`. */
  readonly names?: readonly (readonly [string, string])[];
  /** Pairs of a group's `save_as` and the names of its steps. */
  readonly groups?: readonly (readonly [string, readonly string[]])[];
  /** Ids of groups, whose ends are not results. */
  readonly hidden?: readonly string[];
}

/** Counts of the steps that call a tool, including those in groups. */
export interface RunSummary {
  readonly total_steps: number;
  /** Succeeded or failed. */
  readonly executed_steps: number;
  readonly skipped_steps: number;
  /** The step whose failure ended the run. */
  readonly failed_step?: string;
}

/** A run's output, as the API shows it. */
export interface RunOutput extends JsonObject {
  readonly steps: JsonObject;
  readonly summary: JsonObject;
}

/**
 * Folds a run's output from its step ends, in stream order (those before a retry and in the last event included), and
 * the `output` of its last event (`{}` for a run that has not ended).
 *
 * A step's result is stored under its `save_as` or, without one, its id. The result of a `for_each` is the array of the
 * items' results. Skipped steps are omitted; a failed step that the run continued after is `{error}`. Above `maxBytes`,
 * results that do not fit are replaced by `{truncated, size_bytes, preview}` (the preview only if it fits), and the
 * output has `truncated: true`.
 *
 * @param maxBytes most bytes as JSON; markers of very many results may exceed it
 */
export function outputOf(
  steps: readonly StepEnd[],
  stored: JsonObject,
  maxBytes = MAX_OUTPUT_BYTES,
): RunOutput {
  const layout = (isJsonObject(stored['layout']) ? stored['layout'] : {}) as OutputLayout;
  const last = new Map<string, StepEnd>();
  for (const step of steps) last.set(step.step, step);
  const summary: JsonObject = isJsonObject(stored['summary']) ? stored['summary'] : countOf(last);
  const results = resultsOf(last, new Set(layout.hidden), summary['failed_step'] ?? null);
  const names = new Map(layout.names);
  const named: Record<string, unknown> = {};
  for (const [id, result] of results) setOwn(named, names.get(id) ?? id, result);
  for (const [name, members] of layout.groups ?? []) {
    const group: Record<string, unknown> = {};
    for (const member of members) {
      if (Object.hasOwn(named, member)) setOwn(group, member, named[member]);
    }
    setOwn(named, name, group);
  }
  return fit(named as JsonObject, summary, maxBytes);
}

/** `<id>[<index>]`, the name of an item of a `for_each`. */
export function itemName(id: string, index: number): string {
  return `${id}[${index}]`;
}

/** Splits the name of a step end; `index` is null for a whole step. */
export function splitItemName(name: string): {
  readonly id: string;
  readonly index: number | null;
} {
  if (!name.endsWith(']')) return { id: name, index: null };
  const bracket = name.lastIndexOf('[');
  return { id: name.slice(0, bracket), index: Number(name.slice(bracket + 1, -1)) };
}

/** The result of an ended step as later steps and the output see it. */
export function resultOf(end: StepEnd): unknown {
  return end.status === 'failed' ? { error: end.error } : end.result;
}

function resultsOf(
  last: ReadonlyMap<string, StepEnd>,
  hidden: ReadonlySet<string>,
  failedStep: JsonValue,
): ReadonlyMap<string, unknown> {
  const results = new Map<string, unknown>();
  const lists = new Map<string, unknown[]>();
  for (const end of last.values()) {
    const { id, index } = splitItemName(end.step);
    if (hidden.has(id) || end.step === failedStep) continue;
    if (index === null) {
      if (end.status !== 'skipped' && !lists.has(id)) results.set(id, resultOf(end));
      continue;
    }
    let list = lists.get(id);
    if (!list) lists.set(id, (list = []));
    while (list.length < index) list.push(null);
    list[index] = end.status === 'skipped' ? null : resultOf(end);
    results.set(id, list);
  }
  return results;
}

function countOf(last: ReadonlyMap<string, StepEnd>): RunSummary & JsonObject {
  const ids = new Map<string, boolean>();
  for (const { step, status } of last.values()) {
    const { id } = splitItemName(step);
    ids.set(id, (ids.get(id) ?? true) && status === 'skipped');
  }
  const skipped_steps = [...ids.values()].filter(Boolean).length;
  return { total_steps: ids.size, executed_steps: ids.size - skipped_steps, skipped_steps };
}

/** The whole output if it fits. Otherwise, results are truncated so that each has room for a marker. */
function fit(steps: JsonObject, summary: JsonObject, maxBytes: number): RunOutput {
  const whole = { steps, summary };
  // Estimate first, because most outputs are far smaller.
  if (toPlainJson(whole).bytes <= maxBytes) return whole;
  // Each result is serialized only once, since that dominates the time.
  const members = Object.entries(steps).map(([name, result]) => memberOf(name, result));
  const sum = members.reduce((bytes, { nameSize, size }) => bytes + nameSize + size, 0);
  // There is one comma fewer than members.
  if (jsonBytes({ steps: {}, summary }) + sum - Math.min(1, members.length) <= maxBytes)
    return whole;
  const kept: Record<string, unknown> = {};
  let left = maxBytes - jsonBytes({ steps: {}, summary, truncated: true });
  for (const { nameSize, minSize } of members) left -= nameSize + minSize;
  for (const member of members) {
    const { name, result, size, minSize } = member;
    const value = fitResult(minSize + left, member);
    left -= (value === result ? size : jsonBytes(value)) - minSize;
    setOwn(kept, name, value);
  }
  return { steps: kept as JsonObject, summary, truncated: true };
}

/** The result, or a marker if it does not fit. */
function fitResult(room: number, { result, text, size }: Member): unknown {
  if (size <= room) return result;
  const marker = serializedMarker(text, size);
  return jsonBytes(marker) <= room ? marker : markerWithoutPreview(size);
}

/** A result in an output. Sizes are bytes of JSON. */
interface Member {
  readonly name: string;
  readonly result: JsonValue;
  /** The result as JSON. */
  readonly text: string;
  /** Size of its name, the colon and a comma. */
  readonly nameSize: number;
  readonly size: number;
  /** Its smallest possible size, when truncated. */
  readonly minSize: number;
}

function memberOf(name: string, result: JsonValue): Member {
  const text = JSON.stringify(result ?? null);
  const size = utf8Length(text);
  const minSize = Math.min(size, jsonBytes(markerWithoutPreview(size)));
  return { name, result, text, nameSize: jsonBytes(name) + 2, size, minSize };
}
