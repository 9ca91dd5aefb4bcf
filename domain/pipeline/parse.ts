import { Ajv, type ErrorObject } from 'ajv';
import { invalidInput, type Issue } from '../errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import {
  CallStepSchema,
  GroupStepSchema,
  isGroup,
  type CallStep,
  type GroupStep,
  type ParsedPayload,
  type Step,
} from './pipeline.ts';
import { faultyNeeds } from './needs.ts';
import { schemaErrors } from './schema-errors.ts';

const ajv = new Ajv({
  allErrors: true,
  strict: false,
  // These schemas are our own; see the events' codec for all three options.
  meta: false,
  validateSchema: false,
  code: { optimize: false },
});
const checkCall = ajv.compile(CallStepSchema);
const checkGroup = ajv.compile(GroupStepSchema);

/**
 * Parses a task's payload and fills in step ids.
 * @throws RefusalError `INVALID` naming the first fault, with all of them in its details
 */
export function parsePayload(payload: JsonObject): ParsedPayload {
  const { parsed, issues } = readPayload(payload);
  const [first, ...others] = issues;
  if (first) throw invalidInput([first, ...others]);
  return parsed;
}

/** A payload's pipeline without its invalid steps, and the faults of the payload. */
export function readPayload(payload: JsonObject): {
  readonly parsed: ParsedPayload;
  readonly issues: readonly Issue[];
} {
  const issues: Issue[] = [];
  const { pipeline, params = {} } = payload;
  if (!isJsonObject(params)) issues.push({ field: 'payload.params', issue: 'must be an object' });
  if (!Array.isArray(pipeline)) {
    issues.push({ field: 'payload.pipeline', issue: 'must be an array of steps' });
    return { parsed: { pipeline: [], params: {} }, issues };
  }
  const steps: Step[] = [];
  (pipeline as readonly JsonValue[]).forEach((value, index) => {
    const field = `payload.pipeline.${index}`;
    const step = readStep(value, field, `step_${index}`, issues);
    if (step) steps.push(step);
  });
  issues.push(...repeatedIds(pipeline, steps));
  // Steps that were left out may be needed.
  if (issues.length === 0) issues.push(...faultyNeeds(steps));
  return { parsed: { pipeline: steps, params: isJsonObject(params) ? params : {} }, issues };
}

function readStep(value: JsonValue, field: string, id: string, issues: Issue[]): Step | null {
  if (!isJsonObject(value) || !Object.hasOwn(value, 'parallel')) {
    return readCall(value, field, id, issues);
  }
  if (!checkGroup(value)) {
    issues.push(...issuesOf(checkGroup.errors, field, 'a group of parallel steps'));
    return null;
  }
  const group = value as unknown as GroupStep;
  const parallel: CallStep[] = [];
  (value['parallel'] as readonly JsonValue[]).forEach((child, index) => {
    const step = readCall(child, `${field}.parallel.${index}`, `${id}_${index}`, issues);
    if (step) parallel.push(step);
  });
  return { ...group, id: group.id ?? id, parallel };
}

function readCall(value: JsonValue, field: string, id: string, issues: Issue[]): CallStep | null {
  if (!isJsonObject(value)) {
    issues.push({ field, issue: 'must be an object' });
    return null;
  }
  if (!checkCall(value)) {
    issues.push(...issuesOf(checkCall.errors, field, 'a step'));
    return null;
  }
  const step = value as unknown as CallStep;
  return { ...step, id: step.id ?? id };
}

/** The first issue of each field, at dotted paths. */
function issuesOf(
  errors: readonly ErrorObject[] | null | undefined,
  field: string,
  what: string,
): readonly Issue[] {
  const issues = schemaErrors(errors, (error) => messageOf(error, what)).map(
    ({ path, issue }): Issue => ({ field: [field, ...path].join('.'), issue }),
  );
  return issues.filter(
    (one, index) => issues.findIndex(({ field: other }) => other === one.field) === index,
  );
}

function messageOf({ keyword }: ErrorObject, what: string): string | undefined {
  if (keyword === 'required') return 'is missing';
  if (keyword === 'additionalProperties') return `is not a field of ${what}`;
  return keyword === 'pattern' ? 'must not contain brackets' : undefined;
}

function repeatedIds(pipeline: readonly JsonValue[], steps: readonly Step[]): readonly Issue[] {
  const seen = new Set<string>();
  const issues: Issue[] = [];
  const checkId = (id: string, written: unknown, field: string): void => {
    if (!seen.has(id)) {
      seen.add(id);
      return;
    }
    const where = isJsonObject(written) && written['id'] !== undefined ? `${field}.id` : field;
    issues.push({ field: where, issue: `another step already has the id ${id}` });
  };
  // Indexes only match if no step was left out; issues of single steps come first anyway.
  if (steps.length !== pipeline.length) return [];
  steps.forEach((step, index) => {
    const field = `payload.pipeline.${index}`;
    const written = pipeline[index] as JsonObject;
    checkId(step.id, written, field);
    if (!isGroup(step)) return;
    const children = written['parallel'] as readonly JsonValue[];
    if (step.parallel.length !== children.length) return;
    step.parallel.forEach((child, place) => {
      checkId(child.id, children[place], `${field}.parallel.${place}`);
    });
  });
  return issues;
}
