import { fromIso, type Instant } from '../../domain/clock.ts';
import type { Projection } from '../read-model.ts';
import { parseRemembered } from '../remembered-json.ts';
import type { ProjectionStatus } from './projection-status.ts';

/** The name under which the leading projector's report is remembered between processes. */
export const PROJECTION_REPORT = 'projections';

/** If a report is older than this, its projector is gone. Milliseconds. */
const MAX_REPORT_AGE_MS = 10_000;

/** The last status of the views that a projector reported. It may be lost, and is about a second old. */
export interface ProjectionReport {
  /** ISO 8601. */
  readonly at: string;
  /** The fence of the projector's lease; missing in reports of older releases. */
  readonly fence?: number;
  readonly views: readonly ProjectionStatus[];
}

interface Memory {
  recall(name: string): Promise<string | null>;
}

type Shape = Pick<Projection, 'name' | 'schema'>;

/** Identifies a set of shapes of views, regardless of their order. */
export function shapesOf(shapes: readonly Shape[]): string {
  return shapes
    .map(({ name, schema }) => `${name}.${schema}`)
    .toSorted()
    .join(' ');
}

/** The name under which a release remembers the status of views that it builds beside the leading projector. */
export function besideReport(projections: readonly Shape[]): string {
  return `${PROJECTION_REPORT} of ${shapesOf(projections)}`;
}

/** Whether the projector that made a report is still running. */
export function isCurrent(report: ProjectionReport, now: Instant): boolean {
  return now - fromIso(report.at) < MAX_REPORT_AGE_MS;
}

/**
 * The status of this release's views: from the leading projector, and, if that belongs to another release with other
 * shapes, from the projector beside it. null if neither has reported.
 *
 * @throws CoordinationError
 */
export async function recallReport(
  memory: Memory,
  projections: readonly Shape[],
): Promise<ProjectionReport | null> {
  const isOwn = (view: ProjectionStatus): boolean =>
    projections.some(({ name, schema }) => name === view.name && schema === view.schema);
  const ask = async (name: string): Promise<readonly ProjectionReport[]> => {
    const report = parseProjectionReport(await memory.recall(name));
    return report === null ? [] : [{ ...report, views: report.views.filter(isOwn) }];
  };
  const [leader] = await ask(PROJECTION_REPORT);
  if (leader?.views.length === projections.length) return leader;
  const beside = await ask(besideReport(projections));
  const reports = leader === undefined ? beside : [leader, ...beside];
  const [newest] = reports.toSorted((a, b) => fromIso(b.at) - fromIso(a.at));
  if (newest === undefined) return null;
  // The last report of a projector that is gone says nothing about the present.
  const present = reports.filter((report) => isCurrent(report, fromIso(newest.at)));
  return { at: newest.at, views: present.flatMap(({ views }) => views) };
}

/** Parses a remembered report; null for none, and for an invalid string. */
export const parseProjectionReport = (text: string | null): ProjectionReport | null =>
  parseRemembered<ProjectionReport>(
    text,
    ({ at, views, fence }) =>
      typeof at === 'string' &&
      Array.isArray(views) &&
      (fence === undefined || typeof fence === 'number'),
  );
