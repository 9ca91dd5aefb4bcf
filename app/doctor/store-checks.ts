import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fromIso, type Instant } from '../../domain/clock.ts';
import { BEGINNING } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { importUnderWay } from '../../domain/operators/import.ts';
import { operationsFold } from '../../domain/operators/operations.ts';
import { streams } from '../../domain/streams.ts';
import { parseReport, SCHEDULER_REPORT, totals } from '../../scheduler/audit/report.ts';
import { recallReport } from '../../projections/projector/projection-report.ts';
import { eventStoreDbVersion } from '../../stores/eventstoredb/connecting/server-version.ts';
import { coordinationFile } from '../../stores/sqlite/coordination/coordination-file.ts';
import { registerFile } from '../../stores/sqlite/read-model/view-files.ts';
import { sqliteVersion } from '../../stores/sqlite/database.ts';
import { workersCheck } from '../../observability/health-rules.ts';
import { shortageOf } from '../watching/slot-shortage.ts';
import { projections } from '../projecting/projections.ts';
import type { Stores, StoreSettings } from '../stores.ts';
import { fault, ok, warn, wordsOf, type Finding } from './finding.ts';

/** A view that is further behind than this is not just about to follow. Seconds. */
const LAG = 30;

/** Clocks that differ by more than this show in what is decided. Milliseconds. */
const SKEW = 2_000;

/** A report of the audit that is older than this was not followed by another. Milliseconds. */
const AUDIT_AGE = 5 * 60_000;

/** Looks whether the stores answer, and which they are. @returns false for those that can't be asked further */
export async function checkStores(
  { store, readModel, coordination }: Stores,
  settings: StoreSettings,
): Promise<{ readonly answer: boolean; readonly findings: readonly Finding[] }> {
  const { eventStoreUrl, readModelUrl } = settings;
  const sqlite = `SQLite ${sqliteVersion()}`;
  const log =
    eventStoreUrl === undefined
      ? `embedded, ${sqlite}`
      : `EventStoreDB ${(await eventStoreDbVersion(eventStoreUrl)) ?? '(version unknown)'}`;
  const views =
    readModelUrl === undefined
      ? `embedded, ${sqlite}${absentOf(settings.dataDirectory)}`
      : 'MongoDB';
  const looked = await Promise.all([
    answers('log', log, 'see that the server of SVC_EVENT_STORE_URL runs', () => store.ping()),
    answers('views', views, 'see that the server of SVC_READ_MODEL_URL runs', async () => {
      await readModel.ping();
      await coordination.ping();
    }),
  ]);
  return { answer: looked.every(({ verdict }) => verdict === 'ok'), findings: looked };
}

/** What of the embedded views and of coordination is not there, as where no service has run yet. */
function absentOf(directory: string): string {
  const files = [registerFile(directory), coordinationFile(directory)];
  const absent = files.filter((file) => !existsSync(file)).map((file) => basename(file));
  if (absent.length === 0) return '';
  return absent.length === 1
    ? `; ${absent.join()} is not there yet: a start makes it`
    : `; ${absent.join(' and ')} are not there yet: a start makes them`;
}

async function answers(
  check: string,
  what: string,
  advice: string,
  ask: () => Promise<void>,
): Promise<Finding> {
  try {
    await ask();
    return ok(check, what);
  } catch (error) {
    return fault(check, `${what}: ${wordsOf(error)}`, advice);
  }
}

/** Looks whether operators keep the service from firing, or an import was broken off. */
export async function checkOrders({ store }: Stores): Promise<readonly Finding[]> {
  const check = 'orders';
  const underWay = await importUnderWay(store);
  if (underWay !== null) {
    const what = `an import was begun at ${underWay.since} and is not completed`;
    return [fault(check, what, 'run the same svc import or svc restore again; no service starts')];
  }
  const { hold } = (await load(store, streams.operations(), operationsFold)).state;
  if (hold === null) return [ok(check, 'not on hold')];
  const what = `on hold since ${hold.since}: ${hold.reason}`;
  return [warn(check, what, 'svc owed says what waits, svc release ends it')];
}

/** Looks which processes are alive, and what the scheduler's audit of itself has found last. */
export async function checkProcesses(
  { coordination, readModel }: Stores,
  now: Instant,
): Promise<readonly Finding[]> {
  const members = await coordination.alive();
  const roles = new Set(members.flatMap(({ about }) => rolesOf(about['roles'])));
  const missing = ['api', 'projector', 'scheduler', 'worker'].filter((role) => !roles.has(role));
  const alive = `${members.length} alive`;
  const findings: Finding[] = [];
  if (members.length === 0) {
    findings.push(
      warn(
        'processes',
        'no service runs on this store',
        'start one: npm start, or npx task-scheduling-service',
      ),
    );
  } else if (missing.length > 0) {
    const what = `${alive}, but none with the role ${missing.join(', ')}`;
    findings.push(fault('processes', what, 'start one with it: SVC_ROLES'));
  } else {
    findings.push(ok('processes', alive));
  }
  const workers = members.filter(({ about }) => rolesOf(about['roles']).includes('worker'));
  const shortage = await shortageOf(workers, readModel);
  const slots = workersCheck({ alive: workers.length, waiting: 0, shortage, now });
  if (shortage !== null && slots.status === 'degraded') {
    const how = 'raise SVC_WORKER_CONCURRENCY, start another worker, or cancel what holds them';
    findings.push(warn('slots', slots.message, how));
  }
  const report = parseReport(await coordination.recall(SCHEDULER_REPORT));
  if (report === null || members.length === 0) return findings;
  const { found, mended } = totals(report);
  const age = now - fromIso(report.at);
  const list = 'docs/how-to/alerts.md, "The scheduler\'s audit"';
  if (age > AUDIT_AGE) {
    const what = `its last pass was at ${report.at}`;
    findings.push(warn('audit', what, 'see the log of the process that leads'));
  } else if (report.faults.length > 0 || found > mended) {
    const kinds = [...Object.keys(report.findings), ...report.faults].join(', ');
    findings.push(fault('audit', `it can't mend all that it found: ${kinds}`, list));
  } else {
    const what = found === 0 ? 'it found nothing' : `it found and mended ${found}`;
    findings.push(found === 0 ? ok('audit', what) : warn('audit', what, list));
  }
  return findings;
}

/** What to do about views of another log. */
const MAKE_ANEW = 'start the service (again): it throws such views away, and makes them anew';

/** Looks how far the views are behind the log, and whether they hold keys back. */
export async function checkViews(
  { store, readModel, coordination }: Stores,
  now: Instant,
): Promise<readonly Finding[]> {
  const check = 'lag';
  const head = await store.head();
  const running = (await coordination.alive()).length > 0;
  const report = await recallReport(coordination, projections);
  const findings: Finding[] = [];
  const missing: string[] = [];
  let most = 0;
  for (const projection of projections) {
    const { name } = projection;
    if ((await readModel.liveGeneration(projection)) === null) {
      missing.push(name);
      continue;
    }
    const position = await readModel.checkpoint(projection);
    if (position > head && !(await store.reaches(position))) {
      const what = `the view ${name} is ahead of the log: it is of another`;
      findings.push(fault(check, what, MAKE_ANEW));
      continue;
    }
    const landmark = await readModel.landmark(projection);
    if (landmark !== null && !(await store.hasHad(landmark))) {
      const { stream, revision } = landmark;
      const what = `the view ${name} is of another log: in this one revision ${revision} of ${stream} is not what it took`;
      findings.push(fault(check, what, MAKE_ANEW));
      continue;
    }
    const [next] = position >= head ? [] : await store.readAll(position || BEGINNING, 1);
    const lag =
      next === undefined ? 0 : Math.max(0, now - fromIso(next.metadata.occurredAt)) / 1000;
    most = Math.max(most, lag);
    const parked = report?.views.find((view) => view.name === name)?.parked ?? 0;
    if (parked > 0) {
      const how = `svc projections parked ${name}, then retry or skip`;
      findings.push(
        fault(
          check,
          `the view ${name} holds ${parked === 1 ? 'a key' : `${parked} keys`} back`,
          how,
        ),
      );
    }
    if (lag > LAG && running) {
      const how = 'svc projections status; see the log of the projector';
      findings.push(fault(check, `the view ${name} is ${Math.round(lag)} s behind`, how));
    }
  }
  if (missing.length > 0 && running) {
    const what = `never made: ${missing.join(', ')}`;
    findings.push(warn(check, what, 'a service with the role projector makes them when it runs'));
  }
  if (findings.length > 0) return findings;
  const there = projections.length - missing.length;
  if (there === 0) return [ok(check, 'no view is there yet: a start makes them')];
  const behind = most === 0 ? 'all views are level' : `${most.toFixed(1)} s at most`;
  const absent =
    missing.length === 0 ? '' : `; not there yet, a start makes them: ${missing.join(', ')}`;
  return [ok(check, `${behind} (${there} views)${absent}`)];
}

/** Compares this machine's time with that of the newest events, and with that of a service that answers. */
export async function checkClocks(
  { store }: Stores,
  now: () => Instant,
  url: string,
): Promise<readonly Finding[]> {
  const check = 'clocks';
  const ntp = 'set the clocks by NTP on every machine';
  const findings: Finding[] = [];
  const [last] = await store.readAllBackwards(null, 1);
  const newest =
    last === undefined ? null : [last.metadata.occurredAt, last.createdAt].sort().at(-1);
  if (newest !== undefined && newest !== null && fromIso(newest) - now() > SKEW) {
    const ahead = Math.round((fromIso(newest) - now()) / 1000);
    const what = `the newest event lies ${ahead} s in the future of this machine`;
    findings.push(fault(check, what, ntp));
  }
  const theirs = await timeOf(url, now);
  if (theirs !== null && Math.abs(theirs.difference) > SKEW + theirs.uncertainty) {
    const what = `the service at ${url} is ${Math.round(theirs.difference / 1000)} s off this machine`;
    findings.push(fault(check, what, ntp));
  }
  if (findings.length > 0) return findings;
  const asked = theirs === null ? '' : `, and with the service at ${url}`;
  return [ok(check, `in step with the log${asked}`)];
}

/** How far the service's time is off, and within what that is known; null where none answers. Milliseconds. */
async function timeOf(
  url: string,
  now: () => Instant,
): Promise<{ readonly difference: number; readonly uncertainty: number } | null> {
  try {
    const before = now();
    const response = await fetch(`${url}/health/live`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    const after = now();
    const date = Date.parse(response.headers.get('date') ?? '');
    if (Number.isNaN(date)) return null;
    // The header has whole seconds.
    return {
      difference: date + 500 - (before + after) / 2,
      uncertainty: 500 + (after - before) / 2,
    };
  } catch {
    // None runs there, or it is too busy to ask: the processes are told of by another check.
    return null;
  }
}

function rolesOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((role) => typeof role === 'string') : [];
}
