import { fromIso, type Instant } from '../../domain/clock.ts';
import type { Projection } from '../read-model.ts';
import type { ProjectionStatus } from './projection-status.ts';

/** Under which name the report of the projector that leads is remembered between processes. */
export const PROJECTION_REPORT = 'projections';

/** A report older than this is of a projector that is gone. Milliseconds. */
const REPORT_LIMIT = 10_000;

/** How the views are, as a projector has said last: disposable, and a moment old. */
export interface ProjectionReport {
  /** ISO 8601. */
  readonly at: string;
  /** Of the projector's lease; an older release does not say it. */
  readonly fence?: number;
  readonly views: readonly ProjectionStatus[];
}

/** What a projector is asked for its report by. */
interface Memory {
  recall(name: string): Promise<string | null>;
}

type Shape = Pick<Projection, 'name' | 'schema'>;

/** The shapes of views in a text: the same for the same ones, in any order. */
export function shapesOf(shapes: readonly Shape[]): string {
  return shapes
    .map(({ name, schema }) => `${name}.${schema}`)
    .toSorted()
    .join(' ');
}

/** Under which name it is remembered how the views are that a release makes beside the projector that leads. */
export function besideReport(projections: readonly Shape[]): string {
  return `${PROJECTION_REPORT} of ${shapesOf(projections)}`;
}

/** Whether the projector that made a report is still there. */
export function isOfNow(report: ProjectionReport, now: Instant): boolean {
  return now - fromIso(report.at) < REPORT_LIMIT;
}

/**
 * How the views of this release are: as the projector that leads has said last, and where that is of another release and
 * knows other shapes, the one beside it. null where neither has said anything.
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
  const [led] = await ask(PROJECTION_REPORT);
  if (led?.views.length === projections.length) return led;
  const told = [...(led === undefined ? [] : [led]), ...(await ask(besideReport(projections)))];
  const [newest] = told.toSorted((a, b) => fromIso(b.at) - fromIso(a.at));
  if (newest === undefined) return null;
  // One that has gone says nothing of now.
  const present = told.filter((report) => isOfNow(report, fromIso(newest.at)));
  return { at: newest.at, views: present.flatMap(({ views }) => views) };
}

/** Reads a remembered report; null for none, and for text that is none. */
export function parseProjectionReport(text: string | null): ProjectionReport | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isReport(value) ? value : null;
  } catch {
    // Of another release, or cut: as good as none.
    return null;
  }
}

function isReport(value: unknown): value is ProjectionReport {
  if (typeof value !== 'object' || value === null) return false;
  const { at, views, fence } = value as Record<string, unknown>;
  if (fence !== undefined && typeof fence !== 'number') return false;
  return typeof at === 'string' && Array.isArray(views);
}
