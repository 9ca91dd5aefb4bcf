import type { StepEnd } from '../events/catalogue.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { setOwn } from './own.ts';
import { bareMarker, jsonBytes, markerOf, toPlainJson, utf8Length } from './size.ts';

/** Largest output of a run, as JSON text; results that don't fit are cut. */
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

/**
 * What turns step ends into an output and does not stand in them. It goes with the run's last event
 * (`output` of RunSucceeded and RunFailed), so that the output, which may be larger than an event, can be
 * folded from the run's stream alone.
 */
export interface OutputLayout {
  /** Pairs of a step's id and its `save_as`. */
  readonly names?: readonly (readonly [string, string])[];
  /** Pairs of a group's `save_as` and the names of its steps. */
  readonly groups?: readonly (readonly [string, readonly string[]])[];
  /** Ids whose ends are no results: those of groups. */
  readonly hidden?: readonly string[];
}

/** How many steps there were, and what became of them. Steps with a tool count, those in groups too. */
export interface RunSummary {
  readonly total_steps: number;
  /** Succeeded or failed. */
  readonly executed_steps: number;
  readonly skipped_steps: number;
  /** The step whose failure ended the run. */
  readonly failed_step?: string;
}

/** A run's output, as the interface shows it. */
export interface RunOutput extends JsonObject {
  readonly steps: JsonObject;
  readonly summary: JsonObject;
}

/**
 * A run's output, folded from its step ends (those before a retry and those in its last event included, in
 * the order of the stream) and from the `output` of its last event. Also of a run that has not ended yet,
 * with `{}` for that.
 *
 * A step's result stands under its `save_as`, else its id; that of a `for_each` is the array of the items'
 * results. Skipped steps are left out; one that failed and was passed over is `{error}`. Over 4 MiB, results
 * that don't fit any more are replaced by `{truncated, size_bytes, preview}`, without the preview where there
 * is no room for that either, and the output says `truncated: true`.
 *
 * @param most bytes of JSON text, where it is to be less than 4 MiB; markers of very many results may take more
 */
export function outputOf(
  steps: readonly StepEnd[],
  stored: JsonObject,
  most = MAX_OUTPUT_BYTES,
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
  return fit(named as JsonObject, summary, most);
}

/** `<id>[<index>]`, the name of an item of a `for_each`. */
export function itemName(id: string, index: number): string {
  return `${id}[${index}]`;
}

/** Takes the name of a step end apart; `index` is null for a whole step. */
export function splitName(name: string): { readonly id: string; readonly index: number | null } {
  if (!name.endsWith(']')) return { id: name, index: null };
  const open = name.lastIndexOf('[');
  return { id: name.slice(0, open), index: Number(name.slice(open + 1, -1)) };
}

/** What later steps and the output see of a step that has ended. */
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
    const { id, index } = splitName(end.step);
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
    const { id } = splitName(step);
    ids.set(id, (ids.get(id) ?? true) && status === 'skipped');
  }
  const skipped_steps = [...ids.values()].filter(Boolean).length;
  return { total_steps: ids.size, executed_steps: ids.size - skipped_steps, skipped_steps };
}

/** The output as a whole where that fits; else results are cut, so that each has room for a marker at least. */
function fit(steps: JsonObject, summary: JsonObject, most: number): RunOutput {
  const whole = { steps, summary };
  // Estimated first: most are far smaller.
  if (toPlainJson(whole).bytes <= most) return whole;
  // Each is written out once: of megabytes that is what takes the time.
  const members = Object.entries(steps).map(([name, result]) => memberOf(name, result));
  const sum = members.reduce((bytes, { around, size }) => bytes + around + size, 0);
  // There is one comma fewer than there are members.
  if (jsonBytes({ steps: {}, summary }) + sum - Math.min(1, members.length) <= most) return whole;
  const kept: Record<string, unknown> = {};
  let left = most - jsonBytes({ steps: {}, summary, truncated: true });
  for (const { around, least } of members) left -= around + least;
  for (const member of members) {
    const { name, result, size, least } = member;
    const value = within(least + left, member);
    left -= (value === result ? size : jsonBytes(value)) - least;
    setOwn(kept, name, value);
  }
  return { steps: kept as JsonObject, summary, truncated: true };
}

/** A result, or what stands for it where there is not the room for it. */
function within(room: number, { result, text, size }: Member): unknown {
  if (size <= room) return result;
  const marker = markerOf(text, size);
  return jsonBytes(marker) <= room ? marker : bareMarker(size);
}

/** A result in an output. Sizes are those of JSON text, in bytes. */
interface Member {
  readonly name: string;
  readonly result: JsonValue;
  /** Its JSON text. */
  readonly text: string;
  /** Of its name, the colon and a comma. */
  readonly around: number;
  readonly size: number;
  /** What it takes where it is cut as far as can be. */
  readonly least: number;
}

function memberOf(name: string, result: JsonValue): Member {
  const text = JSON.stringify(result ?? null);
  const size = utf8Length(text);
  const least = Math.min(size, jsonBytes(bareMarker(size)));
  return { name, result, text, around: jsonBytes(name) + 2, size, least };
}
