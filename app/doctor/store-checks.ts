import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fromIso, type Instant } from '../../domain/clock.ts';
import { BEGINNING } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { unfinishedImport } from '../../domain/operators/import.ts';
import { operationsFold } from '../../domain/operators/operations.ts';
import { streams } from '../../domain/streams.ts';
import { workersCheck } from '../../observability/health-rules.ts';
import { recallReport } from '../../projections/projector/projection-report.ts';
import type { Projection } from '../../projections/read-model.ts';
import { parseReport, SCHEDULER_REPORT, totals } from '../../scheduler/audit/report.ts';
import { eventStoreDbVersion } from '../../stores/eventstoredb/connecting/server-version.ts';
import { coordinationFile } from '../../stores/sqlite/coordination/coordination-file.ts';
import { registerFile } from '../../stores/sqlite/read-model/view-files.ts';
import { sqliteVersion } from '../../stores/sqlite/database.ts';
import { roles as allRoles } from '../configuration/configuration.ts';
import { projections } from '../projecting/projections.ts';
import type { Stores, StoreSettings } from '../stores.ts';
import { shortageOf } from '../watching/slot-shortage.ts';
import { failedCheck, fault, ok, warn, wordsOf, type Finding } from './finding.ts';

/** Most seconds of lag of a healthy view. */
const MAX_LAG = 30;

/** Most milliseconds between clocks that do not affect decisions. */
const MAX_SKEW = 2_000;

/** Most milliseconds since a report of a running audit. */
const MAX_AUDIT_AGE = 5 * 60_000;

/** Checks that the stores are available. `answer` is false if other checks are impossible. */
export async function checkStores(
  { store, readModel, coordination }: Stores,
  { eventStoreUrl, readModelUrl, dataDirectory }: StoreSettings,
): Promise<{ readonly answer: boolean; readonly findings: readonly Finding[] }> {
  const sqlite = `embedded, SQLite ${sqliteVersion()}`;
  const log =
    eventStoreUrl === undefined
      ? sqlite
      : `EventStoreDB ${(await eventStoreDbVersion(eventStoreUrl)) ?? '(version unknown)'}`;
  const views = readModelUrl === undefined ? sqlite + missingFiles(dataDirectory) : 'MongoDB';
  const findings = await Promise.all([
    checkStore('log', log, 'check the server of SVC_EVENT_STORE_URL', () => store.ping()),
    checkStore('views', views, 'check the server of SVC_READ_MODEL_URL', async () => {
      await readModel.ping();
      await coordination.ping();
      await readModel.requireRights?.();
    }),
  ]);
  return { answer: findings.every(({ verdict }) => verdict === 'ok'), findings };
}

/** The embedded files that do not exist before the first start. */
function missingFiles(directory: string): string {
  const files = [registerFile(directory), coordinationFile(directory)];
  const missing = files.filter((file) => !existsSync(file)).map((file) => basename(file));
  return missing.length === 0 ? '' : `; a start creates ${missing.join(' and ')}`;
}

async function checkStore(
  check: string,
  what: string,
  advice: string,
  ping: () => Promise<void>,
): Promise<Finding> {
  try {
    await ping();
    return ok(check, what);
  } catch (error) {
    return failedCheck(check, error, { found: `${what}: ${wordsOf(error)}`, advice });
  }
}

/** Checks for a hold and an unfinished import. */
export async function checkOrders({ store }: Stores): Promise<readonly Finding[]> {
  const check = 'orders';
  const underWay = await unfinishedImport(store);
  if (underWay !== null) {
    const what = `an import was started at ${underWay.since} and is unfinished`;
    const advice = 'run the same svc import or svc restore again; no service starts until then';
    return [fault(check, what, advice)];
  }
  const { hold } = (await load(store, streams.operations(), operationsFold)).state;
  if (hold === null) return [ok(check, 'not on hold')];
  const what = `on hold since ${hold.since}: ${hold.reason}`;
  return [warn(check, what, 'svc owed lists the backlog, svc release ends the hold')];
}

/** Checks which processes are alive, their slots, and the last report of the scheduler's audit. */
export async function checkProcesses(
  { coordination, readModel }: Stores,
  now: Instant,
): Promise<readonly Finding[]> {
  const members = await coordination.alive();
  const findings = [processesFinding(members.map(({ about }) => rolesOf(about['roles'])))];
  const workers = members.filter(({ about }) => rolesOf(about['roles']).includes('worker'));
  const shortage = await shortageOf(workers, readModel);
  const slots = workersCheck({ alive: workers.length, waiting: 0, shortage, now });
  if (shortage !== null && slots.status === 'degraded') {
    const advice =
      'raise SVC_WORKER_CONCURRENCY, start another worker, or cancel runs that hold them';
    findings.push(warn('slots', slots.message, advice));
  }
  const report = parseReport(await coordination.recall(SCHEDULER_REPORT));
  if (report === null || members.length === 0) return findings;
  const check = 'audit';
  const { found, mended } = totals(report);
  const list = 'see docs/how-to/alerts.md, "The scheduler\'s audit"';
  if (now - fromIso(report.at) > MAX_AUDIT_AGE) {
    findings.push(warn(check, `its last pass was at ${report.at}`, "see the leader's log"));
  } else if (report.faults.length > 0 || found > mended) {
    const kinds = [...Object.keys(report.findings), ...report.faults].join(', ');
    findings.push(fault(check, `it could not repair everything it found: ${kinds}`, list));
  } else {
    const repaired = warn(check, `it found and repaired ${found} violations`, list);
    findings.push(found === 0 ? ok(check, 'it found no violations') : repaired);
  }
  return findings;
}

/** @param processes the roles of each */
function processesFinding(processes: readonly (readonly string[])[]): Finding {
  const check = 'processes';
  if (processes.length === 0) {
    const advice = 'start one: npm start, or npx task-scheduling-service';
    return warn(check, 'no service runs on this store', advice);
  }
  const missing = allRoles.filter((role) => !processes.some((roles) => roles.includes(role)));
  const alive = `${processes.length} alive`;
  if (missing.length === 0) return ok(check, alive);
  const what = `${alive}, but none with the role ${missing.join(', ')}`;
  return fault(check, what, 'start one with it (SVC_ROLES)');
}

/** Checks the views' lag, their log, and parked keys. */
export async function checkViews(stores: Stores, now: Instant): Promise<readonly Finding[]> {
  const check = 'lag';
  const { store, readModel, coordination } = stores;
  const head = await store.head();
  const isRunning = (await coordination.alive()).length > 0;
  const report = await recallReport(coordination, projections);
  const findings: Finding[] = [];
  const missing: string[] = [];
  let maxLag = 0;
  for (const projection of projections) {
    const { name } = projection;
    if ((await readModel.liveGeneration(projection)) === null) {
      missing.push(name);
      continue;
    }
    const foreign = await foreignLogProblem(stores, projection, head);
    if (foreign !== null) {
      const advice = 'restart the service, which discards such views and rebuilds them';
      findings.push(fault(check, `the view ${name} ${foreign}`, advice));
      continue;
    }
    const position = await readModel.checkpoint(projection);
    const [next] = position >= head ? [] : await store.readAll(position || BEGINNING, 1);
    const lag =
      next === undefined ? 0 : Math.max(0, now - fromIso(next.metadata.occurredAt)) / 1000;
    maxLag = Math.max(maxLag, lag);
    const parked = report?.views.find((view) => view.name === name)?.parked ?? 0;
    if (parked > 0) {
      const what = `the view ${name} has ${parked} parked ${parked === 1 ? 'key' : 'keys'}`;
      findings.push(fault(check, what, `svc projections parked ${name}, then retry or skip`));
    }
    if (lag > MAX_LAG && isRunning) {
      const what = `the view ${name} is ${Math.round(lag)} s behind`;
      findings.push(fault(check, what, "svc projections status; see the projector's log"));
    }
  }
  if (missing.length > 0 && isRunning) {
    const advice = 'start a service with the role projector, which builds them';
    findings.push(warn(check, `never built: ${missing.join(', ')}`, advice));
  }
  if (findings.length > 0) return findings;
  const count = projections.length - missing.length;
  if (count === 0) return [ok(check, 'no views yet; a start builds them')];
  const behind = maxLag === 0 ? 'all views have caught up' : `at most ${maxLag.toFixed(1)} s`;
  const absent = missing.length === 0 ? '' : `; a start builds ${missing.join(', ')}`;
  return [ok(check, `${behind} (${count} views)${absent}`)];
}

/** Why a view belongs to another log; null if it does not. */
async function foreignLogProblem(
  { store, readModel }: Stores,
  projection: Projection,
  head: string,
): Promise<string | null> {
  const position = await readModel.checkpoint(projection);
  if (position > head && !(await store.reaches(position))) {
    return 'is ahead of the log, so it belongs to another log';
  }
  const landmark = await readModel.landmark(projection);
  if (landmark === null || (await store.hasHad(landmark))) return null;
  const { stream, revision } = landmark;
  return `belongs to another log: it has a different revision ${revision} of ${stream}`;
}

/** Compares this machine's clock with the newest events and with a running service. */
export async function checkClocks(
  { store }: Stores,
  now: () => Instant,
  url: string,
): Promise<readonly Finding[]> {
  const check = 'clocks';
  const advice = 'set the clocks by NTP on every machine';
  const findings: Finding[] = [];
  const [last] = await store.readAllBackwards(null, 1);
  const newest =
    last === undefined ? undefined : [last.metadata.occurredAt, last.createdAt].sort().at(-1);
  const ahead = newest === undefined ? 0 : fromIso(newest) - now();
  if (ahead > MAX_SKEW) {
    const seconds = Math.round(ahead / 1000);
    const what = `the newest event is ${seconds} s in the future of this machine`;
    findings.push(fault(check, what, advice));
  }
  const service = await clockOf(url, now);
  if (service !== null && Math.abs(service.difference) > MAX_SKEW + service.uncertainty) {
    const seconds = Math.round(service.difference / 1000);
    const what = `the clock of the service at ${url} differs from this machine's by ${seconds} s`;
    findings.push(fault(check, what, advice));
  }
  if (findings.length > 0) return findings;
  return [ok(check, `agree with the log${service === null ? '' : ` and the service at ${url}`}`)];
}

/** The difference of a service's clock and its uncertainty, in milliseconds; null if none answers. */
async function clockOf(
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
    const difference = date + 500 - (before + after) / 2;
    return { difference, uncertainty: 500 + (after - before) / 2 };
  } catch {
    return null;
  }
}

const rolesOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((role) => typeof role === 'string') : [];
