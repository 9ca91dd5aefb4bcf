import type { Issue } from '../errors.ts';
import { isGroup, type Pipeline } from './pipeline.ts';

/** The faults of the `needs` of a pipeline's steps: unknown ids, steps within groups, cycles. */
export function faultyNeeds(pipeline: Pipeline): readonly Issue[] {
  const issues: Issue[] = [];
  const ids = new Set(pipeline.map(({ id }) => id));
  pipeline.forEach((step, index) => {
    const field = `payload.pipeline.${index}`;
    (step.needs ?? []).forEach((needed, place) => {
      if (!ids.has(needed)) {
        const issue = `there is no step ${needed} outside a group`;
        issues.push({ field: `${field}.needs.${place}`, issue });
      }
    });
    if (!isGroup(step)) return;
    step.parallel.forEach((child, place) => {
      if (child.needs === undefined) return;
      const issue = 'only a step outside a group can have needs; move them to the group';
      issues.push({ field: `${field}.parallel.${place}.needs`, issue });
    });
  });
  return issues.length > 0 ? issues : cyclesIn(pipeline);
}

/**
 * Kahn's algorithm: a step is removed once everything that it needs is removed. The remaining steps are part of a cycle
 * or depend on one.
 */
function cyclesIn(pipeline: Pipeline): readonly Issue[] {
  const left = new Map(pipeline.map((step) => [step.id, step.needs ?? []]));
  for (let before = -1; before !== left.size;) {
    before = left.size;
    for (const [id, needs] of left) if (!needs.some((each) => left.has(each))) left.delete(id);
  }
  const [first] = left.keys();
  if (first === undefined) return [];
  const path = [first];
  for (let id = first; ;) {
    id = left.get(id)?.find((each) => left.has(each)) ?? first;
    const start = path.indexOf(id);
    path.push(id);
    if (start < 0) continue;
    const cycle = path.slice(start);
    const index = pipeline.findIndex((step) => step.id === id);
    const issue = `the steps need each other in a circle: ${cycle.join(' needs ')}`;
    return [{ field: `payload.pipeline.${index}.needs`, issue }];
  }
}
